package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func noFlush(context.Context) {}

// invoke sends an event to a handler.
func invoke(t *testing.T, h http.HandlerFunc, event string) (response map[string]any, err error) {
	t.Helper()
	out, err := invoker{h, noFlush}.Invoke(t.Context(), []byte(event))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out, &response); err != nil {
		t.Fatal(err)
	}
	return response, nil
}

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct{ event, want string }{
		"a function URL": {
			`{"version": "2.0", "rawPath": "/a%2Fb", "rawQueryString": "x=1&y=%20", "headers": {"host": "h.example", "a": "1,2"}, "cookies": ["c=1", "d=2"], "requestContext": {"domainName": "d.example", "http": {"method": "PUT", "sourceIp": "2001:db8::1"}}, "body": "aGk=", "isBase64Encoded": true}`,
			`PUT /a%2Fb?x=1&y=%20 h.example [2001:db8::1]:0 "1,2" "c=1; d=2" hi 2`,
		},
		"a stage": {
			`{"version": "2.0", "rawPath": "/prod/graphql", "requestContext": {"stage": "prod", "domainName": "d.example", "http": {"method": "GET", "sourceIp": "192.0.2.1"}}}`,
			`GET /graphql d.example 192.0.2.1:0 "" ""  0`,
		},
		"a REST API": {
			`{"resource": "/graphql", "path": "/graphql", "httpMethod": "GET", "multiValueHeaders": {"host": ["h.example"], "A": ["1", "2"], "Accept-Encoding": ["gzip"]}, "queryStringParameters": {"x": "2"}, "multiValueQueryStringParameters": {"x": ["1 ", "2"]}, "requestContext": {"stage": "prod", "identity": {"sourceIp": "192.0.2.1"}}, "body": null}`,
			`GET /graphql?x=1+&x=2 h.example 192.0.2.1:0 "1" ""  0`,
		},
		"a REST API with a base path": {
			`{"resource": "/{proxy+}", "path": "/orders/graphql", "httpMethod": "POST", "headers": {"a": "1"}, "queryStringParameters": {"x": "2"}, "pathParameters": {"proxy": "graphql"}, "requestContext": {"domainName": "d.example", "identity": {"sourceIp": "192.0.2.1"}}, "body": "hi"}`,
			`POST /graphql?x=2 d.example 192.0.2.1:0 "1" "" hi 2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := invoke(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Host") != "" {
					t.Errorf("headers %v", r.Header)
				}
				fmt.Fprintf(w, "%s %s %s %s %q %q %s %d", r.Method, r.RequestURI, r.Host, r.RemoteAddr, r.Header.Get("A"), r.Header.Get("Cookie"), body, r.ContentLength)
			}, c.event)
			if err != nil || response["body"] != c.want || response["statusCode"] != 200.0 || response["isBase64Encoded"] == true {
				t.Errorf("%v %v, want %s", err, response, c.want)
			}
		})
	}
}

const anyEvent = `{"version": "2.0", "rawPath": "/", "requestContext": {"http": {"method": "GET", "sourceIp": "192.0.2.1"}}}`

func TestResponses(t *testing.T) {
	response, err := invoke(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Vary", "A")
		w.Header().Add("Vary", "B")
		w.Header().Set("Content-Length", "2")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("\xff\xfe"))
	}, anyEvent)
	if err != nil || fmt.Sprintln(response["statusCode"], response["headers"], response["body"], response["isBase64Encoded"]) != "418 map[Vary:A, B] //4= true\n" {
		t.Errorf("%v %v", err, response)
	}
	// A long body is shorter in base64 than as a JSON string.
	response, err = invoke(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(`"`, MaxDataBytes))
	}, anyEvent)
	if err != nil || response["isBase64Encoded"] != true {
		t.Errorf("a long body: %v", err)
	}
	if _, err := invoke(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 5<<20)) }, anyEvent); err == nil || !strings.Contains(err.Error(), "ORDERGRAPH_MAX_ANSWER") {
		t.Errorf("a body that is too long: %v", err)
	}
	if _, err := invoke(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, anyEvent); !errors.Is(err, http.ErrAbortHandler) {
		t.Errorf("an aborted response: %v", err)
	}
}

// The deadlines of a request and of flush are earlier than the deadline of the invocation, so that
// the response arrives in time.
func TestDeadline(t *testing.T) {
	deadline := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	flushed := false
	check := func(ctx context.Context) {
		if got, ok := ctx.Deadline(); !ok || !got.Equal(deadline.Add(-responseMargin)) {
			t.Errorf("the deadline is %v, want %v before %v", got, responseMargin, deadline)
		}
	}
	_, err := invoker{
		handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { check(r.Context()) }),
		flush:   func(ctx context.Context) { check(ctx); flushed = ctx.Err() == nil },
	}.Invoke(ctx, []byte(anyEvent))
	if !flushed {
		t.Error("flush was not called before the end of its context")
	}
	if err != nil {
		t.Error(err)
	}
}

func TestMalformedEvents(t *testing.T) {
	for event, want := range map[string]string{
		`{`:                        "read the event",
		`{"version": "2.0"}`:       "not an HTTP request",
		`{"source": "aws.events"}`: "not an HTTP request",
		`{"version": "2.0", "rawPath": "/", "requestContext": {"http": {"method": "GET", "sourceIp": "192.0.2.1"}}, "body": "!", "isBase64Encoded": true}`: "decode the body",
		`{"version": "2.0", "rawPath": "%", "requestContext": {"http": {"method": "GET", "sourceIp": "192.0.2.1"}}}`:                                       "read the URL",
	} {
		if _, err := invoke(t, nil, event); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", event, err, want)
		}
	}
}
