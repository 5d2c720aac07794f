package table

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

var testKeys = model.Keys{PK: "a", SK: "b"}

// readTestRecord reads one record.
func readTestRecord(s *Table) error {
	_, err := s.getItem(context.Background(), testKeys, false)
	return err
}

// newConnectedTable returns a table whose requests go over connections to server.
func newConnectedTable(t *testing.T, server *httptest.Server) *Table {
	t.Helper()
	s := newTable(dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "TOKEN"),
		HTTPClient: awshttp.NewBuildableClient(), Retryer: aws.NopRetryer{},
	}))
	if s.fastPath == nil {
		t.Fatal("the client does not use the fast path:", s.FallbackReason)
	}
	return s
}

// A request has the signature that DynamoDB would compute.
func TestFastPathSignatures(t *testing.T) {
	for name, endpoint := range map[string]string{"the default endpoint": "", "a path": "http://localhost:8000/ta%20bles/x/", "a query": "http://localhost:8000/?a=b"} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			s := newTestTable(t, func(r *http.Request) (*http.Response, error) {
				requests++
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Fatal(err)
				}
				at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
				if err != nil {
					t.Fatal(err)
				}
				again := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{}, ContentLength: int64(len(body))}
				_, signed, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
				signed, _, _ = strings.Cut(signed, ",")
				for _, name := range strings.Split(signed, ";") {
					if values := r.Header.Values(name); len(values) > 0 {
						again.Header[http.CanonicalHeaderKey(name)] = values
					}
				}
				sum := sha256.Sum256(body)
				credentials := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", SessionToken: "TOKEN"}
				if err := v4.NewSigner().SignHTTP(context.Background(), credentials, again, hex.EncodeToString(sum[:]), "dynamodb", "eu-central-1", at); err != nil {
					t.Fatal(err)
				}
				if got, want := r.Header.Get("Authorization"), again.Header.Get("Authorization"); got != want {
					t.Errorf("got the signature\n%s, want\n%s", got, want)
				}
				return newResponse(http.StatusOK, `{"Item":{"pk":{"S":"a"}}}`), nil
			}, func(o *dynamodb.Options) {
				if endpoint != "" {
					o.BaseEndpoint = &endpoint
				}
			})
			// The SDK's request shows that the test computes the right signature.
			for _, s := range []*Table{onSDK(s), s} {
				if err := readTestRecord(s); err != nil {
					t.Fatal(err)
				}
			}
			if requests != 2 {
				t.Errorf("got %d requests, want 2", requests)
			}
		})
	}
}

// A redirect is not followed, so no request goes to another server.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect, http.StatusFound} {
		var reached atomic.Int64
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			reached.Add(1)
			_, _ = io.WriteString(w, `{}`)
		}))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(status)
		}))
		s := newConnectedTable(t, server)
		got, want := readTestRecord(s), readTestRecord(onSDK(s))
		if got == nil || want == nil || classifyError(got) != classifyError(want) { //nolint:errorlint // these are the sentinels themselves
			t.Errorf("status %d: the fast path returns %v, the SDK %v", status, got, want)
		}
		if reached.Load() != 0 {
			t.Errorf("redirect %d was followed %d times, want 0", status, reached.Load())
		}
		server.Close()
		elsewhere.Close()
	}
}

// The connection is reused after every response that was read completely.
func TestConnectionReuse(t *testing.T) {
	const good = `{"Item":{"pk":{"S":"a"}}}`
	var opened atomic.Int64
	kind := ""
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch kind {
		case "fails":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"__type":"x#InternalServerError"}`)
		case "denied":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"x#AccessDeniedException"}`)
		case "checksum":
			w.Header().Set("X-Amz-Crc32", "7")
			_, _ = io.WriteString(w, good)
		case "chunks":
			_, _ = io.WriteString(w, good[:9])
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, good[9:])
		case "long":
			_, _ = io.WriteString(w, `{"Item":{"pk":{"S":"`+strings.Repeat("a", maxPreallocatedBytes)+`"}}}`)
		case "nothing":
		default:
			_, _ = io.WriteString(w, good)
		}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	s := newConnectedTable(t, server)
	for range 2 {
		for _, kind = range []string{"good", "chunks", "long", "fails", "good", "denied", "checksum", "nothing", "good"} {
			err := readTestRecord(s)
			// The SDK accepts a wrong checksum and an empty response.
			if wantErr := kind == "fails" || kind == "denied"; wantErr != (err != nil) {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
	if opened.Load() != 1 {
		t.Errorf("%d connections were opened, want 1", opened.Load())
	}
}

// endless is a body that does not end. It counts the bytes that were read.
type endless struct{ read int }

func (e *endless) Read(to []byte) (int, error) {
	for i := range to {
		to[i] = 'a'
	}
	if e.read += len(to); e.read > 8*maxResponseBytes {
		return 0, errors.New("too much of the body was read")
	}
	return len(to), nil
}

func TestEndlessResponsesAreNotRead(t *testing.T) {
	for _, length := range []int64{-1, 1 << 40} {
		body := &endless{}
		text, err := readBody(&http.Response{Body: io.NopCloser(body), ContentLength: length})
		if !errors.Is(err, errResponseTooLarge) || len(text) > 2*maxResponseBytes+maxPreallocatedBytes {
			t.Errorf("%d bytes of the body were read: %v", len(text), err)
		}
		s := newTestTable(t, func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(&endless{}), ContentLength: length}, nil
		})
		if err := readTestRecord(s); !errors.Is(err, errResponseTooLarge) || !errors.Is(WrapError("GetItem", "a", err), ErrUnavailable) {
			t.Errorf("an endless response: the error is %v, want errResponseTooLarge", err)
		}
	}
}

