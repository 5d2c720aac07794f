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

// wire is the fast path of reads and transactions. It writes the request by hand, signs it with the
// SDK's signer and credentials, sends it through the SDK's HTTP client, and decodes the answer in
// place. The SDK spends more on a read than all the rest of a request does.
//
// It handles good answers only. Any other outcome, a status or an error, is handed to the SDK as
// the outcome of the SDK's own first attempt. The SDK decides what follows: which error it is,
// whether and when to retry, how far the clock is off. Its retries send the same bytes.
type wire struct {
	db         *dynamodb.Client
	options    dynamodb.Options
	signer     dynamodb.HTTPSignerV4
	retryer    aws.RetryerV2
	operations operations
	// userAgent is what the SDK calls itself; the others are headers that all requests have. No
	// request changes them.
	userAgent, contentType, encoding []string
	// place is where the last request went: an endpoint can have the number of the credentials'
	// account in its name, and they change.
	place atomic.Pointer[place]
	// skew is how much later the SDK takes it to be than the clock says, in nanoseconds.
	skew atomic.Int64
}

// place is where requests of an account go.
type place struct {
	account      string
	table        string
	url          url.URL
	headers      http.Header
	name, region string
}

// service is the name under which requests to DynamoDB are signed.
const service = "dynamodb"

// newWire returns the fast path for a client. It returns nil and the reason where the client has a
// setting that only the SDK can follow. watched is the same client with another HTTP client,
// through which the requests go.
func newWire(db, watched *dynamodb.Client) (*wire, string) {
	w := &wire{db: watched, options: db.Options(), operations: named(), contentType: []string{"application/x-amz-json-1.0"}, encoding: []string{"identity"}}
	o := &w.options
	if why := unusual(o); why != "" {
		return nil, why
	}
	o.HTTPClient = watched.Options().HTTPClient
	w.signer = o.HTTPSignerV4
	w.retryer, _ = o.Retryer.(aws.RetryerV2)
	headers := probe(o)
	if w.userAgent = headers["User-Agent"]; w.userAgent == nil {
		return nil, "requests tell no user agent"
	}
	for name := range headers {
		if !slices.Contains(usualHeaders(), name) {
			return nil, "requests have the header " + name
		}
	}
	return w, ""
}

