package model

import (
	"fmt"
	"strings"
)

// KeysMarkdown is the table of the entities' keys for the docs.
func KeysMarkdown() string {
	rows := [][]string{{"record", "entity", AttrPK, AttrSK, AttrIndexPK, AttrIndexSK}}
	for _, e := range Entities() {
		gsi := MarkdownCell(string(e.IndexPK))
		if e.Sharded {
			gsi += " (shard)"
		}
		if e.Optional {
			gsi += " (some)"
		}
		rows = append(rows, []string{e.What, MarkdownCell(e.Name), MarkdownCell(string(e.PK)), MarkdownCell(string(e.SK)), gsi, MarkdownCell(string(e.IndexSK))})
	}
	return MarkdownTable(rows)
}

// AttributesMarkdown is the table of the records' attributes for the docs. The key attributes and
// the attribute entity are not in it. An edge has the attributes of its record.
func AttributesMarkdown() string {
	rows := [][]string{{"record", "attributes"}}
	row := func(records string, attributes []Attribute) {
		cells := make([]string, len(attributes))
		for i, a := range attributes {
			cells[i] = MarkdownCell(a.Name) + " " + a.Type
			if a.Required {
				cells[i] = "**" + MarkdownCell(a.Name) + "** " + a.Type
			}
			if a.Most > 0 {
				cells[i] += fmt.Sprintf(" ≤ %d", a.Most)
			}
			if a.Optional {
				cells[i] += " (some)"
			}
		}
		rows = append(rows, []string{records, strings.Join(cells, ", ")})
	}
	for _, e := range Entities() {
		if attributes := AttributesOf(&e); attributes != nil && e.EdgeOf == nil {
			row(e.What, attributes)
		}
	}
	row("item in `items` of an order", described(lineAttributes))
	row("address in `shippingAddress` of an order", described(addressAttributes))
	return MarkdownTable(rows)
}

// PatternsMarkdown is the table of the access patterns for the docs. fields are the fields of the
// API that each serves, by the pattern's ID.
func PatternsMarkdown(fields map[string][]string) string {
	rows := [][]string{{"id", "pattern", "GraphQL", "DynamoDB", "keys"}}
	for _, p := range AccessPatterns() {
		cells := make([]string, len(fields[p.ID]))
		for i, f := range fields[p.ID] {
			cells[i] = MarkdownCell(f)
		}
		rows = append(rows, []string{p.ID, p.What, strings.Join(cells, " "), p.Request(), MarkdownCell(p.Keys())})
	}
	return MarkdownTable(rows)
}

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

// MarkdownCell returns a code span for a cell of a table.
func MarkdownCell(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// MarkdownTable returns a table in Markdown; the first row is the header.
func MarkdownTable(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}
