// Package lambda_test runs the built program in a local implementation of AWS Lambda's runtime API.
package lambda_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/cli"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// program is the path of the built program.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ordergraph-lambda-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "bootstrap")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "../..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("go build: %v: %s\n", err, out)
		return 1
	}
	return m.Run()
}

// database serves the embedded store over HTTP, and records the headers of its requests.
type database struct {
	url    string
	client *dynamodb.Client

	mu      sync.Mutex
	headers []http.Header
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	d, engine := &database{}, embedded.New()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		d.headers = append(d.headers, r.Header.Clone())
		d.mu.Unlock()
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	d.url, d.client = s.URL, dynamolocal.ClientOf(s.URL)
	return d
}

// takeHeaders returns the headers of all requests since the last call of takeHeaders.
func (d *database) takeHeaders() []http.Header {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.headers
	d.headers = nil
	return taken
}

// load creates a table with a dataset, and returns its name.
func (d *database) load(t testing.TB, dataset commerce.Dataset) string {
	t.Helper()
	store := storetest.NewTable(t, d.client, dynamo.Options{})
	if _, err := store.Load(t.Context(), dataset); err != nil {
		t.Fatal(err)
	}
	return storetest.StoreTableName(t, store)
}

func sample(t testing.TB) commerce.Dataset {
	t.Helper()
	dataset, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	return dataset
}

// jwtSecret signs the tokens of these tests.
const jwtSecret = "a secret for the tests of lambda"

// settings returns the environment variables of a server. others overrides or extends them.
func (d *database) settings(table string, others ...string) []string {
	return append(append(dynamolocal.Environment(),
		"AWS_ENDPOINT_URL_DYNAMODB="+d.url, "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/nowhere", "AWS_SHARED_CREDENTIALS_FILE=/nowhere",
		"ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_TABLE="+table, "ORDERGRAPH_CURSOR_KEY=a key for cursors of lambda",
		"ORDERGRAPH_AUTH=jwt", "ORDERGRAPH_JWT_SECRET="+jwtSecret, "ORDERGRAPH_JWT_ISSUER=https://id.example.com", "ORDERGRAPH_JWT_AUDIENCE=ordergraph",
	), others...)
}

// getenv returns a function that reads an environment of the form NAME=value.
func getenv(environment []string) func(string) string {
	values := map[string]string{}
	for _, s := range environment {
		name, value, _ := strings.Cut(s, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}

// token returns a token of an admin.
func token(t testing.TB, environment []string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Run(t.Context(), []string{"token", "-role", "ADMIN", "-subject", "root"}, cli.Environment{Stdout: &out, Stderr: &errs, Getenv: getenv(environment)}); code != 0 {
		t.Fatalf("token: %s", errs.String())
	}
	return strings.TrimSpace(out.String())
}

// startHTTP starts the HTTP server in this process, and returns its URL.
func startHTTP(t testing.TB, environment []string) string {
	t.Helper()
	for _, s := range environment {
		name, value, _ := strings.Cut(s, "=")
		if strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, value)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	listening, ended := make(chan net.Addr, 1), make(chan struct{})
	var errs bytes.Buffer
	go func() {
		defer close(ended)
		cli.Run(ctx, []string{"serve", "-addr", "127.0.0.1:0"}, cli.Environment{Stdout: io.Discard, Stderr: &errs, Getenv: getenv(environment), OnListening: func(a net.Addr) { listening <- a }})
	}()
	t.Cleanup(func() { stop(); <-ended })
	select {
	case a := <-listening:
		return "http://" + a.String()
	case <-ended:
		t.Fatalf("serve: %s", errs.String())
		return ""
	}
}

// function is a Lambda function that runs the program. It implements Lambda's runtime API for the
// program.
type function struct {
	t       testing.TB
	events  chan invocation
	results chan result
	// ended is closed when the program has exited.
	ended chan struct{}
	log   bytes.Buffer
}

// invocation is one event for the function, with its trace ID and its time limit.
type invocation struct {
	payload []byte
	traceID string
	timeout time.Duration
}

// result is the function's response, or the error that the function reports.
type result struct {
	body   []byte
	failed bool
}

const runtimePath = "/2018-06-01/runtime/invocation/"

// startFunction starts the program without arguments, as Lambda does.
func startFunction(t testing.TB, environment []string) *function {
	t.Helper()
	f := &function{t: t, events: make(chan invocation), results: make(chan result), ended: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+runtimePath+"next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case e := <-f.events:
			header := w.Header()
			header.Set("Lambda-Runtime-Aws-Request-Id", rand.Text())
			header.Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(e.timeout).UnixMilli()))
			header.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:ordergraph")
			header.Set("Lambda-Runtime-Trace-Id", e.traceID)
			_, _ = w.Write(e.payload)
		case <-r.Context().Done():
		}
	})
	finish := func(failed bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusAccepted)
			f.results <- result{body, failed}
		}
	}
	mux.HandleFunc("POST "+runtimePath+"{id}/response", finish(false))
	mux.HandleFunc("POST "+runtimePath+"{id}/error", finish(true))
	api := httptest.NewServer(mux)
	command := exec.Command(program)
	command.Stdout, command.Stderr = &f.log, &f.log
	command.Env = append(slices.Clip(environment),
		"AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"), "AWS_LAMBDA_FUNCTION_NAME=ordergraph", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023", "AWS_SESSION_TOKEN=a session", "_X_AMZN_TRACE_ID=Root=1-67891233-abcdef012345678912345678")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(f.ended)
		_ = command.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-f.ended
		api.Close()
		if t.Failed() {
			t.Logf("the function logged: %s", f.log.String())
		}
	})
	return f
}

