package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"os"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/explain"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/price"
	"github.com/ordergraph/ordergraph/internal/sampledata"
)

// readPrices reads DynamoDB's prices from the configured file. If no file is configured, it returns
// the standard prices.
func readPrices(cfg config.Config) (price.Prices, error) {
	if cfg.Prices == "" {
		return price.Standard(), nil
	}
	prices, err := price.Read(cfg.Prices)
	if err != nil {
		return prices, fmt.Errorf("ORDERGRAPH_PRICES: %w", err)
	}
	return prices, nil
}

func priceCommand(ctx context.Context, args []string, env Environment) error {
	datasetFile := ""
	var words []string
	err := parseMixedArgs("price", args, 1, func(set *flag.FlagSet) {
		set.StringVar(&datasetFile, "dataset", "", "file with the dataset that the operations run on, in the format of `ordergraph seed` (default: the sample data)")
	}, &words)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return usageError{"price: the argument PROFILE is missing: name a profile, or use - for standard input"}
	}
	cfg, err := env.readConfig()
	if err != nil {
		return err
	}
	prices, err := readPrices(cfg)
	if err != nil {
		return err
	}
	profile, err := readProfile(words[0], env.Stdin)
	if err != nil {
		return err
	}
	m := meter{cfg: cfg, env: env}
	if m.dataset, err = sampledata.Sample(); err == nil && datasetFile != "" {
		m.dataset, err = readDataset(datasetFile)
	}
	if err != nil {
		return err
	}
	if cfg.Documents != "" {
		if m.trusted, err = readManifest(cfg.Documents, nil); err != nil {
			return fmt.Errorf("ORDERGRAPH_DOCUMENTS: %w", err)
		}
	}
	operations := make([]pricedOperation, len(profile.Operations))
	for i, o := range profile.Operations {
		if operations[i], err = m.measure(ctx, o); err != nil {
			return fmt.Errorf("%s: operation %s: %w", words[0], o.Name, err)
		}
	}
	stdout := &stickyErrorWriter{w: env.Stdout}
	writePrices(stdout, operations, prices)
	if stdout.err != nil {
		return fmt.Errorf("write the results: %w", stdout.err)
	}
	return nil
}

// readProfile reads a profile from the file with the given name. If the name is -, readProfile
// reads from in, which is standard input.
func readProfile(name string, in io.Reader) (price.Profile, error) {
	read := func() ([]byte, error) { return os.ReadFile(name) }
	if name == "-" {
		read = func() ([]byte, error) { return io.ReadAll(in) }
	}
	text, err := read()
	if err != nil {
		return price.Profile{}, err
	}
	profile, err := price.ParseUsageProfile(text)
	if err != nil {
		return profile, fmt.Errorf("%s is not a profile: %w", name, err)
	}
	return profile, nil
}

// pricedOperation is an operation of a profile, with the number of DynamoDB read and write units
// that one execution consumes.
type pricedOperation struct {
	price.Operation
	units price.Units
	// most contains the maximum read and write units that one execution can consume. If the profile
	// contains no document for the operation, most is nil.
	most *price.Units
}

// meter measures the DynamoDB units of operations. It executes the operations on embedded stores in
// memory. Each operation runs on its own copy of the dataset.
type meter struct {
	cfg     config.Config
	env     Environment
	dataset commerce.Dataset
	trusted []document.TrustedDocument
}

// measure returns an operation with its units. If the profile specifies the units of the operation,
// measure does not execute the operation.
func (m *meter) measure(ctx context.Context, o price.Operation) (pricedOperation, error) {
	text, err := m.document(o)
	if err != nil {
		return pricedOperation{}, err
	}
	priced := pricedOperation{Operation: o}
	if text != "" {
		checked := graph.CheckDocuments(graph.Options{Documents: []document.TrustedDocument{{ID: o.Name, Text: text}}, Extension: m.cfg.Extension, Limits: m.cfg.Limits}, m.cfg.Table.Shards)
		switch {
		case len(checked) != 1:
			return priced, fmt.Errorf("the document contains %d operations: use a document with one operation", len(checked))
		case len(checked[0].Errors) > 0:
			return priced, fmt.Errorf("the server would reject it: %s", checked[0].Errors[0].Error())
		case checked[0].Type == subscriptionType && o.MeasuredUnits == nil:
			return priced, errors.New("a subscription has a price per event: set \"units\" to the read and write units of one event")
		}
		priced.most = &price.Units{Read: checked[0].Bound.ReadUnits, Write: checked[0].Bound.WriteUnits}
	}
	if o.MeasuredUnits != nil {
		priced.units = *o.MeasuredUnits
		return priced, nil
	}
	priced.units, err = m.execute(ctx, o, text)
	return priced, err
}

// document returns the text of an operation's document. If the profile specifies only the units of
// the operation, the text is empty.
func (m *meter) document(o price.Operation) (string, error) {
	if o.DocumentID == "" {
		return o.Query, nil
	}
	if m.cfg.Documents == "" {
		return "", errors.New("it names a trusted document, but ORDERGRAPH_DOCUMENTS is not set: set ORDERGRAPH_DOCUMENTS to the manifest")
	}
	at := slices.IndexFunc(m.trusted, func(d document.TrustedDocument) bool { return d.ID == o.DocumentID || d.Name == o.DocumentID })
	if at < 0 {
		return "", fmt.Errorf("the manifest %s has no document %q", m.cfg.Documents, o.DocumentID)
	}
	return m.trusted[at].Text, nil
}

