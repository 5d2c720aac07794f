package table

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyauth "github.com/aws/smithy-go/auth"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/tracing"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// fastPath sends reads and transactions without most of the AWS SDK, to save CPU time. If a request
// fails, the SDK treats the failure as its own first attempt, and handles all retries.
type fastPath struct {
	client  *dynamodb.Client
	guard   *attempt.Guard
	options dynamodb.Options
	signer  dynamodb.HTTPSignerV4
	targets amzTargetHeaders
	// These header values must not be modified, because all requests share them.
	userAgent, contentType, acceptEncoding []string
	// lastEndpoint is the endpoint of the last request. The host name may contain the account ID, so
	// the endpoint is resolved again when the credentials belong to another account.
	lastEndpoint atomic.Pointer[endpoint]
	// clockSkew is the SDK's estimate of DynamoDB's time minus the local time, in nanoseconds. Each
	// request is signed with the local time plus clockSkew.
	clockSkew atomic.Int64
	stats     *Stats
}

// endpoint contains the URL, the headers and the signing parameters for an account's requests to a
// table.
type endpoint struct {
	account                    string
	table                      string
	url                        url.URL
	headers                    http.Header
	signingName, signingRegion string
}

// signingService is the name of DynamoDB in the signature of a request.
const signingService = "dynamodb"

// newFastPath returns the fast path for the client db. If the fast path does not support a setting
// of db, newFastPath returns nil and a description of the setting. guarded is a copy of db that
// uses a clockWatch and the guard.
func newFastPath(db, guarded *dynamodb.Client, guard *attempt.Guard) (*fastPath, string) {
	w := &fastPath{client: guarded, guard: guard, options: db.Options(), targets: newAmzTargetHeaders(), contentType: []string{"application/x-amz-json-1.0"}, acceptEncoding: []string{"identity"}}
	o := &w.options
	if reason := unsupportedSetting(o); reason != "" {
		return nil, reason
	}
	o.HTTPClient = guarded.Options().HTTPClient
	w.signer = o.HTTPSignerV4
	headers := probeHeaders(o)
	if w.userAgent = headers["User-Agent"]; w.userAgent == nil {
		return nil, "requests have no User-Agent header"
	}
	for name := range headers {
		if !slices.Contains(knownHeaders(), name) {
			return nil, "requests have the header " + name
		}
	}
	return w, ""
}

