// Package tracetest contains a trace collector for tests. It imports no other package of the
// module.
package tracetest

import (
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is an HTTP server that receives spans in the OTLP format and stores them. It is safe
// for concurrent use.
type Collector struct {
	// URL is the value for OTEL_EXPORTER_OTLP_ENDPOINT.
	URL string

	mu       sync.Mutex
	spans    []*otlp.Span
	resource map[string]string
	text     strings.Builder
}

// New returns a Collector that stops at the end of the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{resource: map[string]string{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s received an invalid request: %v", r.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.add(&request, body)
		response, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(response)
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// Configure sets OTEL_EXPORTER_OTLP_ENDPOINT until the test ends, so that the SDK sends traces to
// the Collector. It also sets the given variables. In the list, each name is followed by its value.
func (c *Collector) Configure(t testing.TB, variables ...string) {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	for i := 0; i < len(variables); i += 2 {
		t.Setenv(variables[i], variables[i+1])
	}
}

func (c *Collector) add(request *collector.ExportTraceServiceRequest, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(body)
	for _, resource := range request.ResourceSpans {
		for _, a := range resource.Resource.Attributes {
			c.resource[a.Key] = value(a.Value)
		}
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// Contains reports whether a received export request contains the text.
func (c *Collector) Contains(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(c.text.String(), text)
}

// ResourceAttribute returns the value of a resource attribute of the received spans.
func (c *Collector) ResourceAttribute(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource[name]
}

// Span is a span that the Collector has received.
type Span struct {
	Name, Kind                    string
	TraceID, ParentID, LinkedSpan string
	SpanID                        string
	// Error is the description of the span's status if the operation has failed. Otherwise, it is
	// empty.
	Error      string
	Attributes map[string]string
	Children   []*Span
	start      uint64
}

// Spans returns the root spans, sorted by start time. A root span has no parent, or a parent that
// the Collector has not received. The other spans are in the field Children of their parents.
func (c *Collector) Spans() []*Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]*Span{}
	var all []*Span
	for _, s := range c.spans {
		span := &Span{
			Name: s.Name, Kind: strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"), TraceID: hex.EncodeToString(s.TraceId), ParentID: hex.EncodeToString(s.ParentSpanId),
			SpanID: hex.EncodeToString(s.SpanId), Attributes: map[string]string{}, start: s.StartTimeUnixNano,
		}
		if s.Status != nil && s.Status.Code == otlp.Status_STATUS_CODE_ERROR {
			span.Error = s.Status.Message
		}
		for _, l := range s.Links {
			span.LinkedSpan = hex.EncodeToString(l.SpanId)
		}
		for _, a := range s.Attributes {
			span.Attributes[a.Key] = value(a.Value)
		}
		byID[span.SpanID] = span
		all = append(all, span)
	}
	slices.SortFunc(all, func(a, b *Span) int { return int(int64(a.start - b.start)) })
	var roots []*Span
	for _, s := range all {
		if parent := byID[s.ParentID]; parent != nil {
			parent.Children = append(parent.Children, s)
		} else {
			roots = append(roots, s)
		}
	}
	return roots
}

// value formats the value of an attribute.
func value(v *common.AnyValue) string {
	switch v := v.Value.(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *common.AnyValue_DoubleValue:
		return fmt.Sprint(v.DoubleValue)
	case *common.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	case *common.AnyValue_ArrayValue:
		var all []string
		for _, element := range v.ArrayValue.Values {
			all = append(all, value(element))
		}
		return strings.Join(all, ", ")
	}
	return ""
}

// treeWidth is the maximum length in characters of a line of attributes. A line with a single
// attribute can be longer.
const treeWidth = 98

// Tree formats spans as a tree, without times and IDs. Concurrent spans can start in any order, so
// Tree sorts the children of each span by round trip, access pattern and name.
func Tree(spans []*Span) string {
	var tree strings.Builder
	writeTree(&tree, spans, "")
	return tree.String()
}

func writeTree(tree *strings.Builder, spans []*Span, indent string) {
	for _, s := range spans {
		fmt.Fprintf(tree, "%s%s %s\n", indent, s.Kind, s.Name)
		line := indent + "   "
		for _, name := range slices.Sorted(maps.Keys(s.Attributes)) {
			attribute := " " + name + "=" + s.Attributes[name]
			if len(line)+len(attribute) > treeWidth && line != indent+"   " {
				fmt.Fprintln(tree, line)
				line = indent + "   "
			}
			line += attribute
		}
		fmt.Fprintln(tree, line)
		children := slices.Clone(s.Children)
		slices.SortStableFunc(children, func(a, b *Span) int { return strings.Compare(a.sortKey(), b.sortKey()) })
		writeTree(tree, children, indent+"  ")
	}
}

// sortKey returns the key by which Tree sorts a span among the children of its parent.
func (s *Span) sortKey() string {
	return s.Attributes["ordergraph.round_trip"] + s.Attributes["ordergraph.access_pattern"] + s.Name
}
