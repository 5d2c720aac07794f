package lambda_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/tracetest"
)

// The trace of an invocation is exported before its response, because Lambda then freezes the
// process. The access log contains the request.
func TestTelemetry(t *testing.T) {
	d, c := newDatabase(t), tracetest.New(t)
	settings := d.settings(d.load(t, sample(t)), "ORDERGRAPH_ACCESS_LOG=on", "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
	admin := token(t, settings)
	var f *function
	t.Cleanup(func() { // when the function has ended
		if log := f.log.String(); strings.Count(log, `"msg":"request"`) != 2 || !strings.Contains(log, `"traceId":"`+c.Spans()[0].TraceID) {
			t.Errorf("the log is %s", log)
		}
	})
	f = startFunction(t, settings)
	for i := range 2 {
		response := f.do("2.0", post(t, "", admin, `{ customer(id: "cust_01") { name } }`, ""))
		_ = response.Body.Close()
		spans := c.Spans()
		if response.StatusCode != http.StatusOK || len(spans) != i+1 || len(spans[i].Children) != 1 {
			t.Errorf("after %d responses, the status is %d and the spans are\n%s", i+1, response.StatusCode, tracetest.Tree(spans))
		}
	}
}

// If the collector does not respond, the function still does.
func TestFailedExport(t *testing.T) {
	d := newDatabase(t)
	settings := d.settings(d.load(t, sample(t)), "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1")
	f := startFunction(t, settings)
	response := f.do("2.0", post(t, "", token(t, settings), `{ viewer { role } }`, ""))
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("status %d", response.StatusCode)
	}
}