// invoke sends an event to the function and returns its result.
func (f *function) invoke(e invocation) result {
	f.t.Helper()
	if e.timeout == 0 {
		e.timeout = time.Minute
	}
	select {
	case f.events <- e:
	case <-f.ended:
		f.t.Fatal("the function ended before the event")
	}
	select {
	case r := <-f.results:
		return r
	case <-f.ended:
		f.t.Fatal("the function ended without a response")
		return result{}
	}
}

// do sends a request as an event of the given version, and returns the response.
func (f *function) do(version string, r *http.Request) *http.Response {
	f.t.Helper()
	got := f.invoke(invocation{payload: event(f.t, version, r), traceID: traceID})
	if got.failed {
		f.t.Fatalf("the function failed: %s", got.body)
	}
	var response struct {
		StatusCode        int
		Headers           map[string]string
		MultiValueHeaders http.Header
		Body              string
		IsBase64Encoded   bool
	}
	if err := json.Unmarshal(got.body, &response); err != nil {
		f.t.Fatal(err)
	}
	header := response.MultiValueHeaders
	if header == nil {
		header = http.Header{}
	}
	for name, value := range response.Headers {
		header.Set(name, value)
	}
	body := []byte(response.Body)
	if response.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(response.Body); err != nil {
			f.t.Fatal(err)
		}
	}
	return &http.Response{StatusCode: response.StatusCode, Header: header, Body: io.NopCloser(bytes.NewReader(body))}
}

// traceID is the X-Ray trace ID of all invocations.
const traceID = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"

// sourceIP is the IP address of the client in all events.
const sourceIP = "203.0.113.7"

// event converts a request to an API Gateway event of the given format version. Function URLs also
// send version 2.0.
func event(t testing.TB, version string, r *http.Request) []byte {
	t.Helper()
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			t.Fatal(err)
		}
	}
	address := r.RemoteAddr
	if address == "" {
		address = sourceIP
	}
	headers := map[string]string{"host": "abc.execute-api.us-east-1.amazonaws.com", "x-forwarded-for": "198.51.100.1, " + address}
	for name, values := range r.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	e := map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": r.URL.Path, "rawQueryString": r.URL.RawQuery, "headers": headers,
		"requestContext": map[string]any{"stage": "$default", "domainName": headers["host"], "http": map[string]any{"method": r.Method, "path": r.URL.Path, "sourceIp": address}},
		"body":           base64.StdEncoding.EncodeToString(body), "isBase64Encoded": true,
	}
	if version == "1.0" {
		multi := map[string][]string{}
		for name, value := range headers {
			multi[name] = []string{value}
		}
		e = map[string]any{
			"resource": "/{proxy+}", "path": "/orders" + r.URL.Path, "httpMethod": r.Method, "headers": headers, "multiValueHeaders": multi,
			"multiValueQueryStringParameters": r.URL.Query(), "pathParameters": map[string]string{"proxy": strings.TrimPrefix(r.URL.Path, "/")},
			"requestContext": map[string]any{"stage": "prod", "identity": map[string]any{"sourceIp": address}},
			"body":           string(body), "isBase64Encoded": false,
		}
	}
	encoded, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
