package attempt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ordergraph/ordergraph/dynamo/attempt"
)

// Errors that attempts return in these tests.
var (
	serverError = &smithy.GenericAPIError{Code: "InternalServerError", Fault: smithy.FaultServer}
	condition   = &types.ConditionalCheckFailedException{}
	conflict    = cancelled("None", "TransactionConflict")
	tableLimit  = &types.ProvisionedThroughputExceededException{ThrottlingReasons: reasons("TableReadProvisionedThroughputExceeded", "TableReadKeyRangeThroughputExceeded")}
	hotKey      = &types.ThrottlingException{ThrottlingReasons: reasons("TableWriteKeyRangeThroughputExceeded")}
)

func cancelled(codes ...string) error {
	e := &types.TransactionCanceledException{}
	for _, code := range codes {
		e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
	}
	return e
}

func reasons(names ...string) (all []types.ThrottlingReason) {
	for _, name := range names {
		all = append(all, types.ThrottlingReason{Reason: aws.String(name)})
	}
	return all
}

func TestClassify(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want attempt.Failure
	}{
		"table limit":           {tableLimit, attempt.Failure{Cause: attempt.CauseThrottled, Reason: "TableReadProvisionedThroughputExceeded"}},
		"hot key":               {fmt.Errorf("a: %w", hotKey), attempt.Failure{Cause: attempt.CauseThrottled, Reason: "TableWriteKeyRangeThroughputExceeded", OneKey: true}},
		"throttled, no reason":  {&types.ThrottlingException{}, attempt.Failure{Cause: attempt.CauseThrottled, Reason: "ThrottlingException"}},
		"throttled transaction": {cancelled("None", "ThrottlingError"), attempt.Failure{Cause: attempt.CauseThrottled, Reason: "ThrottlingError", OneKey: true}},
		"conflict":              {conflict, attempt.Failure{Cause: attempt.CauseConflict}},
		"conflict, throttled":   {cancelled("ThrottlingError", "TransactionConflict", "ThrottlingError"), attempt.Failure{Cause: attempt.CauseConflict}},
		"conflict, condition":   {cancelled("TransactionConflict", "ConditionalCheckFailed"), attempt.Failure{Cause: attempt.CauseOther}},
		"in progress":           {&types.TransactionInProgressException{}, attempt.Failure{Cause: attempt.CauseConflict}},
		"condition":             {condition, attempt.Failure{Cause: attempt.CauseOther}},
		"server error":          {serverError, attempt.Failure{Cause: attempt.CauseServerError}},
		"another server":        {&smithy.GenericAPIError{Code: "UnknownError"}, attempt.Failure{Cause: attempt.CauseServerError, Malformed: true}},
		"not JSON":              {&smithy.DeserializationError{Err: errors.New("x")}, attempt.Failure{Cause: attempt.CauseServerError, Malformed: true}},
		"broken response":       {&smithy.DeserializationError{Err: &net.OpError{Op: "read", Err: net.ErrClosed}}, attempt.Failure{Cause: attempt.CauseConnection}},
		"refused":               {&net.OpError{Op: "dial", Err: errors.New("refused")}, attempt.Failure{Cause: attempt.CauseConnection}},
		"deadline":              {context.DeadlineExceeded, attempt.Failure{Cause: attempt.CauseConnection}},
		"canceled":              {&aws.RequestCanceledError{Err: context.Canceled}, attempt.Failure{Cause: attempt.CauseOther}},
	} {
		if got := attempt.Classify(c.err); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// try makes one attempt that ends after d with err. It returns the error of Begin.
func try(g *attempt.Guard, d time.Duration, err error) error {
	a, refused := g.Begin()
	if refused != nil {
		return refused
	}
	time.Sleep(d)
	if err != nil {
		a.Fail(context.Background(), err)
	} else {
		a.Succeed()
	}
	return nil
}

// The breaker opens if at least 20 attempts end within 10 seconds, and at least half of them fail
// or are slow.
func TestBreakerOpens(t *testing.T) {
	timedOut := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	for name, c := range map[string]struct {
		failures, successes int
		after               time.Duration
		err                 error
		want                attempt.BreakerState
	}{
		"server errors":            {failures: attempt.BreakerMinAttempts, err: serverError, want: attempt.BreakerOpen},
		"half of the attempts":     {failures: 15, successes: 15, err: serverError, want: attempt.BreakerOpen},
		"less than half":           {failures: 15, successes: 16, err: serverError, want: attempt.BreakerClosed},
		"too few attempts":         {failures: attempt.BreakerMinAttempts - 1, err: serverError, want: attempt.BreakerClosed},
		"throttling of the table":  {failures: attempt.BreakerMinAttempts, err: tableLimit, want: attempt.BreakerOpen},
		"timeouts":                 {failures: attempt.BreakerMinAttempts, err: timedOut, want: attempt.BreakerOpen},
		"slow successes":           {failures: attempt.BreakerMinAttempts, after: attempt.SlowAttemptThreshold, want: attempt.BreakerOpen},
		"slow canceled attempts":   {failures: attempt.BreakerMinAttempts, after: attempt.SlowAttemptThreshold, err: context.Canceled, want: attempt.BreakerOpen},
		"a hot key":                {failures: 100, err: hotKey, want: attempt.BreakerClosed},
		"conflicts":                {failures: 100, err: conflict, want: attempt.BreakerClosed},
		"failed conditions":        {failures: 100, err: condition, want: attempt.BreakerClosed},
		"clients that disconnect":  {failures: 100, err: context.Canceled, want: attempt.BreakerClosed},
		"deadlines of the callers": {failures: 100, err: context.DeadlineExceeded, want: attempt.BreakerClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := attempt.NewGuard(attempt.GuardOptions{Breaker: true})
				for range c.successes {
					_ = try(g, 0, nil)
				}
				done := make(chan struct{})
				for range c.failures {
					go func() {
						_ = try(g, c.after, c.err)
						done <- struct{}{}
					}()
				}
				for range c.failures {
					<-done
				}
				if got := g.BreakerState(); got != c.want {
					t.Errorf("the breaker is %s, want %s", got, c.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		g := attempt.NewGuard(attempt.GuardOptions{Breaker: true})
		for range 100 {
			_ = try(g, attempt.BreakerWindow/15, serverError)
		}
		if g.BreakerState() != attempt.BreakerClosed {
			t.Error("the breaker opened, although there were fewer than 20 attempts in each window")
		}
	})
}

// An open breaker refuses all attempts. After BreakerOpenTime, it admits a few probes. It closes if all
// probes succeed.
func TestBreakerRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		g := attempt.NewGuard(attempt.GuardOptions{Breaker: true, Log: newLog(&log)})
		for range attempt.BreakerMinAttempts {
			_ = try(g, 0, serverError)
		}
		for range 5 {
			if err := try(g, 0, nil); !errors.Is(err, attempt.ErrBreakerOpen) {
				t.Fatalf("an attempt while the breaker is open: %v", err)
			}
		}
		time.Sleep(attempt.BreakerOpenTime + time.Millisecond)
		if got := g.BreakerState(); got != attempt.BreakerHalfOpen {
			t.Fatalf("after %s, the breaker is %s", attempt.BreakerOpenTime, got)
		}
		if _ = try(g, 0, serverError); g.BreakerState() != attempt.BreakerOpen {
			t.Error("a failed probe did not open the breaker")
		}
		time.Sleep(attempt.BreakerOpenTime + time.Millisecond)
		var probes []attempt.Attempt
		for range attempt.HalfOpenProbes {
			a, err := g.Begin()
			if err != nil {
				t.Fatal(err)
			}
			probes = append(probes, a)
		}
		if err := try(g, 0, nil); !errors.Is(err, attempt.ErrBreakerOpen) {
			t.Errorf("an attempt while all probes are in progress: %v", err)
		}
		for _, a := range probes {
			a.Succeed()
		}
		if got := g.BreakerState(); got != attempt.BreakerClosed {
			t.Errorf("after successful probes, the breaker is %s", got)
		}
		if n := g.Stats().Rejections; n != 6 {
			t.Errorf("%d rejections, want 6", n)
		}
		if n := strings.Count(log.String(), "\n"); n != 5 {
			t.Errorf("%d log lines, want one for each of 5 changes:\n%s", n, log.String())
		}
	})
}

