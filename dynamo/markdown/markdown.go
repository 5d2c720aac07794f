// Package markdown writes the tables of the docs, and patterns in words. It imports dynamo/model.
package markdown

import (
	"fmt"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Keys is the table of the entities' keys for the docs.
func Keys() string {
	rows := [][]string{{"record", "entity", model.AttrPK, model.AttrSK, model.AttrIndexPK, model.AttrIndexSK}}
	for _, e := range model.Entities() {
		gsi := Cell(string(e.IndexPK))
		if e.Sharded {
			gsi += " (shard)"
		}
		if e.Optional {
			gsi += " (some)"
		}
		rows = append(rows, []string{e.What, Cell(e.Name), Cell(string(e.PK)), Cell(string(e.SK)), gsi, Cell(string(e.IndexSK))})
	}
	return Table(rows)
}

// Attributes is the table of the records' attributes for the docs. The key attributes and
// the attribute entity are not in it. An edge has the attributes of its record.
func Attributes() string {
	rows := [][]string{{"record", "attributes"}}
	row := func(records string, attributes []model.Attribute) {
		cells := make([]string, len(attributes))
		for i, a := range attributes {
			cells[i] = Cell(a.Name) + " " + a.Type
			if a.Required {
				cells[i] = "**" + Cell(a.Name) + "** " + a.Type
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
	for _, e := range model.Entities() {
		if attributes := model.AttributesOf(&e); attributes != nil && e.EdgeOf == nil {
			row(e.What, attributes)
		}
	}
	row("item in `items` of an order", model.LineAttributes())
	row("address in `shippingAddress` of an order", model.AddressAttributes())
	return Table(rows)
}

// Patterns is the table of the access patterns for the docs. fields are the fields of the
// API that each serves, by the pattern's ID.
func Patterns(fields map[string][]string) string {
	rows := [][]string{{"id", "pattern", "GraphQL", "DynamoDB", "keys"}}
	for _, p := range model.AccessPatterns() {
		cells := make([]string, len(fields[p.ID]))
		for i, f := range fields[p.ID] {
			cells[i] = Cell(f)
		}
		rows = append(rows, []string{p.ID, p.What, strings.Join(cells, " "), Request(p), Cell(ReadKeys(p))})
	}
	return Table(rows)
}

// Cell returns a code span for a cell of a table.
func Cell(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// Table returns a table in Markdown; the first row is the header.
func Table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}
