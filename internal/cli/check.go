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

	"github.com/ordergraph/ordergraph/dynamo/check"
)

// exitIncomplete is the exit status of the command check if the check did not finish. If it
// finished and unrepaired inconsistencies remain, the status is exitFailed. If none remain but some
// records are unverified, the status is exitIncomplete.
const exitIncomplete = 3

// Higher numbers would leave too little of the table's capacity for the servers.
const (
	// checkSegments is the number of table segments that the command check scans in parallel.
	checkSegments = 4
	// checkConcurrency is the maximum number of the command's other parallel requests.
	checkConcurrency = 8
)

// exitStatusError is an error that determines the exit status of the program. If err is nil, the
// command has already printed the reason.
type exitStatusError struct {
	status int
	err    error
}

func (e *exitStatusError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitStatusError) Unwrap() error { return e.err }

func checkCommand(ctx context.Context, args []string, env Environment) error {
	opts, asJSON := check.Options{Segments: checkSegments, Parallel: checkConcurrency, IndexLag: env.IndexLag}, false
	err := parseArgs("check", args, 0, func(set *flag.FlagSet) {
		defineStoreFlags(set, &env)
		set.BoolVar(&opts.Repair, "repair", false, "repair the inconsistencies that can be repaired automatically")
		set.BoolVar(&opts.Restore, "restore", false, "with -repair, write missing records of customers and employees from their copies (default: treat the customers and employees as deleted)")
		set.BoolVar(&asJSON, "json", false, "write one line of JSON for each inconsistency, and one line for the summary")
	}, nil)
	if err != nil {
		return err
	}
	if opts.Restore && !opts.Repair {
		return usageError{"check: -restore requires -repair"}
	}
	summary, err := checkTable(ctx, opts, asJSON, env)
	switch {
	case err != nil && ctx.Err() != nil:
		return &exitStatusError{exitIncomplete, errors.New("check: interrupted before the end")}
	case err != nil:
		return &exitStatusError{exitIncomplete, err}
	case summary.UnrepairedCount() > 0:
		return &exitStatusError{exitFailed, nil}
	case summary.Unverified > 0:
		return &exitStatusError{exitIncomplete, nil}
	}
	return nil
}

// checkTable checks the table, writes the inconsistencies and the summary, and returns the summary.
func checkTable(ctx context.Context, opts check.Options, asJSON bool, env Environment) (check.Summary, error) {
	store, cfg, err := openStore(ctx, "check", useExisting, env)
	if err != nil {
		return check.Summary{}, err
	}
	if err := store.CheckTable(ctx); err != nil {
		return check.Summary{}, withTableName(cfg, err)
	}
	stdout := &stickyErrorWriter{w: env.Stdout}
	var out checkOutput = &checkTextOutput{w: stdout, repair: opts.Repair, table: cfg.Table.Table}
	if asJSON {
		out = &checkJSONOutput{w: json.NewEncoder(stdout)}
	}
	progress := newProgressLine(env.Stderr, time.Now)
	opts.OnInconsistency = func(d check.Inconsistency) {
		progress.clear()
		out.writeInconsistency(d)
	}
	opts.OnUnverified = func(u check.UnverifiedRecord) {
		progress.clear()
		out.writeUnverified(u)
	}
	opts.OnProgress = progress.showCheck
	summary, err := store.CheckRecords(ctx, opts)
	progress.clear()
	// A check can take an hour, so print the summary even if the check is incomplete.
	out.writeSummary(summary, err == nil)
	switch {
	case err != nil:
		return summary, withTableName(cfg, err)
	case stdout.err != nil:
		return summary, fmt.Errorf("write the results: %w", stdout.err)
	}
	return summary, nil
}

// stickyErrorWriter is a writer that stores its first error in err. Callers can ignore the errors
// of single writes and check err after the last write.
type stickyErrorWriter struct {
	w   io.Writer
	err error
}

func (f *stickyErrorWriter) Write(b []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	var n int
	n, f.err = f.w.Write(b)
	return n, f.err
}

// checkOutput writes the results of a check, either as text or as JSON.
type checkOutput interface {
	writeInconsistency(check.Inconsistency)
	writeUnverified(check.UnverifiedRecord)
	// writeSummary writes the summary after all results. complete reports whether the check read the
	// whole table.
	writeSummary(s check.Summary, complete bool)
}

// checkTextOutput writes the results as text for people.
type checkTextOutput struct {
	w      io.Writer
	repair bool
	table  string
}

func (t *checkTextOutput) writeInconsistency(d check.Inconsistency) {
	note := ""
	switch kind := findKind(d.Kind); {
	case d.Repaired && d.StandIn:
		note = " (a stand-in was written)"
	case d.Repaired:
		note = " (repaired)"
	case d.ByHand && kind.ByHand:
		note = fmt.Sprintf(" (by hand: %s)", kind.Repair)
	case d.ByHand:
		note = " (by hand)"
	case t.repair:
		note = " (not repaired)"
	}
	fmt.Fprintf(t.w, "%s  %s %s: %s%s\n", d.Kind, d.PK, d.SK, d.Detail, note)
}