// A large Content-Length alone does not allocate a large buffer.
func TestContentLengthDoesNotAllocate(t *testing.T) {
	text, err := readBody(&http.Response{Body: io.NopCloser(strings.NewReader("{}")), ContentLength: maxResponseBytes})
	if err != nil || string(text) != "{}" || cap(text) > maxPreallocatedBytes+1 {
		t.Errorf("the body %q was read into a buffer of %d bytes: %v", text, cap(text), err)
	}
}

// If the credentials cannot be retrieved, the provider is called as often as by the SDK alone, and
// the error is the same.
func TestCredentialErrorsMatchSDK(t *testing.T) {
	for _, cause := range []error{errors.New("no role"), &net.OpError{Op: "dial", Err: errors.New("no route")}} {
		messages := make([]string, 2)
		calls := make([]int, 2)
		for i := range messages {
			s := newTestTable(t, func(*http.Request) (*http.Response, error) { return newResponse(http.StatusOK, `{}`), nil }, func(o *dynamodb.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					calls[i]++
					return aws.Credentials{}, cause
				})
			})
			if s.fastPath == nil {
				t.Fatal(s.FallbackReason)
			}
			if i == 0 {
				s = onSDK(s)
			}
			err := readTestRecord(s)
			if !errors.Is(err, cause) {
				t.Fatalf("got %v", err)
			}
			messages[i] = err.Error()
		}
		if messages[0] != messages[1] || calls[0] != calls[1] {
			t.Errorf("the SDK returns after %d calls\n%s\nthe fast path after %d\n%s", calls[0], messages[0], calls[1], messages[1])
		}
	}
}

// A request whose context was cancelled does not return ErrUnavailable. A request whose deadline
// passed does.
func TestContextErrors(t *testing.T) {
	for name, begin := range map[string]func() (context.Context, func()){
		"cancelled before": func() (context.Context, func()) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx, func() {}
		},
		"cancelled during the request": func() (context.Context, func()) {
			ctx, cancel := context.WithCancel(context.Background())
			return ctx, cancel
		},
		"deadline passed": func() (context.Context, func()) {
			ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, with := range []func(*Table) *Table{onSDK, onFastPath} {
				for operation, request := range map[string]func(context.Context, *Table) error{
					"GetItem": func(ctx context.Context, s *Table) error {
						_, err := s.Get(ctx, &model.CustomerOrders.AccessPattern, testKeys)
						return err
					},
					"TransactWriteItems": func(ctx context.Context, s *Table) error {
						_, err := s.transactWrite(ctx, testActions(), false)
						return WrapError("TransactWriteItems", "of a test", err)
					},
				} {
					ctx, cancel := begin()
					requests := 0
					s := with(newTestTable(t, func(r *http.Request) (*http.Response, error) {
						requests++
						cancel()
						<-r.Context().Done()
						return nil, r.Context().Err()
					}))
					err, want := request(ctx, s), ctx.Err()
					if !errors.Is(err, want) || errors.Is(err, ErrUnavailable) != errors.Is(want, context.DeadlineExceeded) {
						t.Errorf("%s: got %v", operation, err)
					}
					if requests > 1 {
						t.Errorf("%d requests were sent", requests)
					}
				}
			}
		})
	}
}

// A clock skew of less than a minute may be rounded up or down. The SDK still gets the outcome of
// the first attempt.
func TestRoundedClockSkew(t *testing.T) {
	sent := 0
	s := newTestTable(t, func(*http.Request) (*http.Response, error) {
		sent++
		return nil, errors.New("a request was sent")
	})
	outcome := errors.New("the outcome of the first attempt")
	options := dynamodb.Options{}
	s.fastPath.continueInSDK(&failedAttempt{err: outcome}, nil)(&options)
	r := &http.Request{Header: http.Header{"X-Amz-Date": {time.Now().Add(40 * time.Second).UTC().Format("20060102T150405Z")}}}
	if _, err := options.HTTPClient.Do(r); !errors.Is(err, outcome) || sent != 0 {
		t.Errorf("the SDK's first attempt: got %v after %d requests, want the outcome of the fast path and no request", err, sent)
	}
}

