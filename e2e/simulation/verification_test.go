package simulation_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/receivers"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// verify compares what clients, subscribers and receivers have seen with the records of the table. It
// does not use the code of the servers, except to decode events.
func (w *world) verify(subscriptions []*subscriber) {
	ctx := context.Background()
	if err := w.admin.Ping(ctx); err != nil { // reads the current layout
		w.found("the layout cannot be read: %v", err)
	}
	w.complete()
	if w.random("export").IntN(4) == 0 {
		w.verifyExport()
	}
	audit, err := storetest.Audit(ctx, w.db, w.table, w.admin.Shards())
	if err != nil {
		w.found("the table cannot be read: %v", err)
		return
	}
	for _, problem := range audit.Problems {
		w.found("%s", problem)
	}
	if _, err := w.admin.CheckRecords(ctx, check.Options{IndexLag: check.NoIndexLag, OnInconsistency: func(i check.Inconsistency) {
		if len(audit.Problems) == 0 {
			w.found("check found %s %s %s: %s, but the records are consistent", i.Kind, i.PK, i.SK, i.Detail)
		}
	}}); err != nil {
		w.found("check: %v", err)
	}
	w.countUses()
	w.verifyOrders(audit)
	w.verifyRegisters(audit)
	w.verifyLevels(audit)
	w.verifyResponses(audit)
	w.verifyReaders(audit)
	w.verifyErasure(audit)
	w.verifyTornExport()
	w.verifyAcknowledged(audit)
	w.verifySubscriptions(audit, subscriptions)
	w.verifyWebhooks(audit)
	w.verifyLists(audit)
}

// verifyOrders verifies that each order was placed by one request.
func (w *world) verifyOrders(a *storetest.AuditResult) {
	placedBy, unknown := map[string]string{}, fixture.Customers // each has an order at the start
	for _, o := range w.history.operations {
		switch {
		case o.Field != "placeOrder":
		case o.returned == 0:
			unknown++
		case o.response.Succeeded():
			id := o.response.Record().ID
			request := cmp.Or(o.key(), o.decision)
			if other, ok := placedBy[id]; ok && other != request {
				w.found("order %s is the result of the requests %s and %s", id, other, request)
			}
			placedBy[id] = request
			if !slices.Contains(a.Orders, id) {
				w.found("order %s was placed by %s, but does not exist", id, o.decision)
			}
		}
	}
	keys := map[string]string{}
	for id, request := range placedBy {
		if other, ok := keys[request]; ok {
			w.found("the request %s has placed the orders %s and %s", request, other, id)
		}
		keys[request] = id
	}
	extra := 0
	for _, id := range a.Orders {
		if placedBy[id] == "" {
			extra++
		}
	}
	if extra > unknown {
		w.found("%d orders exist that no response contained, but only %d requests to place an order had no response", extra, unknown)
	}
}

// isOfErased reports whether an event is of an order of the erased customer.
func isOfErased(a *storetest.AuditResult, id commerce.EventID) bool {
	for k, r := range a.Records {
		if k.SK == "EVENT#"+string(id) {
			return a.Records[storetest.Key{PK: "ORDER#" + r.Text("orderId"), SK: "#METADATA"}].Text("customerId") == erasedCustomer
		}
	}
	return false
}

// isBehind reports whether a receiver lacks an event.
func (w *world) isBehind() bool {
	if len(w.hooks) == 0 {
		return false
	}
	audit, err := storetest.Audit(context.Background(), w.db, w.table, w.admin.Shards())
	if err != nil {
		return false // verify reports it
	}
	for _, h := range w.hooks {
		for _, finding := range receivers.Verify(w.wanted(audit, h, func(string, ...any) {}), h.Accepted()) {
			if finding.Kind == receivers.Missing || finding.Kind == receivers.Skipped {
				return true
			}
		}
	}
	return false
}

// keyLife is the time after which an idempotency key can be used again. It begins when the first request is
// executed, and ends by the clock of a server, so a client cannot know it more exactly than keyLifeMargin.
const (
	keyLife       = 24 * time.Hour
	keyLifeMargin = 5 * time.Minute
)

