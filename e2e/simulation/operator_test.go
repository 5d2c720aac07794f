package simulation_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
)

// action is something that an operator does, or that happens to the servers.
type action struct {
	name string
	do   func(ctx context.Context, w *world, r *rand.Rand)
}

// operatorActions are the actions. Each takes some time, and leaves all servers running.
var operatorActions = []action{
	{"kill", func(ctx context.Context, w *world, r *rand.Rand) { w.restart(ctx, w.server(r.IntN(servers)), r, true) }},
	{"restart", func(ctx context.Context, w *world, r *rand.Rand) { w.restart(ctx, w.server(r.IntN(servers)), r, false) }},
	{"rolling restart", func(ctx context.Context, w *world, r *rand.Rand) {
		for i := range servers {
			w.restart(ctx, w.server(i), r, false)
		}
	}},
	{"cut off", func(ctx context.Context, w *world, r *rand.Rand) {
		if p := w.server(r.IntN(servers)); p != nil {
			p.set(func() { p.cutOff = true })
			w.sleep(ctx, time.Duration(r.Float64()*float64(2*time.Minute)))
			p.set(func() { p.cutOff = false })
		}
	}},
	{"clock", func(ctx context.Context, w *world, r *rand.Rand) {
		if p := w.server(r.IntN(servers)); p != nil {
			most := 9 * time.Second // servers accept up to 5 seconds
			if r.IntN(3) == 0 {
				most = 3 * time.Hour
			}
			p.set(func() {
				p.skew, p.drift, p.driftsSince = time.Duration((r.Float64()-0.5)*float64(most)), (r.Float64()-0.5)/1000, time.Now()
			})
			w.sleep(ctx, time.Duration(r.Float64()*float64(20*time.Minute)))
			p.set(func() { p.skew, p.drift = 0, 0 })
		}
	}},
	{"check", func(ctx context.Context, w *world, r *rand.Rand) {
		damaged, erased := w.watchDamage(), w.readers.erased.Load()
		w.command(ctx, "check", func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.CheckRecords(ctx, check.Options{IndexLag: w.checkLag(), Repair: r.IntN(2) == 0, Segments: 1 + r.IntN(2), Parallel: 1 + r.IntN(4), OnInconsistency: func(i check.Inconsistency) {
				ofErasure := i.Kind == "erasure" || i.Kind == "last-event" && i.PK == "CUSTOMER#"+erasedCustomer
				if damaged() || ofErasure && w.readers.erasing.Load() && !erased {
					return // an erasure in progress is incomplete
				}
				w.found("check found %s %s %s: %s", i.Kind, i.PK, i.SK, i.Detail)
			}})
			return err
		})
	}},
	{"expire", func(ctx context.Context, w *world, _ *rand.Rand) {
		w.command(ctx, "expire", func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.ExpireOrders(ctx)
			return err
		})
	}},
	{"shards", func(ctx context.Context, w *world, r *rand.Rand) {
		w.command(ctx, "shards", func(ctx context.Context, store *dynamo.Store) error {
			if err := store.CheckTable(ctx); err != nil {
				return err
			}
			_, err := store.SetShards(ctx, 1+r.IntN(3))
			return err
		})
	}},
	{"damage", damage},
	{"split", splitStream},
	{"derivation", changeDerivation},
}

func (p *process) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// runOperator does an action from time to time until ctx ends.
func (w *world) runOperator(ctx context.Context) {
	for n := 0; len(w.Actions) > 0; n++ {
		r := w.random("operator", n)
		// Most actions begin shortly before or in a round of the clients.
		wait := time.Duration(1+r.IntN(cmp.Or(w.ActionPause, 4)))*w.round() - w.elapsed()%w.round() + time.Duration(r.Float64()*float64(400*time.Millisecond)) - 100*time.Millisecond
		if !w.sleep(ctx, wait) {
			return
		}
		name := w.Actions[r.IntN(len(w.Actions))]
		if !w.decide(fmt.Sprintf("operator action %d: %s", n, name)) {
			continue
		}
		for _, a := range slices.Concat(operatorActions, diskActions) {
			if a.name == name {
				a.do(ctx, w, r)
			}
		}
	}
}

// restart ends a server and starts it again.
func (w *world) restart(ctx context.Context, p *process, r *rand.Rand, kill bool) {
	if p == nil {
		return
	}
	p.end(kill)
	w.sleep(ctx, time.Duration(r.Float64()*float64(10*time.Second)))
	w.startServer(int(p.name[len(p.name)-1] - '0'))
}

// command runs a command, which has its own store.
func (w *world) command(ctx context.Context, name string, run func(context.Context, *dynamo.Store) error) {
	store, err := dynamo.New((&storeClient{w: w, from: name}).dynamoDB(), dynamo.Options{Table: w.table, OrderExpiry: orderExpiry})
	if err == nil {
		err = store.Ping(ctx)
	}
	if err == nil {
		err = run(ctx, store)
	}
	if err != nil {
		w.tell("%s: %v", name, err)
	}
}
