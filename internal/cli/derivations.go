package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/price"
)

// derivationUnitsPerSecond is the default limit of the units that `ordergraph table apply` consumes.
const derivationUnitsPerSecond = 500

// derivationMeaning describes what servers do with a list or number in a state.
func derivationMeaning(state model.DerivationState) string {
	switch state {
	case model.Written:
		return "servers write it, and older records are being given it"
	case model.Backfilled:
		return "all records have it, and are being verified"
	case model.Readable:
		return "servers write and read it"
	case model.Dropped:
		return "servers no longer use it, and it is being removed from the records"
	default:
		return "servers neither write nor read it"
	}
}

// listDerivations prints the states of all lists and numbers that a table can lack.
func listDerivations(store *dynamo.Store, env Environment) error {
	statuses := store.Derivations()
	tab := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	for _, d := range model.Derivations() {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", d.Name, kindOf(d), statuses[d.Name], derivationMeaning(statuses[d.Name].State))
	}
	return tab.Flush()
}

// describeDerivations prints the lists and numbers that are not readable. It omits those that an operator has
// not requested.
func describeDerivations(store *dynamo.Store, env Environment) {
	statuses, all := store.Derivations(), true
	for _, d := range model.Derivations() {
		if s := statuses[d.Name]; s.State != model.Readable && (s.State != model.Absent || !d.Entity.OnRequest) {
			fmt.Fprintf(env.Stdout, "derived  %s is %s: %s\n", d.Name, s, derivationMeaning(s.State))
			all = false
		}
	}
	if all {
		fmt.Fprint(env.Stdout, "derived  all lists and numbers are readable\n")
	}
}

func kindOf(d model.Derivation) string {
	switch {
	case d.Feature:
		return "feature"
	case !d.IsRecord():
		return "number"
	case d.Entity.Kind == model.Claim:
		return "claim"
	}
	return "list"
}

// derivationCommand is a command that changes the derivation d, or computes what this would cost.
type derivationCommand struct {
	store  *dynamo.Store
	cfg    config.Config
	prices price.Prices
	opts   dynamo.DerivationOptions
	d      model.Derivation
	env    Environment
}

// find finds the derivation with a name. The list or look-up of a custom field can be dropped without the
// schema extension that has declared it.
func (c *derivationCommand) find(command, name string) (err error) {
	if c.d, err = model.FindDerivation(name); err != nil || !c.d.Undeclared {
		return err
	}
	if command == "apply" {
		return fmt.Errorf("no schema extension declares %s: name the file with -schema", name)
	}
	model.AcceptUndeclared()
	model.DeclareEntities(c.d.Entity)
	return nil
}

// run runs the command plan, apply or drop.
func (c *derivationCommand) run(ctx context.Context, name string) (err error) {
	if c.prices, err = readPrices(c.cfg); err != nil {
		return err
	}
	if err := c.store.CheckTable(ctx); err != nil {
		return withTableName(c.cfg, err)
	}
	switch {
	case name == "plan" && c.d.Name == "":
		return listDerivations(c.store, c.env)
	case name == "plan":
		return c.plan(ctx)
	case name == "apply":
		return c.change(ctx, name, c.store.ApplyDerivation)
	}
	if lists := c.readers(); c.d.Undeclared {
		fmt.Fprintf(c.env.Stdout, "The records of %s are removed. Its custom field keeps its values.\n", c.d.Name)
	} else if len(lists) > 0 {
		fmt.Fprintf(c.env.Stdout, "Until `ordergraph table apply %s`, clients get UNAVAILABLE for: %s.\n", c.d.Name, strings.Join(lists, "; "))
	} else if !c.d.Feature {
		fmt.Fprintf(c.env.Stdout, "Until `ordergraph table apply %s`, clients get UNAVAILABLE for this number.\n", c.d.Name)
	}
	return c.change(ctx, name, c.store.DropDerivation)
}