// Without Options.Breaker, no attempt is refused.
func TestNoBreaker(t *testing.T) {
	g := attempt.NewGuard(attempt.GuardOptions{})
	for range 100 {
		if err := try(g, 0, serverError); err != nil {
			t.Fatal(err)
		}
	}
	if g.BreakerState() != attempt.BreakerClosed {
		t.Errorf("the state is %s", g.BreakerState())
	}
}

// newLog returns a logger that writes one line for each message.
func newLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// client returns a DynamoDB client that is limited by g. It receives the responses that respond
// returns.
func client(g *attempt.Guard, respond func() (status int, body string)) *dynamodb.Client {
	return g.WrapClient(dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""),
		HTTPClient: httpClient(func(r *http.Request) (*http.Response, error) {
			status, body := respond()
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}),
	}))
}

type httpClient func(*http.Request) (*http.Response, error)

func (c httpClient) Do(r *http.Request) (*http.Response, error) { return c(r) }

func get(ctx context.Context, db *dynamodb.Client) error {
	_, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("t"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}}})
	return err
}

const internalError = `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}`

// All requests share the retry budget. When the budget is exhausted, requests fail after one
// attempt, except that conflicts are still retried. Successful attempts refill the budget.
func TestRetryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		failures, retried := map[attempt.Cause]int{}, 0
		g := attempt.NewGuard(attempt.GuardOptions{
			Log:       newLog(&log),
			OnFailure: func(_ context.Context, f attempt.Failure) { failures[f.Cause]++ },
			OnRetry:   func(context.Context, attempt.Failure) { retried++ },
		})
		requests, status, body := 0, http.StatusInternalServerError, internalError
		db := client(g, func() (int, string) { requests++; return status, body })
		for range 60 {
			if err := get(t.Context(), db); err == nil {
				t.Fatal("no error")
			}
		}
		// The budget of 500 tokens allows 100 retries at 5 tokens each.
		if requests != 60+100 || failures[attempt.CauseServerError] != requests || retried != 100 {
			t.Errorf("%d requests for 60 reads, %d failures, %d retries", requests, failures[attempt.CauseServerError], retried)
		}
		requests = 0
		if err := get(t.Context(), db); !errors.Is(err, attempt.ErrRetryBudgetExhausted) || requests != 1 || attempt.Classify(err).Cause != attempt.CauseServerError {
			t.Errorf("%d requests, error %v", requests, err)
		}
		if s := g.Stats(); s.BudgetExhausted != 11 {
			t.Errorf("%+v", s)
		}
		if n := strings.Count(log.String(), "budget is exhausted"); n != 1 {
			t.Errorf("%d log lines: %s", n, log.String())
		}

		status, body = http.StatusBadRequest, `{"__type":"x#TransactionCanceledException","CancellationReasons":[{"Code":"TransactionConflict"}]}`
		requests = 0
		err := transact(t.Context(), g, db)
		if requests != 50 || attempt.Classify(err).Cause != attempt.CauseConflict {
			t.Errorf("%d attempts after conflicts, want 50: %v", requests, err)
		}

		status, body = http.StatusOK, `{}`
		for range 5 {
			if err := get(t.Context(), db); err != nil {
				t.Fatal(err)
			}
		}
		status, body, requests = http.StatusInternalServerError, internalError, 0
		if err := get(t.Context(), db); err == nil || requests != 2 {
			t.Errorf("%d attempts after five successes, want 2: %v", requests, err)
		}
	})
}

