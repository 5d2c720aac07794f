package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/middleware"
	"github.com/aws/smithy-go/tracing"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// newTestTable returns a table whose HTTP client is do.
func newTestTable(t testing.TB, do httpClientFunc, optFns ...func(*dynamodb.Options)) *Table {
	t.Helper()
	return newTable(newTestClient(do, optFns...))
}

// newTestClient returns a DynamoDB client that sends its HTTP requests with do.
func newTestClient(do httpClientFunc, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	options := dynamodb.Options{
		Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "TOKEN"), HTTPClient: do,
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Nanosecond }),
	}
	return dynamodb.New(options, optFns...)
}

// newTable returns a table that uses the client db.
func newTable(db *dynamodb.Client) *Table { return newGuardedTable(db, attempt.GuardOptions{}) }

// newGuardedTable returns a table that uses the client db, and a guard with the given options.
func newGuardedTable(db *dynamodb.Client, opts attempt.GuardOptions) *Table {
	return Open(db, "shop", Options{Codec: model.Codec{Currency: "USD"}, Attempts: opts})
}

// onFastPath returns s, which uses the fast path.
func onFastPath(s *Table) *Table { return s }

// onSDK returns a copy of s without the fast path.
func onSDK(s *Table) *Table {
	c := *s
	c.fastPath = nil
	return &c
}

// sentRequest is a request that was sent.
type sentRequest struct {
	url, host, method string
	header            http.Header
	body              any
}

// readSentRequest reads a request that was sent.
func readSentRequest(t interface{ Fatal(...any) }, r *http.Request) sentRequest {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(text)) != r.ContentLength {
		t.Fatal("the body does not have the length in ContentLength")
	}
	a := sentRequest{url: r.URL.String(), host: r.URL.Host, method: r.Method, header: r.Header.Clone()}
	if err := json.Unmarshal(text, &a.body); err != nil {
		t.Fatal(err)
	}
	return a
}

// newResponse returns a response with a checksum, as DynamoDB sends it.
func newResponse(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Crc32": {fmt.Sprint(crc32.ChecksumIEEE([]byte(body)))}},
	}
}

