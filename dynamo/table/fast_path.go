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

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// fastPath is the fast path of reads and transactions. It encodes the request itself, signs it with
// the SDK's signer and credentials, sends it through the SDK's HTTP client, and decodes the
// response in place. It exists because the SDK needs more CPU time for a read than the rest of the
// server does.
//
// The fast path handles successful responses only. Any other outcome, a status or an error, is
// passed to the SDK as the outcome of the SDK's own first attempt. The SDK then classifies the
// error, decides about retries and corrects the clock skew. Its retries send the same bytes.
type fastPath struct {
	client  *dynamodb.Client
	options dynamodb.Options
	signer  dynamodb.HTTPSignerV4
	retryer aws.RetryerV2
	targets targetHeaders
	// These are header values that all requests share. They are never modified.
	userAgent, contentType, acceptEncoding []string
	// lastEndpoint is the endpoint of the last request. It is resolved again when the credentials
	// belong to another account, because the host name may contain the account ID.
	lastEndpoint atomic.Pointer[endpoint]
	// clockSkew is the SDK's correction of the clock, in nanoseconds. It is positive if the clock is
	// behind.
	clockSkew atomic.Int64
}

// endpoint is the endpoint for the requests of an account, and how to sign them.
type endpoint struct {
	account                    string
	table                      string
	url                        url.URL
	headers                    http.Header
	signingName, signingRegion string
}

// signingService is the service name in the signatures of DynamoDB requests.
const signingService = "dynamodb"

// newFastPath returns the fast path for a client. If the client has a setting that only the SDK
// supports, it returns nil and the reason. watched is the same client with the HTTP client that
// sends the requests.
func newFastPath(db, watched *dynamodb.Client) (*fastPath, string) {
	w := &fastPath{client: watched, options: db.Options(), targets: newTargetHeaders(), contentType: []string{"application/x-amz-json-1.0"}, acceptEncoding: []string{"identity"}}
	o := &w.options
	if reason := unsupportedSetting(o); reason != "" {
		return nil, reason
	}
	o.HTTPClient = watched.Options().HTTPClient
	w.signer = o.HTTPSignerV4
	w.retryer, _ = o.Retryer.(aws.RetryerV2)
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

// knownHeaders returns the headers that the SDK sends with a read. The fast path omits the last
// two, which only describe retries.
func knownHeaders() []string {
	return []string{"Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "User-Agent", "X-Amz-Date", "X-Amz-Target", "Amz-Sdk-Invocation-Id", "Amz-Sdk-Request"}
}

// unsupportedSetting describes the first setting of a client that the fast path does not support.
// It returns an empty string if the fast path supports all settings.
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
		{isStandardRetryer(o.Retryer), "the client has a custom retryer; AWS_RETRY_MODE=adaptive sets one"},
		{len(o.APIOptions) == 0, "the client has middleware"},
		{hasNoInterceptors(o.Interceptors), "the client has interceptors"},
		{unmeasured, "the client has a meter provider"},
		{untraced, "the client has a tracer provider"},
		{o.ClientLogMode == 0, "the client logs requests"},
		{o.Credentials != nil, "the client has no credentials"},
		{o.HTTPClient != nil, "the client has no HTTP client"},
		{o.HTTPSignerV4 != nil, "the client has no signer"},
		{o.IdempotencyTokenProvider != nil, "the client has no idempotency token provider"},
		{len(o.AuthSchemePreference) == 0, "the client prefers an authentication scheme; AWS_AUTH_SCHEME_PREFERENCE sets one"},
		{sameType(o.AuthSchemeResolver, stock.AuthSchemeResolver) && len(o.AuthSchemes) == 1 && sameType(o.AuthSchemes[0], stock.AuthSchemes[0]) && sameType(o.AuthSchemes[0].Signer(), stock.AuthSchemes[0].Signer()), "the client has a custom authentication scheme"},
		{sameType(o.Protocol, stock.Protocol), "the client has a custom protocol"},
		{sameType(o.EndpointResolverV2, stock.EndpointResolverV2) && !hasLegacyEndpointResolver(o) && o.EndpointOptions.ResolvedRegion == "" && !o.EndpointOptions.DisableHTTPS, "the client has a custom endpoint resolver"},
		{o.EndpointDiscovery.EnableEndpointDiscovery != aws.EndpointDiscoveryEnabled, "endpoint discovery is enabled; AWS_ENABLE_ENDPOINT_DISCOVERY enables it"},
		{!o.EnableAcceptEncodingGzip, "responses are compressed"},
		{!o.DisableValidateResponseChecksum, "response checksums are not validated"},
	} {
		if !setting.supported {
			return setting.reason
		}
	}
	return ""
}

