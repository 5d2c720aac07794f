package markdown

import (
	"fmt"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// WrittenEntities returns the names of the entities that a write pattern writes or checks,
// separated by commas.
func WrittenEntities(p model.WritePattern) string {
	var parts []string
	for _, group := range []struct {
		prefix, suffix string
		entities       []model.Entity
	}{{"", "", p.Writes}, {"", " for each line", p.WritesPerLine}, {"", " for some lines", p.OptionalWritesPerLine}, {"perhaps ", "", p.OptionalWrites}} {
		for _, e := range group.entities {
			parts = append(parts, group.prefix+e.Name+group.suffix)
		}
	}
	if p.Buckets {
		parts = append(parts, "perhaps "+model.EntityStockBucket.Name)
	}
	if p.LowStock {
		parts = append(parts, "perhaps "+model.EntityLowStock.Name+" for each inventoryLevel")
	}
	return strings.Join(parts, ", ")
}

// OperationAndIndex returns the DynamoDB operation of an access pattern, and the name of the index
// that the operation reads.
func OperationAndIndex(p model.AccessPattern) string {
	if p.IncludedIn != "" {
		return "same request as " + p.IncludedIn
	}
	if p.Index == "" {
		return p.Operation
	}
	operation, suffix, _ := strings.Cut(p.Operation, " ")
	return strings.TrimSpace(operation + " " + p.Index + " " + suffix)
}

// DescribeKeys returns a description of the keys that an access pattern reads. It contains the
// template of each key attribute, and "descending" if the keys are read in this direction.
func DescribeKeys(p model.AccessPattern) string {
	pk, sk := p.KeyAttributes()
	keys := fmt.Sprintf("%s=%s", pk, p.PK)
	switch {
	case p.Direction == "":
		keys += fmt.Sprintf(" %s=%s", sk, p.SK)
	case p.SK != "":
		keys += fmt.Sprintf(" %s=%s*", sk, p.SK)
	}
	if p.Direction == model.Descending {
		keys += " " + p.Direction
	}
	return keys
}
