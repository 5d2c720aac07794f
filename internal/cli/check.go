package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
)

// exitUndone is the exit status of a check that could not be made; 1 says that it found something.
const exitUndone = 3

// checkSegments and checkParallel are how many requests a check makes at once: enough to be quick, few enough to leave a
// table's capacity to the servers.
const (
	checkSegments = 4
	checkParallel = 8
)

// checkIndexLag is how long a check takes the index to lag behind the table. It usually is some milliseconds.
const checkIndexLag = time.Second

// statusError ends a command with an exit status of its own. A nil err has been told already.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

func check(ctx context.Context, args []string, env Environment) error {
	repair, asJSON := false, false
	err := flags("check", args, 0, func(set *flag.FlagSet) {
		set.BoolVar(&repair, "repair", false, "")
		set.BoolVar(&asJSON, "json", false, "")
	}, nil)
	if err != nil {
		return err
	}
	left, err := checkTable(ctx, repair, asJSON, env)
	switch {
	case err != nil && ctx.Err() != nil:
		return &statusError{exitUndone, errors.New("check: stopped before its end")}
	case err != nil:
		return &statusError{exitUndone, err}
	case left > 0:
		return &statusError{exitFailed, nil}
	}
	return nil
}

// checkTable returns how many drifts are left.
func checkTable(ctx context.Context, repair, asJSON bool, env Environment) (int, error) {
	store, cfg, err := open(ctx, "check", env)
	if err != nil {
		return 0, err
	}
	if err := store.Check(ctx); err != nil {
		return 0, onTable(cfg, err)
	}
	var out checkOutput = &checkText{w: env.Stdout, repair: repair, table: cfg.Table.Table}
	if asJSON {
		out = &checkJSON{w: json.NewEncoder(env.Stdout)}
	}
	progress := newProgressLine(env.Stderr, time.Now)
	opts := dynamo.CheckOptions{Segments: checkSegments, Parallel: checkParallel, Repair: repair, IndexLag: checkIndexLag}
	opts.Found = func(d dynamo.Drift) {
		progress.clear()
		out.drift(d)
	}
	opts.Progress = progress.showCheck
	summary, err := store.CheckRecords(ctx, opts)
	progress.clear()
	if err != nil {
		return 0, onTable(cfg, err)
	}
	out.summary(summary)
	return summary.Left(), nil
}

// checkOutput tells people or programs what a check finds.
type checkOutput interface {
	drift(dynamo.Drift)
	summary(dynamo.CheckSummary)
}

// checkText is for people.
type checkText struct {
	w      io.Writer
	repair bool
	table  string
}

func (t *checkText) drift(d dynamo.Drift) {
	note := ""
	switch class := driftClass(d.Class); {
	case d.Repaired:
		note = " (repaired)"
	case class.ByHand:
		note = fmt.Sprintf(" (by hand: %s)", class.Repair)
	case t.repair:
		note = " (not repaired)"
	}
	fmt.Fprintf(t.w, "%s  %s %s: %s%s\n", d.Class, d.PK, d.SK, d.Detail, note)
}

// driftClass is the class of that name.
func driftClass(name string) dynamo.DriftClass {
	for _, c := range dynamo.DriftClasses() {
		if c.Name == name {
			return c
		}
	}
	return dynamo.DriftClass{}
}

func (t *checkText) summary(s dynamo.CheckSummary) {
	if len(s.Found) > 0 {
		fmt.Fprintln(t.w)
		tab := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
		for _, c := range dynamo.DriftClasses() {
			switch {
			case s.Found[c.Name] == 0:
			case t.repair:
				fmt.Fprintf(tab, "%s\t%d found, %d repaired\t%s\n", c.Name, s.Found[c.Name], s.Repaired[c.Name], c.What)
			default:
				fmt.Fprintf(tab, "%s\t%d\t%s\n", c.Name, s.Found[c.Name], c.What)
			}
		}
		_ = tab.Flush()
		fmt.Fprintln(t.w)
	}
	fmt.Fprintf(t.w, "Table %s: %d orders, %d customers, %d products, %d employees, %d warehouses; %d records", t.table, s.Orders, s.Customers, s.Products, s.Employees, s.Warehouses, s.Records)
	if s.Foreign > 0 {
		fmt.Fprintf(t.w, ", %d of them foreign", s.Foreign)
	}
	fmt.Fprintf(t.w, "; %d requests", s.Requests)
	if s.ReadUnits > 0 {
		fmt.Fprintf(t.w, ", %.0f read units", s.ReadUnits)
	}
	fmt.Fprintln(t.w, ".")
	if s.Unsettled > 0 {
		fmt.Fprintf(t.w, "%d could not be verified, as they keep changing or depend on a record that cannot be read: check again.\n", s.Unsettled)
	}
	switch left := s.Left(); {
	case left == 0 && s.Unsettled > 0:
		fmt.Fprintln(t.w, "clean, as far as it could be verified")
	case left == 0 && len(s.Found) == 0:
		fmt.Fprintln(t.w, "clean")
	case left == 0:
		fmt.Fprintln(t.w, "clean now")
	case t.repair:
		fmt.Fprintf(t.w, "drifts left: %d\n", left)
	default:
		fmt.Fprintf(t.w, "drifts: %d; repair them with `ordergraph check -repair`\n", left)
	}
}

// checkJSON is for programs: a line for each drift, and one for the summary.
type checkJSON struct{ w *json.Encoder }

func (j *checkJSON) drift(d dynamo.Drift) {
	_ = j.w.Encode(struct {
		Class    string `json:"class"`
		PK       string `json:"pk"`
		SK       string `json:"sk"`
		Detail   string `json:"detail"`
		Repaired bool   `json:"repaired"`
	}{d.Class, d.PK, d.SK, d.Detail, d.Repaired})
}

func (j *checkJSON) summary(s dynamo.CheckSummary) {
	type summary struct {
		Clean      bool           `json:"clean"`
		Records    int            `json:"records"`
		Foreign    int            `json:"foreign"`
		Orders     int            `json:"orders"`
		Customers  int            `json:"customers"`
		Products   int            `json:"products"`
		Employees  int            `json:"employees"`
		Warehouses int            `json:"warehouses"`
		Found      map[string]int `json:"found"`
		Repaired   map[string]int `json:"repaired"`
		Left       int            `json:"left"`
		Unsettled  int            `json:"unsettled"`
		Requests   int            `json:"requests"`
		ReadUnits  float64        `json:"readUnits"`
	}
	_ = j.w.Encode(struct {
		Summary summary `json:"summary"`
	}{summary{
		s.Left() == 0, s.Records, s.Foreign, s.Orders, s.Customers, s.Products, s.Employees, s.Warehouses, s.Found, s.Repaired,
		s.Left(), s.Unsettled, s.Requests, s.ReadUnits,
	}})
}
