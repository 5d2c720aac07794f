package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/receivers"
)

// orderSet is a set of orders.
type orderSet struct{ sync.Map }

func (s *orderSet) add(id commerce.OrderID)      { s.Store(id, true) }
func (s *orderSet) has(id commerce.OrderID) bool { _, ok := s.Load(id); return ok }

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
