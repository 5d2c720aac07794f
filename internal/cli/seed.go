package cli

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/transfer"
)

// generateOptions contains the values of the flags of `seed -generate`.
type generateOptions struct {
	generate bool
	shape    sampledata.Shape
	// from is the number of orders that an earlier run has loaded. This run skips these orders.
	from int
}

func (o *generateOptions) defineFlags(set *flag.FlagSet) {
	o.shape = sampledata.DefaultShape()
	set.BoolVar(&o.generate, "generate", false, "generate a dataset; the same flags always generate the same records, and different flags generate different IDs")
	set.IntVar(&o.shape.Customers, "customers", o.shape.Customers, fmt.Sprintf("number of customers (default %d)", o.shape.Customers))
	set.IntVar(&o.shape.Products, "products", o.shape.Products, fmt.Sprintf("number of products (default %d)", o.shape.Products))
	set.IntVar(&o.shape.Orders, "orders", o.shape.Orders, fmt.Sprintf("number of orders (default %d)", o.shape.Orders))
	set.Uint64Var(&o.shape.Seed, "seed", o.shape.Seed, fmt.Sprintf("random seed: another seed generates another dataset of the same size (default %d)", o.shape.Seed))
	set.IntVar(&o.from, "from", 0, "number of orders to skip because they are already loaded; an interrupted run prints this number")
	items := fmt.Sprintf("number of line items per order, such as 3 or 1-5, up to %d (default %d-%d)", commerce.MaxLines, o.shape.MinItems, o.shape.MaxItems)
	set.Func("items", items, func(text string) error {
		low, high, isRange := strings.Cut(text, "-")
		if !isRange {
			high = low
		}
		fewest, lowErr := strconv.Atoi(low)
		most, highErr := strconv.Atoi(high)
		if errors.Join(lowErr, highErr) != nil {
			return fmt.Errorf("use a number or a range, such as 3 or 1-5")
		}
		o.shape.MinItems, o.shape.MaxItems = fewest, most
		return nil
	})
	set.Func("statuses", fmt.Sprintf("relative frequency of each order status (default %s)", o.shape.Statuses), func(text string) (err error) {
		o.shape.Statuses, err = sampledata.ParseStatusWeights(text)
		return err
	})
}

func seed(ctx context.Context, args []string, env Environment) error {
	var files []string
	var opts generateOptions
	var parsed *flag.FlagSet
	err := parseArgs("seed", args, 1, func(set *flag.FlagSet) {
		defineStoreFlags(set, &env)
		parsed = set
		opts.defineFlags(set)
	}, &files)
	if err != nil {
		return err
	}
	if opts.generate {
		return generateAndLoad(ctx, opts, files, env)
	}
	parsed.Visit(func(f *flag.Flag) {
		if _, isSetting := f.Value.(*settingFlag); !isSetting && f.Name != "generate" && err == nil {
			err = usageError{fmt.Sprintf("seed: -%s requires -generate", f.Name)}
		}
	})
	if err != nil {
		return err
	}
	read := sampledata.Sample
	if len(files) == 1 {
		read = func() (commerce.Dataset, error) { return readDataset(files[0]) }
	}
	dataset, err := read()
	if err != nil {
		return err
	}
	store, cfg, err := openCheckedStore(ctx, env)
	if err != nil {
		return err
	}
	n, err := store.Load(ctx, dataset)
	if err != nil && ctx.Err() != nil {
		return errors.New("seed: interrupted: some records are loaded; run the same command again")
	}
	if err != nil {
		return withTableName(cfg, err)
	}
	fmt.Fprintf(env.Stdout, "Loaded into table %s: %d orders, %d customers, %d products; %d records.\n", cfg.Table.Table, len(dataset.Orders), len(dataset.Customers), len(dataset.Products), n)
	return nil
}

// openCheckedStore opens the store and verifies that the table exists and matches the data model.
func openCheckedStore(ctx context.Context, env Environment) (*dynamo.Store, config.Config, error) {
	store, cfg, err := openStore(ctx, "seed", createStoreAndTable, env)
	if err != nil {
		return nil, cfg, err
	}
	err = store.CheckTable(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, cfg, errors.New("seed: interrupted before anything was loaded")
	}
	return store, cfg, withTableName(cfg, err)
}