// knownHeaders returns the headers that the AWS SDK may send with a read. The fast path does not
// set the last three, because two describe retries, and the HTTP client adds X-Amzn-Trace-Id.
func knownHeaders() []string {
	return []string{"Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "User-Agent", "X-Amz-Date", "X-Amz-Target", "Amz-Sdk-Invocation-Id", "Amz-Sdk-Request", "X-Amzn-Trace-Id"}
}

// unsupportedSetting describes the first setting of a client that the fast path does not support.
// If the fast path supports all settings, it returns an empty string.
func unsupportedSetting(o *dynamodb.Options) string {
	_, unmeasured := o.MeterProvider.(metrics.NopMeterProvider)
	_, untraced := o.TracerProvider.(*tracing.NopTracerProvider)
	if !untraced {
		_, untraced = o.TracerProvider.(tracing.NopTracerProvider)
	}
	stock := dynamodb.New(dynamodb.Options{}).Options()
	for _, setting := range []struct {
		supported bool
		reason    string
	}{
		{isStandardRetryer(o.Retryer), "the client has a custom retryer, for example because of AWS_RETRY_MODE=adaptive"},
		{len(o.APIOptions) == 0, "the client has middleware"},
		{hasNoInterceptors(o.Interceptors), "the client has interceptors"},
		{unmeasured, "the client has a meter provider"},
		{untraced, "the client has a tracer provider"},
		{o.ClientLogMode == 0, "the client logs requests"},
		{o.Credentials != nil, "the client has no credentials"},
		{o.HTTPClient != nil, "the client has no HTTP client"},
		{o.HTTPSignerV4 != nil, "the client has no signer"},
		{o.IdempotencyTokenProvider != nil, "the client has no idempotency token provider"},
		{len(o.AuthSchemePreference) == 0, "the client prefers an authentication scheme, for example because of AWS_AUTH_SCHEME_PREFERENCE"},
		{sameType(o.AuthSchemeResolver, stock.AuthSchemeResolver) && len(o.AuthSchemes) == 1 && sameType(o.AuthSchemes[0], stock.AuthSchemes[0]) && sameType(o.AuthSchemes[0].Signer(), stock.AuthSchemes[0].Signer()), "the client has a custom authentication scheme"},
		{sameType(o.Protocol, stock.Protocol), "the client has a custom protocol"},
		{sameType(o.EndpointResolverV2, stock.EndpointResolverV2) && !hasLegacyEndpointResolver(o) && o.EndpointOptions.ResolvedRegion == "" && !o.EndpointOptions.DisableHTTPS, "the client has a custom endpoint resolver"},
		{o.EndpointDiscovery.EnableEndpointDiscovery != aws.EndpointDiscoveryEnabled, "endpoint discovery is enabled, for example by AWS_ENABLE_ENDPOINT_DISCOVERY"},
		{!o.EnableAcceptEncodingGzip, "responses are compressed"},
		{!o.DisableValidateResponseChecksum, "response checksums are not validated"},
	} {
		if !setting.supported {
			return setting.reason
		}
	}
	return ""
}

// isStandardRetryer reports whether r is the SDK's standard retryer or aws.NopRetryer, which do not
// delay the first attempt. The SDK may wrap r in types that are not exported, so isStandardRetryer
// uses reflection.
func isStandardRetryer(r aws.Retryer) bool {
	wrappers := []any{retry.AddWithMaxAttempts(r, 1), retry.AddWithMaxBackoffDelay(r, 1), retry.AddWithErrorCodes(r)}
	for {
		switch r.(type) {
		case *retry.Standard, aws.NopRetryer:
			return true
		}
		if !slices.ContainsFunc(wrappers, func(wrapper any) bool { return sameType(r, wrapper) }) {
			return false
		}
		inner := reflect.ValueOf(r).Elem().FieldByName("RetryerV2")
		if !inner.IsValid() {
			return false
		}
		switch v := inner.Interface().(type) {
		case aws.RetryerV2:
			r = v
		default:
			return false
		}
	}
}

// hasLegacyEndpointResolver reports whether the client uses the deprecated field EndpointResolver.
func hasLegacyEndpointResolver(o *dynamodb.Options) bool {
	return o.EndpointResolver != nil //nolint:staticcheck // the deprecated field may be set
}

func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// hasNoInterceptors reports whether a client has no interceptors. It uses reflection, because each
// field of r is a separate list of interceptors.
func hasNoInterceptors(r smithyhttp.InterceptorRegistry) bool {
	lists := reflect.ValueOf(r)
	for i := range lists.NumField() {
		if lists.Field(i).Len() > 0 {
			return false
		}
	}
	return true
}

// probeHeaders returns the headers that the AWS SDK sends with a read. It calls GetItem with an
// HTTP client that captures the headers instead of sending the request.
func probeHeaders(o *dynamodb.Options) http.Header {
	var headers http.Header
	db := dynamodb.New(*o, func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
		})
		o.Region, o.BaseEndpoint, o.Retryer = "nowhere", aws.String("http://nowhere.invalid"), aws.NopRetryer{}
		o.AccountIDEndpointMode, o.EndpointOptions = "", dynamodb.EndpointResolverOptions{}
		o.HTTPClient = httpClientFunc(func(r *http.Request) (*http.Response, error) {
			headers = r.Header
			return nil, errors.New("the probe is not sent")
		})
	})
	unused := "none"
	if _, err := db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &unused, Key: model.Keys{PK: unused, SK: unused}.Attributes()}); err == nil {
		return nil
	}
	return headers
}

// httpClientFunc adapts a function to the HTTP client interface of the SDK.
type httpClientFunc func(*http.Request) (*http.Response, error)

// Do calls the function.
func (do httpClientFunc) Do(r *http.Request) (*http.Response, error) { return do(r) }