// isStandardRetryer reports whether a retryer never delays the first attempt. The SDK wraps the
// standard retryer for settings that affect only later attempts, such as AWS_MAX_ATTEMPTS. The
// wrapper types are not exported, but their field with the inner retryer is.
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

// hasLegacyEndpointResolver reports whether the client has a deprecated EndpointResolver.
func hasLegacyEndpointResolver(o *dynamodb.Options) bool {
	return o.EndpointResolver != nil //nolint:staticcheck // the deprecated field may be set
}

func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// hasNoInterceptors reports whether no interceptor is registered. All fields of the registry are
// lists.
func hasNoInterceptors(r smithyhttp.InterceptorRegistry) bool {
	lists := reflect.ValueOf(r)
	for i := range lists.NumField() {
		if lists.Field(i).Len() > 0 {
			return false
		}
	}
	return true
}

// probeHeaders returns the headers that the SDK sends with a read. It makes the SDK prepare a
// GetItem and captures the headers instead of sending the request.
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

// failedAttempt is the outcome of a failed attempt on the fast path. It is nil if the fast path
// could not build the request.
type failedAttempt struct {
	// response is the response, if one was received. body is the part of its body that was read. err
	// is the error of the connection or of reading the body.
	response *http.Response
	body     []byte
	err      error
	// clockSkew is the clock correction that the attempt used.
	clockSkew time.Duration
	// credentialsErr is the error of retrieving the credentials. If it is set, no request was sent.
	credentialsErr error
}

// sdkFallback is the SDK fallback of a request: the client that sends it, and the options to use.
type sdkFallback struct {
	client  *dynamodb.Client
	options func(*dynamodb.Options)
}

// try makes the first attempt of an operation on a table. capacity is the expected number of
// records. If the attempt fails, a is nil and the caller sends the request with fallback. The SDK
// then continues from this attempt.
func (w *fastPath) try(ctx context.Context, operation []string, table string, body []byte, capacity int) (a *readResult, fallback sdkFallback) {
	good, failed, ok := w.send(ctx, operation, table, body, capacity)
	if ok {
		return &good, sdkFallback{}
	}
	// The read was charged to its budget before. The fallback client, unlike Table.Client, does not
	// charge it again.
	return nil, sdkFallback{client: w.client, options: w.continueInSDK(failed, body)}
}

// send makes one attempt of an operation on a table. If ok is false, the SDK continues from failed.
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

// recordSuccess reports a successful request to the SDK's retryer. Successful requests refill its
// quota of retries.
func (w *fastPath) recordSuccess(ctx context.Context) {
	if w.retryer == nil {
		return
	}
	if release, err := w.retryer.GetAttemptToken(ctx); err == nil {
		_ = release(nil) // it returns no error for a successful request
	}
}

// newRequest returns a signed request. It returns the errors of the endpoint resolver and of the
// signer, which the SDK would return, too.
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
		// GetBody is not set, as in the SDK's requests. With GetBody the HTTP client would follow
		// redirects and send the keys and the signature to another server.
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}).WithContext(ctx)
	sum := sha256.Sum256(body)
	if err := w.signer.SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), to.signingName, to.signingRegion, time.Now().Add(skew)); err != nil {
		return nil, err
	}
	// These headers are not signed.
	header["Accept-Encoding"], header["User-Agent"] = w.acceptEncoding, w.userAgent
	return r, nil
}

