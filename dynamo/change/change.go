package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Mutations implements the mutations, which change the records of a table.
type Mutations struct {
	table  *table.Table
	limits commerce.ReservationLimits
	// orderExpiry is the time after which new orders expire, or 0.
	orderExpiry time.Duration
	// webhookKeys encrypts the secrets of webhooks. It can be nil.
	webhookKeys *WebhookKeys
}

// NewMutations returns the mutations of a table. limits apply to callers that are restricted to one
// customer. orderExpiry is the time after which an order expires if its request contains no other
// time. 0 means that it does not expire. Without webhookKeys, webhooks cannot get secrets.
func NewMutations(t *table.Table, limits commerce.ReservationLimits, orderExpiry time.Duration, webhookKeys *WebhookKeys) Mutations {
	return Mutations{t, limits, orderExpiry, webhookKeys}
}

// Caller describes the client that requests a mutation.
type Caller struct {
	// ID identifies the caller. Callers with different IDs do not share idempotency keys. If
	// IdempotencyKey is set, ID is required. ID must not contain '#'.
	ID string
	// Name is stored in each order event that the mutation writes. It names the person or client that
	// made the change.
	Name string
	// IdempotencyKey identifies the mutation among all mutations of the caller. If the client sent no
	// key, it is empty. It must not contain '#'.
	IdempotencyKey string
	// If Customer is set, the caller may access only this customer and this customer's orders.
	// Otherwise, the caller may access all customers and orders.
	Customer commerce.CustomerID
}

// maxAttempts is the maximum number of attempts to plan and commit a change. A further attempt is
// necessary only if another transaction has changed the records in the meantime.
const maxAttempts = 100

// maxBackOffAttempt is the highest attempt number that is passed to table.BackOff. It limits the
// pause before an attempt to 200 ms. A longer pause would be useless, because the conflicting
// transaction has ended by then.
const maxBackOffAttempt = 4

// change executes one mutation. It reads records, plans writes and commits them. If the condition
// of a write fails, it plans the writes again with the current records.
type change struct {
	// table is the table, with strongly consistent reads.
	table   *table.Table
	pattern *model.WritePattern
	caller  Caller
	// known contains the records that were read or that a failed transaction returned. A nil record
	// means that the table has no record with this key.
	known map[model.Keys]model.Record
	model.KeyBuilder
	// writes contains the planned writes of the transaction.
	writes []table.Write
	// attempt is the number of attempts that have failed so far.
	attempt int
	// limits apply to callers that are restricted to one customer.
	limits commerce.ReservationLimits
	// required maps records that store derived numbers to further conditions (see require).
	required map[model.Keys]table.Condition
	// spread contains how the available units of a product change in each share of its stock, by
	// the key of the product (see inShares). increments contains what the update of a record adds
	// to numbers.
	spread     map[model.Keys][]stockShare
	increments map[model.Keys]counterAdjustment
	// assumesStock is true if the attempt assumes that a product's stock is sufficient, but did not
	// read it.
	assumesStock bool
	// erased reports whether the mutation changes the order of an erased customer.
	erased bool
	// taken contains the user errors for values that claims reserve for other records.
	taken commerce.UserErrors
}

// errStale means that another transaction has changed a record since the change read it.
var errStale = errors.New("other transactions have changed the same records")

// resultDecoder decodes the record that contains the result of a mutation.
type resultDecoder[V any] func(model.Reader) (V, error)

