package check

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// recordsVerifier verifies an item collection by the declarations of its entities alone: attributes,
// edges and derived numbers.
type recordsVerifier struct {
	baseVerifier
	partition string
	// main is the record to which the collection belongs, such as a warehouse. others are the other
	// records. If no entity declares such a record, main.entity is nil.
	main   recordWithEdges
	others recordsWithEdges
	// referenced reports whether other records refer to the main record.
	referenced bool
	// recount counts the numbers in the main record again. It is nil if this is not needed. readings is
	// the number of its passes whose results the verifier has read. counted is the last result, or nil if
	// the record changed meanwhile.
	recount  *recount
	readings int
	counted  *counted
}

func newRecordsVerifier(partition string) *recordsVerifier {
	v := &recordsVerifier{partition: partition}
	v.clear()
	return v
}

func (v *recordsVerifier) clear() {
	v.main, v.others = recordWithEdges{}, recordsWithEdges{}
	if e := mainEntity(v.partition); e != nil {
		v.main = newRecordWithEdges(e, e.KeyValues(model.Keys{PK: v.partition}))
	}
}

// mainEntity returns the entity that has at most one record in an item collection and does not derive
// from another entity. If there is none, the result is nil.
func mainEntity(partition string) *model.Entity {
	for _, e := range model.Entities() {
		if e.Kind == model.Base && e.PK.Matches(partition) && len(e.SK.Placeholders()) == 0 {
			return e
		}
	}
	return nil
}

// readOthers reads the records in an item collection of entities that the data model declares, besides
// the main entity, the handled entities and what derives from them.
func (c *check) readOthers(ctx context.Context, main *model.Entity, partition string, handled ...*model.Entity) (recordsWithEdges, error) {
	others := recordsWithEdges{}
	for _, e := range model.Entities() {
		if base := e.BaseEntity(); e.PK != main.PK || base.Kind != model.Base || base.PK != main.PK || base == main || slices.Contains(handled, base) {
			continue
		}
		err := c.client.query(ctx, model.OrderCollection, partition, e.SK.Prefix(), func(out *dynamodb.QueryOutput) error {
			for _, rec := range out.Items {
				if model.EntityOf(model.KeyOf(rec)) == e {
					others.add(e, rec)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return others, nil
}

// scanTotals returns the sums in records of an entity that are compared with the scanned records.
func scanTotals(e *model.Entity) (sums []*derive.Sum) {
	for i := range derive.Sums() {
		if s := &derive.Sums()[i]; s.Target == e && !s.Local {
			sums = append(sums, s)
		}
	}
	return sums
}

// target returns the main record as a target of derived numbers.
func (v *recordsVerifier) target() derive.Target {
	return derive.TargetOf(v.main.entity, model.FirstPlaceholderValue(v.main.entity.PK, v.partition))
}

func (v *recordsVerifier) key(*table.Table) model.Keys {
	if v.main.entity == nil {
		return model.Keys{PK: v.partition}
	}
	return v.main.primaryKey
}

func (v *recordsVerifier) addRecord(e *model.Entity, rec model.Record) {
	if e.BaseEntity() == v.main.entity {
		v.main.put(rec)
		return
	}
	v.others.add(e, rec)
}

func (v *recordsVerifier) read(ctx context.Context, c *check) error {
	now, err := counted{}, error(nil)
	if v.recount != nil {
		if now, err = c.countAgain(ctx, v.recount, v.target(), v.readings); err != nil {
			return err
		}
		v.readings++
	}
	v.clear()
	if err := c.client.readItemCollection(ctx, model.OrderCollection, v.partition, v.addRecord); err != nil {
		return err
	}
	if v.counted = nil; v.recount != nil && model.EqualRecords(now.record, v.main.record()) {
		v.counted = &now
	}
	return nil
}

func (v *recordsVerifier) uncertainty(diag *diagnosis) string {
	if v.recount != nil && (v.counted == nil || !diag.isClean() && v.counted.passes < 2) {
		return "the record changed each time its numbers were counted again"
	}
	return ""
}

func (v *recordsVerifier) markRepaired() { v.recount = nil }

func (v *recordsVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table}
	v.others.verify(diag)
	if v.main.entity == nil {
		return diag
	}
	diag.trustedKey, diag.trusted = v.main.primaryKey, v.main.record()
	if v.main.record() == nil && v.referenced {
		id := warehouseOf(v.partition)
		warehouse := &commerce.Warehouse{ID: id, Name: string(id), Version: 1}
		if copied, _ := decodeFirst(diag, &v.main, model.DecodeWarehouse); copied != nil {
			warehouse = copied
		}
		standIn := model.EncodeWithEdges(c.table.KeyBuilder(), warehouse)
		diag.addStandIn(kindWarehouseMissing, standIn[0], "inventory levels or employees refer to the warehouse")
		v.main.verifyEdges(diag, standIn)
		return diag
	}
	numbers := model.Record{}
	for _, s := range scanTotals(v.main.entity) {
		for _, name := range s.Attributes {
			if v.counted != nil && c.verifiesNumber(v.main.entity, name) {
				numbers[name] = model.Num(v.counted.numbers.int(number{v.target(), name}))
			}
		}
	}
	v.main.verify(diag, numbers)
	return diag
}

// warehouseOf returns the ID of the warehouse to which an item collection belongs, or an empty ID.
func warehouseOf(partition string) commerce.WarehouseID {
	return commerce.WarehouseID(model.FirstPlaceholderValue(model.EntityWarehouse.PK, partition))
}

// addStoredNumbers adds the derived numbers in the main record of a scanned collection. If a number is
// missing that may be missing, it must be counted only if opts.Repair is set.
func (c *check) addStoredNumbers(v *recordsVerifier) {
	at := model.Reader{Record: v.main.record()}
	for _, s := range scanTotals(v.main.entity) {
		for _, name := range s.Attributes {
			stored := at.Number(name)
			switch {
			case !c.verifiesNumber(v.main.entity, name):
			case v.main.record() == nil || s.Optional && !at.Has(name) && !c.opts.Repair && c.opts.Derivation == nil:
			case s.Optional && !at.Has(name):
				c.numbers.setStored(number{v.target(), name}, missing)
			default:
				c.numbers.setStored(number{v.target(), name}, stored)
			}
		}
	}
}

// verifiesNumber reports whether the check includes a number: the number to which it is restricted, or
// one that is readable.
func (c *check) verifiesNumber(e *model.Entity, attribute string) bool {
	if d := c.opts.Derivation; d != nil {
		return d.Entity == e && d.Attribute == attribute && c.table.Layout.Derivations().Writes(d.Name)
	}
	return !slices.Contains(e.AddedNumbers, attribute) || c.table.Layout.Derivations().Of(e.Name+"."+attribute).State == model.Readable
}

// addRecordCandidates selects the records whose derived numbers differ from the scanned records.
func (c *check) addRecordCandidates() {
	for _, e := range model.Entities() {
		if verifiesAlone(e) {
			for _, id := range c.numbers.candidates(e, "", false) {
				c.addCandidate(target{targetRecords, derive.TargetOf(e, id).Key(c.table.KeyBuilder()).PK}, candidate{recountStock: true})
			}
		}
	}
}
