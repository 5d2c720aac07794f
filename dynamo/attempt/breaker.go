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
	// BreakerWindow is the period whose attempts the breaker counts.
	BreakerWindow = 10 * time.Second
	// BreakerMinAttempts is the minimum number of attempts in the last Window. With fewer attempts, the
	// breaker does not open.
	BreakerMinAttempts = 20
	// BreakerFailureThreshold is the share of failed attempts at which the breaker opens.
	BreakerFailureThreshold = 0.5
	// SlowAttemptThreshold is the minimum duration of a slow attempt. A slow attempt counts as failed, even if it
	// succeeds.
	SlowAttemptThreshold = time.Second
	// BreakerOpenTime is how long an open breaker refuses all attempts. After BreakerOpenTime, the breaker is
	// half-open.
	BreakerOpenTime = 2 * time.Second
	// HalfOpenProbes is the number of attempts that a half-open breaker admits. If all of them succeed, the
	// breaker closes. If one fails, the breaker opens again.
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

// ErrBreakerOpen means that the circuit breaker refused an attempt. The breaker is open, or it is
// half-open and all probes are in progress.
var ErrBreakerOpen = errors.New("the circuit breaker is open, because at least half of the requests to DynamoDB failed or were slow")

// Outcomes other than success that are reported to the breaker.
var (
	errOutcomeFailed = errors.New("failed")
	// errOutcomeIgnored is the outcome of an attempt that reveals nothing about the health of the table.
	errOutcomeIgnored = errors.New("ignored")
)

// breaker is the circuit breaker of a table. rejections counts the attempts that the breaker
// refuses.
type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]
	rejections atomic.Uint64
}

func newBreaker(log *slog.Logger) *breaker {
	var attempts, failures uint32 // guarded by the lock of the breaker, which calls both functions
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
				log.Info("DynamoDB responds again: the circuit breaker is closed")
			case to == gobreaker.StateHalfOpen:
				log.Info("the circuit breaker is half-open: a few requests to DynamoDB are sent as probes")
			case from == gobreaker.StateHalfOpen:
				log.Warn("a probe failed: the circuit breaker is open again")
			default:
				log.Error("at least half of the requests to DynamoDB failed or were slow: the circuit breaker is open, and requests are refused", "attempts", attempts, "failed", failures, "seconds", BreakerWindow.Seconds())
			}
		},
	})}
}

// begin returns ErrBreakerOpen if the breaker refuses an attempt. Otherwise, the caller must make the
// attempt and pass its outcome to the returned function.
func (b *breaker) begin() (func(error), error) {
	done, err := b.Allow()
	if err != nil {
		b.rejections.Add(1)
		return nil, ErrBreakerOpen
	}
	return done, nil
}

// breakerOutcome returns the outcome that the breaker records for a failed attempt. A conflict or a failed
// condition counts as a success, because only a working DynamoDB can detect it. Throttling of a
// single key is ignored, because it reveals nothing about the rest of the table.
func (f Failure) breakerOutcome(err error, duration time.Duration) error {
	switch {
	case duration >= SlowAttemptThreshold, f.Cause == CauseServerError, f.Cause == CauseThrottled && !f.OneKey:
		return errOutcomeFailed
	case f.Cause == CauseConnection && !isCallersDeadline(err):
		return errOutcomeFailed
	case f.Cause == CauseConflict, f.Cause == CauseOther && isErrorResponse(err):
		return nil
	default:
		return errOutcomeIgnored
	}
}
