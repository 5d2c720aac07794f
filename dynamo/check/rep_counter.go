package check

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// repOrderCounter verifies the order count of an account rep (the employee responsible for a
// customer). Several counts records store this count (see model.RepOrderCountParts).
type repOrderCounter struct {
	orders *orderCounter
	id     commerce.EmployeeID

	employee model.Record
	// countsBefore contains the counts of the orders placed before the scan, by the number of the
	// counts record. Only the first pass counts these orders, because the account rep of an order
	// never changes.
	countsBefore map[string]int
	// parts contains the results with certain counts. The keys are the numbers of the counts records.
	parts map[string]repPart
	// unknownParts contains the counts records with an invalid number.
	unknownParts []model.Record
}

// repPart is the result for one counts record. record is the counts record, or nil if it does not
// exist. orders is the correct number of its orders.
type repPart struct {
	record model.Record
	orders int
}

// forRep returns a repOrderCounter for an account rep.
func (o *orderCounter) forRep(id commerce.EmployeeID) *repOrderCounter {
	return &repOrderCounter{orders: o, id: id}
}

// key returns the key of the rep's first counts record.
func (r *repOrderCounter) key() model.Keys { return model.KeyOf(r.record(model.FirstRepCountPart, 0)) }

func (r *repOrderCounter) record(part string, orders int) model.Record {
	return model.RepOrderCountRecord(r.orders.client.table.KeyBuilder(), commerce.RepOrderCount{EmployeeID: r.id, Part: part, Complete: part == model.FirstRepCountPart, Orders: orders})
}

// maxPasses is the maximum number of times that Read counts the orders.
const maxPasses = 20

// read counts the orders in at most maxPasses passes, until all counts are certain. A count is
// certain if no order was placed meanwhile.
//
// It returns the errors of repair.Client, or the context's error.
func (r *repOrderCounter) read(ctx context.Context) error {
	r.parts = map[string]repPart{}
	for pass := 0; pass < maxPasses && r.uncertainty() != ""; pass++ {
		if err := r.runPass(ctx); err != nil {
			return err
		}
	}
	return nil
}

// uncertainty returns the reason why the order counts may be wrong. If they are correct, it returns
// an empty string.
func (r *repOrderCounter) uncertainty() string {
	if len(r.parts) < model.RepOrderCountParts {
		return reasonOrdersChanged
	}
	return ""
}

func (r *repOrderCounter) runPass(ctx context.Context) error {
	first, err := r.readRecords(ctx)
	if err != nil {
		return err
	}
	// Wait until the index contains all orders that were placed before the counts records were read.
	if err := table.Sleep(ctx, r.orders.lag); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	since, _ := commerce.MinULIDAt(r.orders.since)
	if r.countsBefore == nil {
		if r.countsBefore, err = r.countList(ctx, model.Range{To: since}); err != nil {
			return err
		}
	}
	placed, err := r.countList(ctx, model.Range{From: since})
	if err != nil {
		return err
	}
	last, err := r.readRecords(ctx)
	if err != nil {
		return err
	}
	for i := range model.RepOrderCountParts {
		part := strconv.Itoa(i)
		// Every transaction that places an order also changes the counts record of this order. So if a
		// counts record did not change during the count, the new count is certain.
		if model.EqualRecords(first[part], last[part]) {
			r.parts[part] = repPart{last[part], r.countsBefore[part] + placed[part]}
		}
	}
	return nil
}

// readRecords reads the counts records and the employee's record. The keys of the result are the
// numbers of the counts records.
func (r *repOrderCounter) readRecords(ctx context.Context) (map[string]model.Record, error) {
	r.employee, r.unknownParts = nil, nil
	parts := map[string]model.Record{}
	err := r.orders.client.readItemCollection(ctx, &model.EmployeeOrderCount.AccessPattern, r.key().PK, func(e *model.Entity, rec model.Record) {
		part := model.FirstPlaceholderValue(e.SK, model.KeyOf(rec).SK)
		switch n, err := strconv.Atoi(part); {
		case e.Name == model.EntityEmployee.Name:
			r.employee = rec
		case e.Name != model.EntityRepOrders.Name:
		case err != nil || n < 0 || n >= model.RepOrderCountParts || part != strconv.Itoa(n):
			r.unknownParts = append(r.unknownParts, rec)
		default:
			parts[part] = rec
		}
	})
	return parts, err
}

// countList counts the rep's orders whose IDs are in the given range. The result maps the number of
// a counts record to the number of orders that this record must count.
func (r *repOrderCounter) countList(ctx context.Context, within model.Range) (map[string]int, error) {
	p := &model.EmployeeOrders.AccessPattern
	partition, err := p.PK.Build(string(r.id))
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	err = r.orders.client.queryRange(ctx, p, partition, string(p.SK), within, types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
		for _, rec := range out.Items {
			id := commerce.OrderID(model.FirstPlaceholderValue(p.SK+"{orderId}", model.TextOf(rec, model.AttrIndexSK)))
			counts[model.RepOrderCountPart(id)]++
		}
		return nil
	})
	return counts, err
}

// verify adds a finding to diag for each counts record with a wrong count. If the table has no
// complete order count for the rep and countNow is false, Verify ignores the counts.
func (r *repOrderCounter) verify(diag *diagnosis, countNow bool) {
	sum := 0
	for _, part := range r.parts {
		sum += part.orders
	}
	first := r.parts[model.FirstRepCountPart].record
	diag.trustedKey, diag.trusted = r.key(), first
	for _, rec := range r.unknownParts {
		diag.addOrphan(driftOrderCount, rec, "this record stores order counts, but its key contains an invalid record number")
	}
	counted := (&model.Reader{Record: first}).Flag(model.AttrComplete)
	for i := range model.RepOrderCountParts {
		part := r.parts[strconv.Itoa(i)]
		want := r.record(strconv.Itoa(i), part.orders)
		switch {
		case r.employee == nil && sum == 0:
			if part.record != nil {
				diag.addOrphan(driftOrderCount, part.record, "this record counts the orders of an employee who does not exist")
			}
		case !counted && (!countNow || r.employee == nil):
			if part.record != nil {
				verifyPartWithoutCount(diag, part.record)
			}
		case part.record != nil:
			diag.compare(&model.EntityRepOrders, part.record, want, driftOrderCount)
		case i == 0 || part.orders > 0:
			diag.addMissing(driftOrderCount, want, nil, fmt.Sprintf("this record with order counts is missing; the number of orders with this account rep is %d", sum))
		}
	}
}

// verifyPartWithoutCount verifies all attributes of a counts record except its count.
func verifyPartWithoutCount(diag *diagnosis, rec model.Record) {
	at, k := model.Reader{Record: diag.withoutUnreadable(&model.EntityRepOrders, rec)}, model.KeyOf(rec)
	part := model.FirstPlaceholderValue(model.EntityRepOrders.SK, k.SK)
	diag.compare(&model.EntityRepOrders, rec, model.RepOrderCountRecord(diag.table.KeyBuilder(), commerce.RepOrderCount{
		EmployeeID: commerce.EmployeeID(model.FirstPlaceholderValue(model.EntityRepOrders.PK, k.PK)), Part: part,
		Complete: part == model.FirstRepCountPart && at.Flag(model.AttrComplete), Orders: at.Number(model.AttrOrders),
	}), driftOrderCount)
}
