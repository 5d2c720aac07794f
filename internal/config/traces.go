package config

import (
	"strings"

	"github.com/ordergraph/ordergraph/internal/setting"
)

// traceSettings contains the values of the OpenTelemetry variables that turn traces on or off. The
// OpenTelemetry SDK also reads these variables, and many others, itself.
type traceSettings struct{ exporter, endpoint, tracesEndpoint, disabled string }

func (t *traceSettings) settings() []setting.Setting {
	return []setting.Setting{
		{Name: "OTEL_TRACES_EXPORTER", EnvironmentOnly: true, Value: setting.Choice(&t.exporter, "", "otlp", "console", "none"), Meaning: "where to send [traces](operations.md#traces): `otlp`, `console` or `none`"},
		{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", EnvironmentOnly: true, Value: setting.Text(&t.endpoint, ""), Meaning: "URL of the OpenTelemetry collector, such as `http://localhost:4318`"},
		{Name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", EnvironmentOnly: true, Value: setting.Text(&t.tracesEndpoint, ""), Meaning: "URL for traces only, such as `http://localhost:4318/v1/traces`"},
		{Name: "OTEL_SDK_DISABLED", EnvironmentOnly: true, Value: setting.Text(&t.disabled, ""), Meaning: "`true` turns traces off"},
	}
}

// enabled reports whether the server exports traces.
func (t *traceSettings) enabled() bool {
	if strings.EqualFold(t.disabled, "true") || t.exporter == "none" {
		return false
	}
	return t.exporter+t.endpoint+t.tracesEndpoint != ""
}