// resolveEndpoint returns the endpoint for the requests of an account to a table. It returns the
// error of the SDK's resolver. It also returns an error if the client requires an account ID and
// the credentials do not have it.
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
	// The SDK ignores the query and the user info of an endpoint, too.
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

// errResponseTooLarge means that a response exceeds maxResponseBytes, so it cannot be from
// DynamoDB.
var errResponseTooLarge = errors.New("the response is longer than any response of DynamoDB")

// maxPreallocatedBytes limits the buffer that is allocated for a response by its Content-Length,
// which may be wrong. A Query reads up to 1 MB.
const maxPreallocatedBytes = 2 << 20

// readBody reads the body of a response and closes it. If the body cannot be read or exceeds
// maxResponseBytes, it returns an error together with the bytes it has read. The latter error is
// errResponseTooLarge.
func readBody(r *http.Response) ([]byte, error) {
	defer r.Body.Close()
	size := min(r.ContentLength, maxPreallocatedBytes)
	if size < 0 {
		size = 4 << 10
	}
	// With one extra byte the last Read can return io.EOF, which releases the connection for reuse.
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

// checksumMatches reports whether the body matches the checksum in the header. A response without a
// checksum counts as intact. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html
func checksumMatches(header http.Header, body []byte) bool {
	checksum := header["X-Amz-Crc32"]
	if len(checksum) == 0 || checksum[0] == "" {
		return true
	}
	sum, err := strconv.ParseUint(checksum[0], 10, 32)
	return err == nil && uint64(crc32.ChecksumIEEE(body)) == sum
}

// continueInSDK returns options that make the SDK continue after a failed attempt. The SDK gets the
// outcome of that attempt as the outcome of its own first attempt, and its retries send the same
// body. With another body and token, DynamoDB could not detect that it has already committed the
// transaction. The SDK alone would send another token, and encode maps in random order.
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
			if first && failed != nil && (failed.clockSkew-skew).Abs() < 2*clockSkewPrecision {
				return failed.replay(r)
			}
			// The SDK may have corrected its clock after the last attempt.
			w.clockSkew.Store(int64(skew))
			return w.options.HTTPClient.Do(r)
		})
	}
}

// fixedBodyProtocol is the SDK's protocol, but sends a body that was encoded before.
type fixedBodyProtocol struct {
	smithyhttp.ClientProtocol
	body []byte
}

// SerializeRequest serializes the SDK's request and replaces its body.
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

// replay returns the outcome as the result of an HTTP client.
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

// failedCredentials is a credentials provider that failed on the fast path. A failure can take
// long, so the SDK gets the same error for its first attempt.
type failedCredentials struct {
	aws.CredentialsProvider
	err error
}

// Retrieve returns the error on the first call and asks the provider on later calls. The attempts
// of a request do not run concurrently.
func (u *failedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if err := u.err; err != nil {
		u.err = nil
		return aws.Credentials{}, err
	}
	return u.CredentialsProvider.Retrieve(ctx)
}

// errorReader is a reader that fails. It stands for the part of a body that could not be read.
type errorReader struct{ err error }

// Read returns the error.
func (b errorReader) Read([]byte) (int, error) { return 0, b.err }

// clockSkewPrecision is the precision of clockSkew. A request carries full seconds and takes time
// to arrive, and DynamoDB accepts a skew of minutes. A difference below two minutes between
// attempts is ignored, because the two values may have been rounded in opposite directions.
const clockSkewPrecision = time.Minute

// clockSkew returns the clock correction that the SDK used to sign a request.
func clockSkew(r *http.Request) time.Duration {
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return 0
	}
	return time.Until(signed).Round(clockSkewPrecision)
}
