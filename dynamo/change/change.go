package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/units"
)

// Mutations are the changes of an order book in a table.
type Mutations struct{ table *table.Table }

// NewMutations returns the mutations of a table.
func NewMutations(t *table.Table) Mutations { return Mutations{t} }

// Caller is who asks for a change.
type Caller struct {
	// ID identifies the caller. Callers with different IDs share no idempotency keys. It holds no
	// '#', and is not empty where there is an IdempotencyKey.
	ID string
	// Name is the actor in the events of orders.
	Name string
	// IdempotencyKey is the caller's own name for this one request; empty for none. It holds no
	// '#'.
	IdempotencyKey string
	// Customer is the only customer who exists for the caller, and the only one whose orders do;
	// empty where all exist.
	Customer commerce.CustomerID
}

// maxPlans is how often a change is planned anew because others changed what it was planned on.
// Every time one of them has succeeded.
const maxPlans = 100

// longestPause is the attempt whose pause is the longest: 200 ms at most. One of those who were in
// the way has succeeded, so there is nothing to wait for but a turn, and who waits longer is the
// last of many.
const longestPause = 4

// change is a mutation under way: what it knows of the table, and the transaction that it makes of
// that.
//
// A change reads, decides and then writes on the condition that what it decided on is still so.
// Where it is not, DynamoDB tells what stands there now, and the change is planned again with that,
// without a second read.
type change struct {
	// table reads consistently.
	table   *table.Table
	pattern *model.WritePattern
	caller  Caller
	// known is what was read: nil for a record that does not exist.
	known map[model.Keys]model.Record
	model.KeyBuilder
	writes []write
	// attempt is how often the change was planned before.
	attempt int
}

// write is one action of a transaction.
type write struct {
	key    model.Keys
	action types.TransactWriteItem
	// units are what it costs.
	units float64
}

// errStale says that a change was planned on what is no longer so.
var errStale = errors.New("others have changed the records meanwhile")

// decoder reads a result from its attributes.
type decoder[V any] func(model.Reader) (V, error)

// mutate makes a change: plan reads, decides, and adds writes to c; what it returns is the result
// once they are written. A plan without writes changes nothing.
//
// Errors: the plan's refusals; commerce.IdempotencyKeyReused; those of failed, and ErrUnavailable
// where others are in the way until the context ends. After ErrUnavailable the change may have been
// made.
func mutate[C any, V model.Value](ctx context.Context, t *table.Table, p *model.WritePattern, caller Caller, command C, decode decoder[V], plan func(context.Context, *change) (V, error)) (V, error) {
	var none V
	c := &change{table: t.Strong(), pattern: p, caller: caller, known: map[model.Keys]model.Record{}}
	remembered, err := newIdempotency(c, command)
	if err != nil {
		return none, err
	}
	for attempt := 0; attempt < maxPlans; attempt++ {
		// Planning again with what DynamoDB has just told needs no pause. Who loses again and again
		// waits, and then reads anew: what was told before the pause is no longer so.
		if attempt > 1 {
			if err := table.BackOff(ctx, min(attempt-1, longestPause)); err != nil {
				return none, table.Failed("TransactWriteItems", p.Mutation, err)
			}
		}
		c.KeyBuilder, c.writes, c.attempt = *t.KeyBuilder(), nil, attempt
		if attempt > 1 {
			if err := c.lookAgain(ctx); err != nil {
				return none, err
			}
		}
		result, err := plan(ctx, c)
		if err == nil && c.Err != nil {
			// The command's values can be in keys, so it is what stands in the table that cannot.
			err = fmt.Errorf("%s: %w: %w", p.Mutation, model.ErrCorrupt, errors.New(c.Err.Error()))
		}
		if commerce.IsRefusal(err) || errors.Is(err, model.ErrCorrupt) {
			// The same request may be what has changed the records: then its answer is the first
			// one.
			if first, found, err := replay(ctx, c, remembered, decode); found || err != nil {
				return first, err
			}
			if !isConflict(err) {
				result = none
			}
			return result, err
		}
		if err != nil {
			return none, err
		}
		if len(c.writes) == 0 {
			return result, nil
		}
		if remembered != nil {
			c.remember(remembered, model.Attributes(result))
		}
		err = c.commit(ctx)
		if !errors.Is(err, errStale) {
			return result, err
		}
		if remembered != nil && c.known[remembered.key] != nil {
			if first, found, err := replay(ctx, c, remembered, decode); found || err != nil {
				return first, err
			}
		}
	}
	return none, fmt.Errorf("%s: %w: %w", p.Mutation, table.ErrUnavailable, errStale)
}

