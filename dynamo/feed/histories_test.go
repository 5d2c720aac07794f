package feed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// laggingSource is a source that holds back changes until the test calls report. The test can also
// make gaps.
type laggingSource struct {
	engine  feed.Observable
	waiting []func()
	run     *feed.Run
}

func (l *laggingSource) watch(ctx context.Context, table string, r *feed.Run) error {
	l.run = r
	l.waiting = nil
	stop := l.engine.Observe(table, func(before, after []map[string]types.AttributeValue) {
		l.waiting = append(l.waiting, func() { r.Changed(before, after) })
	})
	defer stop()
	r.Ready()
	<-ctx.Done()
	return nil
}

// report reports up to n batches of changes.
func (l *laggingSource) report(n int) {
	for range min(n, len(l.waiting)) {
		next := l.waiting[0]
		l.waiting = l.waiting[1:]
		next()
	}
}

// topic is the subject of a subscription: an order or all orders of a customer.
type topic struct {
	customer bool
	id       string
}

func orderTopic(id commerce.OrderID) topic { return topic{id: string(id)} }

func customerTopic(id commerce.CustomerID) topic { return topic{customer: true, id: string(id)} }

// subscriber is a client that resumes after its last event if its subscription ends.
type subscriber struct {
	topic        topic
	subscription *feed.Subscription
	last         commerce.EventID
	got          []commerce.EventID
	// from is the number of the topic's events before the first event that the subscriber must get.
	from int
}

// histories is the state of a property test. The test interleaves writers, subscribers and a
// lagging stream with gaps at random.
type histories struct {
	t     *rapid.T
	ctx   context.Context
	db    *dynamodb.Client
	store *dynamo.Store
	// writers have different clocks. The feed uses the clock of the first one. If wrongClocks is true,
	// the clocks differ by more than table.MaxClockDifference.
	writers     []*dynamo.Store
	wrongClocks bool
	feed        *feed.Feed
	source      *laggingSource
	orders      []commerce.OrderID
	// events has all events of each topic, in the order of the commits.
	events   map[topic][]commerce.EventID
	owner    map[commerce.OrderID]commerce.CustomerID
	quantity int
	// externalEvents is the number of events written by other software.
	externalEvents int
	subscribers    []*subscriber
}

