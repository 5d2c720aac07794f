package model

import (
	"fmt"
	"strings"
)

// Records are the records that a write pattern writes or checks, in one line, by the entities'
// names.
func (p WritePattern) Records() string {
	var parts []string
	for _, group := range []struct {
		of, each string
		entities []Entity
	}{{"", "", p.Writes}, {"", " for each line", p.Each}, {"", " for some lines", p.MaybeEach}, {"perhaps ", "", p.Maybe}} {
		for _, e := range group.entities {
			parts = append(parts, group.of+e.Name+group.each)
		}
	}
	return strings.Join(parts, ", ")
}

// Request is the DynamoDB operation in a few words, with the index that it reads.
func (p AccessPattern) Request() string {
	if p.With != "" {
		return "with " + p.With
	}
	if p.Index == "" {
		return p.Operation
	}
	operation, how, _ := strings.Cut(p.Operation, " ")
	return strings.TrimSpace(operation + " " + p.Index + " " + how)
}

// Keys are the keys that are read, in one line: what is behind the = of each key attribute, and the
// direction.
func (p AccessPattern) Keys() string {
	pk, sk := p.KeyAttributes()
	keys := fmt.Sprintf("%s=%s", pk, p.PK)
	switch {
	case p.Direction == "":
		keys += fmt.Sprintf(" %s=%s", sk, p.SK)
	case p.SK != "":
		keys += fmt.Sprintf(" %s=%s*", sk, p.SK)
	}
	if p.Direction == Descending {
		keys += " " + p.Direction
	}
	return keys
}
