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
	// Window is the period whose attempts the breaker counts.
	Window = 10 * time.Second
	// MinAttempts is the minimum number of attempts in the last Window. With fewer attempts, the
	// breaker does not open.
	MinAttempts = 20
	// MaxFailedShare is the share of failed attempts at which the breaker opens.
	MaxFailedShare = 0.5
	// SlowAfter is the minimum duration of a slow attempt. A slow attempt counts as failed, even if it
	// succeeds.
	SlowAfter = time.Second
	// OpenTime is how long an open breaker refuses all attempts. After OpenTime, the breaker is
	// half-open.
	OpenTime = 2 * time.Second
	// Probes is the number of attempts that a half-open breaker admits. If all of them succeed, the
	// breaker closes. If one fails, the breaker opens again.
	Probes = 3
)

// State is the state of a circuit breaker.
type State int

// The states of a circuit breaker.
const (
	StateClosed State = iota
	StateHalfOpen
	StateOpen
)

// String returns the name of the state.
func (s State) String() string {
	switch s {
	case StateOpen:
		return "open"
	case StateHalfOpen:
		return "half-open"
	default:
		return "closed"
	}
}

// ErrOpen means that the circuit breaker refused an attempt. The breaker is open, or it is
// half-open and all probes are in progress.
var ErrOpen = errors.New("the circuit breaker is open, because at least half of the requests to DynamoDB failed or were slow")

// Outcomes other than success that are reported to the breaker.
var (
	errFailed = errors.New("failed")
	// errIgnored is the outcome of an attempt that reveals nothing about the health of the table.
	errIgnored = errors.New("ignored")
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
		MaxRequests: Probes, Interval: Window, BucketPeriod: Window / 10, Timeout: OpenTime,
		ReadyToTrip: func(counts gobreaker.Counts) bool {
			failures = counts.TotalFailures
			attempts = failures + counts.TotalSuccesses
			return attempts >= MinAttempts && float64(failures) >= MaxFailedShare*float64(attempts)
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errIgnored) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case to == gobreaker.StateClosed:
				log.Info("DynamoDB responds again: the circuit breaker is closed")
			case to == gobreaker.StateHalfOpen:
				log.Info("the circuit breaker is half-open: a few requests to DynamoDB are sent as probes")
			case from == gobreaker.StateHalfOpen:
				log.Warn("a probe failed: the circuit breaker is open again")
			default:
				log.Error("at least half of the requests to DynamoDB failed or were slow: the circuit breaker is open, and requests are refused", "attempts", attempts, "failed", failures, "seconds", Window.Seconds())
			}
		},
	})}
}

// begin returns ErrOpen if the breaker refuses an attempt. Otherwise, the caller must make the
// attempt and pass its outcome to the returned function.
func (b *breaker) begin() (func(error), error) {
	done, err := b.Allow()
	if err != nil {
		b.rejections.Add(1)
		return nil, ErrOpen
	}
	return done, nil
}

// outcome returns the outcome that the breaker records for a failed attempt. A conflict or a failed
// condition counts as a success, because only a working DynamoDB can detect it. Throttling of a
// single key is ignored, because it reveals nothing about the rest of the table.
func (f Failure) outcome(err error, duration time.Duration) error {
	switch {
	case duration >= SlowAfter, f.Cause == CauseServerError, f.Cause == CauseThrottled && !f.OneKey:
		return errFailed
	case f.Cause == CauseConnection && !isCallersDeadline(err):
		return errFailed
	case f.Cause == CauseConflict, f.Cause == CauseOther && isResponse(err):
		return nil
	default:
		return errIgnored
	}
}
