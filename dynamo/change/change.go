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

// Mutations implements the mutations of the order book in a table.
type Mutations struct{ table *table.Table }

// NewMutations returns the mutations of a table.
func NewMutations(t *table.Table) Mutations { return Mutations{t} }

// Caller is the caller of a mutation.
type Caller struct {
	// ID identifies the caller. Callers with different IDs share no idempotency keys. It must not
	// contain '#'. It is required if IdempotencyKey is set.
	ID string
	// Name is the actor in the events of orders.
	Name string
	// IdempotencyKey identifies the request among all requests of the caller. It is empty if the
	// caller set no key. It must not contain '#'.
	IdempotencyKey string
	// Customer restricts the caller to one customer and that customer's orders. Empty means no
	// restriction.
	Customer commerce.CustomerID
}

// maxAttempts is the maximum number of attempts to plan a change. Each failed attempt means that
// another change has succeeded.
const maxAttempts = 100

// maxBackOffAttempt is the attempt with the longest pause, which is at most 200 ms. A conflicting
// change has succeeded by then, so a longer pause would only make this change the last of many.
const maxBackOffAttempt = 4

// change is a mutation in progress: the records that it has read, and the transaction that it
// plans.
//
// A change reads, decides, and writes on the condition that the records have not changed. If a
// condition fails, DynamoDB returns the current record. The change is planned again with that
// record, without a second read.
type change struct {
	// table reads consistently.
	table   *table.Table
	pattern *model.WritePattern
	caller  Caller
	// known contains the records that were read. A nil record does not exist.
	known map[model.Keys]model.Record
	model.KeyBuilder
	writes []write
	// attempt is the number of previous plans.
	attempt int
}

// write is one action of a transaction.
type write struct {
	key    model.Keys
	action types.TransactWriteItem
	// units are the write units of the action.
	units float64
}

// errStale means that a record has changed since the change read it.
var errStale = errors.New("other changes have modified the records")

// decoder decodes a result.
type decoder[V any] func(model.Reader) (V, error)