// lookAgain reads all that is known anew. Nothing is forgotten: what a plan was told of a record
// that it does not read for itself, it would have to be told again and again.
//
// Errors: those of failed.
func (c *change) lookAgain(ctx context.Context) error {
	ks := slices.SortedFunc(maps.Keys(c.known), func(a, b model.Keys) int {
		return cmp.Or(cmp.Compare(a.PK, b.PK), cmp.Compare(a.SK, b.SK))
	})
	clear(c.known)
	_, err := c.read(ctx, ks...)
	return err
}

// isConflict tells of the one refusal that comes with the record as it is.
func isConflict(err error) bool {
	_, ok := errors.AsType[commerce.VersionConflict](err)
	return ok
}

// read gives records by their keys, nil for those that do not exist, in one round trip at most.
//
// Errors: those of failed.
func (c *change) read(ctx context.Context, ks ...model.Keys) ([]model.Record, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	var unknown []model.Keys
	for _, k := range ks {
		if _, ok := c.known[k]; !ok {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) > 0 {
		found, err := c.table.GetMany(ctx, &model.AccessPattern{ID: c.pattern.ID}, unknown)
		if err != nil {
			return nil, err
		}
		for i, k := range unknown {
			c.known[k] = found[i].Attributes()
		}
	}
	records := make([]model.Record, len(ks))
	for i, k := range ks {
		records[i] = c.known[k]
	}
	return records, nil
}

// existing reads the record that a command names, and others along with it. what is the kind of
// record, and field is where the command names it.
//
// Errors: commerce.NotFound, ErrCorrupt, those of failed.
func existing[V any, ID ~string](ctx context.Context, c *change, decode decoder[V], what string, id ID, field string, ks ...model.Keys) (v V, stands model.Record, err error) {
	records, err := c.read(ctx, ks...)
	switch {
	case err != nil:
		return v, nil, err
	case records[0] == nil:
		return v, nil, commerce.Unknown(what, id, field)
	}
	v, err = decode(model.Reader{Record: records[0]})
	return v, records[0], err
}

// stands reports whether there is a record, as far as a transaction has told: nobody reads for it.
func (c *change) stands(k model.Keys) (model.Record, bool) {
	r := c.known[k]
	return r, r != nil
}

// missing reports whether there is no record, as far as a transaction has told.
func (c *change) missing(k model.Keys) bool {
	r, known := c.known[k]
	return known && r == nil
}

// exactAttempts is how often an edit is tried on the condition that counters beside it stand still.
const exactAttempts = 3

// exactly adds counters to the attributes that must not have changed since they were read, so that
// the result shows them as they are when the change is made. An edit of a record whose counters
// never stand still is made all the same: its result shows them as they were a moment before.
func (c *change) exactly(attributes []string, counters ...string) []string {
	if c.attempt >= exactAttempts {
		return attributes
	}
	return append(attributes, counters...)
}

// former makes the keys of what a record was. Other software may have written what can be in no
// key: then the record was in no list of ours, and that is no error.
func (c *change) former() *model.KeyBuilder { return &model.KeyBuilder{Shards: c.Shards} }

func (c *change) add(k model.Keys, units float64, action types.TransactWriteItem) {
	c.writes = append(c.writes, write{key: k.Primary(), units: units, action: action})
}

// create puts a record that must not be there.
func (c *change) create(r model.Record) { c.put(r, table.Absent) }

// createAll puts the record of a value and its edges. The record must not exist. An edge without a
// record is a leftover and is overwritten.
func createAll[V model.Value](c *change, v V) {
	records := model.Records(&c.KeyBuilder, v)
	c.create(records[0])
	for _, edge := range records[1:] {
		c.mirror(nil, edge, nil)
	}
}

// rewrite changes the record and the edges of before into those of after, if the condition holds
// for the record. stands is the record as it is in the table, and b builds the keys of after's
// records.
func rewrite[V model.Value](c *change, b *model.KeyBuilder, stands model.Record, before, after V, when table.Condition) {
	was, is := model.Records(c.former(), before), model.Records(b, after)
	c.update(was[0], is[0], when)
	c.follow(stands, was, is)
}

// follow writes the edges of a changed record: those of was become those of is. Both begin with the
// record, as this program writes it.
func (c *change) follow(stands model.Record, was, is []model.Record) {
	kept := c.unchanged(stands, was[0], is[0])
	for _, edge := range is[1:] {
		k := model.KeyOf(edge)
		c.mirror(withKey(was, k), edge.With(model.EntityOf(k).Without(kept)), nil)
	}
	for _, edge := range was[1:] {
		if withKey(is, model.KeyOf(edge)) == nil {
			c.remove(edge, nil)
		}
	}
}

// withKey returns the record with a primary key, or nil.
func withKey(records []model.Record, k model.Keys) model.Record {
	for _, r := range records {
		if model.KeyOf(r) == k {
			return r
		}
	}
	return nil
}

// put puts a whole record.
func (c *change) put(r model.Record, when table.Condition) {
	var e table.Expression
	k := model.KeyOf(r)
	text := when(&e)
	c.add(k, units.Write(c.known[k], r), types.TransactWriteItem{Put: &types.Put{
		TableName: &c.table.Name, Item: r, ConditionExpression: &text,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
}

// update makes after of before, which are what this program writes of a record: attributes of other
// software stay.
func (c *change) update(before, after model.Record, when table.Condition) {
	var e table.Expression
	k := model.KeyOf(after)
	stands := c.known[k]
	if stands == nil {
		stands = before
	}
	// Index keys are ours: they become the model's, whatever other software made of them. They stay
	// where they are made of what cannot be read.
	before = maps.Clone(before)
	stay := after[model.AttrIndexPK] == nil && c.table.IndexedByUnreadable(stands)
	for _, name := range []string{model.AttrIndexPK, model.AttrIndexSK} {
		if delete(before, name); stands[name] != nil && !stay {
			before[name] = stands[name]
		}
	}
	c.set(k, e.Setting(before, after), &e, units.Write(stands, maps.Clone(stands).With(after)), when)
}

// unchanged returns the attributes of a record that a change leaves as they are, as they stand in
// the table. Its copies get them so: other software may have written more than this program reads,
// or a value that it cannot read. before and after are what this program writes of the record.
func (c *change) unchanged(stands, before, after model.Record) model.Record {
	kept := model.Record{}
	for name, v := range after {
		if raw := stands[name]; raw != nil && model.SameValue(before[name], v) {
			kept[name] = raw
		}
	}
	for name := range c.table.Unreadable(model.EntityOf(model.KeyOf(stands)), stands) {
		if before[name] == nil && after[name] == nil {
			kept[name] = stands[name]
		}
	}
	for _, name := range []string{"entity", model.AttrPK, model.AttrSK, model.AttrIndexPK, model.AttrIndexSK} {
		delete(kept, name) // copies have their own
	}
	return kept
}

// upsert makes a record hold after, if a condition holds. Its other attributes stay.
func (c *change) upsert(after model.Record, when table.Condition) {
	var e table.Expression
	c.set(model.KeyOf(after), e.Setting(nil, after), &e, units.Write(c.known[model.KeyOf(after)], after), when)
}

// mirror makes a record that follows another one like after, whatever it was before; before is what
// the record is likely to be, and optional are attributes that it must not have where after has
// none. It is made where it is missing. when is nil for no condition.
func (c *change) mirror(before, after model.Record, when table.Condition, optional ...string) {
	var e table.Expression
	lost := model.Record{}
	for _, name := range optional {
		lost[name] = nil
	}
	maps.Copy(lost, before)
	maps.DeleteFunc(lost, func(name string, _ types.AttributeValue) bool { return after[name] != nil })
	c.set(model.KeyOf(after), e.Setting(lost, after), &e, units.Write(before, after), when)
}

// adjustment adds to numbers of a record, if a condition holds.
type adjustment struct {
	key    model.Keys
	deltas map[string]int
	when   table.Condition
}

// adjust adds to numbers of records that may be unknown; such a record is taken for a small one.
// Records that have edges with these numbers are read first, in one round trip at most, and the
// edges are written anew. Adjusting a product raises its stock revision. This is the only place
// that does: every mutation that changes stock or what orders hold of it adjusts the product, if
// only with an empty map because the product keeps no counter.
//
// Errors: ErrCorrupt, those of failed.
func (c *change) adjust(ctx context.Context, all ...adjustment) error {
	if c.Err != nil {
		return nil // mutate tells
	}
	var listed []model.Keys
	for i, a := range all {
		e := model.EntityOf(a.key)
		if e.Name == model.EntityProduct.Name {
			a.deltas[model.AttrStockRevision] = 1
		}
		if all[i].key = a.key.Primary(); len(e.EdgesWith(maps.Keys(a.deltas))) > 0 {
			listed = append(listed, all[i].key)
		}
	}
	if _, err := c.read(ctx, listed...); err != nil {
		return err
	}
	for _, a := range all {
		stands, known := c.stands(a.key)
		edges := known && slices.Contains(listed, a.key)
		if edges {
			a.when = table.AllOf(a.when, table.Still(stands, slices.Sorted(maps.Keys(a.deltas))...))
		}
		var e table.Expression
		c.set(a.key, e.Adding(a.deltas), &e, units.Adjust(stands), a.when)
		if !edges {
			continue
		}
		adjusted, at := maps.Clone(stands), model.Reader{Record: stands}
		for name, by := range a.deltas {
			adjusted[name] = model.Num(at.Number(name) + by)
		}
		was, err := c.withEdges(stands)
		if err != nil {
			return err
		}
		is, err := c.withEdges(adjusted)
		if err != nil {
			return err
		}
		c.follow(stands, was, is)
	}
	return nil
}

// withEdges returns the record that the model makes of what a record says, and its edges.
//
// Errors: ErrCorrupt.
func (c *change) withEdges(r model.Record) ([]model.Record, error) {
	e := model.EntityOf(model.KeyOf(r))
	records, err := c.table.EncodedAgain(*e, r)
	return slices.DeleteFunc(records, func(r model.Record) bool {
		of := model.EntityOf(model.KeyOf(r))
		return of == nil || of.Root().Name != e.Name
	}), err
}

// tally adds to numbers of a record without reading it, if a condition holds; nil for none. It
// makes the record if it is missing, with the other attributes that are named. Numbers start at 0.
// One that cannot be read stays as it is.
func (c *change) tally(record, deltas model.Record, when table.Condition, others ...string) {
	k := model.KeyOf(record)
	set := model.Record{"entity": record["entity"]}
	for _, name := range others {
		set[name] = record[name]
	}
	readable := model.Record{}
	for _, name := range table.AttributeNames(deltas) {
		if known := c.known[k]; known[name] != nil && !table.IsCounted(known, name) {
			continue
		}
		readable[name] = deltas[name]
		is := table.Either(table.Lacks(name), table.Counted(name))
		if when != nil {
			is = table.AllOf(when, is)
		}
		when = is
	}
	var e table.Expression
	c.set(k, e.Counting(readable, set), &e, units.Write(c.known[k], record), when)
}

func (c *change) set(k model.Keys, text string, e *table.Expression, units float64, when table.Condition) {
	update := &types.Update{
		TableName: &c.table.Name, Key: k.Primary().Attributes(), UpdateExpression: &text,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if when != nil {
		update.ConditionExpression = aws.String(when(e))
	}
	update.ExpressionAttributeNames, update.ExpressionAttributeValues = e.Names, e.Values
	c.add(k, units, types.TransactWriteItem{Update: update})
}

// remove deletes a record, if a condition holds where there is one.
func (c *change) remove(before model.Record, when table.Condition) {
	var e table.Expression
	k := model.KeyOf(before)
	deletion := &types.Delete{
		TableName: &c.table.Name, Key: k.Attributes(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if when != nil {
		deletion.ConditionExpression = aws.String(when(&e))
	}
	deletion.ExpressionAttributeNames, deletion.ExpressionAttributeValues = e.Names, e.Values
	c.add(k, units.Write(before, nil), types.TransactWriteItem{Delete: deletion})
}

// require lets the transaction pass only if a condition holds for a record that it does not write.
func (c *change) require(k model.Keys, when table.Condition) {
	var e table.Expression
	text := when(&e)
	c.add(k, units.Check(c.known[k.Primary()]), types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &c.table.Name, Key: k.Primary().Attributes(), ConditionExpression: &text,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
}

// commit writes all or nothing.
//
// Errors: errStale where a condition does not hold, and c knows better then; those of failed.
func (c *change) commit(ctx context.Context) error {
	if c.Err != nil {
		return c.Err
	}
	if len(c.writes) > table.MaxActions {
		return fmt.Errorf("%s: %d actions, a transaction has at most %d", c.pattern.Mutation, len(c.writes), table.MaxActions)
	}
	items, units := make([]types.TransactWriteItem, len(c.writes)), 0.0
	for i, w := range c.writes {
		items[i] = w.action
		units += w.units
	}
	t := table.StartTimer(ctx)
	err := c.table.TransactWrite(ctx, items)
	// A transaction that is cancelled is charged as well.
	table.Wrote(ctx, units)
	if t.On() {
		ks := make([]model.Keys, len(c.writes))
		for i, w := range c.writes {
			ks[i] = w.key
		}
		t.Stop(table.Request{AccessPattern: c.pattern.ID, Operation: "TransactWriteItems", Key: table.Describe(ks), Items: len(ks), WriteUnits: units})
	}
	if cancelled := (*types.TransactionCanceledException)(nil); errors.As(err, &cancelled) {
		stale, learning := c.learn(ctx, cancelled.CancellationReasons)
		if learning != nil {
			return learning
		}
		if stale {
			return errStale
		}
	}
	if err != nil {
		return table.Failed("TransactWriteItems", c.pattern.Mutation, err)
	}
	return nil
}

// learn takes note of what the records are like whose conditions did not hold, and reports whether
// there are any. One that DynamoDB does not give is not there, unless the engine keeps it to
// itself: it is read.
//
// Errors: those of failed.
func (c *change) learn(ctx context.Context, reasons []types.CancellationReason) (bool, error) {
	var unseen []model.Keys
	stale := false
	for i, reason := range reasons {
		if aws.ToString(reason.Code) != table.ReasonConditionFailed || i >= len(c.writes) {
			continue
		}
		stale = true
		k := c.writes[i].key
		delete(c.known, k)
		if len(reason.Item) > 0 {
			c.known[k] = reason.Item
		} else {
			unseen = append(unseen, k)
		}
	}
	_, err := c.read(ctx, unseen...)
	return stale, err
}
