package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/receivers"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// orderSet is a set of orders.
type orderSet struct{ sync.Map }

func (s *orderSet) add(id commerce.OrderID)      { s.Store(id, true) }
func (s *orderSet) has(id commerce.OrderID) bool { _, ok := s.Load(id); return ok }

// refuse rejects the events of the orders in a set.
func refuse(refused *orderSet) receivers.Behavior {
	return func(x *receivers.Exchange) {
		if refused.has(x.OrderID) {
			receivers.Status(400)(x)
			return
		}
		receivers.Healthy(x)
	}
}

// changeWebhook stores the next version of a webhook.
func (w *world) changeWebhook(e *endpoint, change func(*commerce.Webhook)) (before *commerce.Webhook) {
	w.Helper()
	all, err := w.admin.Webhooks(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, hook := range all {
		if hook.ID == e.hook {
			changed := *hook
			changed.Version, changed.UpdatedAt = hook.Version+1, time.Now()
			change(&changed)
			w.raw.Put(model.EncodeWithEdges(&model.KeyBuilder{}, &changed)[0])
			return hook
		}
	}
	w.Fatal("the webhook does not exist")
	return nil
}

// An event whose request was not sent, because another order could not be read, is sent later.
func TestInterruptedDeliveriesAreRepeated(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll = 15 * time.Second
		var fails atomic.Pointer[string]
		w.request = func(_ *http.Request, body string) error {
			if id := fails.Load(); id != nil && strings.Contains(body, *id) && strings.Contains(body, "EVENT#") {
				return errors.New("the connection was lost")
			}
			return nil
		}
		var slow orderSet
		w.execute = func(_ context.Context, id commerce.OrderID) error {
			if slow.has(id) {
				time.Sleep(8 * time.Second)
			}
			return nil
		}
		e := w.addWebhook(receivers.Healthy, nil)
		w.startServer()
		time.Sleep(20 * time.Second)
		slow.add(w.place("c1"))
		unreadable := string(w.place("c2"))
		fails.Store(&unreadable)
		time.Sleep(17 * time.Second)
		fails.Store(nil)
		time.Sleep(2 * time.Minute)
		w.verify("afterwards", e)
	})
}

// An event that appears late in the list of changes, but within 48 seconds, is delivered to all
// webhooks of a server that share the same read of the list.
func TestEventsThatAppearLateAreDelivered(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll = 30 * time.Second // as with 30,000 events in a minute
		first := w.addWebhook(receivers.Healthy, nil)
		w.startServer()
		time.Sleep(20 * time.Second)
		second := w.addWebhook(receivers.Healthy, nil)
		time.Sleep(20 * time.Second)
		for i := range 40 {
			pk := "ORDER#" + string(w.place(customer(i%20)))
			for key := range w.raw.All() {
				if sk, ok := strings.CutPrefix(key, pk+" "); ok && strings.HasPrefix(sk, "EVENT#") {
					late := w.raw.Delete(pk, sk)
					time.AfterFunc(46*time.Second, func() { w.raw.Put(late) })
				}
			}
			time.Sleep(time.Second)
		}
		time.Sleep(3 * time.Minute)
		w.verify("first", first)
		w.verify("second", second)
	})
}

// Webhooks are read eventually consistently, so a server can read an older version again. It does
// not repeat the older replay.
func TestOlderVersionsOfWebhooksAreIgnored(t *testing.T) {
	inWorld(t, func(w *world) {
		e := w.addWebhook(receivers.Healthy, nil)
		w.startServer()
		time.Sleep(5 * time.Second)
		for i := range 5 {
			w.place(customer(i))
		}
		time.Sleep(2 * time.Minute)
		older := w.changeWebhook(e, func(h *commerce.Webhook) {
			h.Restarts, h.From = h.Restarts+1, commerce.EventID(storetest.ULIDAt(time.Now(), 0))
		})
		time.Sleep(2 * time.Minute)
		newer := w.changeWebhook(e, func(h *commerce.Webhook) { h.Version-- })
		w.raw.Put(model.EncodeWithEdges(&model.KeyBuilder{}, older)[0])
		time.Sleep(4 * time.Second)
		w.raw.Put(model.EncodeWithEdges(&model.KeyBuilder{}, newer)[0])
		time.Sleep(time.Minute)
		if n := len(e.Requests()); n != 5 {
			t.Errorf("the receiver got %d requests for 5 events", n)
		}
	})
}

// An endpoint that refuses many orders in succession still gets the events of all others.
func TestManyRefusedOrdersDelayNoOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll = 5 * time.Second
		var refused orderSet
		e := w.addWebhook(refuse(&refused), nil)
		w.startServer()
		time.Sleep(5 * time.Second)
		for i := range 40 {
			refused.add(w.place(customer(i % 20)))
		}
		time.Sleep(5 * time.Hour)
		id := w.place("c1")
		time.Sleep(15 * time.Minute)
		if n := len(e.Accepted()); n != 1 {
			t.Errorf("after 15 minutes, %d events of order %s are delivered, want 1", n, id)
		}
	})
}

