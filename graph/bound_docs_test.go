package graph

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/internal/test/golden"
)

// testdata/bounds.golden contains the bounds of all mutations and of the queries with documented
// budgets. A useless bound shows up in its diff.
func TestGoldenBounds(t *testing.T) {
	budgets, err := os.ReadFile("../internal/server/testdata/budgets.graphql")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| operation | requests | round trips | read units | write units | with 4 shards |\n|---|---|---|---|---|---|\n")
	value := regexp.MustCompile(`"[^"]+"`)
	for line := range strings.Lines(string(budgets)) {
		query, _, _ := strings.Cut(strings.TrimSpace(line), " # ")
		one, four := bounded(t, query, 1), bounded(t, query, 4)
		fmt.Fprintf(&table, "| `%s` | %d | %d | %v |  | %s |\n", value.ReplaceAllString(query, `"..."`), one.Requests, one.RoundTrips, one.ReadUnits, sharded(one, four))
	}
	for _, p := range model.WritePatterns() {
		input := strings.ToUpper(p.Mutation[:1]) + p.Mutation[1:] + "Input!"
		most := bounded(t, fmt.Sprintf("mutation($i: %s) { %s(input: $i) { userErrors { message } } }", input, p.Mutation), 1)
		fmt.Fprintf(&table, "| `%s` | %d | %d | %v | %v |  |\n", p.Mutation, most.Requests, most.RoundTrips, most.ReadUnits, most.WriteUnits)
	}
	golden.CheckFile(t, "testdata/bounds.golden", table.String())
}

// sharded returns the bound with four shards if it differs from the bound with one shard.
func sharded(one, four bound.Bound) string {
	if one.Requests == four.Requests && one.RoundTrips == four.RoundTrips && one.ReadUnits == four.ReadUnits {
		return ""
	}
	return fmt.Sprintf("%d, %d, %v", four.Requests, four.RoundTrips, four.ReadUnits)
}