// usualHeaders are those that the SDK gives a read of a usual client. The last two are of use to
// nobody where an attempt is not repeated.
func usualHeaders() []string {
	return []string{"Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "User-Agent", "X-Amz-Date", "X-Amz-Target", "Amz-Sdk-Invocation-Id", "Amz-Sdk-Request"}
}

// unusual names the first setting of a client that the fast path cannot follow; empty for none.
func unusual(o *dynamodb.Options) string {
	_, unmeasured := o.MeterProvider.(metrics.NopMeterProvider)
	_, untraced := o.TracerProvider.(*tracing.NopTracerProvider)
	if !untraced {
		_, untraced = o.TracerProvider.(tracing.NopTracerProvider)
	}
	stock := dynamodb.New(dynamodb.Options{}).Options()
	for _, setting := range []struct {
		usual bool
		what  string
	}{
		{usualRetryer(o.Retryer), "the client has an unusual retryer, as AWS_RETRY_MODE=adaptive makes it"},
		{len(o.APIOptions) == 0, "the client has middleware"},
		{noInterceptors(o.Interceptors), "the client has interceptors"},
		{unmeasured, "the client's requests are measured"},
		{untraced, "the client's requests are traced"},
		{o.ClientLogMode == 0, "the client's requests are logged"},
		{o.Credentials != nil, "the client has no credentials"},
		{o.HTTPClient != nil, "the client has no HTTP client"},
		{o.HTTPSignerV4 != nil, "the client has no signer"},
		{o.IdempotencyTokenProvider != nil, "the client has no provider of idempotency tokens"},
		{len(o.AuthSchemePreference) == 0, "the client prefers ways to sign, as AWS_AUTH_SCHEME_PREFERENCE makes it"},
		{sameType(o.AuthSchemeResolver, stock.AuthSchemeResolver) && len(o.AuthSchemes) == 1 && sameType(o.AuthSchemes[0], stock.AuthSchemes[0]) && sameType(o.AuthSchemes[0].Signer(), stock.AuthSchemes[0].Signer()), "the client has an unusual way to sign"},
		{sameType(o.Protocol, stock.Protocol), "the client has an unusual protocol"},
		{sameType(o.EndpointResolverV2, stock.EndpointResolverV2) && !legacyEndpoint(o) && o.EndpointOptions.ResolvedRegion == "" && !o.EndpointOptions.DisableHTTPS, "the client has an unusual resolver of endpoints"},
		{o.EndpointDiscovery.EnableEndpointDiscovery != aws.EndpointDiscoveryEnabled, "endpoints are discovered, as AWS_ENABLE_ENDPOINT_DISCOVERY makes it"},
		{!o.EnableAcceptEncodingGzip, "answers are compressed"},
		{!o.DisableValidateResponseChecksum, "answers are not checked"},
	} {
		if !setting.usual {
			return setting.what
		}
	}
	return ""
}

// usualRetryer reports whether a retryer lets every first attempt pass at once. The SDK wraps one
// for settings that matter after that only: AWS_MAX_ATTEMPTS is one. What it wraps it in has no
// exported name, but the retryer inside has.
func usualRetryer(r aws.Retryer) bool {
	wraps := []any{retry.AddWithMaxAttempts(r, 1), retry.AddWithMaxBackoffDelay(r, 1), retry.AddWithErrorCodes(r)}
	for {
		switch r.(type) {
		case *retry.Standard, aws.NopRetryer:
			return true
		}
		if !slices.ContainsFunc(wraps, func(wrap any) bool { return sameType(r, wrap) }) {
			return false
		}
		inside := reflect.ValueOf(r).Elem().FieldByName("RetryerV2")
		if !inside.IsValid() {
			return false
		}
		switch v := inside.Interface().(type) {
		case aws.RetryerV2:
			r = v
		default:
			return false
		}
	}
}

// legacyEndpoint reports whether the client has a resolver of endpoints of the SDK's first kind.
func legacyEndpoint(o *dynamodb.Options) bool {
	return o.EndpointResolver != nil //nolint:staticcheck // deprecated, and so what is looked for
}

func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// noInterceptors reports whether nobody has a look at requests; the registry is a struct of nothing
// but lists.
func noInterceptors(r smithyhttp.InterceptorRegistry) bool {
	lists := reflect.ValueOf(r)
	for i := range lists.NumField() {
		if lists.Field(i).Len() > 0 {
			return false
		}
	}
	return true
}

// probe gives the headers of a read by such a client. It asks the SDK for one, which gets no
// further than here.
func probe(o *dynamodb.Options) http.Header {
	var told http.Header
	db := dynamodb.New(*o, func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
		})
		o.Region, o.BaseEndpoint, o.Retryer = "nowhere", aws.String("http://nowhere.invalid"), aws.NopRetryer{}
		o.AccountIDEndpointMode, o.EndpointOptions = "", dynamodb.EndpointResolverOptions{}
		o.HTTPClient = doing(func(r *http.Request) (*http.Response, error) {
			told = r.Header
			return nil, errors.New("this request is not sent")
		})
	})
	nothing := "none"
	if _, err := db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &nothing, Key: model.Keys{PK: nothing, SK: nothing}.Attributes()}); err == nil {
		return nil
	}
	return told
}

// doing is an HTTP client of one function.
type doing func(*http.Request) (*http.Response, error)

// Do calls the function.
func (do doing) Do(r *http.Request) (*http.Response, error) { return do(r) }

// attempt is the outcome of an attempt on the fast path that got no good answer. It is nil where
// nothing was sent: then the SDK begins anew.
type attempt struct {
	// response is the answer, its body read into body as far as it came; err is the connection's
	// error, or that of reading.
	response *http.Response
	body     []byte
	err      error
	// skew is what the attempt took the clock to be wrong by.
	skew time.Duration
	// credentials is why there are no credentials; then nothing was sent.
	credentials error
}

// rest is the SDK fallback of a request: the client that makes it, and its options.
type rest struct {
	db    *dynamodb.Client
	along func(*dynamodb.Options)
}

// try makes the first attempt of an operation on a table. Where it gets no good answer, a is nil,
// and the caller makes the request with the fallback: the SDK goes on from this attempt.
func (w *wire) try(ctx context.Context, operation []string, table string, body []byte, most int) (a *answer, fallback rest) {
	good, failed, ok := w.send(ctx, operation, table, body, most)
	if ok {
		return &good, rest{}
	}
	// The request is on its budget already: w.db, unlike Store.db, does not count it again.
	return nil, rest{db: w.db, along: w.after(failed, body)}
}