// mutate executes a mutation. The function plan reads records, adds writes to the change, and
// returns the mutation's result.
//
// Errors: user errors from plan, commerce.IdempotencyKeyReused, model.ErrCorrupt, errors from
// table.WrapError. After table.ErrOutcomeUnknown, the mutation may have been committed.
func mutate[C, V any](ctx context.Context, t *table.Table, p *model.WritePattern, caller Caller, command C, decode resultDecoder[V], plan func(context.Context, *change) (V, error)) (V, error) {
	var zero V
	c := &change{table: t.Consistent(), pattern: p, caller: caller, known: map[model.Keys]model.Record{}}
	remembered, err := newIdempotency(c, command)
	if err != nil {
		return zero, err
	}
	for attempt := 0; attempt < maxAttempts; attempt++ {
		// The second attempt (number 1) starts immediately, with the records that the failed
		// transaction returned. Later attempts wait first. Records may change during this pause, so
		// these attempts read the records again.
		if attempt > 1 {
			if err := table.BackOff(ctx, min(attempt-1, maxBackOffAttempt)); err != nil {
				return zero, table.WrapError("TransactWriteItems", p.Mutation, err)
			}
		}
		if err := t.CheckLayout(ctx); err != nil {
			return zero, err
		}
		c.KeyBuilder, c.writes, c.required, c.taken, c.attempt = *t.KeyBuilder(), nil, map[model.Keys]table.Condition{}, nil, attempt
		c.spread, c.increments, c.assumesStock, c.erased = map[model.Keys][]stockShare{}, map[model.Keys]counterAdjustment{}, false, false
		if attempt > 1 {
			if err := c.rereadKnown(ctx); err != nil {
				return zero, err
			}
		}
		result, err := plan(ctx, c)
		if err == nil && len(c.taken) > 0 {
			err = c.taken
		}
		if err == nil && c.Err != nil {
			// c.Err means that a value is not valid in a key. The value comes from a record in the
			// table, because the client's values have already been validated.
			err = fmt.Errorf("%s: %w: %w", p.Mutation, model.ErrCorrupt, errors.New(c.Err.Error()))
		}
		if c.assumesStock && commerce.IsUserError(err) {
			continue // the next attempt reads the stock, because user errors contain it
		}
		if commerce.IsUserError(err) || errors.Is(err, model.ErrCorrupt) {
			// The client may have repeated a mutation that is already committed. Then the first
			// execution may have caused this error, so return its stored result.
			if first, found, err := replay(ctx, c, remembered, decode); found || err != nil {
				return first, err
			}
			if !isConflict(err) {
				result = zero
			}
			if errors.Is(err, model.ErrCorrupt) {
				err = fmt.Errorf("%w: %w", commerce.NewMalformedRecord(), err)
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
			c.addIdempotencyRecord(remembered, result)
		}
		if err := c.checkRoom(); err != nil {
			return zero, err
		}
		err = c.commit(ctx)
		if !errors.Is(err, errStale) {
			return result, err
		}
		t.Stats().CountConflict(p)
		if remembered != nil && c.known[remembered.key] != nil {
			if first, found, err := replay(ctx, c, remembered, decode); found || err != nil {
				return first, err
			}
		}
	}
	return zero, fmt.Errorf("%s: %w: %w", p.Mutation, table.ErrUnavailable, errStale)
}

// rereadKnown reads all records in c.known again. The next attempt uses these records. If one of
// them were outdated, its transaction would fail.
//
// It returns errors from table.WrapError.
func (c *change) rereadKnown(ctx context.Context) error {
	keys := slices.SortedFunc(maps.Keys(c.known), func(a, b model.Keys) int {
		return cmp.Or(cmp.Compare(a.PK, b.PK), cmp.Compare(a.SK, b.SK))
	})
	clear(c.known)
	_, err := c.read(ctx, keys...)
	return err
}

// isConflict reports whether err is a version conflict. In this case, the mutation returns the
// current record together with the error.
func isConflict(err error) bool {
	_, ok := errors.AsType[commerce.VersionConflict](err)
	return ok
}

// read returns the records with the given keys, from c.known or from the table. If a record does
// not exist, or the caller may not access it, its element is nil.
//
// It returns errors from table.WrapError.
func (c *change) read(ctx context.Context, keys ...model.Keys) ([]model.Record, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	var unknown []model.Keys
	for _, k := range keys {
		if _, ok := c.known[k]; ok {
			continue
		}
		if c.caller.canAccess(k) {
			unknown = append(unknown, k)
		} else {
			c.known[k] = nil
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

// readRecordToChange reads the records with the given keys into c.known, and decodes the first
// record. field names the argument that contains the ID. expected is the version that the client
// expects, or nil if it accepts every version.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current value), model.ErrCorrupt,
// errors from table.WrapError.
func readRecordToChange[V any, ID ~string](ctx context.Context, c *change, decode resultDecoder[V], kind string, id ID, field string, expected *int, keys ...model.Keys) (v V, current model.Record, err error) {
	records, err := c.read(ctx, keys...)
	switch {
	case err != nil:
		return v, nil, err
	case records[0] == nil:
		return v, nil, commerce.NewNotFound(kind, id, field)
	}
	r := model.Reader{Record: records[0]}
	if v, err = decode(r); err == nil {
		err = checkVersion(kind, expected, r.Number(model.AttrVersion))
	}
	return v, records[0], err
}

// checkVersion returns a VersionConflict if current differs from expected, the version that the
// client expects. If expected is nil, every version is accepted.
func checkVersion(kind string, expected *int, current int) error {
	if expected != nil && *expected != current {
		return commerce.NewVersionConflict(kind, *expected, current)
	}
	return nil
}

// knownRecord returns the record with the given key from c.known. If the record does not exist or
// has not been read, knownRecord returns false.
func (c *change) knownRecord(k model.Keys) (model.Record, bool) {
	r := c.known[k]
	return r, r != nil
}

// knownMissing reports whether c.known shows that a record does not exist. If the record has not
// been read, knownMissing returns false.
func (c *change) knownMissing(k model.Keys) bool {
	r, known := c.known[k]
	return known && r == nil
}

// counterCheckAttempts is the number of attempts that require unchanged derived numbers in the edited
// record. Later attempts accept changed numbers, because frequent changes must not block an edit.
const counterCheckAttempts = 3

// oldKeyBuilder returns a builder for the keys of existing records. The builder's error does not
// make the mutation fail. Other software may have written a value that is not valid in a key.
func (c *change) oldKeyBuilder() *model.KeyBuilder { return c.table.KeyBuilder() }

func (c *change) addWrite(k model.Keys, units float64, action types.TransactWriteItem) {
	c.writes = append(c.writes, table.Write{Key: k.Primary(), Units: units, Action: action})
}

// create writes a new record. If the record already exists, the transaction fails.
func (c *change) create(r model.Record) { c.put(r, table.RecordNotExists) }

// createWithCopies creates the record of a value, its claims and its copies. If one of them already
// exists, the transaction fails. Exception: an existing edge belongs to a lost record, so
// createWithCopies overwrites it. If it belongs to the order of an erased customer, it gets no
// personal data.
func (c *change) createWithCopies(v any) {
	if c.erased {
		model.Erase(v)
	}
	records := model.EncodeWithEdges(&c.KeyBuilder, v)
	c.create(records[0])
	for claim, k := range claimsIn(records) {
		c.create(claim)
		if c.exists(k) {
			c.refuseValue(k)
		}
	}
	for _, r := range records[1:] {
		switch e := model.EntityOf(model.KeyOf(r)); {
		case e != nil && e.IsEdge():
			c.writeCopy(nil, r, nil)
		case e == nil || e.Kind != model.Claim:
			c.create(r)
		}
	}
}

// exists reports whether c.known contains the record with the given key.
func (c *change) exists(k model.Keys) bool { return c.known[k] != nil }

// updateWithEdges updates the record of a value, its edges and its claims. current is the record in
// the table. b builds the new keys. The attributes with the names in the parameter unchanged must
// not change before the commit. In the first attempts, this also applies to derived numbers in the
// record, so the mutation returns their values at the commit.
func (c *change) updateWithEdges(b *model.KeyBuilder, current model.Record, before, after any, unchanged ...string) {
	for _, sum := range derive.Sums() {
		if sum.Target == model.EntityOfValue(after) && c.attempt < counterCheckAttempts {
			unchanged = append(unchanged, sum.Attributes...)
		}
	}
	oldRecords, newRecords := model.EncodeWithEdges(c.oldKeyBuilder(), before), model.EncodeWithEdges(b, after)
	c.update(oldRecords[0], newRecords[0], table.AttributesUnchanged(current, unchanged...))
	c.updateEdges(current, oldRecords, newRecords)
	c.moveClaims(oldRecords, newRecords)
}

// updateEdges writes the edges of a changed record, except edges whose keys are all that they
// contain and stay the same. current is the record in the table. oldRecords contains the record and
// its edges before the change, newRecords after the change.
func (c *change) updateEdges(current model.Record, oldRecords, newRecords []model.Record) {
	kept := c.unchangedAttributes(current, oldRecords[0], newRecords[0])
	for _, edge := range newRecords[1:] {
		k := model.KeyOf(edge)
		before, e := findByKey(oldRecords, k), model.EntityOf(k)
		if e.Kind == model.Claim || e.KeysOnly && model.EqualRecords(before, edge) {
			continue
		}
		if !e.KeysOnly {
			edge.Merge(e.CopiedAttributes(kept))
		}
		c.writeCopy(before, edge, nil)
	}
	for _, edge := range oldRecords[1:] {
		if k := model.KeyOf(edge); !isClaim(k) && findByKey(newRecords, k) == nil {
			c.remove(edge, nil)
		}
	}
}

// findByKey returns the record with the given primary key. If no record has this key, it returns
// nil.
func findByKey(records []model.Record, k model.Keys) model.Record {
	for _, r := range records {
		if model.KeyOf(r) == k {
			return r
		}
	}
	return nil
}

// put creates or replaces a record. when is the condition of the write.
func (c *change) put(r model.Record, when table.Condition) {
	var e table.Expression
	k := model.KeyOf(r)
	text := when(&e)
	c.addWrite(k, model.TransactWriteUnits(c.known[k], r), types.TransactWriteItem{Put: &types.Put{
		TableName: &c.table.Name, Item: r, ConditionExpression: &text,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
}

// update sets the attributes in the parameter after. It removes the attributes that are in before,
// but not in after. Attributes that other software has added stay unchanged.
func (c *change) update(before, after model.Record, when table.Condition) {
	var e table.Expression
	k := model.KeyOf(after)
	current := c.known[k]
	if current == nil {
		current = before
	}
	// The update also replaces or removes index keys that other software has changed. Exception: the
	// parameter after has no index keys, and an attribute in the current index keys cannot be decoded.
	// Then the current index keys stay.
	before = maps.Clone(before)
	stay := after[model.AttrIndexPK] == nil && c.table.HasUnreadableIndexAttribute(current)
	for _, name := range []string{model.AttrIndexPK, model.AttrIndexSK} {
		if delete(before, name); current[name] != nil && !stay {
			before[name] = current[name]
		}
	}
	text := e.UpdateRecord(before, after)
	if add, ok := c.increments[k.Primary()]; ok {
		text += e.Add(add.deltas)
		if add.when != nil {
			when = table.AllOf(when, add.when)
		}
	}
	c.addUpdate(k, text, &e, model.TransactWriteUnits(current, maps.Clone(current).Merge(after)), when)
}

// unchangedAttributes returns the attributes that a change does not modify. It takes their values
// from current, the record in the table. Encoded again, a value could differ from the stored one.
func (c *change) unchangedAttributes(current, before, after model.Record) model.Record {
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
	for _, name := range []string{model.AttrPK, model.AttrSK, model.AttrIndexPK, model.AttrIndexSK} {
		delete(kept, name) // each copy has its own values
	}
	maps.DeleteFunc(kept, func(name string, _ types.AttributeValue) bool { return model.IsEntityAttribute(name) })
	return kept
}

// upsert sets the attributes in the parameter after, and keeps all other attributes. If the record
// does not exist, upsert creates it. The parameter when is the condition of the update.
func (c *change) upsert(after model.Record, when table.Condition) {
	var e table.Expression
	c.addUpdate(model.KeyOf(after), e.UpdateRecord(nil, after), &e, model.TransactWriteUnits(c.known[model.KeyOf(after)], after), when)
}

// writeCopy creates or updates a copy of a record. It sets the attributes in the parameter after.
// It removes the attributes that are in before or optional, but not in after.
func (c *change) writeCopy(before, after model.Record, when table.Condition, optional ...string) {
	var e table.Expression
	lost := model.Record{}
	for _, name := range optional {
		lost[name] = nil
	}
	maps.Copy(lost, before)
	maps.DeleteFunc(lost, func(name string, _ types.AttributeValue) bool { return after[name] != nil })
	c.addUpdate(model.KeyOf(after), e.UpdateRecord(lost, after), &e, model.TransactWriteUnits(before, after), when)
}

// counterAdjustment describes an update that adds deltas to number attributes of a record. when is
// the condition of the update.
type counterAdjustment struct {
	key    model.Keys
	deltas map[string]int
	when   table.Condition
}

// adjustCounters adds counter updates to the transaction.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (c *change) adjustCounters(ctx context.Context, all ...counterAdjustment) error {
	if c.Err != nil {
		return nil // mutate returns c.Err later
	}
	// listed contains the records whose edges contain an adjusted number. Only these records are
	// read.
	var listed []model.Keys
	for i, a := range all {
		if all[i].key = a.key.Primary(); len(c.edgesCopying(a)) > 0 {
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
			a.when = table.AllOf(a.when, table.AttributesUnchanged(current, c.edgesDependOn(current, a)...))
		}
		var e table.Expression
		c.addUpdate(a.key, e.Increment(a.deltas), &e, model.CounterUpdateUnits(model.EntityOf(a.key), current), a.when)
		if !edges {
			continue
		}
		adjusted, at := maps.Clone(current), model.Reader{Record: current}
		for name, delta := range a.deltas {
			adjusted[name] = model.Num(at.Number(name) + delta)
		}
		oldRecords, err := c.decodeWithEdges(current)
		if err != nil {
			return err
		}
		newRecords, err := c.decodeWithEdges(adjusted)
		if err != nil {
			return err
		}
		c.updateEdges(current, oldRecords, newRecords)
	}
	return nil
}

// edgesCopying returns the edges that the table has and that contain an adjusted number.
func (c *change) edgesCopying(a counterAdjustment) []*model.Entity {
	e := model.EntityOf(a.key)
	if len(e.Edges()) == 0 {
		return nil
	}
	return slices.DeleteFunc(e.EdgesCopying(maps.Keys(a.deltas)), func(e *model.Entity) bool { return !c.Derivations.Writes(e.Name) })
}

// edgesDependOn returns the names of the attributes that must not change before the commit, so that
// the record has the right edges afterwards. A record without an attribute in the index keys of its
// only edge never has this edge, with any values of the adjusted numbers.
func (c *change) edgesDependOn(current model.Record, a counterAdjustment) []string {
	if edges := c.edgesCopying(a); len(edges) == 1 {
		for _, name := range edges[0].IndexAttributes() {
			if _, adjusted := a.deltas[name]; !adjusted && current[name] == nil {
				return []string{name}
			}
		}
	}
	return slices.Sorted(maps.Keys(a.deltas))
}

// decodeWithEdges decodes a record and encodes it again. It returns the encoded record and its
// edges.
//
// Errors: model.ErrCorrupt.
func (c *change) decodeWithEdges(r model.Record) ([]model.Record, error) {
	e := model.EntityOf(model.KeyOf(r))
	records, err := c.table.Reencode(e, r)
	return slices.DeleteFunc(records, func(r model.Record) bool {
		entity := model.EntityOf(model.KeyOf(r))
		return entity == nil || entity.BaseEntity().Name != e.Name
	}), err
}

// addToCounters adds deltas to the counters of a record. It does not read the record. If the record
// does not exist, the counters start at 0. It also sets the attributes in the parameter record.
func (c *change) addToCounters(record, deltas model.Record, when table.Condition) {
	k := model.KeyOf(record)
	readable := model.Record{}
	for _, name := range table.SortedAttributeNames(deltas) {
		// If a counter is not a number, keep it unchanged.
		if known := c.known[k]; known[name] != nil && !table.RecordHasNumber(known, name) {
			continue
		}
		readable[name] = deltas[name]
		countable := table.AnyOf(table.AttributeNotExists(name), table.AttributeIsNumber(name))
		if when != nil {
			countable = table.AllOf(when, countable)
		}
		when = countable
	}
	var e table.Expression
	c.addUpdate(k, e.IncrementAndSet(readable, record), &e, model.TransactWriteUnits(c.known[k], record), when)
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

// remove deletes a record. If when is not nil, it is the condition of the deletion.
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
	c.addWrite(k, model.TransactWriteUnits(before, nil), types.TransactWriteItem{Delete: deletion})
}

// addConditionCheck adds a condition for a record that the transaction does not write.
func (c *change) addConditionCheck(k model.Keys, when table.Condition) {
	var e table.Expression
	text := when(&e)
	c.addWrite(k, model.ConditionCheckUnits(c.known[k.Primary()]), types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &c.table.Name, Key: k.Primary().Attributes(), ConditionExpression: &text,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
}

// commit sends the transaction. If a condition fails, it stores the current records in c.known and
// returns errStale. It also returns errors from table.WrapError.
func (c *change) commit(ctx context.Context) error {
	if c.Err != nil {
		return c.Err
	}
	if len(c.writes) > table.MaxTransactionActions {
		return fmt.Errorf("%s: the transaction has %d actions, but DynamoDB allows at most %d", c.pattern.Mutation, len(c.writes), table.MaxTransactionActions)
	}
	err := c.table.TransactWrite(ctx, c.pattern, c.writes)
	if cancelled := (*types.TransactionCanceledException)(nil); errors.As(err, &cancelled) {
		stale, learning := c.rememberCurrentRecords(ctx, cancelled.CancellationReasons)
		if learning != nil {
			return learning
		}
		if stale {
			return errStale
		}
	}
	if err == nil {
		return nil
	}
	// After these errors, the transaction was not sent.
	_, certain := errors.AsType[*table.ClockError](err)
	certain = certain || errors.Is(err, attempt.ErrBreakerOpen)
	err = table.WrapError("TransactWriteItems", c.pattern.Mutation, err)
	if !certain && (errors.Is(err, table.ErrUnavailable) || errors.Is(err, context.Canceled)) {
		return fmt.Errorf("%w: %w", table.ErrOutcomeUnknown, err)
	}
	return err
}

// checkRoom returns an InvalidInput if the transaction has no room for the changes of the list of
// low stock.
func (c *change) checkRoom() error {
	low := 0
	for _, w := range c.writes {
		if model.EntityOf(w.Key) == &model.EntityLowStock {
			low++
		}
	}
	fit := low + table.MaxTransactionActions - len(c.writes)
	if fit < 0 || fit >= low {
		return nil
	}
	return commerce.NewInvalidInput(commerce.FieldPath("orderId"), "has %d line items whose stock is low, but only %d fit into one transaction: set the reorder points of the others to 0 with setInventoryLevel, and restore them afterwards", low, fit)
}

// rememberCurrentRecords reports whether the condition of any write failed. For each such write, it
// stores the current record in c.known.
//
// It returns errors from table.WrapError.
func (c *change) rememberCurrentRecords(ctx context.Context, reasons []types.CancellationReason) (bool, error) {
	// unseen contains the records that DynamoDB did not return. They do not exist, or a local DynamoDB
	// engine omitted them.
	var unseen []model.Keys
	stale := false
	for i, reason := range reasons {
		if aws.ToString(reason.Code) != attempt.ReasonConditionFailed || i >= len(c.writes) {
			continue
		}
		stale = true
		k := c.writes[i].Key
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