func newHistories(t *rapid.T, buffer int) *histories {
	engine := embedded.New()
	store, err := dynamo.New(engine.Client(), dynamo.Options{Table: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	h := &histories{t: t, ctx: context.Background(), db: engine.Client(), store: store, source: &laggingSource{engine: engine}, events: map[topic][]commerce.EventID{}, owner: map[commerce.OrderID]commerce.CustomerID{}}
	maxSkew := int(table.MaxClockDifference / time.Second)
	if h.wrongClocks = rapid.Bool().Draw(t, "wrong clocks"); h.wrongClocks {
		maxSkew = 300
	}
	for range 3 {
		skew := time.Duration(rapid.IntRange(-maxSkew, maxSkew).Draw(t, "skew")) * time.Second
		writer, err := dynamo.New(engine.Client(), dynamo.Options{Table: "orders", Clock: func() time.Time { return time.Now().Add(skew) }})
		if err != nil {
			t.Fatal(err)
		}
		h.writers = append(h.writers, writer)
	}
	h.must(store.CreateTable(h.ctx))
	price, err := commerce.ParseMoney("1.00", "USD")
	h.must(err)
	_, err = store.Load(h.ctx, commerce.Dataset{
		Customers: []commerce.Customer{{ID: "c0", Name: "c0", Email: "c0@example.com"}, {ID: "c1", Name: "c1", Email: "c1@example.com"}},
		Products:  []commerce.Product{{SKU: "p", Name: "p", Category: "p", UnitPrice: price, TotalInventory: 1_000_000, Available: 1_000_000}},
	})
	h.must(err)
	h.feed = h.writers[0].OpenFeed(feed.SourceFunc(h.source.watch), feed.Options{QueueCapacity: buffer})
	h.feed.SetMaxCatchUpPage(rapid.SampledFrom([]int{2, 3, 5, 1000}).Draw(t, "page"))
	return h
}

func (h *histories) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// writer returns a random writer.
func (h *histories) writer() *dynamo.Store { return rapid.SampledFrom(h.writers).Draw(h.t, "writer") }

// recordEvent adds an order's last event to the expected events.
func (h *histories) recordEvent(id commerce.OrderID) {
	last, err := h.db.GetItem(h.ctx, &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: storetest.ItemKey("CUSTOMER#"+string(h.owner[id]), "LAST_EVENT"), ConsistentRead: aws.Bool(true)})
	h.must(err)
	event := commerce.EventID(last.Item["eventId"].(*types.AttributeValueMemberS).Value)
	for _, t := range []topic{orderTopic(id), customerTopic(h.owner[id])} {
		h.events[t] = append(h.events[t], event)
	}
}

func (h *histories) place() {
	customer := commerce.CustomerID(fmt.Sprintf("c%d", rapid.IntRange(0, 1).Draw(h.t, "customer")))
	o, err := h.writer().PlaceOrder(h.ctx, change.Caller{Name: "t"}, commerce.OrderRequest{CustomerID: customer, Lines: []commerce.OrderLine{{SKU: "p", Quantity: 1}}})
	h.must(err)
	h.orders, h.owner[o.ID] = append(h.orders, o.ID), customer
	h.quantity = max(h.quantity, 1)
	h.recordEvent(o.ID)
}

func (h *histories) change() {
	for range rapid.IntRange(1, 4).Draw(h.t, "times") {
		h.set(rapid.SampledFrom(h.orders).Draw(h.t, "order"))
	}
}

func (h *histories) set(id commerce.OrderID) {
	h.quantity++
	_, err := h.writer().SetOrderItem(h.ctx, change.Caller{Name: "t"}, commerce.OrderItemChange{OrderID: id, SKU: "p", Quantity: h.quantity})
	h.must(err)
	h.recordEvent(id)
}

// subscribe begins a subscription after a random event of a random topic, or with the next event.
func (h *histories) subscribe() {
	f := &subscriber{topic: orderTopic(rapid.SampledFrom(h.orders).Draw(h.t, "order"))}
	if rapid.Bool().Draw(h.t, "customer") {
		f.topic = customerTopic(commerce.CustomerID(fmt.Sprintf("c%d", rapid.IntRange(0, 1).Draw(h.t, "customer")))) // it may have no orders yet
	}
	events := h.events[f.topic]
	f.from = len(events)
	if i := rapid.IntRange(0, len(events)).Draw(h.t, "after"); i < len(events) {
		f.last, f.from = events[i], i+1
	}
	h.attach(f)
	h.subscribers = append(h.subscribers, f)
}

func (h *histories) attach(f *subscriber) {
	var err error
	if f.topic.customer {
		f.subscription, err = h.feed.SubscribeCustomerOrders(h.ctx, commerce.CustomerID(f.topic.id), f.last)
	} else {
		f.subscription, err = h.feed.SubscribeOrder(h.ctx, commerce.OrderID(f.topic.id), f.last)
	}
	h.must(err)
}

// deliverNext delivers the next change to a subscriber. It reports false if no change is waiting.
func (h *histories) deliverNext(f *subscriber) bool {
	change, found, err := f.subscription.Poll(h.ctx)
	if errors.Is(err, feed.ErrTooSlow) {
		if f.last == "" {
			// The subscriber got no event to resume after, so it begins with the next event.
			f.from = len(h.events[f.topic])
		}
		h.attach(f)
		return true
	}
	h.must(err)
	if found && change.Position != "" { // an event by other software has no position
		f.last, f.got = change.Position, append(f.got, change.Position)
	}
	return found
}

// writeExternalEvent puts an event by other software into a timeline.
func (h *histories) writeExternalEvent() {
	h.externalEvents++
	id := rapid.SampledFrom([]string{"evt-", "0-", "01-", "9-", "f47ac10b-58cc-4372-a567-"}).Draw(h.t, "name") + fmt.Sprint(h.externalEvents)
	ahead := rapid.SampledFrom([]time.Duration{0, -time.Hour, 0, time.Hour, 20 * time.Hour, 1000 * time.Hour}).Draw(h.t, "ahead")
	if ahead != 0 {
		first, _ := commerce.MinULIDAt(time.Now().Add(ahead))
		id = first[:10] + fmt.Sprintf("%016d", h.externalEvents)
	}
	event := commerce.Event{ID: commerce.EventID(id), OrderID: rapid.SampledFrom(h.orders).Draw(h.t, "order"), Type: commerce.EventItemSet, At: time.Now(), Actor: "other software"}
	rec := model.EventRecord(&model.KeyBuilder{}, event)
	if ahead <= 0 || rapid.Bool().Draw(h.t, "nameless") {
		delete(rec, "entity")
	}
	_, err := h.db.PutItem(h.ctx, &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: rec})
	h.must(err)
}

// deleteLastEvent deletes the record with a customer's last event, which tables of older versions
// lack.
func (h *histories) deleteLastEvent() {
	customer := fmt.Sprintf("c%d", rapid.IntRange(0, 1).Draw(h.t, "customer"))
	_, err := h.db.DeleteItem(h.ctx, &dynamodb.DeleteItemInput{TableName: aws.String("orders"), Key: storetest.ItemKey("CUSTOMER#"+customer, "LAST_EVENT")})
	h.must(err)
}