// A request on the fast path has the same content, endpoint and signing scope as the SDK's.
func TestFastPathRequestsMatchSDK(t *testing.T) {
	var last sentRequest
	for name, set := range map[string]func(*dynamodb.Options){
		"defaults":    func(*dynamodb.Options) {},
		"an endpoint": func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://localhost:8000") },
		"a path":      func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://localhost:8000/tables/") },
		"FIPS":        func(o *dynamodb.Options) { o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled },
		"dual stack":  func(o *dynamodb.Options) { o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled },
		"local":       func(o *dynamodb.Options) { o.Region = "local" },
		"an account": func(o *dynamodb.Options) {
			o.AccountIDEndpointMode = aws.AccountIDEndpointModePreferred
			o.Credentials = credentials.StaticCredentialsProvider{Value: aws.Credentials{AccessKeyID: "A", SecretAccessKey: "B", AccountID: "123456789012"}}
		},
		"an application":  func(o *dynamodb.Options) { o.AppID = "shop" },
		"an escaped path": func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://localhost:8000/ta%2Fbles%20x") },
		"a query":         func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://localhost:8000/x?y=z") },
		"a user":          func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("https://user:secret@localhost:8000") },
		"more attempts":   func(o *dynamodb.Options) { o.RetryMaxAttempts = 5 },
		"a defaults mode": func(o *dynamodb.Options) { o.DefaultsMode = aws.DefaultsModeInRegion },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestTable(t, func(r *http.Request) (*http.Response, error) {
				last = readSentRequest(t, r)
				return newResponse(http.StatusOK, `{}`), nil
			}, set, func(o *dynamodb.Options) { o.IdempotencyTokenProvider = fixedToken{} })
			if s.fastPath == nil {
				t.Fatal("the client does not use the fast path:", s.FallbackReason)
			}
			rapid.Check(t, func(t *rapid.T) {
				s := s
				if rapid.Bool().Draw(t, "consistent") {
					s = s.Consistent()
				}
				priced := rapid.Bool().Draw(t, "priced")
				text := rapid.StringMatching(`[A-Z]{1,9}#[a-z0-9"\\<&é\x00-\x1f\x{10FFFF}]{0,20}`)
				k := model.Keys{PK: text.Draw(t, "pk"), SK: text.Draw(t, "sk")}
				pattern := rapid.SampledFrom(model.AccessPatterns()).Draw(t, "pattern")
				b := model.Range{From: rapid.SampledFrom([]string{"", "b"}).Draw(t, "from"), To: rapid.SampledFrom([]string{"", "d"}).Draw(t, "to")}
				q := queryRequest{
					pattern: &pattern, keyRange: model.NewKeyCondition(&pattern, k.PK, rapid.SampledFrom([]string{"", "ORDER#"}).Draw(t, "prefix"), b),
					limit: rapid.IntRange(1, 500).Draw(t, "limit"), forward: rapid.Bool().Draw(t, "forward"),
				}
				actions := rapid.SliceOfN(actionGenerator(), 1, 5).Draw(t, "actions")
				for operation, read := range map[string]func(s *Table) (readResult, error){
					"GetItem": func(s *Table) (readResult, error) { return s.getItem(context.Background(), k, priced) },
					"BatchGetItem": func(s *Table) (readResult, error) {
						return s.batchGetItem(context.Background(), []model.Keys{k, {PK: "a", SK: "b"}}, priced)
					},
					"Query":            func(s *Table) (readResult, error) { return s.queryPage(context.Background(), q, priced) },
					"TransactGetItems": func(s *Table) (readResult, error) { return s.transactGet(context.Background(), k, priced) },
					"TransactWriteItems": func(s *Table) (readResult, error) {
						return s.transactWrite(context.Background(), actions, priced)
					},
				} {
					if _, err := read(s); err != nil {
						t.Fatal(err)
					}
					fast := last
					if _, err := read(onSDK(s)); err != nil {
						t.Fatal(err)
					}
					if fast.url != last.url || fast.host != last.host || fast.method != last.method || !reflect.DeepEqual(fast.body, last.body) {
						t.Fatalf("%s sends\n%+v, the SDK\n%+v", operation, fast, last)
					}
					if fast.header.Get("Amz-Sdk-Request") != "" || last.header.Get("Amz-Sdk-Request") == "" {
						t.Fatal("the first request did not use the fast path, or the second did")
					}
					for _, name := range []string{"Content-Type", "X-Amz-Target", "Accept-Encoding", "User-Agent", "X-Amz-Security-Token"} {
						got, want := fast.header[name], last.header[name]
						if name == "User-Agent" { // the SDK adds the source of the credentials
							got, want = []string{strings.Split(got[0], " m/")[0]}, []string{strings.Split(want[0], " m/")[0]}
						}
						if !slices.Equal(got, want) {
							t.Fatalf("%s: %s is %q, the SDK's %q", operation, name, fast.header[name], last.header[name])
						}
					}
					scope := func(a sentRequest) string {
						scope, _, _ := strings.Cut(a.header.Get("Authorization"), ",")
						return scope
					}
					if scope(fast) != scope(last) {
						t.Fatalf("%s is signed for %s, by the SDK for %s", operation, scope(fast), scope(last))
					}
					if signed := fast.header.Get("Authorization"); !strings.Contains(signed, "host;x-amz-date;") || !strings.Contains(signed, "x-amz-target,") {
						t.Fatalf("%s is signed as %s", operation, signed)
					}
				}
			})
		})
	}
}

