package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/manifest"
)

// readManifest reads a manifest of trusted documents from a file; - is in.
func readManifest(name string, in io.Reader) ([]document.Trusted, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	documents, err := manifest.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return documents, nil
}

// trust reads the trusted documents that a server is configured to have into opts. The function
// that it returns tells, when the server is made, whether any of them can be executed.
func trust(cfg config.Config, opts *graph.Options, log *slog.Logger) (func() error, error) {
	if cfg.Documents == "" {
		return func() error { return nil }, nil
	}
	documents, err := readManifest(cfg.Documents, nil)
	if err != nil {
		return nil, fmt.Errorf("ORDERGRAPH_DOCUMENTS: %w", err)
	}
	unfit := 0
	var first error
	opts.Documents, opts.TrustedOnly = documents, cfg.TrustedOnly
	opts.Unfit = func(d document.Trusted, err document.Error) {
		if unfit++; unfit == 1 {
			first = fmt.Errorf("%s: %w", documentName(d.ID, d.Name), err)
		}
		log.Error("a trusted document cannot be executed", "file", cfg.Documents, "name", d.Name, "id", d.ID, "error", err.Error())
	}
	return func() error {
		if unfit < len(documents) {
			return nil
		}
		return fmt.Errorf("ORDERGRAPH_DOCUMENTS: %s: none of the %s fits this server's schema and limits; the first is %w", cfg.Documents, counted(len(documents), "document"), first)
	}, nil
}

