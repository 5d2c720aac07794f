package deploy_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// rule is an alert or a recording rule in a file of Prometheus rules.
type rule struct {
	Alert, Record, Expr, For string
	Labels                   struct{ Severity string }
	Annotations              struct {
		Summary    string
		RunbookURL string `json:"runbook_url"`
	}
}

func rules(t *testing.T) []rule {
	t.Helper()
	var document struct{ Groups []struct{ Rules []rule } }
	decode(t, "prometheus/alerts.yml", &document)
	var all []rule
	for _, group := range document.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("alerts.yml has no rules")
	}
	return all
}

// dashboard is the JSON model of a Grafana dashboard.
type dashboard struct {
	Panels []struct {
		Title, Type string
		Datasource  struct{ UID string }
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name  string
			Query any
		}
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var board dashboard
	text := read(t, "grafana/ordergraph.json")
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	return board
}

// Each alert has a severity, a summary, a unit test and a link to its section in
// docs/operations.md. The chapter "Alerts" of docs/operations.md contains only sections of existing
// alerts.
func TestRunbook(t *testing.T) {
	_, runbook, found := strings.Cut(read(t, "../docs/operations.md"), "\n## Alerts\n")
	if !found {
		t.Fatal("docs/operations.md has no section for alerts")
	}
	runbook, _, _ = strings.Cut(runbook, "\n## ")
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(runbook, -1) {
		sections[heading[1]] = false
	}
	tests := read(t, "prometheus/alerts_test.yml")
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if _, ok := sections[r.Alert]; !ok {
			t.Errorf("the alert %s has no section in docs/operations.md", r.Alert)
		}
		sections[r.Alert] = true
		if want := "https://github.com/ordergraph/ordergraph/blob/main/docs/operations.md#" + strings.ToLower(r.Alert); r.Annotations.RunbookURL != want {
			t.Errorf("the alert %s links to %s, want %s", r.Alert, r.Annotations.RunbookURL, want)
		}
		if !slices.Contains([]string{"page", "ticket"}, r.Labels.Severity) || r.Annotations.Summary == "" || r.For == "" {
			t.Errorf("the alert %s has no severity, no summary or no duration", r.Alert)
		}
		if !strings.Contains(tests, "alertname: "+r.Alert+"\n        exp_alerts:\n") {
			t.Errorf("in alerts_test.yml, the alert %s never fires", r.Alert)
		}
	}
	for name, used := range sections {
		if !used {
			t.Errorf("the section %s in docs/operations.md has no alert", name)
		}
	}
}

// The alert for the error budget counts operations that failed with an error that the client did
// not cause. The dashboard uses the same error codes for the ratio of failed operations.
func TestFailureCodes(t *testing.T) {
	want := []string{errcode.Internal, errcode.Overloaded, errcode.TimedOut, errcode.TooManySubscriptions, errcode.Unavailable}
	expressions := map[string]string{}
	for _, r := range rules(t) {
		if r.Record != "" {
			expressions[r.Record] = r.Expr
		}
	}
	for _, panel := range readDashboard(t).Panels {
		if panel.Title == "Failed operations" {
			expressions[panel.Title] = panel.Targets[0].Expr
		}
	}
	if len(expressions) < 2 {
		t.Fatalf("%d expressions compute the share of failures", len(expressions))
	}
	for name, expression := range expressions {
		codes := regexp.MustCompile(`code=~"([^"]*)"`).FindStringSubmatch(expression)
		if len(codes) != 2 || !slices.Equal(strings.Split(codes[1], "|"), want) {
			t.Errorf("%s counts the codes %q, want %q", name, codes, want)
		}
	}
}

// All panels of the dashboard use the data source that the viewer selects. No two panels overlap.
func TestDashboard(t *testing.T) {
	board := readDashboard(t)
	taken := map[[2]int]string{}
	for _, panel := range board.Panels {
		if panel.Type != "row" && (panel.Datasource.UID != "${datasource}" || len(panel.Targets) == 0) {
			t.Errorf("the panel %q has the data source %s and %d targets", panel.Title, panel.Datasource.UID, len(panel.Targets))
		}
		for x := range panel.GridPos.W {
			for y := range panel.GridPos.H {
				cell := [2]int{panel.GridPos.X + x, panel.GridPos.Y + y}
				if other, ok := taken[cell]; ok {
					t.Fatalf("the panels %q and %q overlap", other, panel.Title)
				}
				taken[cell] = panel.Title
			}
		}
	}
	var variables []string
	for _, v := range board.Templating.List {
		variables = append(variables, v.Name)
	}
	if want := []string{"datasource", "job", "instance"}; !slices.Equal(variables, want) {
		t.Errorf("the variables are %q, want %q", variables, want)
	}
}