// The SDK counts the attempt on the fast path as its own first attempt, for every outcome. The
// number of requests and the result are the same as without the fast path. All attempts send the
// same bytes.
func TestFirstAttemptsCountForTheSDK(t *testing.T) {
	// good is a successful response of the operation under test.
	good := ""
	failure := func(status int, name string) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			return newResponse(status, `{"__type":"x#`+name+`","message":"no"}`), nil
		}
	}
	cancelled := func(reasons string) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			return newResponse(http.StatusBadRequest, `{"__type":"x#TransactionCanceledException","Message":"no","CancellationReasons":[`+reasons+`]}`), nil
		}
	}
	ok := func() (*http.Response, error) { return newResponse(http.StatusOK, good), nil }
	altered := func(alter func(*http.Response)) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			r := newResponse(http.StatusOK, good)
			alter(r)
			return r, nil
		}
	}
	refused := func() (*http.Response, error) { return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} }
	reset := func() (*http.Response, error) { return nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET} }
	for name, outcomes := range map[string][]func() (*http.Response, error){
		"good":             {ok},
		"throttled":        {failure(400, "ProvisionedThroughputExceededException"), ok},
		"fails twice":      {failure(500, "InternalServerError"), failure(500, "InternalServerError"), ok},
		"fails always":     {failure(500, "InternalServerError"), failure(500, "InternalServerError"), failure(500, "InternalServerError"), failure(500, "InternalServerError")},
		"invalid":          {failure(400, "ValidationException"), ok},
		"denied":           {failure(400, "AccessDeniedException"), ok},
		"no table":         {failure(400, "ResourceNotFoundException"), ok},
		"refused":          {refused, ok},
		"refused always":   {refused, refused, refused, refused},
		"reset":            {reset, reset, ok},
		"conflict":         {cancelled(`{"Code":"TransactionConflict"},{"Code":"None"}`), ok},
		"in progress":      {failure(400, "TransactionInProgressException"), ok},
		"another body":     {failure(400, "IdempotentParameterMismatchException"), ok},
		"no condition":     {cancelled(`{"Code":"None"},{"Code":"ConditionalCheckFailed","Item":{"pk":{"S":"a"},"n":{"N":"5.0"},"l":{"L":[{"M":{"b":{"B":"aGk="}}}]}}}`)},
		"no length":        {altered(func(r *http.Response) { r.ContentLength = -1 })},
		"no checksum":      {altered(func(r *http.Response) { r.Header.Del("X-Amz-Crc32") })},
		"another checksum": {altered(func(r *http.Response) { r.Header.Set("X-Amz-Crc32", "7") }), ok},
		"not a checksum":   {altered(func(r *http.Response) { r.Header.Set("X-Amz-Crc32", "seven") }), ok},
		"cut": {altered(func(r *http.Response) {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(good[:9]), errorReader{io.ErrUnexpectedEOF}))
		}), ok},
		"cut short":        {altered(func(r *http.Response) { r.Body = io.NopCloser(strings.NewReader(good[:9])) }), ok},
		"longer":           {altered(func(r *http.Response) { r.ContentLength = 9 })},
		"nothing":          {altered(func(r *http.Response) { r.Body, r.ContentLength = http.NoBody, 0 }), ok},
		"a page":           {func() (*http.Response, error) { return newResponse(http.StatusOK, "<html>"), nil }, ok},
		"a gateway's page": {func() (*http.Response, error) { return newResponse(http.StatusBadGateway, "<html>"), nil }, ok},
		"a malformed body": {func() (*http.Response, error) { return newResponse(http.StatusOK, `{"Item":{"pk":null}}`), nil }},
		"the clock is late": {func() (*http.Response, error) {
			r := newResponse(http.StatusBadRequest, `{"__type":"x#InvalidSignatureException","message":"no"}`)
			r.Header.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
			return r, nil
		}, ok},
	} {
		for _, operation := range []struct {
			name, good string
			do         func(*Table) (readResult, error)
		}{
			{"GetItem", `{"Item":{"pk":{"S":"a"},"sk":{"S":"b"}}}`, func(s *Table) (readResult, error) {
				return s.getItem(context.Background(), testKeys, false)
			}},
			{"TransactGetItems", `{"Responses":[{"Item":{"pk":{"S":"a"},"sk":{"S":"b"}}}]}`, func(s *Table) (readResult, error) {
				return s.transactGet(context.Background(), testKeys, false)
			}},
			{"TransactWriteItems", `{"ConsumedCapacity":[]}`, func(s *Table) (readResult, error) {
				return s.transactWrite(context.Background(), testActions(), false)
			}},
		} {
			for _, attempts := range []int{0, 1, 2} {
				t.Run(fmt.Sprint(name, operation.name, attempts), func(t *testing.T) {
					good = operation.good
					want, got := requestOutcome(t, outcomes, attempts, onSDK, operation.do), requestOutcome(t, outcomes, attempts, onFastPath, operation.do)
					if !reflect.DeepEqual(want, got) {
						t.Errorf("with the SDK the outcome is\n%+v\non the fast path\n%+v", want, got)
					}
				})
			}
		}
	}
}