// documentName is how people know a document.
func documentName(id, name string) string {
	if name == "" {
		return id
	}
	return name + " (" + id + ")"
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// budget is what each operation may ask of DynamoDB at most.
type budget struct {
	requests int
	units    float64
}

// exceeded says by how much a bound is over the budget, nothing where it is not.
func (b budget) exceeded(of bound.Bound) []string {
	var over []string
	if of.Requests > b.requests {
		over = append(over, fmt.Sprintf("%s, %d more than %d", counted(of.Requests, "request"), of.Requests-b.requests, b.requests))
	}
	if of.ReadUnits > b.units {
		over = append(over, fmt.Sprintf("%s read units, %s more than %s", units(of.ReadUnits), units(of.ReadUnits-b.units), units(b.units)))
	}
	return over
}

// units writes read units, of which halves are the smallest.
func units(n float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") }

func documents(_ context.Context, args []string, env Environment) error {
	asJSON, shards := false, 0
	allowed := budget{}
	var words []string
	err := flagsAnywhere("documents", args, 2, func(set *flag.FlagSet) {
		set.IntVar(&allowed.requests, "max-requests", math.MaxInt, "how many requests to DynamoDB each operation may make at most; without it, any number")
		set.Float64Var(&allowed.units, "max-units", math.Inf(1), "how many read units each operation may use at most; without it, any number")
		set.Func("shards", "over how many partition keys the table spreads each busy list; without it, ORDERGRAPH_SHARDS", func(text string) (err error) {
			if shards, err = strconv.Atoi(text); err != nil || shards < 1 || shards > model.MaxShards {
				return fmt.Errorf("give 1 to %d", model.MaxShards)
			}
			return nil
		})
		set.BoolVar(&asJSON, "json", false, "write a line of JSON for each operation, and one for the summary")
	}, &words)
	switch {
	case err != nil:
		return err
	case len(words) == 0 || words[0] != "check":
		return usageError{"documents: say check"}
	case len(words) == 1:
		return usageError{"documents check: name a manifest, or - for standard input"}
	case allowed.requests < 0 || !(allowed.units >= 0): // not a number is neither
		return usageError{"documents check: -max-requests and -max-units are numbers from 0"}
	}
	cfg, err := config.Read(env.Getenv)
	if err != nil {
		return err
	}
	manifest, err := readManifest(words[1], env.Stdin)
	if err != nil {
		return err
	}
	operations := graph.CheckDocuments(graph.Options{Documents: manifest, Limits: cfg.Limits, NoIntrospection: !cfg.Introspection}, cmp.Or(shards, cfg.Table.Shards))
	sortByBound(operations)
	stdout := &firstError{w: env.Stdout}
	write := writeDocuments
	if asJSON {
		write = writeDocumentsAsJSON
	}
	fine := write(stdout, operations, allowed)
	switch {
	case stdout.err != nil:
		return fmt.Errorf("write what was found: %w", stdout.err)
	case !fine:
		return &statusError{exitFailed, nil}
	}
	return nil
}

// subscriptionType is the type of operations whose bound is that of each event.
const subscriptionType = "subscription"

// sortByBound puts those that cannot be executed first, then those that ask for most.
func sortByBound(operations []graph.CheckedOperation) {
	slices.SortStableFunc(operations, func(a, b graph.CheckedOperation) int {
		return cmp.Or(
			-cmp.Compare(min(len(a.Errors), 1), min(len(b.Errors), 1)),
			-cmp.Compare(a.Bound.Requests, b.Bound.Requests),
			-cmp.Compare(a.Bound.ReadUnits, b.Bound.ReadUnits),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// writeDocuments tells people: what is wrong, the bounds as a table, and what is over the budget,
// with where that comes from. It returns whether all is fine.
func writeDocuments(w io.Writer, operations []graph.CheckedOperation, allowed budget) bool {
	invalid, over := 0, 0
	for _, o := range operations {
		for _, err := range o.Errors {
			fmt.Fprintf(w, "invalid  %s: %s\n", documentName(o.ID, o.Name), err.Error())
		}
		invalid += min(len(o.Errors), 1)
	}
	if invalid > 0 && invalid < len(operations) {
		fmt.Fprintln(w)
	}
	subscribing := false
	for i, o := range operations[invalid:] {
		if i == 0 {
			fmt.Fprint(w, "requests  round trips  read units  operation\n")
		}
		each := ""
		if o.Type == subscriptionType {
			each, subscribing = ", for each event", true
		}
		fmt.Fprintf(w, "%8d  %11d  %10s  %s %s%s\n", o.Bound.Requests, o.Bound.RoundTrips, units(o.Bound.ReadUnits), o.Type, documentName(o.ID, o.Name), each)
	}
	if subscribing {
		fmt.Fprint(w, "\nWhat subscribing itself reads is not in these numbers: with after, it is all that has happened since.\n")
	}
	for _, o := range operations[invalid:] {
		exceeded := allowed.exceeded(o.Bound)
		if len(exceeded) == 0 {
			continue
		}
		if over++; over == 1 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "over the budget  %s: %s\n", documentName(o.ID, o.Name), strings.Join(exceeded, "; "))
		for _, p := range o.Bound.Patterns {
			fmt.Fprintf(w, "    %s  %s, %s read units\n", p.AccessPattern, counted(p.Requests, "request"), units(p.ReadUnits))
		}
	}
	fmt.Fprintf(w, "\n%s: %s\n", counted(len(operations), "operation"), outcome(invalid, over))
	return invalid+over == 0
}

// outcome is the last line: what is wrong, and what to do.
func outcome(invalid, over int) string {
	var wrong []string
	if invalid > 0 {
		wrong = append(wrong, fmt.Sprintf("%d invalid, which the server would not execute", invalid))
	}
	if over > 0 {
		wrong = append(wrong, fmt.Sprintf("%d over the budget: ask for smaller pages or for fewer lists inside lists, or allow more", over))
	}
	if len(wrong) == 0 {
		return "fine"
	}
	return strings.Join(wrong, "; ")
}

// writeDocumentsAsJSON tells programs: a line for each operation, and one for the summary. It
// returns whether all is fine.
func writeDocumentsAsJSON(w io.Writer, operations []graph.CheckedOperation, allowed budget) bool {
	type boundPer struct {
		Per string `json:"per,omitempty"`
		bound.Bound
	}
	type operation struct {
		ID     string           `json:"id"`
		Name   string           `json:"name"`
		Type   string           `json:"type,omitempty"`
		Bound  *boundPer        `json:"bound,omitempty"`
		Over   []string         `json:"overBudget,omitempty"`
		Errors []document.Error `json:"errors,omitempty"`
	}
	type summary struct {
		Fine       bool `json:"fine"`
		Operations int  `json:"operations"`
		Invalid    int  `json:"invalid"`
		OverBudget int  `json:"overBudget"`
	}
	out := json.NewEncoder(w)
	sum := summary{Operations: len(operations)}
	for _, o := range operations {
		line := operation{ID: o.ID, Name: o.Name, Type: o.Type, Errors: o.Errors}
		if len(o.Errors) == 0 {
			line.Bound = &boundPer{Bound: o.Bound}
			if o.Bound.Patterns == nil {
				line.Bound.Patterns = []bound.Pattern{}
			}
			if o.Type == subscriptionType {
				line.Bound.Per = "event"
			}
			line.Over = allowed.exceeded(o.Bound)
		}
		sum.Invalid += min(len(line.Errors), 1)
		sum.OverBudget += min(len(line.Over), 1)
		_ = out.Encode(line)
	}
	sum.Fine = sum.Invalid+sum.OverBudget == 0
	_ = out.Encode(map[string]summary{"summary": sum})
	return sum.Fine
}
