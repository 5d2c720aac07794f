package feed_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// The list of all changes contains each event once, in the order of the IDs, with the version of
// the order.
func TestAllChanges(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		var ahead atomic.Int64
		store, err := dynamo.New(storetest.WithoutResponseDate(f.db), dynamo.Options{Table: f.table, Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		if err != nil {
			t.Fatal(err)
		}
		f.store, f.feed = store, store.OpenFeed(storetest.ChangeSource(t, db), feed.Options{})
		t.Cleanup(f.feed.Close)
		if err := store.Ping(f.ctx); err != nil {
			t.Fatal(err)
		}
		ahead.Store(-int64(time.Second))
		old := f.placeOrder("c1")
		if _, _, err := store.Changes(f.ctx, "", f.timeline(old)[0], 1); !isUnavailable(err) || !strings.Contains(err.Error(), "ordergraph table apply orderEvent.changes") {
			t.Errorf("without the list, got %v", err)
		}
		storetest.MakeReadable(t, f.rawTable(), model.Changes)
		since, err := store.ChangesSince(f.ctx)
		if err != nil || since.After(time.Now()) {
			t.Errorf("the list begins at %s (%v)", since, err)
		}
		begin, _ := commerce.MinULIDAt(since)
		ahead.Store(int64(time.Second))
		f.setQuantity(old, 3)
		var writers sync.WaitGroup
		for _, customer := range []commerce.CustomerID{"c1", "c2"} {
			writers.Go(func() {
				for range 3 {
					order := f.placeOrder(customer)
					f.setQuantity(order, 2)
					f.moveOrder(order, commerce.Confirmed)
				}
			})
		}
		writers.Wait()
		ahead.Add(int64(time.Minute))
		end, _ := commerce.MinULIDAt(store.Now())
		for _, limit := range []int{1, 2, 5, 19, 20, 1000} {
			var got []commerce.EventID
			versions := map[commerce.OrderID]int{old: 1}
			for from := commerce.EventID(begin); from < commerce.EventID(end); {
				events, to, err := store.Changes(f.ctx, from, commerce.EventID(end), limit)
				if err != nil || len(events) > limit || to < commerce.EventID(end) && len(events) == 0 {
					t.Fatalf("after %s, got %d of %d events up to %s (%v)", from, len(events), limit, to, err)
				}
				for _, e := range events {
					if versions[e.OrderID]++; e.Version != versions[e.OrderID] || e.ID <= from || e.ID > to {
						t.Errorf("event %s has version %d instead of %d", e.ID, e.Version, versions[e.OrderID])
					}
					got = append(got, e.ID)
				}
				from = to
			}
			if len(got) != 19 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != 19 {
				t.Errorf("with a limit of %d, got %d events: %s", limit, len(got), got)
			}
		}
		timeline := f.timeline(old)
		last, _, err := store.OrderTimeline(f.ctx, old, timeline[1], 10)
		if err != nil || len(last) != 2 || last[0].ID != timeline[1] || last[1].ID != timeline[0] {
			t.Errorf("the timeline is %v (%v)", last, err)
		}
		if last, next, err := store.OrderTimeline(f.ctx, old, timeline[0], 1); err != nil || len(last) != 1 || last[0].ID != timeline[0] || next != "" {
			t.Errorf("the beginning of the timeline is %v (%v)", last, err)
		}
		// The list also serves subscriptions to status changes.
		var invalid *commerce.InvalidError
		if _, err := f.feed.SubscribeOrderStatus(f.ctx, 0, timeline[0]); !errors.As(err, &invalid) {
			t.Errorf("after an event that is older than the list, got %v", err)
		}
		subscription := f.mustSubscribe(f.feed.SubscribeOrderStatus(f.ctx, commerce.Confirmed, commerce.EventID(begin)))
		f.expectChanges(subscription, "confirmed, confirmed, confirmed, confirmed, confirmed, confirmed")

		checkEvents := func(want int) {
			t.Helper()
			if _, summary := f.rawTable().Check(check.Options{}); summary.Found["index-keys"] != want {
				t.Errorf("the check found %v", summary.Found)
			}
		}
		checkEvents(0)
		event := f.rawTable().Get("ORDER#"+string(old), "EVENT#"+string(timeline[1]))
		if pk := storetest.Record(event).Text("gsi1pk"); pk != "STATUS_CHANGES#none" {
			t.Errorf("an event that changes no status is in the partition %s", pk)
		}
		delete(event, "gsi1pk")
		delete(event, "gsi1sk")
		f.rawTable().Put(event)
		checkEvents(1)
	})
}

// The repair of a timeline adds an event with the version that the repair gives to the order.
func TestRepairedTimelineHasVersion(t *testing.T) {
	f := newFixture(t, embedded.New().Client(), feed.Options{})
	order := f.placeOrder("c1")
	f.rawTable().Delete("ORDER#"+string(order), "EVENT#"+string(f.timeline(order)[0]))
	f.rawTable().Check(check.Options{Repair: true})
	o, _, err := f.store.OrderTimeline(f.ctx, order, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", 1)
	if err != nil || len(o) != 1 || o[0].Version != 2 {
		t.Errorf("the repair added %v (%v)", o, err)
	}
}
