package simulation_test

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// verifyPieces verifies that no order ships or returns more pieces of a product than it has.
func (w *world) verifyPieces(a *storetest.AuditResult) {
	type line struct{ order, sku string }
	ordered, shipped, returned := map[line]int{}, map[line]int{}, map[line]int{}
	for k, r := range a.Records {
		order, ok := strings.CutPrefix(k.PK, "ORDER#")
		switch kind, sku, _ := strings.Cut(k.SK, "#"); {
		case !ok:
		case kind == "ITEM":
			ordered[line{order, sku}] = r.Int("qty")
		case kind == "SHIPMENT" && r.Text("status") != "cancelled":
			addLines(r, "sku", func(sku string, n int) { shipped[line{order, sku}] += n })
		case kind == "RETURN" && r.Text("status") != "rejected":
			addLines(r, "productId", func(sku string, n int) { returned[line{order, sku}] += n })
		}
	}
	for kind, pieces := range map[string]map[line]int{"shipped": shipped, "in returns": returned} {
		for of, n := range pieces {
			if n > ordered[of] {
				w.found("order %s has %d pieces of product %s, but %d are %s", of.order, ordered[of], of.sku, n, kind)
			}
		}
	}
}

// addLines calls add with the product and the quantity of each line of a record.
func addLines(r storetest.Record, sku string, add func(string, int)) {
	lines, _ := r["lines"].(*types.AttributeValueMemberL)
	if lines == nil {
		return
	}
	for _, l := range lines.Value {
		if fields, ok := l.(*types.AttributeValueMemberM); ok {
			add(storetest.Record(fields.Value).Text(sku), storetest.Record(fields.Value).Int("qty"))
		}
	}
}
