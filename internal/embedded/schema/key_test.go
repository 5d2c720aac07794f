package schema_test

import (
	"fmt"
	"testing"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
	"github.com/ordergraph/ordergraph/internal/embedded/schema"
)

// ULIDs that were created at about the same time are neighbors in the file. Other keys are
// distributed over the file. The hashes are a part of the file's format: if one changes, files need
// a new format version.
func TestHashes(t *testing.T) {
	hash := func(text string) byte {
		return schema.EncodePartition([]attr.Value{{Kind: attr.String, Text: text}})[0]
	}
	order := hash("ORDER#01HVNR4Q3R0000000000000002")
	if near := hash("ORDER#01HVNR4QZZZZZZZZZZZZZZZZZZ"); near != order {
		t.Errorf("two orders of the same 33 s have the hashes %d and %d", order, near)
	}
	days, skus := map[byte]bool{}, map[byte]bool{}
	for i := range 1000 {
		days[hash(fmt.Sprintf("ORDER#01HV%03dQ3R0000000000000002", i))] = true
		skus[hash(fmt.Sprintf("PRODUCT#prod_%d", i))] = true
	}
	if len(days) < 200 || len(skus) < 200 {
		t.Errorf("of 256 hashes, 1000 days have %d, and 1000 products have %d", len(days), len(skus))
	}
	if product := hash("PRODUCT#prod_1"); order != 58 || product != 220 {
		t.Errorf("the hashes are %d and %d, want 58 and 220", order, product)
	}
}
