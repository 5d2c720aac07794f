package attempt

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	"github.com/sony/gobreaker/v2"
)

// GuardOptions configures a Guard.
type GuardOptions struct {
	// Breaker enables the circuit breaker. If Breaker is false, no attempt is refused.
	Breaker bool
	// Log receives a message when the circuit breaker changes its state, and when the retry budget is
	// exhausted. If Log is nil, nothing is logged.
	Log *slog.Logger
	// If OnFailure is set, it is called after each failed attempt, with the context of the request. If
	// OnRetry is set, it is called before each retry, with the failure of the previous attempt.
	OnFailure, OnRetry func(context.Context, Failure)
	// Budget is the retry budget, which contains tokens for the retries of all requests. If Budget is
	// nil, NewGuard creates a budget of 500 tokens.
	Budget retry.RateLimiter
}

// Guard limits and counts the attempts of all requests to one table. It is safe for concurrent use.
type Guard struct {
	opts    GuardOptions
	breaker *breaker
	budget  retry.RateLimiter

	mu        sync.Mutex
	exhausted uint64
	// warned is the time of the last log message about the exhausted retry budget.
	warned time.Time
}

// NewGuard returns a Guard with the given options. Its circuit breaker, if enabled, is closed.
func NewGuard(opts GuardOptions) *Guard {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Budget == nil {
		opts.Budget = ratelimit.NewTokenRateLimit(budgetTokens)
	}
	g := &Guard{opts: opts, budget: opts.Budget}
	if opts.Breaker {
		g.breaker = newBreaker(opts.Log)
	}
	return g
}

// Stats contains counts of a Guard since its creation.
type Stats struct {
	// BudgetExhausted is the number of requests that were not retried because the retry budget was
	// exhausted.
	BudgetExhausted uint64
	// Rejections is the number of attempts that the circuit breaker has refused.
	Rejections uint64
}

// Stats returns the Guard's current counts.
func (g *Guard) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Stats{BudgetExhausted: g.exhausted}
	if g.breaker != nil {
		s.Rejections = g.breaker.rejections.Load()
	}
	return s
}

// BreakerState returns the state of the circuit breaker. If the breaker is disabled, it returns
// BreakerClosed.
func (g *Guard) BreakerState() BreakerState {
	if g.breaker == nil {
		return BreakerClosed
	}
	switch g.breaker.State() {
	case gobreaker.StateOpen:
		return BreakerOpen
	case gobreaker.StateHalfOpen:
		return BreakerHalfOpen
	default:
		return BreakerClosed
	}
}

// Attempt is an attempt in progress. The caller must call either Succeed or Fail, exactly once.
type Attempt struct {
	guard *Guard
	start time.Time
	done  func(error)
}

// Begin starts an attempt. If the circuit breaker refuses the attempt, Begin returns
// ErrBreakerOpen.
func (g *Guard) Begin() (Attempt, error) {
	if g.breaker == nil {
		return Attempt{guard: g}, nil
	}
	done, err := g.breaker.begin()
	if err != nil {
		return Attempt{}, err
	}
	return Attempt{g, time.Now(), done}, nil
}

// Succeed records that the attempt succeeded, and adds a token to the retry budget.
func (a Attempt) Succeed() {
	_ = a.guard.budget.AddTokens(successRefill) // never an error
	a.end(func(d time.Duration) error {
		if d >= SlowAttemptThreshold {
			return errOutcomeFailed
		}
		return nil
	})
}

// Fail records that the attempt failed. err is the error of the AWS SDK.
func (a Attempt) Fail(ctx context.Context, err error) {
	failure := Classify(err)
	a.guard.notifyFailure(ctx, failure)
	a.end(func(d time.Duration) error { return failure.breakerOutcome(err, d) })
}

// abandon ends an attempt whose request was not sent.
func (a Attempt) abandon() {
	a.end(func(time.Duration) error { return errOutcomeIgnored })
}

// end passes the attempt's duration to outcome, and the result of outcome to the circuit breaker.
func (a Attempt) end(outcome func(time.Duration) error) {
	if a.done != nil {
		a.done(outcome(time.Since(a.start)))
	}
}

// notifyFailure calls OnFailure if it is set.
func (g *Guard) notifyFailure(ctx context.Context, failure Failure) {
	if g.opts.OnFailure != nil {
		g.opts.OnFailure(ctx, failure)
	}
}

// notifyRetry calls OnRetry if it is set.
func (g *Guard) notifyRetry(ctx context.Context, failure Failure) {
	if g.opts.OnRetry != nil {
		g.opts.OnRetry(ctx, failure)
	}
}

// isErrorResponse reports whether err is an error response of DynamoDB.
func isErrorResponse(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api)
}

// isCallersDeadline reports whether an attempt failed because its caller's deadline passed. err is
// the error of the attempt.
func isCallersDeadline(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