// Each subscriber gets each event after its beginning exactly once, in the order of the commits.
func TestEachEventIsDeliveredOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistories(t, rapid.IntRange(1, 6).Draw(t, "buffer"))
		defer h.feed.Close()
		h.place()
		t.Repeat(map[string]func(*rapid.T){
			"place":     func(*rapid.T) { h.place() },
			"change":    func(*rapid.T) { h.change() },
			"write":     func(*rapid.T) { h.writeExternalEvent() },
			"subscribe": func(*rapid.T) { h.subscribe() },
			"report":    func(t *rapid.T) { h.source.report(rapid.IntRange(1, 5).Draw(t, "batches")) },
			"forget": func(t *rapid.T) {
				if h.wrongClocks {
					t.Skip("without the record, the feed cannot tell a future event from an event by other software")
				}
				h.deleteLastEvent()
			},
			"take": func(t *rapid.T) {
				if len(h.subscribers) == 0 {
					t.Skip("no subscribers")
				}
				f := rapid.SampledFrom(h.subscribers).Draw(t, "subscriber")
				for range rapid.IntRange(1, 5).Draw(t, "changes") {
					h.deliverNext(f)
				}
			},
			"leave": func(t *rapid.T) {
				if len(h.subscribers) == 0 {
					t.Skip("no subscribers")
				}
				i := rapid.IntRange(0, len(h.subscribers)-1).Draw(t, "subscriber")
				if f := h.subscribers[i]; f.last != "" && rapid.Bool().Draw(t, "comes back") {
					f.subscription.Close()
					h.attach(f)
					return
				}
				h.subscribers[i].subscription.Close()
				h.subscribers = slices.Delete(h.subscribers, i, i+1)
			},
			"gap": func(t *rapid.T) {
				if len(h.subscribers) == 0 {
					t.Skip("no subscribers")
				}
				// Some of the waiting changes are lost. The others are reported after the gap.
				h.source.waiting = h.source.waiting[rapid.IntRange(0, len(h.source.waiting)).Draw(t, "lost"):]
				h.source.run.Gap(errors.New("lost"))
			},
		})
		// One more change of each order reveals events that are delivered twice.
		for _, id := range h.orders {
			h.set(id)
		}
		h.source.report(len(h.source.waiting))
		for _, f := range h.subscribers {
			for h.deliverNext(f) {
			}
			if want := h.events[f.topic][f.from:]; !slices.Equal(f.got, want) {
				t.Fatalf("a subscriber to %+v got\n%s\nwant\n%s", f.topic, f.got, want)
			}
		}
	})
}

// A panic while changes are delivered does not end the server, and no event is lost.
func TestPanicDuringDelivery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistories(t, 5)
		defer h.feed.Close()
		h.place()
		h.attach(&subscriber{topic: orderTopic(h.orders[0])})
		f := &subscriber{topic: orderTopic(h.orders[0]), from: 1}
		h.attach(f)
		statuses, err := h.feed.SubscribeOrderStatus(h.ctx, 0, "")
		h.must(err)
		h.set(h.orders[0])
		h.source.waiting = nil
		h.source.run.Changed(nil, []map[string]types.AttributeValue{{}}) // panics, because before is shorter than after
		if _, err := statuses.Next(h.ctx); !errors.Is(err, table.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		h.set(h.orders[0])
		h.source.report(len(h.source.waiting))
		for h.deliverNext(f) {
		}
		if want := h.events[f.topic][1:]; !slices.Equal(f.got, want) {
			t.Fatalf("got %s, want %s", f.got, want)
		}
	})
}

// The total size of all backlogs is bounded. At the limit each subscription gets few events at a
// time, and misses none.
func TestBacklogOfAllSubscriptionsIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistories(t, 5)
		defer h.feed.Close()
		h.place()
		h.orders = h.orders[:1]
		for range 2*feed.MinBacklog + rapid.IntRange(1, 5).Draw(t, "more") {
			h.set(h.orders[0])
		}
		full := int64(feed.MaxBacklog + rapid.IntRange(-feed.MinBacklog, 5).Draw(t, "over"))
		h.feed.Backlog().Store(full)
		for _, what := range []topic{orderTopic(h.orders[0]), customerTopic(h.owner[h.orders[0]])} {
			f := &subscriber{topic: what, last: h.events[what][0]}
			h.attach(f)
			if n := f.subscription.Backlog(); n > feed.MinBacklog {
				t.Fatalf("the backlog has %d events, want at most %d", n, feed.MinBacklog)
			}
			for h.deliverNext(f) {
			}
			if want := h.events[what][1:]; !slices.Equal(f.got, want) {
				t.Fatalf("got %s, want %s", f.got, want)
			}
			left := &subscriber{topic: what, last: h.events[what][0]}
			h.attach(left)
			left.subscription.Close()
			left.subscription.Close()
			if got := h.feed.Backlog().Load(); got != full {
				t.Fatalf("the backlogs have %d events, want %d", got, full)
			}
		}
	})
}
