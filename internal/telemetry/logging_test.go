package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ordergraph/ordergraph/graph/observe"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// entries decodes the entries of a JSON log.
func entries(t *testing.T, log *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for d := json.NewDecoder(log); d.More(); {
		var entry map[string]any
		if err := d.Decode(&entry); err != nil {
			t.Fatal(err)
		}
		all = append(all, entry)
	}
	return all
}

// If the context of an entry belongs to a trace, the entry contains the trace ID, in both formats
// and in derived loggers.
func TestTraceID(t *testing.T) {
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}}))
	const id = "01020000000000000000000000000000"
	for format, want := range map[string]string{telemetry.LogJSON: `"traceId":"` + id + `"`, telemetry.LogText: "traceId=" + id} {
		var log bytes.Buffer
		logger := slog.New(telemetry.NewLogHandler(&log, format, slog.LevelInfo)).With("a", 1)
		logger.InfoContext(ctx, "traced")
		logger.DebugContext(ctx, "below the level")
		if !strings.Contains(log.String(), want) || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%s: the log %q does not contain %q once", format, log.String(), want)
		}
		log.Reset()
		logger.Info("not traced")
		if strings.Contains(log.String(), "traceId") {
			t.Errorf("%s: an entry without a trace has a trace ID: %s", format, log.String())
		}
	}
}

// An entry contains hashes instead of the principal's ID and of the document.
func TestEntry(t *testing.T) {
	record := func(secret, principal string) (map[string]any, string) {
		var log bytes.Buffer
		access := telemetry.NewAccessLog(slog.New(telemetry.NewLogHandler(&log, telemetry.LogJSON, slog.LevelInfo)), []byte(secret), time.Now)
		e := telemetry.AccessLogEntry{
			Operation: observe.Operation{Name: observe.UntrustedName, Type: "query", Codes: []string{"TIMED_OUT", "INTERNAL"}, Duration: 1500 * time.Microsecond, Requests: 2, ReadUnits: 1.5, Document: "{ secretField }"},
			Transport: "http", Status: 503, Pool: "requests", Bytes: 12, Principal: principal, Role: "STAFF", RequestID: "r1",
		}
		access.Record(context.Background(), &e)
		text := log.String()
		return entries(t, &log)[0], text
	}
	entry, text := record("a key", "employee-17")
	for name, want := range map[string]any{
		"msg": "request", "level": "INFO", "operation": "other", "document": "1bcc3047a396", "type": "query", "code": "TIMED_OUT", "transport": "http", "status": 503.0, "pool": "requests",
		"durationMs": 1.5, "requests": 2.0, "readUnits": 1.5, "writeUnits": 0.0, "bytes": 12.0, "role": "STAFF", "requestId": "r1",
	} {
		if entry[name] != want {
			t.Errorf("%s is %v, want %v", name, entry[name], want)
		}
	}
	for _, secret := range []string{"employee", "secretField"} {
		if strings.Contains(text, secret) {
			t.Errorf("the entry contains %q: %s", secret, text)
		}
	}
	same, _ := record("a key", "employee-17")
	otherKey, _ := record("another key", "employee-17")
	otherPrincipal, _ := record("a key", "employee-18")
	if hash := entry["principal"]; len(hash.(string)) != 12 || same["principal"] != hash || otherKey["principal"] == hash || otherPrincipal["principal"] == hash {
		t.Errorf("the hashes of a principal are %v and %v, with another key %v, of another principal %v", hash, same["principal"], otherKey["principal"], otherPrincipal["principal"])
	}
}

// After 1,000 requests in a second, one of 100 requests is logged. The log reports the number of
// omitted requests.
func TestSampling(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(1000, 0)
	access := telemetry.NewAccessLog(slog.New(telemetry.NewLogHandler(&log, telemetry.LogJSON, slog.LevelInfo)), nil, func() time.Time { return now })
	record := func(n int) {
		for range n {
			access.Record(t.Context(), &telemetry.AccessLogEntry{Operation: observe.Operation{Codes: []string{"OVERLOADED"}}})
		}
	}
	count := func() (requests int, omitted float64) {
		for _, entry := range entries(t, &log) {
			if entry["msg"] == "request" {
				requests++
			} else {
				omitted += entry["omitted"].(float64)
			}
		}
		return requests, omitted
	}
	record(1000)
	if requests, omitted := count(); requests != 1000 || omitted != 0 {
		t.Errorf("of 1,000 requests, %d were written and %g reported as omitted", requests, omitted)
	}
	record(500)
	if requests, omitted := count(); requests != 5 || omitted != 0 {
		t.Errorf("of 500 further requests, %d were written and %g reported as omitted", requests, omitted)
	}
	now = now.Add(time.Second)
	record(1050)
	if requests, omitted := count(); requests != 1000 || omitted != 495 {
		t.Errorf("in the next second, %d were written and %g reported as omitted", requests, omitted)
	}
	access.Close()
	access.Close()
	if requests, omitted := count(); requests != 0 || omitted != 50 {
		t.Errorf("at the end, %d were written and %g reported as omitted", requests, omitted)
	}
}
