package museum_test

import (
	"strings"
	"testing"
)

var requestRooms = []room{{
	name: "literal-out-of-range", sources: []string{"Azure/data-api-builder#881", "youshido-php/GraphQL#142"},
	there: "An `Int` with more than 32 bits leads to an internal error. Or a mutation is executed before the validation finds an error in the document.",
	here:  "The error names the value, and no mutation of the document is executed.",
	test: func(t *testing.T) {
		s := newShop(t)
		body := s.post(s.url, "", `mutation {
			a: adjustInventory(input: {sku: "p0", warehouseId: "w0", delta: 1}) { inventoryLevel { quantity } }
			b: adjustInventory(input: {sku: "p0", warehouseId: "w0", delta: 2147483648}) { inventoryLevel { quantity } } }`)
		if strings.Contains(body, `"data"`) || !strings.Contains(body, "does not fit into an Int") {
			s.Errorf("the response is %s", body)
		}
		s.wantStock(4)
	},
}}
