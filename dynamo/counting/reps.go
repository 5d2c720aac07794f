package counting

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// RepOrders recounts the orders of one account rep in passes over the rep's list (AP22).
//
// The account rep of an order never changes, and no order is removed. So the orders from before the
// scan are counted once, and a pass counts those that were placed since. The number of a part is
// certain if the part's record was the same before and after a pass: placing an order writes the
// record in its transaction. The pass waits until the index has caught up with the first reading.
// A number that is right stays right, whatever is placed later.
type RepOrders struct {
	orders *Orders
	id     commerce.EmployeeID

	employee model.Record
	// before are the numbers of orders from before the scan, by part, nil if not counted yet.
	before map[string]int
	// parts are the parts whose numbers are certain.
	parts map[string]repPart
	// others are records of parts that do not exist.
	others []model.Record
}

// repPart is the record of a part, nil if there is none, and the number that it should have.
type repPart struct {
	record model.Record
	orders int
}

// Rep returns a recount of an account rep's orders.
func (o *Orders) Rep(id commerce.EmployeeID) *RepOrders { return &RepOrders{orders: o, id: id} }

// Key returns the key of the record of the first part.
func (r *RepOrders) Key() model.Keys { return model.KeyOf(r.record(model.FirstPart, 0)) }

func (r *RepOrders) record(part string, orders int) model.Record {
	return model.RepPartRecord(r.orders.client.Table.KeyBuilder(), commerce.RepOrders{EmployeeID: r.id, Part: part, Complete: part == model.FirstPart, Orders: orders})
}

// maxPasses is how often the orders of a rep are counted until the numbers of all parts are
// certain.
const maxPasses = 20

// Read counts the orders until the numbers of all parts are certain.
//
// Errors: those of repair.Client, and the context's.
func (r *RepOrders) Read(ctx context.Context) error {
	r.parts = map[string]repPart{}
	for pass := 0; pass < maxPasses && r.Doubt() != ""; pass++ {
		if err := r.pass(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Doubt returns why the numbers are not certain; empty if they are.
func (r *RepOrders) Doubt() string {
	if len(r.parts) < model.RepOrderParts {
		return Changed
	}
	return ""
}

func (r *RepOrders) pass(ctx context.Context) error {
	first, err := r.readRecords(ctx)
	if err != nil {
		return err
	}
	if err := table.Wait(ctx, r.orders.lag); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	since, _ := commerce.FirstULID(r.orders.since)
	if r.before == nil {
		if r.before, err = r.list(ctx, model.Range{To: since}); err != nil {
			return err
		}
	}
	placed, err := r.list(ctx, model.Range{From: since})
	if err != nil {
		return err
	}
	last, err := r.readRecords(ctx)
	if err != nil {
		return err
	}
	for i := range model.RepOrderParts {
		part := strconv.Itoa(i)
		if model.SameRecord(first[part], last[part]) {
			r.parts[part] = repPart{last[part], r.before[part] + placed[part]}
		}
	}
	return nil
}

// readRecords reads the records of the parts, and the employee's.
func (r *RepOrders) readRecords(ctx context.Context) (map[string]model.Record, error) {
	r.employee, r.others = nil, nil
	parts := map[string]model.Record{}
	err := r.orders.client.Collection(ctx, &model.EmployeeOrderCount.AccessPattern, r.Key().PK, func(e *model.Entity, rec model.Record) {
		part := model.KeyValue(e.SK, model.KeyOf(rec).SK)
		switch n, err := strconv.Atoi(part); {
		case e.Name == model.EntityEmployee.Name:
			r.employee = rec
		case e.Name != model.EntityRepOrders.Name:
		case err != nil || n < 0 || n >= model.RepOrderParts || part != strconv.Itoa(n):
			r.others = append(r.others, rec)
		default:
			parts[part] = rec
		}
	})
	return parts, err
}

// list counts the orders of a part of the rep's list, by the part that should count each.
func (r *RepOrders) list(ctx context.Context, within model.Range) (map[string]int, error) {
	p := &model.EmployeeOrders.AccessPattern
	partition, err := p.PK.Key(string(r.id))
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	err = r.orders.client.QueryRange(ctx, p, partition, string(p.SK), within, types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
		for _, rec := range out.Items {
			id := commerce.OrderID(model.KeyValue(p.SK+"{orderId}", model.TextOf(rec, model.AttrIndexSK)))
			counts[model.RepOrderPart(id)]++
		}
		return nil
	})
	return counts, err
}

// Judge finds records that do not say how many orders the rep has. Without countNow, it leaves a rep
// alone whose orders nobody has counted.
func (r *RepOrders) Judge(v *repair.Verdict, countNow bool) {
	sum := 0
	for _, part := range r.parts {
		sum += part.orders
	}
	first := r.parts[model.FirstPart].record
	v.Basis, v.Believed = r.Key(), first
	for _, rec := range r.others {
		v.Orphan(repair.DriftOrderCount, rec, "there is no such part")
	}
	counted := (&model.Reader{Record: first}).Flag(model.AttrComplete)
	for i := range model.RepOrderParts {
		of := r.parts[strconv.Itoa(i)]
		want := r.record(strconv.Itoa(i), of.orders)
		switch {
		case r.employee == nil && sum == 0:
			if of.record != nil {
				v.Orphan(repair.DriftOrderCount, of.record, "the employee does not exist")
			}
		case !counted && (!countNow || r.employee == nil):
			if of.record != nil {
				compareAlone(v, of.record)
			}
		case of.record != nil:
			v.Compare(&model.EntityRepOrders, of.record, want, repair.DriftOrderCount)
		case i == 0 || of.orders > 0:
			v.Absent(repair.DriftOrderCount, want, nil, fmt.Sprintf("the employee is the account rep of orders: %d", sum))
		}
	}
}

// compareAlone finds what is wrong with the record of a part, whatever its number should be.
func compareAlone(v *repair.Verdict, rec model.Record) {
	at, k := model.Reader{Record: v.Legible(&model.EntityRepOrders, rec)}, model.KeyOf(rec)
	part := model.KeyValue(model.EntityRepOrders.SK, k.SK)
	v.Compare(&model.EntityRepOrders, rec, model.RepPartRecord(v.Table.KeyBuilder(), commerce.RepOrders{
		EmployeeID: commerce.EmployeeID(model.KeyValue(model.EntityRepOrders.PK, k.PK)), Part: part,
		Complete: part == model.FirstPart && at.Flag(model.AttrComplete), Orders: at.Number(model.AttrOrders),
	}), repair.DriftOrderCount)
}
