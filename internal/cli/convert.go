package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/transfer"
)

// readMapping reads the mapping that the flag -from of import names. Without the flag, it returns no
// mapping.
func readMapping(name string, opts transfer.ImportOptions) (*bulk.Mapping, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // no mapping is not an error
	}
	if opts.SkipUnreadable {
		return nil, usageError{"import: -skip-unreadable cannot be combined with -from, because other records can refer to the skipped records"}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	mapping, err := bulk.ParseMapping(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return mapping, nil
}

// convertAndLoad converts an export of another table, and loads the result. If a line cannot be
// converted, it loads nothing.
func convertAndLoad(ctx context.Context, store *dynamo.Store, cfg config.Config, file string, mapping *bulk.Mapping, opts transfer.ImportOptions, env Environment) error {
	name := file
	if file == standardStream {
		name = ""
	}
	hasRecords, err := store.HasRecords(ctx)
	if err == nil && hasRecords && !opts.Overwrite && !opts.DryRun {
		err = fmt.Errorf("table %s already has records: import into a new table, or replace records with the same keys with -overwrite", cfg.Table.Table)
	}
	if err != nil {
		return withTableName(cfg, err)
	}
	c, err := transfer.Convert(ctx, store, name, env.Stdin, mapping)
	switch {
	case ctx.Err() != nil:
		return errors.New("import: interrupted before anything was written")
	case err != nil:
		return fmt.Errorf("%s: %w; nothing was written", file, err)
	case c.Unreadable > 0:
		printConversion(env, c)
		return fmt.Errorf("%d lines of %s cannot be imported, so nothing was written: correct the lines or the mapping", c.Unreadable, file)
	case len(c.Dataset.Customers)+len(c.Dataset.Products)+len(c.Dataset.Warehouses)+len(c.Dataset.Employees) == 0:
		printConversion(env, c)
		return fmt.Errorf("%s contains no records with the keys in the mapping", file)
	}
	d, n := c.Dataset, 0
	if !opts.DryRun {
		n, err = loadConverted(ctx, store, d, env)
	}
	if err != nil {
		const next = "some records are written: run the same command again with -overwrite, then check -repair"
		if ctx.Err() != nil {
			return errors.New("import: interrupted: " + next)
		}
		return fmt.Errorf("%s; %s", describeError(withTableName(cfg, err), env.Getenv), next)
	}
	intro := fmt.Sprintf("Imported into table %s: %d records", cfg.Table.Table, n)
	if opts.DryRun {
		intro = fmt.Sprintf("A dry run wrote nothing. An import into table %s would write", cfg.Table.Table)
	}
	fmt.Fprintf(env.Stdout, "%s: %d customers, %d orders, %d products, %d inventory levels, %d warehouses, %d employees.\n", intro, len(d.Customers), len(d.Orders), len(d.Products), len(d.Levels), len(d.Warehouses), len(d.Employees))
	if c.NewOrderIDs > 0 {
		fmt.Fprintf(env.Stdout, "%d orders have new IDs, because their IDs were not ULIDs. The timelines contain the previous IDs.\n", c.NewOrderIDs)
	}
	printConversion(env, c)
	return nil
}

// printConversion prints the lines that cannot be converted, and what the mapping does not contain.
func printConversion(env Environment, c bulk.Conversion) {
	for _, b := range c.BadLines {
		fmt.Fprintf(env.Stdout, "unreadable  line %d: %s\n", b.Line, b.Problem)
	}
	printMore(env.Stdout, c.Unreadable-len(c.BadLines))
	slices.SortFunc(c.Unmapped, func(a, b *bulk.Unmapped) int { return strings.Compare(a.What, b.What) })
	for _, u := range c.Unmapped {
		fmt.Fprintf(env.Stdout, "unmapped  %s: %d records, such as %s\n", u.What, u.Count, u.Example)
	}
}

// loadConverted loads a dataset. It loads the orders in parts, to save memory and to show the progress.
// It returns the number of records.
func loadConverted(ctx context.Context, store *dynamo.Store, d commerce.Dataset, env Environment) (int, error) {
	others := d
	others.Orders = nil
	n, err := store.Load(ctx, others)
	if err != nil {
		return n, err
	}
	var parts []commerce.Dataset
	for orders := range slices.Chunk(d.Orders, 500) {
		parts = append(parts, commerce.Dataset{Orders: orders})
	}
	progress := newProgressLine(env.Stderr, time.Now)
	defer progress.clear()
	done, err := store.LoadAll(ctx, slices.Values(parts), func(l bulk.LoadProgress) {
		progress.show("%d of %d orders, %d records", l.Orders, len(d.Orders), n+l.Records)
	})
	return n + done.Records, err
}
