package model_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Each text, list and map in the records of customers and orders is declared as personal data, or contains
// none. If this test fails for a new attribute, call personal after its declaration, or add it to the list.
func TestPersonalAttributes(t *testing.T) {
	impersonal := []string{
		"accountRepId", "carrier", "createdAt", "currency", "customerId", "deletedAt", "erasedTo", "erasure", "eventId", "expiry", "from", "kind", "month",
		"noteCustomerId", "orderId", "paymentDue", "paymentId", "providerReference", "returnId", "fulfillmentId", "shippedLines", "status", "to", "trackingNumber", "type", "updatedAt", "waitingSince", "warehouseId",
		"adjustments", "items", "orderItem.name", "productId", // what was sold
		"fulfillment.lines", "trackingUrl",
		"tags", "orderTag.tag", // words that many orders have
		"payment.actor", "fulfillment.actor", // customers cannot record payments or ship parcels
	}
	for _, e := range model.Entities() {
		ofCustomer := strings.HasPrefix(string(e.PK), "CUSTOMER#") || strings.HasPrefix(string(e.PK), "ORDER#")
		for _, a := range model.AttributesOf(e) {
			listed := slices.Contains(impersonal, a.Name) || slices.Contains(impersonal, e.Name+"."+a.Name)
			switch text := slices.Contains([]string{"S", "L", "M"}, a.Type); {
			case a.Personal && (listed || !ofCustomer):
				t.Errorf("%s.%s is declared as personal data", e.Name, a.Name)
			case ofCustomer && text && !a.Personal && !listed:
				t.Errorf("%s.%s is neither declared as personal data nor in the list of other attributes", e.Name, a.Name)
			}
		}
	}
}