// send makes one attempt of an operation on a table. Where ok is false, failed is what the SDK has
// to go on from.
func (w *wire) send(ctx context.Context, operation []string, table string, body []byte, most int) (a answer, failed *attempt, ok bool) {
	skew := time.Duration(w.skew.Load())
	credentials, err := w.options.Credentials.Retrieve(ctx)
	if err != nil {
		return answer{}, &attempt{credentials: err}, false
	}
	r, err := w.request(ctx, credentials, operation, table, body, skew)
	if err != nil {
		return answer{}, nil, false
	}
	response, err := w.options.HTTPClient.Do(r)
	if err != nil || response == nil {
		return answer{}, &attempt{response: response, err: err, skew: skew}, false
	}
	text, err := readBody(response)
	if err == nil && response.StatusCode == http.StatusOK && len(text) > 0 && intact(response.Header, text) {
		if a, ok = parse(text, table, most); ok {
			return a, nil, true
		}
	}
	return answer{}, &attempt{response: response, body: text, err: err, skew: skew}, false
}

// succeeded tells the SDK's retryer of a request that needed it not: what it lets pass when many
// requests fail depends on how many do not.
func (w *wire) succeeded(ctx context.Context) {
	if w.retryer == nil {
		return
	}
	if release, err := w.retryer.GetAttemptToken(ctx); err == nil {
		_ = release(nil) // it fails for no request that succeeded
	}
}

// request is a signed request.
//
// Errors: the endpoint's, the signer's. The SDK will find the same.
func (w *wire) request(ctx context.Context, credentials aws.Credentials, operation []string, table string, body []byte, skew time.Duration) (*http.Request, error) {
	to, err := w.to(ctx, credentials.AccountID, table)
	if err != nil {
		return nil, err
	}
	at := to.url // the signer writes to it
	header := make(http.Header, 8+len(to.headers))
	for name, values := range to.headers {
		header[name] = values
	}
	header["Content-Type"], header["X-Amz-Target"] = w.contentType, operation
	r := (&http.Request{
		Method: http.MethodPost, URL: &at, Host: at.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		// There is no GetBody, as the SDK's requests have none: with it the HTTP client would
		// follow redirects, and so send what is asked for, and credentials, to whomever the answer
		// names.
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}).WithContext(ctx)
	sum := sha256.Sum256(body)
	if err := w.signer.SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), to.name, to.region, time.Now().Add(skew)); err != nil {
		return nil, err
	}
	// These do not have to be signed.
	header["Accept-Encoding"], header["User-Agent"] = w.encoding, w.userAgent
	return r, nil
}

// to is where requests of an account for a table go.
//
// Errors: that of the SDK's resolver, and one for an account's number that the client needs and the
// credentials lack.
func (w *wire) to(ctx context.Context, account, table string) (*place, error) {
	if last := w.place.Load(); last != nil && last.account == account && last.table == table {
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
			return nil, errors.New("the credentials tell no account")
		}
	case aws.AccountIDEndpointModeUnset, aws.AccountIDEndpointModePreferred, aws.AccountIDEndpointModeDisabled:
	default:
		return nil, errors.New("no such way to use the account")
	}
	if account != "" && o.AccountIDEndpointMode != aws.AccountIDEndpointModeDisabled {
		params.AccountId = &account
	}
	endpoint, err := o.EndpointResolverV2.ResolveEndpoint(ctx, params)
	if err != nil {
		return nil, err
	}
	if err := smithyhttp.ValidateEndpointHost(endpoint.URI.Host); err != nil {
		return nil, err
	}
	p := &place{account: account, table: table, headers: endpoint.Headers, name: service, region: o.Region}
	// The SDK takes no more of the endpoint than this: no query, and no name of a user.
	p.url = url.URL{Scheme: endpoint.URI.Scheme, Host: endpoint.URI.Host, Path: smithyhttp.JoinPath(endpoint.URI.Path, "/")}
	if endpoint.URI.RawPath != "" {
		p.url.RawPath = smithyhttp.JoinPath(endpoint.URI.RawPath, "/")
	}
	schemes, _ := smithyauth.GetAuthOptions(&endpoint.Properties)
	for _, scheme := range schemes {
		if name, ok := smithyhttp.GetSigV4SigningName(&scheme.SignerProperties); ok {
			p.name = name
		}
		if region, ok := smithyhttp.GetSigV4SigningRegion(&scheme.SignerProperties); ok {
			p.region = region
		}
	}
	w.place.Store(p)
	return p, nil
}

