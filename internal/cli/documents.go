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

// readManifest reads a manifest of trusted documents from the file with the given name. If the name
// is -, readManifest reads from in, which is standard input.
func readManifest(name string, in io.Reader) ([]document.TrustedDocument, error) {
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

// loadTrustedDocuments reads the trusted documents from the configured manifest into opts. The
// returned function must be called after the creation of the server. This function returns an error
// if the server rejected all documents.
func loadTrustedDocuments(cfg config.Config, opts *graph.Options, log *slog.Logger) (func() error, error) {
	if cfg.Documents == "" {
		return func() error { return nil }, nil
	}
	documents, err := readManifest(cfg.Documents, nil)
	if err != nil {
		return nil, fmt.Errorf("ORDERGRAPH_DOCUMENTS: %w", err)
	}
	invalid := 0
	var first error
	opts.Documents, opts.TrustedOnly = documents, cfg.TrustedOnly
	opts.OnInvalidDocument = func(d document.TrustedDocument, err document.Error) {
		if invalid++; invalid == 1 {
			first = fmt.Errorf("%s: %w", formatDocument(d.ID, d.Name), err)
		}
		log.Error("a trusted document is invalid: correct the document", "file", cfg.Documents, "name", d.Name, "id", d.ID, "error", err.Error())
	}
	return func() error {
		if invalid < len(documents) {
			return nil
		}
		return fmt.Errorf("ORDERGRAPH_DOCUMENTS: %s: none of its %s matches the schema and limits of this server; the first error is %w", cfg.Documents, pluralize(len(documents), "document"), first)
	}, nil
}

// formatDocument returns the name and the ID of a document for a message. If the name is empty, it
// returns only the ID.
func formatDocument(id, name string) string {
	if name == "" {
		return id
	}
	return name + " (" + id + ")"
}

func pluralize(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// budget contains the maximum number of DynamoDB requests and of read units for each operation.
type budget struct {
	requests int
	units    float64
}

// violations returns one message for each limit in b that an operation exceeds. The parameter
// actual is the maximum load that the operation can cause on DynamoDB.
func (b budget) violations(actual bound.Bound) []string {
	var problems []string
	if actual.Requests > b.requests {
		problems = append(problems, fmt.Sprintf("%s, %d more than %d", pluralize(actual.Requests, "request"), actual.Requests-b.requests, b.requests))
	}
	if actual.ReadUnits > b.units {
		problems = append(problems, fmt.Sprintf("%s read units, %s more than %s", formatUnits(actual.ReadUnits), formatUnits(actual.ReadUnits-b.units), formatUnits(b.units)))
	}
	return problems
}

// formatUnits formats a number of read units, which is always a multiple of 0.5.
func formatUnits(n float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") }

func documentsCommand(_ context.Context, args []string, env Environment) error {
	asJSON, shards := false, 0
	allowed := budget{}
	var words []string
	err := parseMixedArgs("documents", args, 2, func(set *flag.FlagSet) {
		set.IntVar(&allowed.requests, "max-requests", math.MaxInt, "maximum DynamoDB requests per operation (default: no limit)")
		set.Float64Var(&allowed.units, "max-units", math.Inf(1), "maximum read units per operation (default: no limit)")
		set.Func("shards", "number of shards of the table (default: ORDERGRAPH_SHARDS)", func(text string) (err error) {
			if shards, err = strconv.Atoi(text); err != nil || shards < 1 || shards > model.MaxShards {
				return fmt.Errorf("use 1 to %d", model.MaxShards)
			}
			return nil
		})
		set.BoolVar(&asJSON, "json", false, "write one line of JSON for each operation, and one line for the summary")
	}, &words)
	switch {
	case err != nil:
		return err
	case len(words) == 0 || words[0] != "check":
		return usageError{"documents: expected check"}
	case len(words) == 1:
		return usageError{"documents check: the argument MANIFEST is missing: name a manifest, or use - for standard input"}
	case allowed.requests < 0 || !(allowed.units >= 0): // this form also rejects NaN
		return usageError{"documents check: -max-requests and -max-units must be 0 or more"}
	}
	cfg, err := env.readConfig()
	if err != nil {
		return err
	}
	manifest, err := readManifest(words[1], env.Stdin)
	if err != nil {
		return err
	}
	operations := graph.CheckDocuments(graph.Options{Documents: manifest, Extension: cfg.Extension, Limits: cfg.Limits, NoIntrospection: !cfg.Introspection}, cmp.Or(shards, cfg.Table.Shards))
	sortByBound(operations)
	stdout := &stickyErrorWriter{w: env.Stdout}
	write := writeDocuments
	if asJSON {
		write = writeDocumentsAsJSON
	}
	fine := write(stdout, operations, allowed)
	switch {
	case stdout.err != nil:
		return fmt.Errorf("write the results: %w", stdout.err)
	case !fine:
		return &exitStatusError{exitFailed, nil}
	}
	return nil
}

// subscriptionType is the operation type of subscriptions. The bound of a subscription applies to
// each event, not to the whole subscription.
const subscriptionType = "subscription"

// sortByBound sorts the invalid operations first. The valid operations follow in descending order
// of their maximum number of requests.
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

// writeDocuments writes the errors of invalid operations and the maximum DynamoDB load of valid
// operations. It reports whether all operations are valid and within the budget.
func writeDocuments(w io.Writer, operations []graph.CheckedOperation, allowed budget) bool {
	invalid, overBudget := 0, 0
	for _, o := range operations {
		for _, err := range o.Errors {
			fmt.Fprintf(w, "invalid  %s: %s\n", formatDocument(o.ID, o.Name), err.Error())
		}
		invalid += min(len(o.Errors), 1)
	}
	if invalid > 0 && invalid < len(operations) {
		fmt.Fprintln(w)
	}
	hasSubscription := false
	for i, o := range operations[invalid:] {
		if i == 0 {
			fmt.Fprint(w, "requests  round trips  read units  operation\n")
		}
		each := ""
		if o.Type == subscriptionType {
			each, hasSubscription = ", for each event", true
		}
		fmt.Fprintf(w, "%8d  %11d  %10s  %s %s%s\n", o.Bound.Requests, o.Bound.RoundTrips, formatUnits(o.Bound.ReadUnits), o.Type, formatDocument(o.ID, o.Name), each)
	}
	if hasSubscription {
		fmt.Fprint(w, "\nA subscription also reads records when it starts. With the argument \"after\", it first reads all events after the given event.\n")
	}
	for _, o := range operations[invalid:] {
		exceeded := allowed.violations(o.Bound)
		if len(exceeded) == 0 {
			continue
		}
		if overBudget++; overBudget == 1 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "over the budget  %s: %s\n", formatDocument(o.ID, o.Name), strings.Join(exceeded, "; "))
		for _, p := range o.Bound.Patterns {
			fmt.Fprintf(w, "    %s  %s, %s read units\n", p.AccessPattern, pluralize(p.Requests, "request"), formatUnits(p.ReadUnits))
		}
	}
	fmt.Fprintf(w, "\n%s: %s\n", pluralize(len(operations), "operation"), summarizeDocuments(invalid, overBudget))
	return invalid+overBudget == 0
}

// summarizeDocuments returns the end of the last line of output. It contains the number of invalid
// operations and the number of operations over the budget, if these numbers are not 0. If both are
// 0, it is "fine".
func summarizeDocuments(invalid, overBudget int) string {
	var problems []string
	if invalid > 0 {
		problems = append(problems, fmt.Sprintf("%d invalid (the server would reject them)", invalid))
	}
	if overBudget > 0 {
		problems = append(problems, fmt.Sprintf("%d over the budget: request smaller pages or fewer nested lists in these operations, or raise the budget", overBudget))
	}
	if len(problems) == 0 {
		return "fine"
	}
	return strings.Join(problems, "; ")
}

// writeDocumentsAsJSON writes one line of JSON for each operation, and then one line for the
// summary. It reports whether all operations are valid and within the budget.
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
				line.Bound.Patterns = []bound.PatternBound{}
			}
			if o.Type == subscriptionType {
				line.Bound.Per = "event"
			}
			line.Over = allowed.violations(o.Bound)
		}
		sum.Invalid += min(len(line.Errors), 1)
		sum.OverBudget += min(len(line.Over), 1)
		_ = out.Encode(line)
	}
	sum.Fine = sum.Invalid+sum.OverBudget == 0
	_ = out.Encode(map[string]summary{"summary": sum})
	return sum.Fine
}
