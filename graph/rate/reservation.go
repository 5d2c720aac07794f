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

// RefusedCost is the least that a request costs, whatever becomes of it.
const RefusedCost = 1

// Charge takes RefusedCost and more points for a request, at most what a bucket holds; paid is how
// many that is. Where there is not enough, nothing is taken, and wait tells how long it takes until
// there is.
func (r *Limiter) Charge(principal string, more int) (paid int, wait time.Duration) {
	if r == nil {
		return 0, 0
	}
	paid = min(RefusedCost+more, r.Burst)
	wait, _ = r.Take(principal, paid, 0)
	return paid, wait
}

// Reservation is what a principal has paid for one execution, before it begins: what it can cost at
// most. Settled, what it did not cost is given back. That is counted of the answer that was made
// and of what was written, so it tells nothing of records that the principal may not see: each
// costs what one costs that does not exist. One that is nil is for nothing.
type Reservation struct {
	rates     *Limiter
	principal string
	// requested is what was taken. paid is the part of it that is never given back.
	requested, paid int
}

// Reserve takes what an operation costs. paid is what was taken for its request before. Where there
// is not enough, nothing is taken, and wait tells how long it takes until there is.
func (r *Limiter) Reserve(principal string, cost, paid int) (p *Reservation, wait time.Duration) {
	if r == nil {
		return nil, 0
	}
	cost = max(cost, paid)
	if wait, ok := r.Take(principal, cost-paid, paid); !ok {
		return nil, wait
	}
	return &Reservation{rates: r, principal: principal, requested: cost, paid: max(paid, RefusedCost)}, 0
}

// Wait is pay for an event of a subscription, which waits until there is enough: events are late,
// but none is left out.
//
// Errors: those of the context.
func (r *Limiter) Wait(ctx context.Context, principal string, cost int) (*Reservation, error) {
	for ctx.Err() == nil {
		p, wait := r.Reserve(principal, cost, 0)
		if wait == 0 {
			return p, nil
		}
		r.Sleep(ctx, wait)
	}
	return nil, ctx.Err()
}

// Settle refunds what was not spent, or takes what was spent besides, as far as it is left. It adds
// the cost to the response; response may be nil.
func (p *Reservation) Settle(spent int, response *graphql.Response) {
	if p == nil {
		return
	}
	actual := max(spent, p.paid)
	if actual > p.requested {
		p.rates.Deduct(p.principal, actual-p.requested)
	} else {
		p.rates.give(p.principal, p.requested-actual)
	}
	if response != nil {
		response.Extensions = p.rates.told(response.Extensions, p.principal, p.requested, actual)
	}
}

// Cost is the content of extensions.cost, in whole points.
type Cost struct {
	Requested   int `json:"requested"`
	Actual      int `json:"actual"`
	Available   int `json:"available"`
	Maximum     int `json:"maximum"`
	RestoreRate int `json:"restoreRate"`
}

// told adds extensions.cost to extensions.
func (r *Limiter) told(extensions map[string]any, principal string, requested, actual int) map[string]any {
	if extensions == nil {
		extensions = map[string]any{}
	}
	extensions["cost"] = Cost{requested, actual, r.Available(principal), r.Burst, r.Restore}
	return extensions
}

// Refuse returns the response to a request that is not executed because it does not fit now.
func (r *Limiter) Refuse(principal string, position *ast.Position, requested, actual int, wait time.Duration) *graphql.Response {
	extensions := r.told(nil, principal, requested, actual)
	// Rounded up, or whoever waits as long as they are told would be refused again.
	seconds := math.Ceil(wait.Seconds()*1000) / 1000
	err := errcode.New(position, errcode.RateLimited, "the operation costs %d points, and there are %d left of the %d that can be spent at once, of which %d come back each second: try again in %s s, or ask for less",
		requested, extensions["cost"].(Cost).Available, r.Burst, r.Restore, strconv.FormatFloat(seconds, 'f', -1, 64))
	err.Extensions["retryAfter"], err.Extensions["cost"] = seconds, extensions["cost"]
	return &graphql.Response{Errors: gqlerror.List{err}, Extensions: extensions}
}
