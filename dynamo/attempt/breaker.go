package attempt

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Thresholds of the circuit breaker.
const (
	// BreakerWindow is the period over which the circuit breaker counts attempts and failures.
	BreakerWindow = 10 * time.Second
	// BreakerMinAttempts is the minimum number of attempts within BreakerWindow at which the circuit
	// breaker can open. With fewer attempts, a few failures would suffice to open it.
	BreakerMinAttempts = 20
	// BreakerFailureThreshold is the share of failed attempts within BreakerWindow at which the
	// circuit breaker opens.
	BreakerFailureThreshold = 0.5
	// SlowAttemptThreshold is the minimum duration of a slow attempt. The circuit breaker counts a
	// slow attempt as failed, even if DynamoDB returned a result.
	SlowAttemptThreshold = time.Second
	// BreakerOpenTime is the time after which an open circuit breaker becomes half-open. Until then,
	// it refuses all attempts.
	BreakerOpenTime = 2 * time.Second
	// HalfOpenProbes is the number of attempts that a half-open circuit breaker allows. If all of them
	// succeed, the breaker closes. If one fails, the breaker opens again.
	HalfOpenProbes = 3
)

// BreakerState is the state of a circuit breaker.
type BreakerState int

// The states of a circuit breaker.
const (
	BreakerClosed BreakerState = iota
	BreakerHalfOpen
	BreakerOpen
)

// String returns the name of the state.
func (s BreakerState) String() string {
	switch s {
	case BreakerOpen:
		return "open"
	case BreakerHalfOpen:
		return "half-open"
	default:
		return "closed"
	}
}

// ErrBreakerOpen means that the circuit breaker refused an attempt. Either the breaker is open, or
// it is half-open and has already allowed HalfOpenProbes attempts.
var ErrBreakerOpen = errors.New("the circuit breaker is open, because at least half of the requests to DynamoDB failed or were slow")

// Outcomes of attempts, as passed to the circuit breaker. The outcome nil means success.
var (
	errOutcomeFailed = errors.New("failed")
	// errOutcomeIgnored is the outcome of an attempt that does not show whether DynamoDB works.
	errOutcomeIgnored = errors.New("ignored")
)

// breaker is the circuit breaker for all requests to one table. rejections counts the attempts that
// the breaker has refused.
type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]
	rejections atomic.Uint64
}

func newBreaker(log *slog.Logger) *breaker {
	var attempts, failures uint32 // guarded by the breaker's lock, which the breaker holds while it calls ReadyToTrip and OnStateChange
	return &breaker{TwoStepCircuitBreaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: HalfOpenProbes, Interval: BreakerWindow, BucketPeriod: BreakerWindow / 10, Timeout: BreakerOpenTime,
		ReadyToTrip: func(counts gobreaker.Counts) bool {
			failures = counts.TotalFailures
			attempts = failures + counts.TotalSuccesses
			return attempts >= BreakerMinAttempts && float64(failures) >= BreakerFailureThreshold*float64(attempts)
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errOutcomeIgnored) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case to == gobreaker.StateClosed:
				log.Info("the probe requests to DynamoDB succeeded: the circuit breaker is closed, and all requests are sent again")
			case to == gobreaker.StateHalfOpen:
				log.Info("the circuit breaker is half-open: it allows a few requests to DynamoDB as probes")
			case from == gobreaker.StateHalfOpen:
				log.Warn("a probe request to DynamoDB failed: the circuit breaker is open again, and requests are refused")
			default:
				log.Error("at least half of the requests to DynamoDB failed or were slow: the circuit breaker is open, and requests are refused", "attempts", attempts, "failed", failures, "seconds", BreakerWindow.Seconds())
			}
		},
	})}
}

// begin asks the circuit breaker to allow an attempt. If the breaker refuses, begin returns
// ErrBreakerOpen. Otherwise, the caller must make the attempt and pass its outcome to the returned
// function.
func (b *breaker) begin() (func(error), error) {
	done, err := b.Allow()
	if err != nil {
		b.rejections.Add(1)
		return nil, ErrBreakerOpen
	}
	return done, nil
}

// breakerOutcome returns the outcome that the circuit breaker records for a failed attempt.
func (f Failure) breakerOutcome(err error, duration time.Duration) error {
	switch {
	case duration >= SlowAttemptThreshold, f.Cause == CauseServerError, f.Cause == CauseThrottled && !f.OneKey:
		return errOutcomeFailed
	case f.Cause == CauseConnection && !isCallersDeadline(err):
		return errOutcomeFailed
	case f.Cause == CauseConflict, f.Cause == CauseOther && isErrorResponse(err):
		return nil // a success, because DynamoDB processed the request
	default:
		// If DynamoDB throttled a single key, requests for other keys may still succeed.
		return errOutcomeIgnored
	}
}
