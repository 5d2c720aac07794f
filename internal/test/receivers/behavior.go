package receivers

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// Behavior answers a valid request, or does not.
type Behavior func(*Exchange)

// Exchange is a valid request and its response.
type Exchange struct {
	Delivery
	w          http.ResponseWriter
	request    *http.Request
	receiver   *Receiver
	status     int
	retryAfter time.Duration
}

// accept records that the receiver has the event.
func (e *Exchange) accept() {
	d := e.Delivery
	d.At = time.Now()
	e.receiver.mu.Lock()
	defer e.receiver.mu.Unlock()
	e.receiver.accepted = append(e.receiver.accepted, d)
}

// respond sends a response without a body.
func (e *Exchange) respond(status int) {
	e.status = status
	e.w.WriteHeader(status)
}

// abort sends the beginning of a response, and closes the connection.
func (e *Exchange) abort() {
	e.w.Header().Set("Content-Length", "100")
	e.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(e.w).Flush()
	panic(http.ErrAbortHandler)
}

// Healthy accepts all events at once.
func Healthy(e *Exchange) {
	e.accept()
	e.respond(http.StatusNoContent)
}

// Status responds with a status, and accepts no events.
func Status(status int) Behavior { return func(e *Exchange) { e.respond(status) } }

// Hang never responds.
func Hang(e *Exchange) { <-e.request.Context().Done() }

// Slow waits before it behaves as b. If the sender closes the connection first, it does nothing.
func Slow(d time.Duration, b Behavior) Behavior {
	return func(e *Exchange) {
		select {
		case <-time.After(d):
			b(e)
		case <-e.request.Context().Done():
		}
	}
}

// Redirect redirects to another URL.
func Redirect(url string) Behavior {
	return func(e *Exchange) {
		e.w.Header().Set("Location", url)
		e.respond(http.StatusPermanentRedirect)
	}
}

// Reset closes the connection in the middle of the response, and accepts no events.
func Reset(e *Exchange) { e.abort() }

// LoseResponse accepts the event, but closes the connection in the middle of the response.
func LoseResponse(e *Exchange) {
	e.accept()
	e.abort()
}

// Limit behaves as b for n requests in each period. It rejects more requests with the status 429,
// and with the rest of the period in Retry-After.
func Limit(n int, period time.Duration, b Behavior) Behavior {
	var mu sync.Mutex
	var end time.Time
	var count int
	return func(e *Exchange) {
		mu.Lock()
		now := time.Now()
		if !now.Before(end) {
			end, count = now.Add(period), 0
		}
		count++
		rest := end.Sub(now)
		limited := count > n
		mu.Unlock()
		if !limited {
			b(e)
			return
		}
		e.retryAfter = (rest + time.Second - 1).Truncate(time.Second)
		e.w.Header().Set("Retry-After", fmt.Sprint(int(e.retryAfter.Seconds())))
		e.respond(http.StatusTooManyRequests)
	}
}

// After behaves as first for n requests, and then as the other behavior.
func After(n int, first, then Behavior) Behavior {
	var mu sync.Mutex
	return func(e *Exchange) {
		mu.Lock()
		n--
		begun := n >= 0
		mu.Unlock()
		if begun {
			first(e)
			return
		}
		then(e)
	}
}

// Sometimes behaves as bad with a probability, and otherwise as good. The seed determines which
// requests fail.
func Sometimes(probability float64, seed uint64, bad, good Behavior) Behavior {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // must be reproducible
	return func(e *Exchange) {
		mu.Lock()
		fails := random.Float64() < probability
		mu.Unlock()
		if fails {
			bad(e)
			return
		}
		good(e)
	}
}

// During behaves as bad from a time until another, and otherwise as good.
func During(from, until time.Time, bad, good Behavior) Behavior {
	return func(e *Exchange) {
		if now := time.Now(); !now.Before(from) && now.Before(until) {
			bad(e)
			return
		}
		good(e)
	}
}

// ForOrder behaves as bad for the events of one order, and otherwise as good.
func ForOrder(id commerce.OrderID, bad, good Behavior) Behavior {
	return func(e *Exchange) {
		if e.OrderID == id {
			bad(e)
			return
		}
		good(e)
	}
}