// failedAttempt is the outcome of a failed attempt on the fast path. If the fast path could not
// build the request, send returns nil instead.
type failedAttempt struct {
	// response is the received response, or nil if none was received. body is the part of the response
	// body that was read. err is the error of the connection or of reading the body.
	response *http.Response
	body     []byte
	err      error
	// clockSkew is the duration that was added to the local time to sign the request.
	clockSkew time.Duration
	// credentialsErr is the error of the credentials provider. If it is not nil, no request was sent.
	credentialsErr error
}

// sdkFallback contains the SDK client and the options for sending a request through the SDK after
// the fast path has failed.
type sdkFallback struct {
	client  *dynamodb.Client
	options func(*dynamodb.Options)
}

// try makes the first attempt of a DynamoDB request. If the attempt fails, a and err are nil, and
// the caller must send the request with fallback. If the guard allows no attempt, a is empty but
// not nil, and err is attempt.ErrBreakerOpen.
func (w *fastPath) try(ctx context.Context, operation []string, table string, body []byte, capacity int) (a *readResult, fallback sdkFallback, err error) {
	begun, err := w.guard.Begin()
	if err != nil {
		return &readResult{}, sdkFallback{}, err
	}
	good, failed, ok := w.send(ctx, operation, table, body, capacity)
	if ok {
		w.stats.fast.Add(1)
		begun.Succeed()
		return &good, sdkFallback{}, nil
	}
	// A read has already been charged to its budget. Table.Client would charge it again, so the
	// fallback uses a client that does not charge reads.
	resend, first := w.continueInSDK(failed, body), begun.SDKRetryOptions()
	return nil, sdkFallback{client: w.client, options: func(o *dynamodb.Options) { resend(o); first(o) }}, nil
}

// send makes one attempt of a DynamoDB request. If ok is false, the attempt failed. The caller then
// passes failed to continueInSDK.
func (w *fastPath) send(ctx context.Context, operation []string, table string, body []byte, capacity int) (a readResult, failed *failedAttempt, ok bool) {
	skew := time.Duration(w.clockSkew.Load())
	credentials, err := w.options.Credentials.Retrieve(ctx)
	if err != nil {
		return readResult{}, &failedAttempt{credentialsErr: err}, false
	}
	r, err := w.newRequest(ctx, credentials, operation, table, body, skew)
	if err != nil {
		return readResult{}, nil, false
	}
	response, err := w.options.HTTPClient.Do(r)
	if err != nil || response == nil {
		return readResult{}, &failedAttempt{response: response, err: err, clockSkew: skew}, false
	}
	text, err := readBody(response)
	if err == nil && response.StatusCode == http.StatusOK && len(text) > 0 && checksumMatches(response.Header, text) {
		if a, ok = parseResponse(text, table, capacity); ok {
			return a, nil, true
		}
	}
	return readResult{}, &failedAttempt{response: response, body: text, err: err, clockSkew: skew}, false
}

// newRequest returns a signed HTTP request. If the endpoint resolver or the signer fails, it
// returns the error.
func (w *fastPath) newRequest(ctx context.Context, credentials aws.Credentials, operation []string, table string, body []byte, skew time.Duration) (*http.Request, error) {
	to, err := w.resolveEndpoint(ctx, credentials.AccountID, table)
	if err != nil {
		return nil, err
	}
	requestURL := to.url // a copy, because the signer modifies the URL
	header := make(http.Header, 8+len(to.headers))
	for name, values := range to.headers {
		header[name] = values
	}
	header["Content-Type"], header["X-Amz-Target"] = w.contentType, operation
	r := (&http.Request{
		Method: http.MethodPost, URL: &requestURL, Host: requestURL.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		// GetBody is not set, because it would allow the HTTP client to follow a redirect. The client
		// could then send the keys and the signature to another server. The SDK does not set GetBody
		// either.
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}).WithContext(ctx)
	sum := sha256.Sum256(body)
	if err := w.signer.SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), to.signingName, to.signingRegion, time.Now().Add(skew)); err != nil {
		return nil, err
	}
	// These headers are not part of the signature, so they are added after signing.
	header["Accept-Encoding"], header["User-Agent"] = w.acceptEncoding, w.userAgent
	return r, nil
}

