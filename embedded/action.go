package embedded

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/capacity"
	"github.com/ordergraph/ordergraph/embedded/internal/expr"
	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/stream"
	"github.com/ordergraph/ordergraph/embedded/internal/throttle"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// maxItemBytes is the maximum size of an item in bytes.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxItemBytes = 400 << 10

// actionVerb is the kind of an action: put, update or delete an item, or only check a condition.
type actionVerb int

const (
	verbPut actionVerb = iota
	verbUpdate
	verbDelete
	verbCheck
)

// actionInput contains the parameters of one write. The write is a PutItem, UpdateItem or
// DeleteItem request, or one element of TransactWriteItems.
type actionInput struct {
	TableName                           *string
	Item                                attr.Item // Item is the new item of a put
	Key                                 attr.Item // Key is the item's key in all other writes
	UpdateExpression                    *string
	ConditionExpression                 *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           attr.Item
	ReturnValuesOnConditionCheckFailure string
}

// action is one write, or one condition check. It is a complete request, or one element of a batch
// or transaction.
type action struct {
	verb      actionVerb
	item      attr.Item
	lookup    attr.Item
	update    *expr.Update
	condition *expr.Predicate
	// If the condition is false and returnOld is true, the error contains the existing item.
	returnOld bool
	// If expired is true, the store itself deletes the item, because its time to live has ended.
	expired bool

	storage.Change
	// loads are the capacity units that the write consumes, if the store enforces limits.
	loads []throttle.Load
}

// parse parses the expressions of a write and validates the item or key. If the write belongs to a
// transaction, transacted must be true, because DynamoDB then uses other error messages.
func (in *actionInput) parse(v actionVerb, transacted bool) (*action, error) {
	p := &expr.Placeholders{Names: in.ExpressionAttributeNames, Values: in.ExpressionAttributeValues, Older: transacted}
	a := &action{verb: v, item: in.Item, lookup: in.Key, returnOld: in.ReturnValuesOnConditionCheckFailure == "ALL_OLD"}
	err := p.Check(in.UpdateExpression != nil || in.ConditionExpression != nil)
	if err == nil && in.UpdateExpression != nil {
		a.update, err = expr.ParseUpdate(*in.UpdateExpression, p)
	}
	if err == nil && in.ConditionExpression != nil {
		a.condition, err = expr.ParseCondition(expr.ConditionExpression, *in.ConditionExpression, p)
	}
	if err == nil {
		err = p.CheckAllUsed()
	}
	if err == nil {
		values := in.Key
		if v == verbPut {
			values = in.Item
		}
		_, err = values.Normalize()
	}
	if transacted {
		err = attr.OlderMessage(err)
	}
	return a, wire.AsInvalid(err)
}

// setTable sets the table of the action and validates the key. If the key is invalid, setTable
// returns a [wire.Failure]. Its field OfItem is true if DynamoDB detects such a key only when it
// executes the write.
func (a *action) setTable(t *schema.Table) error {
	a.Table = t
	paths := a.condition.Paths()
	if a.update != nil {
		paths = slices.Concat(paths, a.update.ChangedPaths(), a.update.ReadPaths())
	}
	if err := t.CheckKeyPaths(paths); err != nil {
		return wire.AsInvalid(err)
	}
	if a.verb == verbPut {
		var fault *schema.KeyFault
		if a.Key, fault = t.EncodeItemKey(a.item); fault != nil {
			if fault.Early {
				return wire.AsInvalid(fault)
			}
			return wire.InvalidItem("%s", fault.Error())
		}
		if a.NewSize = a.item.Size(); a.NewSize > maxItemBytes {
			return wire.Invalid("Item size has exceeded the maximum allowed size")
		}
		// Encode the item here, before the commit. Commits run one after another, so they should be
		// short.
		a.Encoded = storage.Encode(a.NewSize, a.item.AppendJSON)
		return nil
	}
	var err error
	if a.Key, err = t.KeyBytes(a.lookup); err != nil {
		if errors.Is(err, schema.ErrKeySchema) {
			return wire.InvalidItem("%s", err.Error())
		}
		return wire.AsInvalid(err)
	}
	if a.update != nil {
		for _, path := range a.update.ChangedPaths() {
			for _, k := range t.Key {
				if path[0].Name == k.Name {
					return wire.Invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", k.Name)
				}
			}
		}
	}
	return nil
}

