package check

import (
	"context"

	"github.com/ordergraph/ordergraph/dynamo/counting"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// statusCountsVerifier verifies one of the records that count orders by status.
type statusCountsVerifier struct {
	baseVerifier
	part    string
	counter *counting.OrderCounter
	// pass is the number of the next count of the orders. counted is the result of the last count.
	pass       int
	counted    counting.PartCounts
	isRepaired bool
}

// addStatusCountCandidates selects the count records that differ from the scanned orders. If
// opts.Repair is set, it also selects missing count records.
func (c *check) addStatusCountCandidates() {
	for _, part := range c.orderCounter.Candidates(c.opts.Repair) {
		c.addCandidate(target{targetStatusCounts, part}, candidate{})
	}
}

// repOrderCountVerifier verifies the order count of an account rep.
type repOrderCountVerifier struct {
	baseVerifier
	*counting.RepOrderCounter
}

// addRepOrderCandidates selects account reps whose stored order count differs from the scan.
func (c *check) addRepOrderCandidates() {
	for _, k := range c.orderLists.Reps.Candidates(false) {
		c.addCandidate(target{targetRepOrders, model.FirstPlaceholderValue(model.EntityEmployee.PK, k.PK)}, candidate{})
	}
}

func (v *repOrderCountVerifier) addRecord(*model.Entity, model.Record) {}

func (v *repOrderCountVerifier) key(*table.Table) model.Keys { return v.Key() }

func (v *repOrderCountVerifier) read(ctx context.Context, _ *check) error { return v.Read(ctx) }

func (v *repOrderCountVerifier) verify(c *check) *repair.Diagnosis {
	diag := &repair.Diagnosis{Table: c.table}
	v.Verify(diag, c.opts.Repair)
	return diag
}

func (v *repOrderCountVerifier) uncertainty(*repair.Diagnosis) string { return v.Uncertainty() }

func (v *statusCountsVerifier) addRecord(_ *model.Entity, rec model.Record) { v.counted.Record = rec }

func (v *statusCountsVerifier) key(t *table.Table) model.Keys {
	return counting.StatusCountsKey(t, v.part)
}

// maxPasses limits how often the orders are counted if an order changes during each count.
const maxPasses = 20

func (v *statusCountsVerifier) read(ctx context.Context, c *check) (err error) {
	if v.isRepaired {
		v.counted.Record, err = v.counter.ReadCountsRecord(ctx, v.part)
		return err
	}
	for v.counted.Uncertainty = counting.ReasonOrdersChanged; v.counted.Uncertainty == counting.ReasonOrdersChanged && v.pass < maxPasses; v.pass++ {
		if v.counted, err = v.counter.Count(ctx, v.part, v.pass); err != nil {
			return err
		}
	}
	return nil
}

func (v *statusCountsVerifier) verify(c *check) *repair.Diagnosis {
	diag := &repair.Diagnosis{Table: c.table, TrustedKey: v.key(c.table), Trusted: v.counted.Record}
	if v.counted.Uncertainty == "" && !v.isRepaired {
		counting.VerifyStatusCounts(diag, v.part, v.counted.Record, v.counted.ByStatus)
	}
	return diag
}

func (v *statusCountsVerifier) updateCheckState(*check, *repair.Diagnosis, *repair.Diagnosis) {
	v.counter.ExcludePart(v.part)
}

// uncertainty returns a reason if a counted order changed during the count.
func (v *statusCountsVerifier) uncertainty(*repair.Diagnosis) string { return v.counted.Uncertainty }

// markRepaired prevents another count. A repair succeeds only if the record is the same as during
// the count.
func (v *statusCountsVerifier) markRepaired() { v.isRepaired = true }