// outcome is the outcome of a request.
type outcome struct {
	requests int
	// quota contains the expected changes of the retry budget.
	quota   []string
	record  model.Record
	err     string
	reasons []types.CancellationReason
}

// requestOutcome makes one request. Its attempts get the given responses in turn.
func requestOutcome(t *testing.T, outcomes []func() (*http.Response, error), attempts int, with func(*Table) *Table, do func(*Table) (readResult, error)) outcome {
	t.Helper()
	var e outcome
	quota, open, first := &recordingQuota{}, 0, ""
	s := newGuardedTable(newTestClient(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if e.requests++; e.requests == 1 {
			first = string(body)
		} else if string(body) != first {
			t.Errorf("request %d has the body\n%s\nwant the body of the first request\n%s", e.requests, body, first)
		}
		if e.requests > len(outcomes) {
			t.Fatal("the client sent more requests than the test has outcomes")
		}
		answer, err := outcomes[e.requests-1]()
		if answer != nil {
			open++
			answer.Body = &closeNotifier{ReadCloser: answer.Body, close: func() { open-- }}
		}
		return answer, err
	}, func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Nanosecond })
		o.RetryMaxAttempts = attempts
	}), attempt.GuardOptions{Budget: quota})
	if s.fastPath == nil {
		t.Fatal(s.FallbackReason)
	}
	s.writeOptions = func(o *dynamodb.Options) {
		s.Guard.TransactionOptions()(o)
		o.Retryer = retry.AddWithMaxAttempts(retry.AddWithMaxBackoffDelay(o.Retryer, time.Nanosecond), 4)
	}
	a, err := do(with(s))
	if open != 0 {
		t.Errorf("%d bodies are not closed", open)
	}
	e.quota = quota.changes
	if err != nil {
		e.err = err.Error()
		if cancelled := (*types.TransactionCanceledException)(nil); errors.As(err, &cancelled) {
			e.reasons = cancelled.CancellationReasons
		}
	} else if len(a.Records) > 0 {
		e.record = a.Records[0].Attributes()
	}
	return e
}

// recordingQuota is a rate limiter of retries that records its calls.
type recordingQuota struct{ changes []string }

// GetToken records the use of tokens and, when released, their return.
func (q *recordingQuota) GetToken(_ context.Context, cost uint) (func() error, error) {
	q.changes = append(q.changes, fmt.Sprint("-", cost))
	return func() error {
		q.changes = append(q.changes, fmt.Sprint("+", cost))
		return nil
	}, nil
}

// AddTokens records added tokens.
func (q *recordingQuota) AddTokens(n uint) error {
	q.changes = append(q.changes, fmt.Sprint("+", n))
	return nil
}

// closeNotifier is a body that calls close when it is closed for the first time.
type closeNotifier struct {
	io.ReadCloser
	closed bool
	close  func()
}

// Close closes the body.
func (c *closeNotifier) Close() error {
	if !c.closed {
		c.closed = true
		c.close()
	}
	return c.ReadCloser.Close()
}

