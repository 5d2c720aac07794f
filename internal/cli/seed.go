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

// generateOptions are the flags of seed -generate.
type generateOptions struct {
	generate bool
	shape    sampledata.Shape
	// from is how many orders are in the table already.
	from int
}

func (o *generateOptions) define(set *flag.FlagSet) {
	o.shape = sampledata.DefaultShape()
	set.BoolVar(&o.generate, "generate", false, "make up an order book; the same flags make the same one, and another one has other ids")
	set.IntVar(&o.shape.Customers, "customers", o.shape.Customers, fmt.Sprintf("how many customers (%d without it)", o.shape.Customers))
	set.IntVar(&o.shape.Products, "products", o.shape.Products, fmt.Sprintf("how many products (%d without it)", o.shape.Products))
	set.IntVar(&o.shape.Orders, "orders", o.shape.Orders, fmt.Sprintf("how many orders (%d without it)", o.shape.Orders))
	set.Uint64Var(&o.shape.Seed, "seed", o.shape.Seed, fmt.Sprintf("a number that makes another book of the same size (%d without it)", o.shape.Seed))
	set.IntVar(&o.from, "from", 0, "how many orders are loaded already, as a run says that was interrupted")
	items := fmt.Sprintf("how many items an order has, such as 3, or a range (%d-%d without it), up to %d", o.shape.FewestItems, o.shape.MostItems, commerce.MaxLines)
	set.Func("items", items, func(text string) error {
		fewest, most, ranged := strings.Cut(text, "-")
		if !ranged {
			most = fewest
		}
		a, errA := strconv.Atoi(fewest)
		b, errB := strconv.Atoi(most)
		if errors.Join(errA, errB) != nil {
			return fmt.Errorf("give how many items an order has, such as 3 or 1-5")
		}
		o.shape.FewestItems, o.shape.MostItems = a, b
		return nil
	})
	set.Func("statuses", fmt.Sprintf("how often each status is met (%s without it)", o.shape.Statuses), func(text string) (err error) {
		o.shape.Statuses, err = sampledata.ParseWeights(text)
		return err
	})
}

func seed(ctx context.Context, args []string, env Environment) error {
	var files []string
	var opts generateOptions
	var parsed *flag.FlagSet
	err := flags("seed", args, 1, func(set *flag.FlagSet) {
		parsed = set
		opts.define(set)
	}, &files)
	if err != nil {
		return err
	}
	if opts.generate {
		return generate(ctx, opts, files, env)
	}
	parsed.Visit(func(f *flag.Flag) {
		if f.Name != "generate" && err == nil {
			err = usageError{fmt.Sprintf("seed: -%s is for -generate: give both", f.Name)}
		}
	})
	if err != nil {
		return err
	}
	read := sampledata.Sample
	if len(files) == 1 {
		read = func() (commerce.Book, error) { return readBook(files[0]) }
	}
	book, err := read()
	if err != nil {
		return err
	}
	store, cfg, err := openForSeeding(ctx, env)
	if err != nil {
		return err
	}
	n, err := store.Load(ctx, book)
	if err != nil && ctx.Err() != nil {
		return errors.New("seed: interrupted: a part is loaded; run the same command again")
	}
	if err != nil {
		return onTable(cfg, err)
	}
	fmt.Fprintf(env.Stdout, "Loaded into table %s: %d orders, %d customers, %d products; %d records.\n", cfg.Table.Table, len(book.Orders), len(book.Customers), len(book.Products), n)
	return nil
}

// openForSeeding returns the order book in a table that is there, and fits.
func openForSeeding(ctx context.Context, env Environment) (*dynamo.Store, config.Config, error) {
	store, cfg, err := open(ctx, "seed", env)
	if err != nil {
		return nil, cfg, err
	}
	err = store.Check(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, cfg, errors.New("seed: interrupted before anything was loaded")
	}
	return store, cfg, onTable(cfg, err)
}

// generate loads an order book that is made up on the way.
func generate(ctx context.Context, opts generateOptions, files []string, env Environment) error {
	if len(files) > 0 {
		return usageError{fmt.Sprintf("seed -generate takes no FILE: it makes up its order book, and %q is one", files[0])}
	}
	// The shape first: what -from may be depends on it.
	if err := opts.shape.Check(); err != nil {
		return usageError{"seed: -" + err.Error()}
	}
	if opts.from < 0 || opts.from > opts.shape.Orders {
		return usageError{fmt.Sprintf("seed: -from is %d: give how many orders were loaded, up to %d", opts.from, opts.shape.Orders)}
	}
	store, cfg, err := openForSeeding(ctx, env)
	if err != nil {
		return err
	}
	book, err := sampledata.NewGenerator(ctx, opts.shape)
	if err != nil && ctx.Err() != nil {
		return errors.New("seed: interrupted before anything was loaded")
	}
	if err != nil {
		return err
	}
	progress := newProgressLine(env.Stderr, time.Now)
	progress.alsoInLogs(env.Stderr)
	stock := bulk.Loaded{}
	if opts.from == 0 {
		stock, err = store.LoadAll(ctx, book.Stock(), func(l bulk.Loaded) { progress.show("%d records, no orders yet", l.Records) })
	}
	orders := bulk.Loaded{}
	if err == nil {
		orders, err = store.LoadAll(ctx, book.Orders(opts.from), func(l bulk.Loaded) {
			progress.show("%d of %d orders, %d records", opts.from+l.Orders, opts.shape.Orders, stock.Records+l.Records)
		})
	}
	progress.clear()
	// What is there is there, whoever ended it: the flags that a repetition can save itself work
	// with.
	goOn := "run the same command again"
	if done := opts.from + orders.Orders; done > 0 {
		goOn = fmt.Sprintf("go on with the same flags and -from %d", done)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("seed: interrupted: a part is loaded; %s", goOn)
	}
	if err != nil {
		return fmt.Errorf("%s; a part is loaded: when that is mended, %s", explainFailure(onTable(cfg, err), env.Getenv), goOn)
	}
	fmt.Fprintf(env.Stdout, "Loaded into table %s: %d orders, %d customers, %d products; %d records.\nThe first customer is %s", cfg.Table.Table,
		opts.shape.Orders, opts.shape.Customers, opts.shape.Products, stock.Records+orders.Records, book.Customer(0))
	if opts.shape.Orders > 0 {
		fmt.Fprintf(env.Stdout, ", the first order %s", book.Order(0))
	}
	fmt.Fprint(env.Stdout, ".\n")
	return nil
}

func readBook(name string) (commerce.Book, error) {
	f, err := os.Open(name)
	if err != nil {
		return commerce.Book{}, err
	}
	defer f.Close()
	// What it is shows only where it is no book.
	in := bufio.NewReader(f)
	begins, _ := in.Peek(512)
	book, err := sampledata.Read(in)
	switch kind := transfer.KindOf(begins); {
	case err == nil:
		return book, nil
	case len(begins) == 0 && errors.Is(err, io.EOF):
		return book, fmt.Errorf("%s holds no order book: it is empty", name)
	case kind == transfer.KindGzip:
		return book, fmt.Errorf("%s is compressed: unpack it first, with gunzip", name)
	case kind == transfer.KindExport:
		return book, fmt.Errorf("%s is no order book but an export: put it into the table with `ordergraph import FILE`", name)
	default:
		return book, fmt.Errorf("%s: %w", name, err)
	}
}