// evaluate reads the item and computes its content after the action. If the condition is false,
// evaluate returns ConditionalCheckFailedException. If an update is invalid for the item, evaluate
// returns ValidationException.
func (a *action) evaluate(items *file.Bucket) error {
	if err := a.LoadOld(items); err != nil {
		return err
	}
	if !a.condition.Matches(a.Old) {
		a.New, a.NewSize = a.Old, a.OldSize
		f := &wire.Failure{Code: wire.CodeCondition, Message: "The conditional request failed"}
		if a.returnOld {
			f.Item = a.Old
		}
		return f
	}
	switch a.verb {
	case verbPut:
		a.New = a.item
	case verbDelete:
		a.New, a.NewSize = nil, 0
	case verbCheck:
		a.New, a.NewSize = a.Old, a.OldSize
	case verbUpdate:
		return a.applyUpdate()
	}
	return nil
}

// applyUpdate computes the item after an update. If the item does not exist, the update creates it.
func (a *action) applyUpdate() error {
	base := a.Old
	if base == nil {
		base = a.lookup
	}
	a.New = base
	if a.update != nil {
		var err error
		if a.New, err = a.update.Apply(base); err != nil {
			return wire.InvalidItem("%s", err.Error())
		}
	}
	changed := attr.Item{}
	for _, path := range a.updatedPaths() {
		if v, ok := a.New[path[0].Name]; ok {
			changed[path[0].Name] = v
		}
	}
	// An item that is older than an index may have an invalid key for this index. Updates of other
	// attributes are valid.
	indexed := changed
	if a.Old == nil {
		indexed = a.New
	}
	const empty = "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty %s value."
	if fault := a.Table.CheckIndexKeys(indexed, empty); fault != nil {
		return &wire.Failure{Code: wire.CodeValidation, Message: fault.Error(), OfItem: !fault.Early}
	}
	if _, err := changed.Normalize(); err != nil {
		return wire.InvalidItem("%s", err.Error())
	}
	if a.NewSize = a.New.Size(); a.NewSize > maxItemBytes {
		return wire.InvalidItem("Item size to update has exceeded the maximum allowed size")
	}
	return nil
}

// updatedPaths returns the document paths that the update expression changes.
func (a *action) updatedPaths() []expr.Path {
	if a.update == nil {
		return nil
	}
	return a.update.ChangedPaths()
}

// write stores the result of the action: the new item, its index entries and its stream record. If
// the action does not change the item, write stores nothing.
func (a *action) write(c *commitState, b *file.Bucket) error {
	c.limiter.Charge(a.loads...)
	if a.verb == verbCheck {
		return nil
	}
	if a.verb == verbUpdate {
		a.Encoded = storage.Encode(a.NewSize, a.New.AppendJSON)
	}
	if a.IsNoOp() {
		return nil
	}
	c.changed = true
	if err := a.Store(b); err != nil {
		return err
	}
	if a.Table.HasStream() {
		return stream.Record(c.tx.Bucket(bucketStreams), &a.Change, a.expired, c.now())
	}
	return nil
}

// admit returns ThrottlingException if a partition has no capacity left for the action. factor is 2
// if the action belongs to a transaction, and otherwise 1.
func (c *commitState) admit(a *action, factor float64) *wire.Failure {
	a.loads = c.limiter.LoadsOf(&a.Change, factor)
	return c.limiter.Check(a.loads...)
}

// executeSingleWrite executes a PutItem, UpdateItem or DeleteItem request.
func (s *Store) executeSingleWrite(name string, a *action) error {
	return retryChanged(func() error {
		t, err := s.table(name)
		if err != nil {
			return err
		}
		if err := a.setTable(t); err != nil {
			return err
		}
		return s.commit(func(c *commitState) error {
			b, err := c.tableBucket(t)
			if err != nil {
				return err
			}
			failed := a.evaluate(storage.ItemBucket(b))
			if failed != nil && wire.FailureOf(failed).Code != wire.CodeCondition {
				return failed
			}
			if f := c.admit(a, 1); f != nil {
				return f
			}
			if failed != nil {
				// A failed condition consumes units for the existing item.
				// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/WorkingWithItems.html#WorkingWithItems.ConditionalUpdate
				c.limiter.Charge(a.loads...)
				return failed
			}
			if err := a.write(c, b); err != nil {
				return err
			}
			c.notifyObservers(a)
			return nil
		})
	})
}