// mutate makes a change. plan reads records, decides, and adds writes to c. It returns the result
// of the mutation, which is valid after the commit. A plan without writes changes nothing.
//
// Errors: the user errors of plan; commerce.IdempotencyKeyReused; the errors of table.WrapError;
// ErrUnavailable if other changes conflict until the context ends. After ErrUnavailable the change
// may have been made.
func mutate[C any, V model.Value](ctx context.Context, t *table.Table, p *model.WritePattern, caller Caller, command C, decode decoder[V], plan func(context.Context, *change) (V, error)) (V, error) {
	var zero V
	c := &change{table: t.Consistent(), pattern: p, caller: caller, known: map[model.Keys]model.Record{}}
	remembered, err := newIdempotency(c, command)
	if err != nil {
		return zero, err
	}
	for attempt := 0; attempt < maxAttempts; attempt++ {
		// The second plan uses the records from the failed transaction and needs no pause. Later attempts
		// pause and then read again, because the records are outdated after a pause.
		if attempt > 1 {
			if err := table.BackOff(ctx, min(attempt-1, maxBackOffAttempt)); err != nil {
				return zero, table.WrapError("TransactWriteItems", p.Mutation, err)
			}
		}
		c.KeyBuilder, c.writes, c.attempt = *t.KeyBuilder(), nil, attempt
		if attempt > 1 {
			if err := c.rereadKnown(ctx); err != nil {
				return zero, err
			}
		}
		result, err := plan(ctx, c)
		if err == nil && c.Err != nil {
			// The command's values are valid in keys, so the invalid value comes from the table.
			err = fmt.Errorf("%s: %w: %w", p.Mutation, model.ErrCorrupt, errors.New(c.Err.Error()))
		}
		if commerce.IsUserError(err) || errors.Is(err, model.ErrCorrupt) {
			// An earlier attempt of the same request may have changed the records. Then the result is that
			// of the first request.
			if first, found, err := replay(ctx, c, remembered, decode); found || err != nil {
				return first, err
			}
			if !isConflict(err) {
				result = zero
			}
			return result, err
		}
		if err != nil {
			return zero, err
		}
		if len(c.writes) == 0 {
			return result, nil
		}
		if remembered != nil {
			c.addIdempotencyRecord(remembered, model.Attributes(result))
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
	return zero, fmt.Errorf("%s: %w: %w", p.Mutation, table.ErrUnavailable, errStale)
}

// rereadKnown reads all known records again. It keeps all keys: a plan that relies on records from
// a failed transaction would otherwise fail again for each of them.
//
// It returns the errors of table.WrapError.
func (c *change) rereadKnown(ctx context.Context) error {
	keys := slices.SortedFunc(maps.Keys(c.known), func(a, b model.Keys) int {
		return cmp.Or(cmp.Compare(a.PK, b.PK), cmp.Compare(a.SK, b.SK))
	})
	clear(c.known)
	_, err := c.read(ctx, keys...)
	return err
}

// isConflict reports whether err is a version conflict, the only user error that comes with the
// current record.
func isConflict(err error) bool {
	_, ok := errors.AsType[commerce.VersionConflict](err)
	return ok
}

// read returns records by their keys in at most one round trip. A record that does not exist is
// nil.
//
// It returns the errors of table.WrapError.
func (c *change) read(ctx context.Context, keys ...model.Keys) ([]model.Record, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	var unknown []model.Keys
	for _, k := range keys {
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
	records := make([]model.Record, len(keys))
	for i, k := range keys {
		records[i] = c.known[k]
	}
	return records, nil
}

// readExisting reads the record that a command refers to, and in the same request the records of
// further keys. kind is the kind of the record. field is the argument that refers to it.
//
// Errors: commerce.NotFound, ErrCorrupt, the errors of table.WrapError.
func readExisting[V any, ID ~string](ctx context.Context, c *change, decode decoder[V], kind string, id ID, field string, keys ...model.Keys) (v V, current model.Record, err error) {
	records, err := c.read(ctx, keys...)
	switch {
	case err != nil:
		return v, nil, err
	case records[0] == nil:
		return v, nil, commerce.NewNotFound(kind, id, field)
	}
	v, err = decode(model.Reader{Record: records[0]})
	return v, records[0], err
}

// knownRecord returns a record if the change knows that it exists. It does not read the record.
func (c *change) knownRecord(k model.Keys) (model.Record, bool) {
	r := c.known[k]
	return r, r != nil
}

// knownMissing reports whether the change knows that a record does not exist. It does not read the
// record.
func (c *change) knownMissing(k model.Keys) bool {
	r, known := c.known[k]
	return known && r == nil
}

// attemptsWithCounters is the number of attempts that require the counters of an edited record to
// stay unchanged.
const attemptsWithCounters = 3

// withCounters adds counters to the attributes that must not have changed since the read. So the
// result shows the counters at the time of the commit. After attemptsWithCounters it no longer adds
// them, because counters that change all the time must not block an edit. Then the result shows the
// counters at the time of the read.
func (c *change) withCounters(attributes []string, counters ...string) []string {
	if c.attempt >= attemptsWithCounters {
		return attributes
	}
	return append(attributes, counters...)
}

// oldKeyBuilder returns a builder for keys of previous records. Other software may have written
// values that no key can contain. Then the record was in no list, which is not an error.
func (c *change) oldKeyBuilder() *model.KeyBuilder { return &model.KeyBuilder{Shards: c.Shards} }

func (c *change) addWrite(k model.Keys, units float64, action types.TransactWriteItem) {
	c.writes = append(c.writes, write{key: k.Primary(), units: units, action: action})
}

// create writes a record that must not exist.
func (c *change) create(r model.Record) { c.put(r, table.RecordMissing) }

// createAll writes the record of a value and its edges. The record must not exist. Edges without a
// record are leftovers and are overwritten.
func createAll[V model.Value](c *change, v V) {
	records := model.Records(&c.KeyBuilder, v)
	c.create(records[0])
	for _, edge := range records[1:] {
		c.writeCopy(nil, edge, nil)
	}
}

// updateWithEdges replaces the attributes and the edges of before by the attributes and the edges
// of after, if the condition holds for the record. current is the record in the table. b builds the
// keys of after's records.
func updateWithEdges[V model.Value](c *change, b *model.KeyBuilder, current model.Record, before, after V, when table.Condition) {
	oldRecords, newRecords := model.Records(c.oldKeyBuilder(), before), model.Records(b, after)
	c.update(oldRecords[0], newRecords[0], when)
	c.updateEdges(current, oldRecords, newRecords)
}

// updateEdges writes the edges of a changed record. oldRecords and newRecords are the records
// before and after the change, as this program writes them. Both begin with the changed record,
// followed by its edges.
func (c *change) updateEdges(current model.Record, oldRecords, newRecords []model.Record) {
	kept := c.unchanged(current, oldRecords[0], newRecords[0])
	for _, edge := range newRecords[1:] {
		k := model.KeyOf(edge)
		c.writeCopy(findByKey(oldRecords, k), edge.Merge(model.EntityOf(k).CopiedAttributes(kept)), nil)
	}
	for _, edge := range oldRecords[1:] {
		if findByKey(newRecords, model.KeyOf(edge)) == nil {
			c.remove(edge, nil)
		}
	}
}

// findByKey returns the record with a primary key, or nil.
func findByKey(records []model.Record, k model.Keys) model.Record {
	for _, r := range records {
		if model.KeyOf(r) == k {
			return r
		}
	}
	return nil
}

// put writes a whole record if a condition holds.
func (c *change) put(r model.Record, when table.Condition) {
	var e table.Expression
	k := model.KeyOf(r)
	text := when(&e)
	c.addWrite(k, units.Write(c.known[k], r), types.TransactWriteItem{Put: &types.Put{
		TableName: &c.table.Name, Item: r, ConditionExpression: &text,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
}

// update replaces the attributes of before by the attributes of after. Both contain what this
// program writes. Attributes of other software stay.
func (c *change) update(before, after model.Record, when table.Condition) {
	var e table.Expression
	k := model.KeyOf(after)
	current := c.known[k]
	if current == nil {
		current = before
	}
	// The index keys always follow the model, even if other software changed them. They stay if they
	// were built from an unreadable attribute.
	before = maps.Clone(before)
	stay := after[model.AttrIndexPK] == nil && c.table.HasUnreadableIndexAttribute(current)
	for _, name := range []string{model.AttrIndexPK, model.AttrIndexSK} {
		if delete(before, name); current[name] != nil && !stay {
			before[name] = current[name]
		}
	}
	c.addUpdate(k, e.UpdateRecord(before, after), &e, units.Write(current, maps.Clone(current).Merge(after)), when)
}

// unchanged returns the attributes of a record that a change does not modify, with their values in
// the table. The record's copies get the same values. Other software may have written more than
// this program reads, or a value that it cannot read. before and after are the attributes that this
// program writes.
func (c *change) unchanged(current, before, after model.Record) model.Record {
	kept := model.Record{}
	for name, v := range after {
		if raw := current[name]; raw != nil && model.EqualValues(before[name], v) {
			kept[name] = raw
		}
	}
	for name := range c.table.UnreadableAttributes(model.EntityOf(model.KeyOf(current)), current) {
		if before[name] == nil && after[name] == nil {
			kept[name] = current[name]
		}
	}
	for _, name := range []string{"entity", model.AttrPK, model.AttrSK, model.AttrIndexPK, model.AttrIndexSK} {
		delete(kept, name) // each copy has its own values
	}
	return kept
}

// upsert sets the attributes of after, if a condition holds. Other attributes stay.
func (c *change) upsert(after model.Record, when table.Condition) {
	var e table.Expression
	c.addUpdate(model.KeyOf(after), e.UpdateRecord(nil, after), &e, units.Write(c.known[model.KeyOf(after)], after), when)
}

// writeCopy writes a copy or an edge and replaces its old content. before is the expected record.
// optional are attributes that the copy loses if after lacks them. It creates a missing copy. when
// may be nil.
func (c *change) writeCopy(before, after model.Record, when table.Condition, optional ...string) {
	var e table.Expression
	lost := model.Record{}
	for _, name := range optional {
		lost[name] = nil
	}
	maps.Copy(lost, before)
	maps.DeleteFunc(lost, func(name string, _ types.AttributeValue) bool { return after[name] != nil })
	c.addUpdate(model.KeyOf(after), e.UpdateRecord(lost, after), &e, units.Write(before, after), when)
}

// adjustment adds to numbers of a record, if a condition holds.
type adjustment struct {
	key    model.Keys
	deltas map[string]int
	when   table.Condition
}

// adjust adds to numbers of records, which may be unknown. An unknown record counts as small in the
// units. If a record has edges with these numbers, adjust reads the record first and writes the
// edges. These reads take one round trip. Adjusting a product increments its stock revision. Every
// mutation that changes stock or reservations calls adjust, even with no deltas if the product has
// no counters.
//
// Errors: ErrCorrupt, the errors of table.WrapError.
func (c *change) adjust(ctx context.Context, all ...adjustment) error {
	if c.Err != nil {
		return nil // mutate returns the error
	}
	var listed []model.Keys
	for i, a := range all {
		e := model.EntityOf(a.key)
		if e.Name == model.EntityProduct.Name {
			a.deltas[model.AttrStockRevision] = 1
		}
		if all[i].key = a.key.Primary(); len(e.EdgesCopying(maps.Keys(a.deltas))) > 0 {
			listed = append(listed, all[i].key)
		}
	}
	if _, err := c.read(ctx, listed...); err != nil {
		return err
	}
	for _, a := range all {
		current, known := c.knownRecord(a.key)
		edges := known && slices.Contains(listed, a.key)
		if edges {
			a.when = table.AllOf(a.when, table.Unchanged(current, slices.Sorted(maps.Keys(a.deltas))...))
		}
		var e table.Expression
		c.addUpdate(a.key, e.Increment(a.deltas), &e, units.Adjust(current), a.when)
		if !edges {
			continue
		}
		adjusted, at := maps.Clone(current), model.Reader{Record: current}
		for name, delta := range a.deltas {
			adjusted[name] = model.Num(at.Number(name) + delta)
		}
		oldRecords, err := c.withEdges(current)
		if err != nil {
			return err
		}
		newRecords, err := c.withEdges(adjusted)
		if err != nil {
			return err
		}
		c.updateEdges(current, oldRecords, newRecords)
	}
	return nil
}

// withEdges returns the record and the edges that the model derives from a record.
//
// Errors: ErrCorrupt.
func (c *change) withEdges(r model.Record) ([]model.Record, error) {
	e := model.EntityOf(model.KeyOf(r))
	records, err := c.table.Reencode(*e, r)
	return slices.DeleteFunc(records, func(r model.Record) bool {
		entity := model.EntityOf(model.KeyOf(r))
		return entity == nil || entity.BaseEntity().Name != e.Name
	}), err
}

// addToCounters adds to numbers of a record without reading it, if a condition holds. when may be
// nil. It creates a missing record with the attributes in others. Numbers start at 0. A number that
// cannot be read stays unchanged.
func (c *change) addToCounters(record, deltas model.Record, when table.Condition, others ...string) {
	k := model.KeyOf(record)
	set := model.Record{"entity": record["entity"]}
	for _, name := range others {
		set[name] = record[name]
	}
	readable := model.Record{}
	for _, name := range table.SortedAttributeNames(deltas) {
		if known := c.known[k]; known[name] != nil && !table.HasNumber(known, name) {
			continue
		}
		readable[name] = deltas[name]
		countable := table.AnyOf(table.AttributeMissing(name), table.AttributeIsNumber(name))
		if when != nil {
			countable = table.AllOf(when, countable)
		}
		when = countable
	}
	var e table.Expression
	c.addUpdate(k, e.IncrementAndSet(readable, set), &e, units.Write(c.known[k], record), when)
}

func (c *change) addUpdate(k model.Keys, text string, e *table.Expression, units float64, when table.Condition) {
	update := &types.Update{
		TableName: &c.table.Name, Key: k.Primary().Attributes(), UpdateExpression: &text,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if when != nil {
		update.ConditionExpression = aws.String(when(e))
	}
	update.ExpressionAttributeNames, update.ExpressionAttributeValues = e.Names, e.Values
	c.addWrite(k, units, types.TransactWriteItem{Update: update})
}

// remove deletes a record. If the record exists, the condition must hold.
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
	c.addWrite(k, units.Write(before, nil), types.TransactWriteItem{Delete: deletion})
}

// addConditionCheck adds a condition for a record that the transaction does not write.
func (c *change) addConditionCheck(k model.Keys, when table.Condition) {
	var e table.Expression
	text := when(&e)
	c.addWrite(k, units.Check(c.known[k.Primary()]), types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &c.table.Name, Key: k.Primary().Attributes(), ConditionExpression: &text,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
}

// commit commits the transaction.
//
// It returns errStale if a condition fails; c.known then contains the current record. It also
// returns the errors of table.WrapError.
func (c *change) commit(ctx context.Context) error {
	if c.Err != nil {
		return c.Err
	}
	if len(c.writes) > table.MaxTransactionActions {
		return fmt.Errorf("%s: %d actions exceed the maximum of %d per transaction", c.pattern.Mutation, len(c.writes), table.MaxTransactionActions)
	}
	items, units := make([]types.TransactWriteItem, len(c.writes)), 0.0
	for i, w := range c.writes {
		items[i] = w.action
		units += w.units
	}
	t := table.StartTimer(ctx)
	err := c.table.TransactWrite(ctx, items)
	// DynamoDB also charges for a cancelled transaction.
	table.AddWriteUnits(ctx, units)
	if t.Enabled() {
		keys := make([]model.Keys, len(c.writes))
		for i, w := range c.writes {
			keys[i] = w.key
		}
		t.Stop(table.Request{AccessPattern: c.pattern.ID, Operation: "TransactWriteItems", Key: table.DescribeKeys(keys), Items: len(keys), WriteUnits: units})
	}
	if cancelled := (*types.TransactionCanceledException)(nil); errors.As(err, &cancelled) {
		stale, learning := c.rememberCurrentRecords(ctx, cancelled.CancellationReasons)
		if learning != nil {
			return learning
		}
		if stale {
			return errStale
		}
	}
	if err != nil {
		return table.WrapError("TransactWriteItems", c.pattern.Mutation, err)
	}
	return nil
}

// rememberCurrentRecords stores the current records of failed conditions in c.known, and reports
// whether a condition failed. If DynamoDB returns no record for a failed condition, the method
// reads the record: it may not exist, or the engine may not return records.
//
// It returns the errors of table.WrapError.
func (c *change) rememberCurrentRecords(ctx context.Context, reasons []types.CancellationReason) (bool, error) {
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