// When an endpoint is available again, it gets the oldest events first. Only the request that finds
// out whether it is available may have a newer event.
func TestOldestEventsAreDeliveredFirst(t *testing.T) {
	for name, resume := range map[string]bool{"after a pause": false, "after a change of the webhook": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				start := time.Now()
				end := start.Add(time.Hour)
				e := w.addWebhook(receivers.During(start, end, receivers.Status(500), receivers.Slow(time.Second, receivers.Healthy)), nil)
				w.startServer()
				time.Sleep(5 * time.Second)
				var orders []commerce.OrderID
				for i := range 20 {
					orders = append(orders, w.place(customer(i)))
					time.Sleep(time.Second)
				}
				time.Sleep(time.Until(end))
				if failures, err := w.admin.WebhookFailures(t.Context(), e.hook); err != nil || len(failures) < 5 {
					t.Fatalf("there are %d failures (%v)", len(failures), err)
				}
				if resume {
					w.changeWebhook(e, func(*commerce.Webhook) {}) // so that all retries are due at the same time
				}
				time.Sleep(6 * time.Minute) // longer than the longest pause of an endpoint
				accepted := e.Accepted()
				if len(accepted) != len(orders) {
					t.Fatalf("%d events were delivered, want %d", len(accepted), len(orders))
				}
				for i, d := range accepted {
					for _, before := range accepted[1:max(i, 1)] {
						if d.At.Sub(before.At) > time.Second/2 && d.OrderID < before.OrderID {
							t.Errorf("order %s was delivered %s after order %s", d.OrderID, d.At.Sub(before.At), before.OrderID)
						}
					}
				}
			})
		})
	}
}

// A new failure, and the success after it, end no pauses of orders that failed before.
func TestNewFailuresDoNotEndOtherPauses(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll = 5 * time.Second
		var refused orderSet
		e := w.addWebhook(refuse(&refused), nil)
		w.startServer()
		time.Sleep(5 * time.Second)
		first := w.place("c1")
		refused.add(first)
		for i := range 60 {
			time.Sleep(20 * time.Second)
			w.place(customer(i % 20))
			time.Sleep(20 * time.Second)
			refused.add(w.place(customer(i % 20)))
		}
		failures, err := w.admin.WebhookFailures(t.Context(), e.hook)
		if err != nil || len(failures) < 60 {
			t.Fatalf("there are %d failures (%v)", len(failures), err)
		}
		for _, f := range failures {
			if f.OrderID == first && f.Attempts > 20 {
				t.Errorf("a refused event was sent %d times in %s", f.Attempts, w.admin.Now().Sub(f.Since))
			}
		}
	})
}

// A webhook whose last event was a month ago is not disabled by some failures.
func TestRareEventsDoNotDisableAWebhook(t *testing.T) {
	inWorld(t, func(w *world) {
		behavior := atomic.Bool{}
		e := w.addWebhook(func(x *receivers.Exchange) {
			if behavior.Load() {
				receivers.Status(500)(x)
				return
			}
			receivers.Healthy(x)
		}, nil)
		s := w.startServer()
		time.Sleep(5 * time.Second)
		w.place("c1")
		time.Sleep(time.Minute)
		s.shutDown()
		time.Sleep(30 * 24 * time.Hour)
		w.servers = nil
		w.startServer()
		behavior.Store(true)
		time.Sleep(10 * time.Second)
		for i := range 10 {
			w.place(customer(i))
		}
		time.Sleep(3 * time.Minute)
		behavior.Store(false)
		time.Sleep(15 * time.Minute)
		w.verify("afterwards", e)
	})
}

// While several requests are in progress, the longest pause applies, and several requests for the
// same pause count once.
func TestPausesAreObeyedAndNotMultiplied(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll = 5 * time.Second
		var requests atomic.Int32
		long := w.addWebhook(func(x *receivers.Exchange) {
			switch n := requests.Add(1); {
			case n == 1:
				receivers.Limit(0, 10*time.Minute, nil)(x)
			case n <= 8:
				receivers.Slow(2*time.Second, receivers.Status(500))(x)
			default:
				receivers.Healthy(x)
			}
		}, nil)
		var shortRequests atomic.Int32
		short := w.addWebhook(func(x *receivers.Exchange) {
			if shortRequests.Add(1) <= 8 {
				receivers.Slow(2*time.Second, receivers.Limit(0, time.Second, nil))(x)
				return
			}
			receivers.Healthy(x)
		}, nil)
		w.startServer()
		time.Sleep(6 * time.Second)
		for i := range 10 {
			w.place(customer(i))
		}
		time.Sleep(30 * time.Second)
		if n := len(short.Accepted()); n != 10 {
			t.Errorf("30 seconds after a pause of one second, %d events of 10 are delivered", n)
		}
		time.Sleep(9 * time.Minute)
		if n := requests.Load(); n > 8 { // the requests in progress before it
			t.Errorf("%d requests were sent during the pause", n-8)
		}
		time.Sleep(30 * time.Minute)
		w.verify("long", long)
	})
}