// readers describes the access patterns that read the list.
func (c *derivationCommand) readers() (found []string) {
	for _, p := range model.AccessPatterns() {
		if c.d.IsRecord() && slices.Contains(p.Entities(), c.d.Entity) {
			found = append(found, p.Description)
		}
	}
	return found
}

// plan prints what it would cost to add the derivation, or to drop it if the table has it.
func (c *derivationCommand) plan(ctx context.Context) error {
	status := c.store.Derivations()[c.d.Name]
	if c.d.Undeclared && status.State == model.Absent {
		return fmt.Errorf("neither the table nor a schema extension contains %s: correct the name, or name the file with -schema", c.d.Name)
	}
	fmt.Fprintf(c.env.Stdout, "%-8s %s: %s\n", kindOf(c.d), c.d.Name, status)
	plan, effect := c.store.PlanDerivation, "write"
	switch {
	case status.State == model.Dropped, status.State == model.Readable && c.d.Feature:
		fmt.Fprintf(c.env.Stdout, "nothing to add: %s\n", derivationMeaning(status.State))
		return nil
	case status.State == model.Readable:
		fmt.Fprintf(c.env.Stdout, "nothing to add: %s; `ordergraph table drop %s` would do this:\n", derivationMeaning(status.State), c.d.Name)
		plan, effect = c.store.PlanDrop, "remove"
		if c.d.Attribute != "" {
			effect = "change"
		}
	}
	cost, err := plan(ctx, c.d, c.opts)
	if err != nil {
		return withTableName(c.cfg, err)
	}
	minutes := table.LayoutDelay.Minutes() + (cost.ReadUnits+cost.WriteUnits)/c.opts.UnitsPerSecond/60
	fmt.Fprintf(c.env.Stdout, "records  %d to %s\nunits    %s\nprice    %s (%s, on demand)\ntime     %s at %s units per second\n",
		cost.Records, effect, formatDerivationUnits(cost), c.dollars(cost), c.prices.Region, pluralize(int(math.Ceil(minutes)), "minute"), formatUnits(c.opts.UnitsPerSecond))
	return nil
}

func formatDerivationUnits(c dynamo.DerivationCost) string {
	return fmt.Sprintf("%s read, %s write", formatUnits(c.ReadUnits), formatUnits(c.WriteUnits))
}

func (c *derivationCommand) dollars(cost dynamo.DerivationCost) string {
	return "$" + c.prices.Dollars(price.Units{Read: cost.ReadUnits, Write: cost.WriteUnits}, 1).FloatString(4)
}

// change applies or drops the derivation. It prints each new state, the progress, and finally the cost.
func (c *derivationCommand) change(ctx context.Context, name string, change func(context.Context, model.Derivation, dynamo.DerivationOptions) (dynamo.DerivationCost, error)) error {
	progress, last := newProgressLine(c.env.Stderr, time.Now), model.DerivationState("")
	progress.enableLog(c.env.Stderr)
	c.opts.OnStatus = func(s model.DerivationStatus) {
		if s.State != last {
			progress.clear()
			fmt.Fprintf(c.env.Stdout, "%s is %s: %s.\n", c.d.Name, s, derivationMeaning(s.State))
			last = s.State
			return
		}
		progress.show("%s is %s", c.d.Name, s)
	}
	out := checkTextOutput{w: c.env.Stdout, repair: true, table: c.cfg.Table.Table}
	c.opts.OnInconsistency = func(i check.Inconsistency) {
		if i.ByHand {
			progress.clear()
			out.writeInconsistency(i)
		}
	}
	cost, err := change(ctx, c.d, c.opts)
	progress.clear()
	if cost != (dynamo.DerivationCost{}) {
		fmt.Fprintf(c.env.Stdout, "records  %d written\nunits    %s\nprice    %s (%s, on demand)\n", cost.Records, formatDerivationUnits(cost), c.dollars(cost), c.prices.Region)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("table %s: interrupted; run it again, and it continues", name)
	}
	return withTableName(c.cfg, err)
}