// countUses determines which requests with the same idempotency key are the same request.
func (w *world) countUses() {
	all := w.history.operations
	slices.SortStableFunc(all, func(a, b operation) int { return cmp.Compare(a.at, b.at) })
	type use struct {
		number   int
		from     time.Duration
		response string
	}
	uses := map[string]use{}
	for i, o := range all {
		if o.returned > 0 && !o.response.Succeeded() {
			continue // an error is not stored
		}
		u, known := uses[o.key()]
		response := ""
		if o.returned > 0 {
			response = o.response.String()
		}
		age := o.at - u.from
		isOther := response != "" && u.response != "" && response != u.response
		if known && (age > keyLife+keyLifeMargin || age > keyLife-keyLifeMargin && isOther) {
			u = use{number: u.number + 1, from: o.at}
		} else if !known {
			u.from = o.at
		}
		u.response = cmp.Or(u.response, response)
		uses[o.key()] = u
		all[i].use = u.number
	}
}

// timelines returns the events of all orders in the sequence of their IDs, and the customer of each
// order.
func timelines(a *storetest.AuditResult) (events []update, owner map[string]string) {
	owner = map[string]string{}
	for k, r := range a.Records {
		order, ok := strings.CutPrefix(k.PK, "ORDER#")
		switch id, event := strings.CutPrefix(k.SK, "EVENT#"); {
		case ok && event:
			events = append(events, update{id, order})
		case ok && k.SK == "#METADATA":
			owner[order] = r.Text("customerId")
		}
	}
	slices.SortFunc(events, func(a, b update) int { return cmp.Compare(a.ID, b.ID) })
	return events, owner
}

// verifySubscriptions verifies that each subscriber got each event once, and the events of an order in
// their sequence.
func (w *world) verifySubscriptions(a *storetest.AuditResult, all []*subscriber) {
	events, owner := timelines(a)
	// The customer of a guest's order need not see what happened before the order was claimed.
	claimed := map[string]string{}
	for k, r := range a.Records {
		if r.Text("type") == "claimed" {
			claimed[strings.TrimPrefix(k.PK, "ORDER#")] = strings.TrimPrefix(k.SK, "EVENT#")
		}
	}
	for _, s := range all {
		times := map[update]int{}
		for i, u := range s.updates {
			times[u]++
			if i > 0 && u.ID <= s.updates[i-1].ID {
				w.found("%s got event %s after %s", s.name, u.ID, s.updates[i-1].ID)
			}
		}
		for _, e := range events {
			wanted := e.ID > s.began && (s.field == "changes" || s.field == "orderUpdated" && e.OrderID == s.id || s.field == "customerOrders" && owner[e.OrderID] == s.id)
			if n := times[e]; wanted && n == 0 && s.field == "customerOrders" && e.ID < claimed[e.OrderID] {
				continue
			} else if wanted && n != 1 {
				w.found("%s got event %s of order %s %d times", s.name, e.ID, e.OrderID, n)
			} else if !wanted && n > 0 {
				w.found("%s got event %s of order %s, which it must not see", s.name, e.ID, e.OrderID)
			}
			delete(times, e)
		}
		for e := range times {
			w.found("%s got event %s of order %s, which does not exist", s.name, e.ID, e.OrderID)
		}
	}
}

// wanted returns the events that a webhook wants, in the sequence of their IDs.
func (w *world) wanted(a *storetest.AuditResult, h *hook, found func(string, ...any)) (history []commerce.Event) {
	for k, r := range a.Records {
		if strings.HasPrefix(k.PK, "ORDER#") && strings.HasPrefix(k.SK, "EVENT#") {
			e, err := model.DecodeTimelineEvent(model.Record(r))
			if err != nil {
				found("%v: %v", k, err)
			} else if e.ID > h.From && h.Wants(e) {
				history = append(history, *e)
			}
		}
	}
	slices.SortFunc(history, func(a, b commerce.Event) int { return cmp.Compare(a.ID, b.ID) })
	return history
}

// verifyWebhooks verifies what the receivers of webhooks have accepted.
func (w *world) verifyWebhooks(a *storetest.AuditResult) {
	for _, h := range w.hooks {
		for _, finding := range receivers.Verify(w.wanted(a, h, w.found), h.Accepted()) {
			if w.Erase && finding.Kind == receivers.Changed && isOfErased(a, finding.EventID) {
				continue // the erasure removed personal data from the event before it was delivered again
			}
			w.found("%s: %s", h.Receiver.URL, finding)
		}
		for _, problem := range h.Invalid() {
			if slices.Contains(w.Actions, "clock") {
				continue // the time in the signature can be wrong by more than receivers accept
			}
			w.found("%s: %s", h.Receiver.URL, problem)
		}
	}
}