// A server that shuts down gives back all its leases within seconds, although most endpoints do not
// respond.
func TestLeasesOfSlowEndpointsAreGivenBack(t *testing.T) {
	inWorld(t, func(w *world) {
		for range 20 {
			w.addWebhook(receivers.Hang, nil)
		}
		e := w.addWebhook(receivers.Healthy, nil)
		first := w.startServer()
		time.Sleep(5 * time.Second)
		for i := range 4 {
			w.place(customer(i))
		}
		time.Sleep(3 * time.Second)
		first.shutDown()
		second := w.startServer()
		w.servers = []*server{second}
		time.Sleep(8 * time.Second)
		if n := second.Stats().Webhooks; n != 21 {
			t.Errorf("8 seconds later, the next server has %d webhooks", n)
		}
		w.verify("healthy", e)
	})
}

// An order whose document can never be executed delays only its own events.
func TestAnOrderThatCannotBeReadDelaysOnlyItself(t *testing.T) {
	inWorld(t, func(w *world) {
		var broken orderSet
		w.execute = func(_ context.Context, id commerce.OrderID) error {
			if broken.has(id) {
				return fmt.Errorf("%w: the order is too large", table.ErrUnavailable)
			}
			time.Sleep(10 * time.Millisecond)
			return nil
		}
		e := w.addWebhook(receivers.Healthy, nil)
		w.startServer()
		time.Sleep(5 * time.Second)
		broken.add(w.place("c1"))
		for i := range 10 {
			w.place(customer(i))
		}
		time.Sleep(5 * time.Second)
		if n := len(e.Accepted()); n != 10 {
			t.Errorf("%d events of other orders are delivered, want 10", n)
		}
	})
}

// A server that was frozen cannot delete the failure of an order after another server has taken the
// lease over.
func TestAFrozenServerDeletesNoFailures(t *testing.T) {
	inWorld(t, func(w *world) {
		var refused orderSet
		e := w.addWebhook(refuse(&refused), nil)
		var first *server
		applied := make(chan struct{})
		w.request = func(r *http.Request, body string) error {
			if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "TransactWriteItems") || !strings.Contains(body, `"Delete"`) || !strings.Contains(body, string(e.hook)) {
				return nil
			}
			first.dead.Store(true)
			late := r.Clone(context.WithoutCancel(r.Context()))
			late.Body = io.NopCloser(bytes.NewReader([]byte(body)))
			time.AfterFunc(5*time.Minute, func() {
				defer close(applied)
				if response, err := w.db.Options().HTTPClient.Do(late); err == nil {
					_ = response.Body.Close()
				}
			})
			return errors.New("the server is frozen")
		}
		first = w.startServer()
		time.Sleep(5 * time.Second)
		id := w.place("c1")
		refused.add(id)
		time.Sleep(2 * time.Second)
		refused.Delete(id)
		time.Sleep(10 * time.Second)
		if !first.dead.Load() {
			t.Fatal("the first server did not retry the event")
		}
		w.request = nil
		second := w.startServer()
		time.Sleep(2 * time.Minute)
		w.verify("the second server", e)
		refused.add(id)
		w.move(id, commerce.Confirmed)
		<-applied
		if failures, err := w.admin.WebhookFailures(t.Context(), e.hook); err != nil || len(failures) != 1 {
			t.Errorf("the failures are %+v (%v)", failures, err)
		}
		second.kill()
		w.servers = []*server{first, w.startServer()}
		refused.Delete(id)
		time.Sleep(3 * time.Hour)
		w.verify("afterwards", e)
	})
}

// A replay that begins later than events that were not delivered yet does not skip them.
func TestAReplaySkipsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll = 10 * time.Second
		start := time.Now()
		e := w.addWebhook(receivers.During(start.Add(time.Minute), start.Add(2*time.Hour), receivers.Status(503), receivers.Healthy), nil)
		w.startServer()
		time.Sleep(20 * time.Second)
		first := w.place("c1")
		time.Sleep(time.Minute)
		w.move(first, commerce.Confirmed)
		for i := range 10 {
			w.place(customer(i))
			time.Sleep(time.Minute)
		}
		w.changeWebhook(e, func(h *commerce.Webhook) {
			h.Restarts, h.From = h.Restarts+1, commerce.EventID(storetest.ULIDAt(time.Now(), 0))
		})
		time.Sleep(3 * time.Hour)
		for _, f := range receivers.Verify(w.history(e), e.Accepted()) {
			if f.Kind != receivers.WrongPrevious { // the sequence of previous versions begins again
				t.Error(f)
			}
		}
	})
}