// Once the SDK has detected a clock skew, the fast path signs with the corrected time. It follows
// the SDK again when the skew ends.
func TestFastPathUsesClockCorrection(t *testing.T) {
	ahead := time.Hour
	requests := 0
	s := newTestTable(t, func(r *http.Request) (*http.Response, error) {
		requests++
		signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil {
			t.Fatal(err)
		}
		answer := newResponse(http.StatusOK, `{"Item":{"pk":{"S":"a"}}}`)
		if off := time.Until(signed) - ahead; off.Abs() > 5*time.Minute {
			answer = newResponse(http.StatusBadRequest, `{"__type":"x#InvalidSignatureException","message":"Signature expired"}`)
		}
		answer.Header.Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		return answer, nil
	})
	for i, step := range []struct {
		ahead time.Duration
		want  int
	}{{time.Hour, 2}, {time.Hour, 1}, {0, 2}, {0, 1}} {
		ahead, requests = step.ahead, 0
		if _, err := s.getItem(context.Background(), model.Keys{PK: "a", SK: "b"}, false); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if requests != step.want {
			t.Errorf("step %d: got %d requests, want %d", i, requests, step.want)
		}
	}
	// Another request has made the SDK correct its clock. An attempt with the uncorrected clock does
	// not count as the SDK's first attempt.
	ahead = time.Hour
	if _, err := s.Client.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &s.Name}); err != nil {
		t.Fatal(err)
	}
	if _, err := onSDK(s).withFastPathClient(s).getItem(context.Background(), model.Keys{PK: "a", SK: "b"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.getItem(context.Background(), model.Keys{PK: "a", SK: "b"}, false); err != nil {
		t.Errorf("the fast path fails after the SDK has corrected its clock: %v", err)
	}
}

// withFastPathClient sets the client of c to the client of s's fast path.
func (c *Table) withFastPathClient(s *Table) *Table {
	c.Client = s.fastPath.client
	return c
}

// If a client has a setting that only the SDK supports, all requests go through the SDK, and the
// table has the reason.
func TestUnsupportedSettingsDisableFastPath(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(*dynamodb.Options)
		reason string
	}{
		"middleware": {func(o *dynamodb.Options) {
			o.APIOptions = append(o.APIOptions, func(*middleware.Stack) error { return nil })
		}, "middleware"},
		"an interceptor":       {func(o *dynamodb.Options) { o.Interceptors.AddBeforeExecution(interceptor{}) }, "interceptors"},
		"no credentials":       {func(o *dynamodb.Options) { o.Credentials = aws.AnonymousCredentials{} }, "credentials"},
		"compression":          {func(o *dynamodb.Options) { o.EnableAcceptEncodingGzip = true }, "compressed"},
		"discovery":            {func(o *dynamodb.Options) { o.EndpointDiscovery.EnableEndpointDiscovery = aws.EndpointDiscoveryEnabled }, "AWS_ENABLE_ENDPOINT_DISCOVERY"},
		"a log":                {func(o *dynamodb.Options) { o.ClientLogMode = aws.LogSigning }, "logs requests"},
		"adaptive":             {func(o *dynamodb.Options) { o.Retryer = retry.NewAdaptiveMode() }, "AWS_RETRY_MODE"},
		"adaptive and wrapped": {func(o *dynamodb.Options) { o.Retryer, o.RetryMaxAttempts = retry.NewAdaptiveMode(), 4 }, "AWS_RETRY_MODE"},
		"a custom retryer":     {func(o *dynamodb.Options) { o.Retryer = struct{ aws.Retryer }{o.Retryer} }, "retryer"},
		"no checksums":         {func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = true }, "not validated"},
		"a custom resolver": {func(o *dynamodb.Options) {
			o.EndpointResolverV2 = struct{ dynamodb.EndpointResolverV2 }{o.EndpointResolverV2}
		}, "resolver"},
		"a deprecated resolver": {func(o *dynamodb.Options) {
			o.EndpointResolver = dynamodb.EndpointResolverFromURL("http://localhost") //nolint:staticcheck // tests the deprecated field
		}, "resolver"},
		"a resolved region": {func(o *dynamodb.Options) { o.EndpointOptions.ResolvedRegion = "eu-west-1" }, "resolver"},
		"no HTTPS":          {func(o *dynamodb.Options) { o.EndpointOptions.DisableHTTPS = true }, "resolver"},
		"preferred schemes": {func(o *dynamodb.Options) { o.AuthSchemePreference = []string{"sigv4a"} }, "AWS_AUTH_SCHEME_PREFERENCE"},
		"custom schemes":    {func(o *dynamodb.Options) { o.AuthSchemes = []smithyhttp.AuthScheme{smithyhttp.NewAnonymousScheme()} }, "authentication scheme"},
		"custom scheme resolver": {func(o *dynamodb.Options) {
			o.AuthSchemeResolver = struct{ dynamodb.AuthSchemeResolver }{o.AuthSchemeResolver}
		}, "authentication scheme"},
		"a meter":           {func(o *dynamodb.Options) { o.MeterProvider = struct{ metrics.MeterProvider }{o.MeterProvider} }, "meter"},
		"a tracer":          {func(o *dynamodb.Options) { o.TracerProvider = struct{ tracing.TracerProvider }{o.TracerProvider} }, "tracer"},
		"a custom protocol": {func(o *dynamodb.Options) { o.Protocol = nil }, "protocol"},
		"no tokens":         {func(o *dynamodb.Options) { o.IdempotencyTokenProvider = nil }, "token"},
	} {
		s := newTestTable(t, func(*http.Request) (*http.Response, error) { return nil, errors.New("no") }, c.set)
		if s.fastPath != nil || !strings.Contains(s.FallbackReason, c.reason) {
			t.Errorf("%s: reads use the fast path, or the SDK fallback has another reason: %q", name, s.FallbackReason)
		}
	}
	if s := newTestTable(t, func(*http.Request) (*http.Response, error) { return nil, errors.New("no") }); s.fastPath == nil || s.FallbackReason != "" {
		t.Errorf("a default client does not use the fast path: %s", s.FallbackReason)
	}
}

