package schema_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
)

// encode returns the beginning of the stored keys of a partition.
func encode(text string) []byte {
	return schema.EncodePartition([]attr.Value{{Kind: attr.String, Text: text}})
}

// Items that were created at about the same time are neighbors in the file. Other items are
// distributed over the file.
func TestNeighbors(t *testing.T) {
	orders := []string{
		"ORDER#01HVNR4Q000000000000000000", "ORDER#01HVNR4Q3RZZZZZZZZZZZZZZZZ", "ORDER#01HVNR4Q3S0000000000000000", "ORDER#01HVNR4QZZ0000000000000000",
	}
	for i, order := range orders[1:] {
		if previous := encode(orders[i]); bytes.Compare(previous, encode(order)) >= 0 || previous[0] != encode(order)[0] {
			t.Errorf("the key of %s is not a successor of the key of %s in the same 33 s", order, orders[i])
		}
	}
	days, skus := map[byte]bool{}, map[byte]bool{}
	for i := range 1000 {
		days[encode(fmt.Sprintf("ORDER#01HV%03dQ3R0000000000000002", i))[0]] = true
		skus[encode(fmt.Sprintf("PRODUCT#prod_%d", i))[0]] = true
	}
	if len(days) < 200 || len(skus) < 200 {
		t.Errorf("of 256 first bytes, 1000 days have %d, and 1000 products have %d", len(days), len(skus))
	}
}

// The hashes are a part of the file's format: if one changes, files need a new format version.
func TestHashes(t *testing.T) {
	for partition, want := range map[string]string{
		"":                                 "7596a296d224f285c67bee93c30f8a309157f0da",
		"PRODUCT#prod_1":                   "dcea9fd5fae187d99a4b2d39e65884de8b3f7e30",
		"ORDER#01HVNR4Q3R0000000000000002": "3a513352ef38612c370810605a3314d24051ce1b",
	} {
		if got := hex.EncodeToString(encode(partition)); got != want {
			t.Errorf("%q has the hash %s, want %s", partition, got, want)
		}
	}
}