// generateAndLoad generates a dataset and loads its records while it generates them.
func generateAndLoad(ctx context.Context, opts generateOptions, files []string, env Environment) error {
	if len(files) > 0 {
		return usageError{fmt.Sprintf("seed -generate generates the dataset, so it accepts no FILE argument such as %q", files[0])}
	}
	// Validate the numbers of records first, because the value of -from is then compared with the
	// number of orders.
	if err := opts.shape.Validate(); err != nil {
		return usageError{"seed: -" + err.Error()}
	}
	if opts.from < 0 || opts.from > opts.shape.Orders {
		return usageError{fmt.Sprintf("seed: -from is %d: use the number of orders that are already loaded, at most %d", opts.from, opts.shape.Orders)}
	}
	store, cfg, err := openCheckedStore(ctx, env)
	if err != nil {
		return err
	}
	generator, err := sampledata.NewGenerator(ctx, opts.shape)
	if err != nil && ctx.Err() != nil {
		return errors.New("seed: interrupted before anything was loaded")
	}
	if err != nil {
		return err
	}
	progress := newProgressLine(env.Stderr, time.Now)
	progress.enableLog(env.Stderr)
	stock := bulk.LoadProgress{}
	if opts.from == 0 {
		stock, err = store.LoadAll(ctx, generator.MasterData(), func(l bulk.LoadProgress) { progress.show("%d records, no orders yet", l.Records) })
	}
	orders := bulk.LoadProgress{}
	if err == nil {
		orders, err = store.LoadAll(ctx, generator.Orders(opts.from), func(l bulk.LoadProgress) {
			progress.show("%d of %d orders, %d records", opts.from+l.Orders, opts.shape.Orders, stock.Records+l.Records)
		})
	}
	progress.clear()
	// After a failure or an interrupt, the loaded orders remain in the table. The error message
	// contains the value of -from that skips these orders.
	next := "run the same command again"
	if done := opts.from + orders.Orders; done > 0 {
		next = fmt.Sprintf("continue with the same flags and -from %d", done)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("seed: interrupted: some records are loaded; %s", next)
	}
	if err != nil {
		return fmt.Errorf("%s; some records are loaded: fix the problem, then %s", describeError(withTableName(cfg, err), env.Getenv), next)
	}
	fmt.Fprintf(env.Stdout, "Loaded into table %s: %d orders, %d customers, %d products; %d records.\nThe first customer is %s", cfg.Table.Table,
		opts.shape.Orders, opts.shape.Customers, opts.shape.Products, stock.Records+orders.Records, generator.CustomerID(0))
	if opts.shape.Orders > 0 {
		fmt.Fprintf(env.Stdout, ", the first order %s", generator.OrderID(0))
	}
	fmt.Fprint(env.Stdout, ".\n")
	return nil
}

func readDataset(name string) (commerce.Dataset, error) {
	f, err := os.Open(name)
	if err != nil {
		return commerce.Dataset{}, err
	}
	defer f.Close()
	// If the file is not a dataset, the error message names its kind. Detect the kind before the next
	// read, which can overwrite the first bytes.
	in := bufio.NewReader(f)
	start, _ := in.Peek(512)
	kind, isEmpty := transfer.DetectKind(start), len(start) == 0
	dataset, err := sampledata.Read(in)
	switch {
	case err == nil:
		return dataset, nil
	case isEmpty && errors.Is(err, io.EOF):
		return dataset, fmt.Errorf("%s contains no dataset: the file is empty", name)
	case kind == transfer.KindGzip:
		return dataset, fmt.Errorf("%s is compressed: decompress it with gunzip first", name)
	case kind == transfer.KindExport:
		return dataset, fmt.Errorf("%s is an export, not a dataset: load it with `ordergraph import FILE`", name)
	default:
		return dataset, fmt.Errorf("%s: %w", name, err)
	}
}