// errTooLong means that an answer is none of DynamoDB's.
var errTooLong = errors.New("the answer is longer than any of DynamoDB's")

// roomAhead is how many bytes of an answer room is made for because it says that it has so many,
// which need not be true. A Query ends at a megabyte.
const roomAhead = 2 << 20

// readBody reads an answer's body and closes it.
//
// Errors: those of reading, and errTooLong, with what was read before them.
func readBody(r *http.Response) ([]byte, error) {
	defer r.Body.Close()
	size := min(r.ContentLength, roomAhead)
	if size < 0 {
		size = 4 << 10
	}
	// One byte more than there are lets the last Read find the end, which gives the connection
	// back.
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
		case len(text) > maxAnswer:
			return text, errTooLong
		}
	}
}

// intact reports whether an answer is what was sent, as far as its checksum tells. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html
func intact(header http.Header, body []byte) bool {
	said := header["X-Amz-Crc32"]
	if len(said) == 0 || said[0] == "" {
		return true
	}
	sum, err := strconv.ParseUint(said[0], 10, 32)
	return err == nil && uint64(crc32.ChecksumIEEE(body)) == sum
}

// after makes the SDK go on from an attempt that failed, and send the same body in its own ones.
// The SDK alone would send another token and other bytes, as it writes maps in random order. Then
// DynamoDB could not tell that it has made the transaction already.
func (w *wire) after(failed *attempt, body []byte) func(*dynamodb.Options) {
	first := true
	return func(o *dynamodb.Options) {
		o.Protocol = repeating{ClientProtocol: o.Protocol, body: body}
		if failed != nil && failed.credentials != nil {
			o.Credentials = &unfound{CredentialsProvider: w.options.Credentials, err: failed.credentials}
			return
		}
		o.HTTPClient = doing(func(r *http.Request) (*http.Response, error) {
			begins := first
			first = false
			skew := clockSkew(r)
			if begins && failed != nil && (failed.skew-skew).Abs() < 2*smallSkew {
				return failed.hand(r)
			}
			// The SDK corrects its clock between attempts.
			w.skew.Store(int64(skew))
			return w.options.HTTPClient.Do(r)
		})
	}
}

// repeating is the SDK's protocol, with a body that was written before.
type repeating struct {
	smithyhttp.ClientProtocol
	body []byte
}

// SerializeRequest writes the SDK's request, and replaces its body.
func (p repeating) SerializeRequest(ctx context.Context, operation *smithy.OperationSchema, in smithy.Serializable, r *smithyhttp.Request) error {
	if err := p.ClientProtocol.SerializeRequest(ctx, operation, in, r); err != nil {
		return err
	}
	same, err := r.SetStream(bytes.NewReader(p.body))
	if err != nil {
		return err
	}
	*r = *same
	return nil
}

// hand is the outcome as an HTTP client's.
func (f *attempt) hand(r *http.Request) (*http.Response, error) {
	if f.body == nil && f.err != nil {
		return f.response, f.err
	}
	if f.response == nil {
		return nil, f.err
	}
	f.response.Request = r
	f.response.Body = io.NopCloser(bytes.NewReader(f.body))
	if f.err != nil {
		f.response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(f.body), broken{f.err}))
	}
	return f.response, nil
}

// unfound are credentials that were looked for once in vain, which takes its time and is the SDK's
// first attempt.
type unfound struct {
	aws.CredentialsProvider
	err error
}

// Retrieve gives the error, and looks again when it is asked again. A request asks for one attempt
// at a time.
func (u *unfound) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if err := u.err; err != nil {
		u.err = nil
		return aws.Credentials{}, err
	}
	return u.CredentialsProvider.Retrieve(ctx)
}

// broken is the end of a body that could not be read.
type broken struct{ err error }

// Read gives the error.
func (b broken) Read([]byte) (int, error) { return 0, b.err }

// smallSkew is what the SDK's clock is off by in the usual course of things: requests tell full
// seconds, and take their time. Less than twice as much between two attempts is nothing, as either
// may have been rounded the other way, and DynamoDB forgives minutes.
const smallSkew = time.Minute

// clockSkew is how much later the SDK took it to be than the clock says when it signed a request.
func clockSkew(r *http.Request) time.Duration {
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return 0
	}
	return time.Until(signed).Round(smallSkew)
}
