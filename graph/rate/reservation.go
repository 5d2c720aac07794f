package rate

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// MinRequestCost is the minimum cost of a request in points. Rejected requests also cost this
// amount.
const MinRequestCost = 1

// Charge takes RequestCost(more) points, and returns their number in paid. If the bucket has fewer
// points, Charge takes none, and wait is the time until it has enough.
func (r *Limiter) Charge(principal string, more int) (paid int, wait time.Duration) {
	paid = r.RequestCost(more)
	wait, _ = r.Take(principal, paid, 0)
	return paid, wait
}

// RequestCost returns MinRequestCost+more points, but at most the capacity of a bucket.
func (r *Limiter) RequestCost(more int) int {
	if r == nil {
		return 0
	}
	return min(MinRequestCost+more, r.Burst)
}

// Reservation holds the points for the maximum cost of one execution. Settle refunds the unused
// points. A nil Limiter returns nil Reservations.
type Reservation struct {
	limiter   *Limiter
	principal string
	// requested is the number of points that were taken. paid is the number of these points that are
	// never refunded.
	requested, paid int
}

// Reserve takes the points of an operation that the client has not yet paid: cost minus paid. If
// the bucket has too few points, wait is the time until a retry can succeed.
func (r *Limiter) Reserve(principal string, cost, paid int) (reservation *Reservation, wait time.Duration) {
	if r == nil {
		return nil, 0
	}
	cost = max(cost, paid)
	if wait, ok := r.Take(principal, cost-paid, paid); !ok {
		return nil, wait
	}
	return &Reservation{limiter: r, principal: principal, requested: cost, paid: max(paid, MinRequestCost)}, 0
}

// Wait waits for the points of one subscription event and reserves them. If ctx ends, Wait returns
// the error of ctx.
func (r *Limiter) Wait(ctx context.Context, principal string, cost int) (p *Reservation, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	err = r.waitFor(ctx, principal, func(b *bucket) *chan struct{} { return &b.eventTurn }, func() (wait time.Duration) {
		p, wait = r.Reserve(principal, cost, 0)
		return wait
	})
	return p, err
}

// Pace takes points for messages that a principal has sent on a WebSocket. It waits until the bucket
// has the points. However high the balance is, Pace takes only the points of about one second at
// once, and then those that the bucket regains. So a client with many WebSockets cannot keep the
// processors busy. If ctx ends while Pace waits, Pace returns the error of ctx.
func (r *Limiter) Pace(ctx context.Context, principal string, points int) error {
	if r == nil {
		return nil
	}
	for points > 0 {
		part := min(points, r.messageBurst())
		err := r.waitFor(ctx, principal, func(b *bucket) *chan struct{} { return &b.messageTurn }, func() time.Duration { return r.takeForMessages(principal, part) })
		if err != nil {
			return err
		}
		points -= part
	}
	return nil
}

// takeForMessages takes points for Pace. If the bucket has too few, takeForMessages takes none, and
// returns the time until the bucket has enough.
func (r *Limiter) takeForMessages(principal string, points int) (wait time.Duration) {
	r.withBucket(principal, func(b *bucket) {
		requested := int64(points) * unitsPerPoint
		if missing := requested - min(b.balance, b.messages); missing > 0 {
			wait = time.Duration((missing + int64(r.Restore) - 1) / int64(r.Restore))
			return
		}
		b.balance, b.messages = b.balance-requested, b.messages-requested
	})
	return wait
}

// waitFor calls take until it returns 0, and sleeps for the returned time after each other call.
func (r *Limiter) waitFor(ctx context.Context, principal string, field func(*bucket) *chan struct{}, take func() time.Duration) error {
	if take() == 0 {
		return nil
	}
	// Without the semaphore, thousands of goroutines could wake up and compete for the same points.
	turn := r.waitSemaphore(principal, field)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for ctx.Err() == nil {
		wait := take()
		if wait == 0 {
			return nil
		}
		r.Sleep(ctx, wait)
	}
	return ctx.Err()
}

// Settle refunds unspent points, or takes points that were spent beyond the reservation. If
// response is not nil, Settle adds the cost to its extensions.
func (p *Reservation) Settle(spent int, response *graphql.Response) {
	if p == nil {
		return
	}
	actual := max(spent, p.paid)
	if actual > p.requested {
		p.limiter.Deduct(p.principal, actual-p.requested)
	} else {
		p.limiter.refund(p.principal, p.requested-actual)
	}
	if response != nil {
		response.Extensions = p.limiter.addCostExtension(response.Extensions, p.principal, p.requested, actual)
	}
}

// CostExtension is the content of extensions.cost in a response. All values are numbers of points.
type CostExtension struct {
	Requested   int `json:"requested"`
	Actual      int `json:"actual"`
	Available   int `json:"available"`
	Maximum     int `json:"maximum"`
	RestoreRate int `json:"restoreRate"`
}

// addCostExtension adds the cost of a request to the extensions of its response.
func (r *Limiter) addCostExtension(extensions map[string]any, principal string, requested, actual int) map[string]any {
	if extensions == nil {
		extensions = map[string]any{}
	}
	extensions["cost"] = CostExtension{requested, actual, r.Available(principal), r.Burst, r.Restore}
	return extensions
}

// RateLimitedResponse returns the response to a request that exceeds the rate limit.
func (r *Limiter) RateLimitedResponse(principal string, position *ast.Position, requested, actual int, wait time.Duration) *graphql.Response {
	extensions := r.addCostExtension(nil, principal, requested, actual)
	// The time is rounded up, because a client that retries too early would be rejected again.
	seconds := math.Ceil(wait.Seconds()*1000) / 1000
	err := errcode.New(position, errcode.RateLimited, "the operation costs %d points, but only %d are available: retry in %s seconds, or request fewer fields; the limit is %d points, and %d are restored per second",
		requested, extensions["cost"].(CostExtension).Available, strconv.FormatFloat(seconds, 'f', -1, 64), r.Burst, r.Restore)
	err.Extensions["retryAfter"], err.Extensions["cost"] = seconds, extensions["cost"]
	return &graphql.Response{Errors: gqlerror.List{err}, Extensions: extensions}
}
