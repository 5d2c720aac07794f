// Package markdown generates the parts of the docs that describe the data model: Markdown tables
// and lists of entities, attributes and access patterns. It imports dynamo/model.
package markdown

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// EntityKeysTable returns a Markdown table with the key templates of each entity.
func EntityKeysTable() string {
	rows := [][]string{{"entity", CodeCell(model.AttrPK) + ", " + CodeCell(model.AttrSK), CodeCell(model.AttrIndexPK) + ", " + CodeCell(model.AttrIndexSK)}}
	for _, e := range model.Entities() {
		entity, index := CodeCell(e.Name), ""
		if e.IsEdge() {
			entity += " (edge)"
		}
		if e.IndexPK != "" {
			index = CodeCell(string(e.IndexPK)) + ", " + CodeCell(string(e.IndexSK))
		}
		if e.Sharded {
			index += " (sharded)"
		}
		if e.Optional {
			index += " (optional)"
		}
		rows = append(rows, []string{entity, CodeCell(string(e.PK)) + ", " + CodeCell(string(e.SK)), index})
	}
	return Table(rows)
}

// AttributeList returns a Markdown code block with the attributes of each entity, such as
//
//	category: category! S≤200, productCount N, version N
//
// Entities with the same attributes share a line. The list omits edges (copies with other index
// keys), the key attributes and the attribute "entity".
func AttributeList() string {
	var lines, records []string
	add := func(record string, attributes []model.Attribute) {
		cells := make([]string, len(attributes))
		for i, a := range attributes {
			name := a.Name
			switch {
			case a.Required:
				name += "!"
			case a.Optional:
				name += "?"
			}
			cells[i] = name + " " + a.Type
			if a.MaxLength > 0 {
				cells[i] += fmt.Sprintf("≤%d", a.MaxLength)
			}
		}
		line := strings.Join(cells, ", ")
		if same := slices.Index(lines, line); same >= 0 {
			records[same] += ", " + record
			return
		}
		lines, records = append(lines, line), append(records, record)
	}
	for _, e := range model.Entities() {
		if attributes := model.AttributesOf(e); attributes != nil && !e.IsEdge() {
			add(e.Name, attributes)
		}
	}
	add("element of items", model.EmbeddedItemAttributes())
	add("shippingAddress", model.AddressAttributes())
	var b strings.Builder
	b.WriteString("```\n")
	for i, line := range lines {
		column := 0
		for cell := range strings.SplitSeq(records[i]+": "+line, ", ") {
			switch {
			case column == 0:
			case column+len(cell) > maxColumns:
				b.WriteString(",\n  ")
				column = 2
			default:
				b.WriteString(", ")
			}
			b.WriteString(cell)
			column += len(cell) + 2
		}
		b.WriteString("\n")
	}
	b.WriteString("```\n")
	return b.String()
}

// maxColumns is the approximate maximum length of a line of AttributeList.
const maxColumns = 90

// AccessPatternTable returns a Markdown table of the access patterns. fields maps the ID of an
// access pattern to the GraphQL fields that use it.
func AccessPatternTable(fields map[string][]string) string {
	rows := [][]string{{"ID", "GraphQL", "request"}}
	for _, p := range model.AccessPatterns() {
		cells := make([]string, len(fields[p.ID]))
		for i, f := range fields[p.ID] {
			cells[i] = CodeCell(f)
		}
		request := "same request as " + p.IncludedIn
		if p.IncludedIn == "" {
			keys, descending := strings.CutSuffix(DescribeKeys(p), " "+model.Descending)
			request = p.Operation + " " + CodeCell(keys)
			if descending {
				request += " " + model.Descending
			}
		}
		rows = append(rows, []string{p.ID, strings.Join(cells, " "), request})
	}
	return Table(rows)
}

// CodeCell returns s as a Markdown code span, for a cell of a table. If s is empty, the result is
// empty.
func CodeCell(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// Table returns a Markdown table with the given rows. The first row is the header.
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
