package markdown

import (
	"fmt"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Records are the records that a write pattern writes or checks, in one line, by the entities'
// names.
func Records(p model.WritePattern) string {
	var parts []string
	for _, group := range []struct {
		of, each string
		entities []model.Entity
	}{{"", "", p.Writes}, {"", " for each line", p.Each}, {"", " for some lines", p.MaybeEach}, {"perhaps ", "", p.Maybe}} {
		for _, e := range group.entities {
			parts = append(parts, group.of+e.Name+group.each)
		}
	}
	return strings.Join(parts, ", ")
}

// Request is the DynamoDB operation in a few words, with the index that it reads.
func Request(p model.AccessPattern) string {
	if p.With != "" {
		return "with " + p.With
	}
	if p.Index == "" {
		return p.Operation
	}
	operation, how, _ := strings.Cut(p.Operation, " ")
	return strings.TrimSpace(operation + " " + p.Index + " " + how)
}

// ReadKeys are the keys that are read, in one line: what is behind the = of each key attribute, and the
// direction.
func ReadKeys(p model.AccessPattern) string {
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
