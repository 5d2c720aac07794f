package deploy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metric and label search expressions of Prometheus. metric matches the name of a metric and its
// selector. label matches the name of a label in a selector. declaration matches the row of a
// metric in docs/metrics.md.
var (
	metric      = regexp.MustCompile(`\b([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}|\b(ordergraph[_:][a-zA-Z0-9_:]+)`)
	label       = regexp.MustCompile(`([a-z_]+)(?:=~|!=|!~|=)"[^"]*"`)
	declaration = regexp.MustCompile("(?m)^\\| `(ordergraph_[a-z0-9_]+)` \\| ([a-z]+) \\| ([^|]*) \\|")
)

// docs/metrics.md declares all metrics that the alerts and the dashboard use, and the labels that
// select them.
func TestMetricsAreDeclared(t *testing.T) {
	declared := map[string][]string{"up": nil}
	for _, row := range declaration.FindAllStringSubmatch(read(t, "../docs/metrics.md"), -1) {
		labels := strings.Split(strings.ReplaceAll(row[3], "`", ""), ", ")
		if row[2] == "histogram" {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				declared[row[1]+suffix] = labels
			}
			continue
		}
		declared[row[1]] = labels
	}
	var expressions []string
	for _, r := range rules(t) {
		expressions = append(expressions, r.Expr)
		declared[r.Record] = nil
	}
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	checked := 0
	for _, expression := range expressions {
		for _, match := range metric.FindAllStringSubmatch(expression, -1) {
			name := match[1] + match[3]
			// The Go client of Prometheus exports the metrics with these prefixes.
			if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
				continue
			}
			checked++
			labels, ok := declared[name]
			if !ok {
				t.Errorf("%s is not in docs/metrics.md: %s", name, expression)
			}
			for _, selected := range label.FindAllStringSubmatch(match[2], -1) {
				if !slices.Contains([]string{"instance", "job"}, selected[1]) && !slices.Contains(labels, selected[1]) {
					t.Errorf("%s has no label %s: %s", name, selected[1], expression)
				}
			}
		}
	}
	if checked < len(expressions)/2 {
		t.Errorf("%d metrics in %d expressions were checked", checked, len(expressions))
	}
}