// In AWS Lambda, the SDK adds a trace header to each request. The server can still use the fast
// path, because the HTTP client of internal/config adds the same header.
func TestLambdaTracesKeepFastPath(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "shop")
	t.Setenv("_X_AMZN_TRACE_ID", "Root=1")
	if s := newTestTable(t, nil); s.fastPath == nil {
		t.Errorf("the fast path is disabled: %s", s.FallbackReason)
	}
}

// Retryer settings that affect only later attempts do not disable the fast path.
func TestStandardRetryers(t *testing.T) {
	standard := retry.NewStandard()
	for name, c := range map[string]struct {
		retryer aws.Retryer
		want    bool
	}{
		"standard":             {standard, true},
		"no retries":           {aws.NopRetryer{}, true},
		"more attempts":        {retry.AddWithMaxAttempts(standard, 5), true},
		"wrapped twice":        {retry.AddWithMaxAttempts(retry.AddWithErrorCodes(retry.AddWithMaxBackoffDelay(standard, 1), "x"), 5), true},
		"adaptive":             {retry.NewAdaptiveMode(), false},
		"adaptive and wrapped": {retry.AddWithMaxAttempts(retry.NewAdaptiveMode(), 5), false},
		"custom":               {struct{ aws.RetryerV2 }{standard}, false},
		"custom and wrapped":   {retry.AddWithMaxAttempts(struct{ aws.RetryerV2 }{standard}, 5), false},
		"deprecated interface": {retry.AddWithMaxAttempts(struct{ aws.Retryer }{standard}, 5), false},
	} {
		if got := isStandardRetryer(c.retryer); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// Records with too many attributes or too deep nesting are left to the SDK.
func TestLargeRecordsAreLeftToTheSDK(t *testing.T) {
	named := func(n int) []byte {
		var b bytes.Buffer
		b.WriteString(`{"Item":{`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"n` + strings.Repeat("0", i%7) + "x" + strings.Repeat("1", i/7) + `":{"S":""}`)
		}
		b.WriteString(`}}`)
		return b.Bytes()
	}
	nested := func(n int) []byte {
		return []byte(`{"Item":{"a":` + strings.Repeat(`{"L":[`, n) + strings.Repeat(`]}`, n) + `}}`)
	}
	for name, c := range map[string]struct {
		body []byte
		want bool
	}{
		"many names": {named(maxAttributes), true}, "too many names": {named(maxAttributes + 1), false},
		"deep": {nested(model.MaxDepth), true}, "too deep": {nested(model.MaxDepth + 1), false}, "without end": {nested(1 << 20), false},
	} {
		if _, ok := parseResponse(c.body, "shop", 1); ok != c.want {
			t.Errorf("%s: parsed is %t", name, ok)
		}
	}
}

// A response that does not match its checksum is left to the SDK.
func TestWrongChecksumsAreLeftToTheSDK(t *testing.T) {
	body := []byte(`{"Item":{"pk":{"S":"a"}}}`)
	for sum, want := range map[string]bool{newResponse(http.StatusOK, string(body)).Header.Get("X-Amz-Crc32"): true, "7": false, "seven": false, "": true} {
		if got := checksumMatches(http.Header{"X-Amz-Crc32": {sum}}, body); got != want {
			t.Errorf("with the checksum %q, checksumMatches returns %t", sum, got)
		}
		s := newTestTable(t, func(*http.Request) (*http.Response, error) {
			r := newResponse(http.StatusOK, string(body))
			r.Header.Set("X-Amz-Crc32", sum)
			return r, nil
		})
		if _, _, ok := s.fastPath.send(context.Background(), s.fastPath.targets.getItem, "shop", nil, 1); ok != want {
			t.Errorf("with the checksum %q it is parsed: %t", sum, ok)
		}
	}
}

// A read is charged to its budget once, for any number of attempts, on the fast path and through
// the SDK. A read that exceeds the budget is not sent.
func TestReadsAreChargedOnce(t *testing.T) {
	for name, with := range map[string]func(*Table) *Table{"the fast path": onFastPath, "the SDK": onSDK} {
		requests := 0
		store := with(newTestTable(t, func(*http.Request) (*http.Response, error) {
			if requests++; requests == 2 {
				return newResponse(http.StatusInternalServerError, `{"__type":"x#InternalServerError"}`), nil
			}
			return newResponse(http.StatusOK, `{"Item":{"pk":{"S":"a"}}}`), nil
		}))
		budget := NewReadBudget(2)
		ctx := budget.NewContext(context.Background())
		for read := range 3 {
			_, err := store.getItem(ctx, testKeys, false)
			if exceeded := read == 2; errors.Is(err, ErrReadBudgetExceeded) != exceeded || !exceeded && err != nil {
				t.Errorf("%s: read %d: got %v", name, read, err)
			}
		}
		if requests != 3 || budget.Remaining() != -1 {
			t.Errorf("%s: got %d requests, and %d left in the budget; want 3 and -1", name, requests, budget.Remaining())
		}
	}
}
