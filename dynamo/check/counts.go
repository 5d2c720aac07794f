package check

import (
	"context"

	"github.com/ordergraph/ordergraph/dynamo/counting"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// countsUnit is the record of how many orders of one part are in each status.
type countsUnit struct {
	selfContained
	part   string
	orders *counting.Orders
	// pass is the number of the next pass, and counted the result of the last one.
	pass    int
	counted counting.Counted
	// isRepaired reports whether the record has been repaired.
	isRepaired bool
}

// suspectCounts suspects the parts whose counts are not those of the orders. Orders that nobody has
// counted are counted by a repair.
func (c *check) suspectCounts() {
	for _, part := range c.orders.Suspicious(c.opts.Repair) {
		c.suspect(unitKey{unitCounts, part}, suspicion{})
	}
}

// repUnit is how many orders an account rep has.
type repUnit struct {
	selfContained
	*counting.RepOrders
}

// suspectReps suspects the account reps whose number of orders differs.
func (c *check) suspectReps() {
	for _, k := range c.lists.Reps.Candidates(false) {
		c.suspect(unitKey{unitRep, model.KeyValue(model.EntityEmployee.PK, k.PK)}, suspicion{})
	}
}

func (u *repUnit) add(*model.Entity, model.Record) {}

func (u *repUnit) key(*table.Table) model.Keys { return u.Key() }

func (u *repUnit) read(ctx context.Context, _ *check) error { return u.Read(ctx) }

func (u *repUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table}
	u.Judge(v, c.opts.Repair)
	return v
}

func (u *repUnit) doubt(*repair.Verdict) string { return u.Doubt() }

func (u *countsUnit) add(_ *model.Entity, rec model.Record) { u.counted.Record = rec }

func (u *countsUnit) key(t *table.Table) model.Keys { return counting.Key(t, u.part) }

// maxPasses is how often the orders of a part are counted until nobody changes one of them
// meanwhile.
const maxPasses = 20

func (u *countsUnit) read(ctx context.Context, c *check) (err error) {
	if u.isRepaired {
		u.counted.Record, err = u.orders.Record(ctx, u.part)
		return err
	}
	for u.counted.Doubt = counting.Changed; u.counted.Doubt == counting.Changed && u.pass < maxPasses; u.pass++ {
		if u.counted, err = u.orders.Count(ctx, u.part, u.pass); err != nil {
			return err
		}
	}
	return nil
}

func (u *countsUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table, Basis: u.key(c.table), Believed: u.counted.Record}
	if u.counted.Doubt == "" && !u.isRepaired {
		counting.Judge(v, u.part, u.counted.Record, u.counted.ByStatus)
	}
	return v
}

func (u *countsUnit) settled(*check, *repair.Verdict, *repair.Verdict) { u.orders.Done(u.part) }

// doubt requires that no order of the part changed while they were counted.
func (u *countsUnit) doubt(*repair.Verdict) string { return u.counted.Doubt }

// repaired ends the count: the numbers were set on condition that the record was the one that was
// read when they were counted.
func (u *countsUnit) repaired() { u.isRepaired = true }