func transact(ctx context.Context, g *attempt.Guard, db *dynamodb.Client) error {
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Delete: &types.Delete{
		TableName: aws.String("t"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
	}}}}, g.TransactionOptions())
	return err
}

// A request is not retried if the retry could not end before the deadline.
func TestNoRetryAfterDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := attempt.NewGuard(attempt.GuardOptions{})
		requests := 0
		db := client(g, func() (int, string) { requests++; return http.StatusInternalServerError, internalError })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		started := time.Now()
		err := transact(ctx, g, db)
		if took := time.Since(started); !errors.Is(err, attempt.ErrNoRetryTime) || took >= 5*time.Second || took < 4*time.Second || requests < 5 {
			t.Errorf("%d attempts in %s: %v", requests, took, err)
		}
	})
}

// When DynamoDB leaves keys of a batch unprocessed, the next batch is charged to the retry budget.
// It is free if the request has no deadline.
func TestUnprocessedKeys(t *testing.T) {
	throttles := 0
	g := attempt.NewGuard(attempt.GuardOptions{OnFailure: func(_ context.Context, f attempt.Failure) {
		if f.Reason == attempt.ReasonUnprocessed {
			throttles++
		}
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for i := range 100 {
		if err := g.RecordUnprocessed(ctx); err != nil {
			t.Fatalf("retry %d: %v", i, err)
		}
	}
	if err := g.RecordUnprocessed(ctx); !errors.Is(err, attempt.ErrRetryBudgetExhausted) {
		t.Errorf("retry 101: %v", err)
	}
	if err := g.RecordUnprocessed(context.Background()); err != nil {
		t.Errorf("without a deadline: %v", err)
	}
	if throttles != 102 {
		t.Errorf("%d throttles, want 102", throttles)
	}
}

// A probe that ends before it is sent does not keep the breaker half-open. For example, the SDK
// rejects a request without a table name before the first attempt.
func TestProbeIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := attempt.NewGuard(attempt.GuardOptions{Breaker: true})
		db := client(g, func() (int, string) { return http.StatusOK, `{}` })
		for range attempt.BreakerMinAttempts {
			_ = try(g, 0, serverError)
		}
		time.Sleep(attempt.BreakerOpenTime + time.Millisecond)
		for range 2 * attempt.HalfOpenProbes {
			a, err := g.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{}, a.SDKRetryOptions()); err == nil {
				t.Fatal("no error")
			}
		}
		for range attempt.HalfOpenProbes {
			if err := get(t.Context(), db); err != nil {
				t.Fatal(err)
			}
		}
		if g.BreakerState() != attempt.BreakerClosed {
			t.Errorf("the breaker is %s, want closed", g.BreakerState())
		}
	})
}