// interceptor is an interceptor of requests.
type interceptor struct{}

// BeforeExecution does nothing.
func (interceptor) BeforeExecution(context.Context, *smithyhttp.InterceptorContext) error { return nil }

// readWithSDK returns the result of a read through the SDK when the response has the given body.
func readWithSDK(t testing.TB, body []byte, read func(*Table) (readResult, error)) (readResult, error) {
	s := newTestTable(t, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}, nil
	}, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	return read(onSDK(s))
}

// equalResults reports whether two results are equal.
func equalResults(a, b readResult) bool {
	if len(a.Records) != len(b.Records) || a.more != b.more || a.unitsReported != b.unitsReported || a.units != b.units || a.transactionReads != b.transactionReads || len(a.unprocessed) != len(b.unprocessed) {
		return false
	}
	for i := range a.Records {
		if !reflect.DeepEqual(a.Records[i].Attributes(), b.Records[i].Attributes()) || a.Records[i].Size() != b.Records[i].Size() {
			return false
		}
	}
	return true
}

var fuzzSeeds = []string{
	`{}`, `{"Item":{"pk":{"S":"a"},"sk":{"S":"b"},"n":{"N":"5.0"}}}`,
	`{"Items":[{"pk":{"S":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"},"b":{"B":"aGk="},"t":{"BOOL":true},"f":{"BOOL":false},"nil":{"NULL":true}}],"Count":1,"ScannedCount":1,"LastEvaluatedKey":{"pk":{"S":"x"}}}`,
	`{"Items":[{"l":{"L":[{"M":{"a":{"S":"é"}}},{"L":[]},{"SS":["x","y"]},{"NS":["1","-2e3"]},{"BS":["aGk=",""]}]}},{}],"Count":2,"ScannedCount":2}`,
	`{"Responses":{"shop":[{"pk":{"S":"a"}},{"pk":{"S":"b"}}]},"UnprocessedKeys":{},"ConsumedCapacity":[{"TableName":"shop","CapacityUnits":1.5}]}`,
	`{"Responses":{"shop":[]},"UnprocessedKeys":{"shop":{"Keys":[{"pk":{"S":"a"},"sk":{"S":"b"}}]}}}`,
	`{"ConsumedCapacity":{"TableName":"shop","CapacityUnits":0.5},"Item":{ "pk" : { "S" : "a" } } }`,
	`{"Item":{"a":{"S":"1"},"a":{"S":"2"}}}`, `{"Item":{"a":{"S":"\ud800"}}}`, `{"Item":{"a":{}}}`, `{"Item":{"a":{"X":"1"}}}`, `{"Item":null}`,
	`{"Responses":{"shop":[]},"ConsumedCapacity":[{}]}`,
	`{"ConsumedCapacity":[{"TableName":"shop","CapacityUnits":6.0,"WriteCapacityUnits":6.0}]}`,
	`{"ConsumedCapacity":[{"TableName":"shop","CapacityUnits":2.0,"ReadCapacityUnits":2.0,"WriteCapacityUnits":0}]}`,
	`{"Responses":[{"Item":{"pk":{"S":"a"}}}]}`, `{"Responses":[{}]}`, `{"Responses":[{"Item":{}},{}]}`, `{"Responses":[]}`, `{"Responses":[null]}`,
}

