package simulation_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// erasedCustomer is the customer that is erased in some scenarios.
const erasedCustomer = "c3"

// erase erases a customer while others change the customer's orders. Each request erases one order.
func (w *world) erase(ctx context.Context) {
	r := w.random("erasure")
	if !w.sleep(ctx, time.Duration(r.Float64()*0.7*float64(w.Duration))) || !w.decide("erasure") {
		return
	}
	w.readers.erasing.Store(true)
	c := w.newClient("eraser", "")
	for !w.readers.erased.Load() {
		damaged := w.watchDamage()
		attempt, cancel := context.WithTimeout(ctx, clientTimeout)
		got, err := c.Send(attempt, url(r), workload.Mutation{Field: "eraseCustomer", Input: map[string]any{"customerId": erasedCustomer}})
		cancel()
		switch {
		case errors.Is(err, workload.ErrUnknownOutcome) || err != nil && damaged():
			if !w.sleep(ctx, time.Duration(r.Float64()*float64(maxRetryPause))) {
				return
			}
		case err != nil || !got.Succeeded():
			w.found("eraseCustomer: %v, %v", got, err)
			return
		default:
			w.readers.erased.Store(strings.Contains(got.RecordJSON, `"erased":true`))
		}
	}
}

// verifyErasure verifies that no personal data of the erased customer is left.
func (w *world) verifyErasure(a *storetest.AuditResult) {
	if !w.readers.erasing.Load() || w.damaged {
		return
	}
	if !w.readers.erased.Load() {
		w.found("the erasure of customer %s is not complete", erasedCustomer)
		return
	}
	if a.Records[storetest.Key{PK: "CUSTOMER#" + erasedCustomer, SK: "#METADATA"}] != nil {
		w.found("the erased customer %s exists", erasedCustomer)
	}
	for k, r := range a.Records {
		if r.Text("customerId") != erasedCustomer {
			continue
		}
		if hold, ok := r["hold"].(*types.AttributeValueMemberM); ok && storetest.Record(hold.Value).Text("reason") != "" {
			w.found("%v of the erased customer has the reason of a hold", k)
		}
		for _, name := range []string{"shippingAddress", "billingAddress", "contact", "email", "name"} {
			if r.Text("entity") != "orderItem" && r.Has(name) {
				w.found("%v of the erased customer has the attribute %s", k, name)
			}
		}
	}
}