// resolveEndpoint returns the endpoint for an account's requests to a table. If the client requires
// an account ID, but account is empty, resolveEndpoint returns an error.
func (w *fastPath) resolveEndpoint(ctx context.Context, account, table string) (*endpoint, error) {
	if last := w.lastEndpoint.Load(); last != nil && last.account == account && last.table == table {
		return last, nil
	}
	o := &w.options
	params := dynamodb.EndpointParameters{
		Endpoint:              o.BaseEndpoint,
		UseDualStack:          aws.Bool(o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
		UseFIPS:               aws.Bool(o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		AccountIdEndpointMode: aws.String(string(o.AccountIDEndpointMode)),
		ResourceArn:           &table,
	}
	if o.Region != "" {
		params.Region = &o.Region
	}
	switch o.AccountIDEndpointMode {
	case aws.AccountIDEndpointModeRequired:
		if account == "" {
			return nil, errors.New("the credentials have no account ID")
		}
	case aws.AccountIDEndpointModeUnset, aws.AccountIDEndpointModePreferred, aws.AccountIDEndpointModeDisabled:
	default:
		return nil, errors.New("the client's AccountIDEndpointMode is unknown")
	}
	if account != "" && o.AccountIDEndpointMode != aws.AccountIDEndpointModeDisabled {
		params.AccountId = &account
	}
	resolved, err := o.EndpointResolverV2.ResolveEndpoint(ctx, params)
	if err != nil {
		return nil, err
	}
	if err := smithyhttp.ValidateEndpointHost(resolved.URI.Host); err != nil {
		return nil, err
	}
	p := &endpoint{account: account, table: table, headers: resolved.Headers, signingName: signingService, signingRegion: o.Region}
	// Like the AWS SDK, ignore the query and the user information in the endpoint's URL.
	p.url = url.URL{Scheme: resolved.URI.Scheme, Host: resolved.URI.Host, Path: smithyhttp.JoinPath(resolved.URI.Path, "/")}
	if resolved.URI.RawPath != "" {
		p.url.RawPath = smithyhttp.JoinPath(resolved.URI.RawPath, "/")
	}
	schemes, _ := smithyauth.GetAuthOptions(&resolved.Properties)
	for _, scheme := range schemes {
		if name, ok := smithyhttp.GetSigV4SigningName(&scheme.SignerProperties); ok {
			p.signingName = name
		}
		if region, ok := smithyhttp.GetSigV4SigningRegion(&scheme.SignerProperties); ok {
			p.signingRegion = region
		}
	}
	w.lastEndpoint.Store(p)
	return p, nil
}

// errResponseTooLarge means that a response exceeds maxResponseBytes. DynamoDB never sends such a
// large response.
var errResponseTooLarge = errors.New("the response exceeds the maximum size of a DynamoDB response")

// maxPreallocatedBytes is the maximum size of the buffer that is allocated before a response is
// read. The size is limited, because the Content-Length header may be wrong.
const maxPreallocatedBytes = 2 << 20

// readBody reads and closes the body of a response. If reading fails, it returns the error and the
// bytes that it has read so far. If the body exceeds maxResponseBytes, the error is
// errResponseTooLarge.
func readBody(r *http.Response) ([]byte, error) {
	defer r.Body.Close()
	size := min(r.ContentLength, maxPreallocatedBytes)
	if size < 0 {
		size = 4 << 10
	}
	// The buffer has space for one byte more than the body, so that the last Read can return io.EOF.
	// The HTTP client reuses the connection only after io.EOF.
	text := make([]byte, 0, size+1)
	for {
		if len(text) == cap(text) {
			text = slices.Grow(text, len(text))
		}
		n, err := r.Body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case errors.Is(err, io.EOF):
			return text, nil
		case err != nil:
			return text, err
		case len(text) > maxResponseBytes:
			return text, errResponseTooLarge
		}
	}
}

// checksumMatches reports whether the body matches the checksum in the header. If the header has no
// checksum, it returns true. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html
func checksumMatches(header http.Header, body []byte) bool {
	checksum := header["X-Amz-Crc32"]
	if len(checksum) == 0 || checksum[0] == "" {
		return true
	}
	sum, err := strconv.ParseUint(checksum[0], 10, 32)
	return err == nil && uint64(crc32.ChecksumIEEE(body)) == sum
}

// continueInSDK returns options that make the AWS SDK continue after a failed attempt. Retries send
// the same body, so that DynamoDB can detect a transaction that was already committed.
func (w *fastPath) continueInSDK(failed *failedAttempt, body []byte) func(*dynamodb.Options) {
	isFirst := true
	return func(o *dynamodb.Options) {
		o.Protocol = fixedBodyProtocol{ClientProtocol: o.Protocol, body: body}
		if failed != nil && failed.credentialsErr != nil {
			o.Credentials = &failedCredentials{CredentialsProvider: w.options.Credentials, err: failed.credentialsErr}
			return
		}
		o.HTTPClient = httpClientFunc(func(r *http.Request) (*http.Response, error) {
			first := isFirst
			isFirst = false
			skew := clockSkew(r)
			// Two nearly equal skews may be rounded to different minutes.
			if first && failed != nil && (failed.clockSkew-skew).Abs() < 2*clockSkewPrecision {
				return failed.replay(r)
			}
			// After a response, the SDK may have corrected its estimate of the clock skew. Store the new
			// estimate for later requests on the fast path.
			w.clockSkew.Store(int64(skew))
			return w.options.HTTPClient.Do(r)
		})
	}
}

// fixedBodyProtocol is the SDK's protocol, except that it sends the given body instead of encoding
// the request.
type fixedBodyProtocol struct {
	smithyhttp.ClientProtocol
	body []byte
}

// SerializeRequest serializes a request with the SDK's protocol and then replaces the body.
func (p fixedBodyProtocol) SerializeRequest(ctx context.Context, operation *smithy.OperationSchema, in smithy.Serializable, r *smithyhttp.Request) error {
	if err := p.ClientProtocol.SerializeRequest(ctx, operation, in, r); err != nil {
		return err
	}
	replaced, err := r.SetStream(bytes.NewReader(p.body))
	if err != nil {
		return err
	}
	*r = *replaced
	return nil
}

// replay returns the response or error of the failed attempt, as if the HTTP client had just
// received it for the request r.
func (f *failedAttempt) replay(r *http.Request) (*http.Response, error) {
	if f.body == nil && f.err != nil {
		return f.response, f.err
	}
	if f.response == nil {
		return nil, f.err
	}
	f.response.Request = r
	f.response.Body = io.NopCloser(bytes.NewReader(f.body))
	if f.err != nil {
		f.response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(f.body), errorReader{f.err}))
	}
	return f.response, nil
}

// failedCredentials wraps a credentials provider that has returned err on the fast path. The SDK's
// first attempt receives err immediately, because calling the provider again could take a long
// time.
type failedCredentials struct {
	aws.CredentialsProvider
	err error
}

// Retrieve returns the stored error on the first call, and calls the provider on later calls. It
// needs no lock, because the attempts of one request run one after another.
func (u *failedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if err := u.err; err != nil {
		u.err = nil
		return aws.Credentials{}, err
	}
	return u.CredentialsProvider.Retrieve(ctx)
}

// errorReader is a reader that always returns err. If reading a response body failed midway, replay
// returns the bytes that were read, and an errorReader then returns the error.
type errorReader struct{ err error }

// Read returns the error.
func (b errorReader) Read([]byte) (int, error) { return 0, b.err }

// clockSkewPrecision is the unit to which the function clockSkew rounds its result. A second would
// be too short, because requests contain times in whole seconds.
const clockSkewPrecision = time.Minute

// clockSkew returns the duration that the AWS SDK added to the local time to sign the request r.
// The result is rounded to clockSkewPrecision.
func clockSkew(r *http.Request) time.Duration {
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return 0
	}
	return time.Until(signed).Round(clockSkewPrecision)
}
