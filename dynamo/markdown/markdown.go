// Package markdown describes access patterns and write patterns, for the command patterns and the
// docs. It imports dynamo/model.
package markdown

import (
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

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