// FuzzParseResponse compares the fast path with the SDK. The fast path must read the same from a
// response as the SDK, or leave the response to the SDK.
func FuzzParseResponse(f *testing.F) {
	for _, body := range fuzzSeeds {
		for operation := range byte(5) {
			f.Add(operation, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, operation byte, body []byte) {
		original := bytes.Clone(body)
		parsed, ok := parseResponse(body, "shop", 3)
		if !bytes.Equal(body, original) {
			t.Fatal("parse has modified the body")
		}
		if !ok {
			return
		}
		// Only operations that have all members of the response are compared.
		reads := map[string]func(*Table) (readResult, error){
			"GetItem": func(s *Table) (readResult, error) {
				return s.getItem(context.Background(), model.Keys{PK: "a", SK: "b"}, true)
			},
			"BatchGetItem": func(s *Table) (readResult, error) {
				return s.batchGetItem(context.Background(), []model.Keys{{PK: "a", SK: "b"}}, true)
			},
			"Query": func(s *Table) (readResult, error) {
				return s.queryPage(context.Background(), queryRequest{pattern: &model.CustomerOrders.AccessPattern, keyRange: model.NewKeyCondition(&model.CustomerOrders.AccessPattern, "a", "b", model.Range{}), limit: 3}, true)
			},
			"TransactGetItems": func(s *Table) (readResult, error) { return s.transactGet(context.Background(), testKeys, true) },
			"TransactWriteItems": func(s *Table) (readResult, error) {
				return s.transactWrite(context.Background(), testActions(), true)
			},
		}
		name := []string{"GetItem", "BatchGetItem", "Query", "TransactGetItems", "TransactWriteItems"}[operation%5]
		var top map[string]json.RawMessage
		if err := json.Unmarshal(body, &top); err != nil {
			t.Fatalf("parse has accepted invalid JSON: %s", body)
		}
		for member := range top {
			owner := map[string]string{"Item": "GetItem", "Items": "Query", "LastEvaluatedKey": "Query", "Count": "Query", "ScannedCount": "Query", "Responses": "BatchGetItem", "UnprocessedKeys": "BatchGetItem"}[member]
			list := bytes.HasPrefix(bytes.TrimSpace(top[member]), []byte("["))
			if member == "Responses" && list {
				owner = "TransactGetItems"
			}
			if owner != "" && owner != name {
				return
			}
			if member == "ConsumedCapacity" && list != (name == "BatchGetItem" || strings.HasPrefix(name, "Transact")) {
				return
			}
		}
		want, err := readWithSDK(t, body, reads[name])
		if err != nil {
			t.Fatalf("the SDK cannot read a response that the fast path accepts: %v\n%s", err, body)
		}
		if !equalResults(parsed, want) {
			t.Fatalf("%s: the fast path and the SDK read different results:\n%s", name, body)
		}
	})
}