// findKind returns the kind of inconsistency with the given name.
func findKind(name string) check.Kind {
	for _, c := range check.Kinds() {
		if c.Name == name {
			return c
		}
	}
	return check.Kind{}
}

func (t *checkTextOutput) writeUnverified(u check.UnverifiedRecord) {
	fmt.Fprintf(t.w, "unverified  %s %s: %s\n", u.PK, u.SK, u.Reason)
}

func (t *checkTextOutput) writeSummary(s check.Summary, complete bool) {
	if len(s.Found) > 0 {
		fmt.Fprintln(t.w)
		tab := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
		for _, c := range check.Kinds() {
			switch {
			case s.Found[c.Name] == 0:
			case t.repair:
				fmt.Fprintf(tab, "%s\t%d found, %d repaired\t%s\n", c.Name, s.Found[c.Name], s.Repaired[c.Name], c.Problem)
			default:
				fmt.Fprintf(tab, "%s\t%d\t%s\n", c.Name, s.Found[c.Name], c.Problem)
			}
		}
		_ = tab.Flush()
		fmt.Fprintln(t.w)
	}
	fmt.Fprintf(t.w, "Table %s: %d orders, %d customers, %d products, %d employees, %d warehouses; %d records", t.table, s.Orders, s.Customers, s.Products, s.Employees, s.Warehouses, s.Records)
	if s.External > 0 {
		fmt.Fprintf(t.w, ", %d of them external", s.External)
	}
	fmt.Fprintf(t.w, "; %d requests", s.Requests)
	if s.ReadUnits > 0 {
		fmt.Fprintf(t.w, ", %.0f read units", s.ReadUnits)
	}
	fmt.Fprintln(t.w, ".")
	if s.Unverified > 0 {
		fmt.Fprintf(t.w, "unverified records: %d, listed above; run the check again\n", s.Unverified)
	}
	fmt.Fprintln(t.w, t.outcomeLine(s, complete))
}

// outcomeLine returns the last line of the output, such as the number of remaining inconsistencies.
// complete reports whether the check read the whole table.
func (t *checkTextOutput) outcomeLine(s check.Summary, complete bool) string {
	left := s.UnrepairedCount()
	byRepair := left - s.ByHand
	switch {
	case !complete:
		repaired := 0
		for _, n := range s.Repaired {
			repaired += n
		}
		return fmt.Sprintf("incomplete check; inconsistencies found so far: %d, repaired: %d", left+repaired, repaired)
	case left == 0 && s.Unverified > 0:
		return "some records are unverified: the table may be inconsistent"
	case left == 0 && len(s.Found) == 0:
		return "clean"
	case left == 0:
		return "clean now"
	case t.repair && s.ByHand == 0:
		return fmt.Sprintf("inconsistencies left: %d", left)
	case t.repair && byRepair > 0:
		return fmt.Sprintf("inconsistencies left: %d; %d must be repaired by hand, as described above", left, s.ByHand)
	case t.repair:
		return fmt.Sprintf("inconsistencies left: %d; all must be repaired by hand, as described above", left)
	case byRepair == 0:
		return fmt.Sprintf("inconsistencies: %d; all must be repaired by hand, as described above", left)
	case s.ByHand > 0:
		return fmt.Sprintf("inconsistencies: %d; `ordergraph check -repair` repairs %d, and %d must be repaired by hand", left, byRepair, s.ByHand)
	default:
		return fmt.Sprintf("inconsistencies: %d; repair them with `ordergraph check -repair`", left)
	}
}

// checkJSONOutput writes one line of JSON for each inconsistency, each unverified record and the
// summary. It ignores write errors, because the stickyErrorWriter stores the first error.
type checkJSONOutput struct{ w *json.Encoder }

func (j *checkJSONOutput) writeInconsistency(d check.Inconsistency) { _ = j.w.Encode(d) }

func (j *checkJSONOutput) writeUnverified(u check.UnverifiedRecord) {
	_ = j.w.Encode(map[string]check.UnverifiedRecord{"unverified": u})
}

func (j *checkJSONOutput) writeSummary(s check.Summary, complete bool) {
	type summary struct {
		Clean      bool           `json:"clean"`
		Complete   bool           `json:"complete"`
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
		LeftByHand int            `json:"leftByHand"`
		Unsettled  int            `json:"unsettled"`
		Requests   int            `json:"requests"`
		ReadUnits  float64        `json:"readUnits"`
	}
	_ = j.w.Encode(map[string]summary{"summary": {
		complete && s.UnrepairedCount() == 0 && s.Unverified == 0, complete, s.Records, s.External, s.Orders, s.Customers, s.Products, s.Employees,
		s.Warehouses, s.Found, s.Repaired, s.UnrepairedCount(), s.ByHand, s.Unverified, s.Requests, s.ReadUnits,
	}})
}