// execute executes the setup mutations of an operation and then the operation itself, on a new
// embedded store. It returns the units of the operation, without the units of the setup mutations.
func (m *meter) execute(ctx context.Context, o price.Operation, text string) (price.Units, error) {
	engine, err := openEmbeddedStore("", embedded.Options{}, m.env)
	if err != nil {
		return price.Units{}, err
	}
	opts := m.cfg.Table
	opts.Log = slog.New(slog.DiscardHandler)
	store, err := dynamo.New(engine.Client(), opts)
	if err == nil {
		err = store.CreateTable(ctx)
	}
	if err == nil {
		_, err = store.Load(ctx, m.dataset)
	}
	if err != nil {
		return price.Units{}, err
	}
	executor := graph.NewExecutor(graph.Options{Store: store, Extension: m.cfg.Extension, Cursors: paging.NewCursorSigner(m.cfg.CursorKey), Limits: m.cfg.Limits})
	for _, setup := range o.Setup {
		if _, err := executeOnce(ctx, executor, setup, nil); err != nil {
			return price.Units{}, fmt.Errorf("setup: %w", err)
		}
	}
	return executeOnce(ctx, executor, text, o.Variables)
}

// executeOnce executes an operation and returns the DynamoDB units that the operation consumed. If
// a root field is null or a mutation writes nothing, executeOnce returns an error. Such an
// execution consumes fewer units than a typical execution in production.
func executeOnce(ctx context.Context, executor *graph.Executor, text string, variables map[string]any) (price.Units, error) {
	result := executor.Execute(graph.WithExplain(ctx), graph.Request{Query: text, Variables: variables})
	if len(result.Errors) > 0 {
		return price.Units{}, fmt.Errorf("it failed on the dataset: %s", result.Errors[0].Message)
	}
	explained, ok := result.Extensions["explain"].(explain.Explanation)
	if !ok {
		return price.Units{}, errors.New("it was not executed")
	}
	units := price.Units{Read: explained.Totals.ReadUnits, Write: explained.Totals.WriteUnits}
	var data map[string]json.RawMessage
	if err := json.Unmarshal(result.Data, &data); err != nil {
		return units, fmt.Errorf("decode the response: %w", err)
	}
	for name, value := range data {
		if string(value) == "null" {
			return units, fmt.Errorf("%s is null: set variables that refer to records in the dataset", name)
		}
	}
	if result.Mutation && units.Write == 0 {
		return units, fmt.Errorf("the mutation was rejected, or changed nothing: set variables that refer to records in the dataset, or add mutations to \"setup\" (response %s)", result.Data)
	}
	return units, nil
}

// writePrices writes a table with the prices of the operations, beginning with the most expensive
// operation. After the table, it writes the assumptions behind the prices.
func writePrices(w io.Writer, operations []pricedOperation, prices price.Prices) {
	total, most, requests := new(big.Rat), new(big.Rat), int64(0)
	month := func(o pricedOperation) *big.Rat { return prices.Dollars(o.units, o.RequestsPerMonth) }
	for _, o := range operations {
		total.Add(total, month(o))
		requests += o.RequestsPerMonth
		if o.most != nil {
			most.Add(most, prices.Dollars(*o.most, o.RequestsPerMonth))
		}
	}
	slices.SortStableFunc(operations, func(a, b pricedOperation) int { return month(b).Cmp(month(a)) })
	const row = "%15s  %10s  %11s  %13s  %12s  %7s  %15s  %s\n"
	fmt.Fprintf(w, row, "requests/month", "read units", "write units", "$ per million", "$ per month", "share", "max $ per month", "operation")
	for _, o := range operations {
		maximum := "-"
		if o.most != nil {
			maximum = prices.Dollars(*o.most, o.RequestsPerMonth).FloatString(2)
		}
		fmt.Fprintf(w, row, fmt.Sprint(o.RequestsPerMonth), formatUnits(o.units.Read), formatUnits(o.units.Write), prices.PerMillion(o.units), month(o).FloatString(2), formatPercent(month(o), total), maximum, o.Name)
	}
	fmt.Fprintf(w, row, fmt.Sprint(requests), "", "", "", total.FloatString(2), formatPercent(total, total), most.FloatString(2), "total")
	fmt.Fprint(w, strings.Join([]string{
		"",
		"Units: measured by one execution on the dataset, or taken from \"units\" in the profile.",
		"Maximum: assumes the largest records and pages, and that each transaction is sent twice.",
		"Excluded: storage, streams, backups, retries after throttling, idle capacity.",
		fmt.Sprintf("Prices: %s, on demand, since %s (%s)", prices.Region, prices.Since, prices.Source),
		"",
	}, "\n"))
}

// formatPercent returns part as a percentage of total.
func formatPercent(part, total *big.Rat) string {
	if total.Sign() == 0 {
		return "-"
	}
	percent := new(big.Rat).Quo(part, total)
	return percent.Mul(percent, big.NewRat(100, 1)).FloatString(1) + "%"
}