// writeInput contains the parameters of PutItem, UpdateItem and DeleteItem.
type writeInput struct {
	actionInput
	ReturnValues                string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string

	// These legacy parameters are from the first version of DynamoDB's API. The engine rejects
	// them.
	Expected, AttributeUpdates any
	ConditionalOperator        string
}

// check validates the parameters. The argument required is the item of a put, or the key of any
// other write. If the request lacks it, required is nil. field is its name in error messages.
func (in *writeInput) check(v actionVerb, required attr.Item, field string) error {
	found := &wire.Violations{}
	if required == nil {
		found.CheckReturnCapacity(in.ReturnConsumedCapacity)
		found.CheckTableName(in.TableName)
		found.CheckReturnValues(in.ReturnValues)
		found.CheckReturnMetrics(in.ReturnItemCollectionMetrics)
		found.AddMissing(field)
		return found.Err()
	}
	if !found.CheckTableName(in.TableName) {
		return found.Err()
	}
	values := &wire.Violations{}
	if values.CheckReturnValues(in.ReturnValues); v == verbUpdate && values.Found() {
		// This message repeats a mistake of DynamoDB: it lists UPDATE_NEW instead of UPDATED_NEW.
		return wire.Invalid("1 validation error detected: Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]")
	}
	found.CheckReturnCapacity(in.ReturnConsumedCapacity)
	found.CheckReturnMetrics(in.ReturnItemCollectionMetrics)
	found.CheckReturnValues(in.ReturnValues)
	found.CheckReturnOnFailure(in.ReturnValuesOnConditionCheckFailure)
	if err := found.Err(); err != nil {
		return err
	}
	return wire.WithDetectedPrefix(wire.CheckLegacy([]wire.Parameter{{Name: "AttributeUpdates", Set: in.AttributeUpdates != nil}, {Name: "Expected", Set: in.Expected != nil}, {Name: "ConditionalOperator", Set: in.ConditionalOperator != ""}},
		[]wire.Parameter{{Name: "UpdateExpression", Set: in.UpdateExpression != nil}, {Name: "ConditionExpression", Set: in.ConditionExpression != nil}}))
}

func (s *Store) putItem(_ context.Context, in *writeInput) ([]byte, error) {
	return s.write(verbPut, in, in.Item, "item")
}

func (s *Store) deleteItem(_ context.Context, in *writeInput) ([]byte, error) {
	return s.write(verbDelete, in, in.Key, "key")
}

func (s *Store) updateItem(_ context.Context, in *writeInput) ([]byte, error) {
	return s.write(verbUpdate, in, in.Key, "key")
}

// write executes a PutItem, UpdateItem or DeleteItem request.
func (s *Store) write(v actionVerb, in *writeInput, required attr.Item, field string) ([]byte, error) {
	if err := in.check(v, required, field); err != nil {
		return nil, err
	}
	returned := cmp.Or(in.ReturnValues, "NONE")
	if v != verbUpdate && !slices.Contains([]string{"NONE", "ALL_OLD"}, returned) {
		return nil, wire.WithDetectedPrefix(wire.Invalid("ReturnValues can only be ALL_OLD or NONE"))
	}
	a, err := in.parse(v, false)
	if err != nil {
		return nil, wire.WithDetectedPrefix(err)
	}
	if err := s.executeSingleWrite(*in.TableName, a); err != nil {
		return nil, err
	}
	o := wire.NewObjectWriter()
	if attributes := a.returnedAttributes(returned); len(attributes) > 0 {
		o.Item("Attributes", attributes)
	}
	u := capacity.New(in.ReturnConsumedCapacity)
	u.AddWrite(&a.Change, 1)
	u.AppendSingleTable(o)
	m := newCollectionMetrics(in.ReturnItemCollectionMetrics)
	m.add(a)
	m.writeSingle(o)
	return o.Done(), nil
}

// returnedAttributes returns the attributes that the response contains. values is the request's
// ReturnValues.
func (a *action) returnedAttributes(values string) attr.Item {
	switch values {
	case "ALL_OLD":
		return a.Old
	case "ALL_NEW":
		return a.New
	case "UPDATED_OLD":
		return expr.Projection(a.updatedPaths()).ApplyOrNone(a.Old)
	case "UPDATED_NEW":
		return expr.Projection(a.updatedPaths()).ApplyOrNone(a.New)
	}
	return nil
}
