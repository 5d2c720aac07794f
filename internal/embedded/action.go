package embedded

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
	"github.com/ordergraph/ordergraph/internal/embedded/expr"
)

// verb is what an action does to its item.
type verb int

const (
	put verb = iota
	update
	remove
	check
)

// actionInput has the parameters of a write of one item, alone or in a transaction.
type actionInput struct {
	TableName                           *string
	Item                                attr.Item // Item is for a put
	Key                                 attr.Item // Key is for all other writes
	UpdateExpression                    *string
	ConditionExpression                 *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           attr.Item
	ReturnValuesOnConditionCheckFailure string
}

// action is a write of one item: alone, in a batch or in a transaction.
type action struct {
	verb      verb
	item      attr.Item
	lookup    attr.Item
	update    *expr.Update
	condition *expr.Predicate
	returnOld bool // returnOld reports whether the error of a failed condition has the item
	expired   bool // expired reports whether the item's time to live has ended

	table *table
	key   []byte

	// old and new are the item before and after the action, nil if there is no item.
	old, new         attr.Item
	oldSize, newSize int
	oldJSON          []byte
	encoded          []byte // encoded is the item after a put or an update, as it is stored
}

// action validates the expressions and the values of a write. transacted reports whether the write
// belongs to a transaction.
func (in *actionInput) action(v verb, transacted bool) (*action, error) {
	p := &expr.Placeholders{Names: in.ExpressionAttributeNames, Values: in.ExpressionAttributeValues, Older: transacted}
	a := &action{verb: v, item: in.Item, lookup: in.Key, returnOld: in.ReturnValuesOnConditionCheckFailure == "ALL_OLD"}
	err := p.Check(in.UpdateExpression != nil || in.ConditionExpression != nil)
	if err == nil && in.UpdateExpression != nil {
		a.update, err = expr.ParseUpdate(*in.UpdateExpression, p)
	}
	if err == nil && in.ConditionExpression != nil {
		a.condition, err = expr.ParseCondition(expr.Condition, *in.ConditionExpression, p)
	}
	if err == nil {
		err = p.Unused()
	}
	if err == nil {
		values := in.Key
		if v == put {
			values = in.Item
		}
		_, err = values.Normalize()
	}
	if transacted {
		err = attr.Older(err)
	}
	return a, asInvalid(err)
}

// on finds the table and validates the key. Faults of the key that DynamoDB finds only when it
// executes the write have ofItem set.
func (a *action) on(t *table) error {
	a.table = t
	paths := a.condition.Paths()
	if a.update != nil {
		paths = slices.Concat(paths, a.update.Paths(), a.update.Reads())
	}
	if err := t.checkPaths(paths); err != nil {
		return asInvalid(err)
	}
	if a.verb == put {
		var fault *keyFault
		if a.key, fault = t.keyOf(a.item); fault != nil {
			if fault.early {
				return asInvalid(fault)
			}
			return invalidItem("%s", fault.Error())
		}
		if a.newSize = a.item.Size(); a.newSize > maxItem {
			return invalid("Item size has exceeded the maximum allowed size")
		}
		// Writes wait for each other later.
		a.encoded = encodeStored(a.newSize, a.item.AppendJSON)
		return nil
	}
	var err error
	if a.key, err = t.keyBytes(a.lookup); err != nil {
		if errors.Is(err, errKeySchema) {
			return invalidItem("%s", err.Error())
		}
		return asInvalid(err)
	}
	if a.update != nil {
		for _, path := range a.update.Paths() {
			for _, k := range t.key {
				if path[0].Name == k.Name {
					return invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", k.Name)
				}
			}
		}
	}
	return nil
}

// evaluate reads the item and computes the item after the action. It returns
// ConditionalCheckFailedException, or ValidationException if the action is invalid for the item.
func (a *action) evaluate(items *bbolt.Bucket) error {
	a.old, a.oldSize, a.oldJSON = nil, 0, nil
	if stored := items.Get(a.key); stored != nil {
		a.oldSize, a.oldJSON = splitStored(stored)
		var err error
		if a.old, err = attr.ParseItem(a.oldJSON); err != nil {
			return err
		}
	}
	if !a.condition.Matches(a.old) {
		f := &failure{kind: codeCondition, message: "The conditional request failed"}
		if a.returnOld {
			f.item = a.old
		}
		return f
	}
	switch a.verb {
	case put:
		a.new = a.item
	case remove:
		a.new, a.newSize = nil, 0
	case check:
		a.new, a.newSize = a.old, a.oldSize
	case update:
		return a.applyUpdate()
	}
	return nil
}

// applyUpdate computes the item after an update.
func (a *action) applyUpdate() error {
	base := a.old
	if base == nil {
		base = a.lookup
	}
	a.new = base
	if a.update != nil {
		var err error
		if a.new, err = a.update.Apply(base); err != nil {
			return invalidItem("%s", err.Error())
		}
	}
	const empty = "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty %s value."
	if fault := a.table.checkIndexKeys(a.new, empty); fault != nil {
		return &failure{kind: codeValidation, message: fault.Error(), ofItem: !fault.early}
	}
	for _, path := range a.updatedPaths() {
		if v, ok := a.new[path[0].Name]; ok {
			if _, err := v.Normalize(); err != nil {
				return invalidItem("%s", err.Error())
			}
		}
	}
	if a.newSize = a.new.Size(); a.newSize > maxItem {
		return invalidItem("Item size to update has exceeded the maximum allowed size")
	}
	return nil
}

// updatedPaths returns the paths that the action's update changes.
func (a *action) updatedPaths() []expr.Path {
	if a.update == nil {
		return nil
	}
	return a.update.Paths()
}

// fillPercent is how full bbolt leaves a page that it splits. Most items are added at the end of a
// range of keys, because their IDs begin with the time.
const fillPercent = 0.9

// write stores the item after the action, and everything that follows from it.
func (a *action) write(c *change, b *bbolt.Bucket) error {
	if a.verb == check || a.old == nil && a.new == nil {
		return nil
	}
	if a.verb == update {
		a.encoded = encodeStored(a.newSize, a.new.AppendJSON)
	}
	if a.old != nil && a.new != nil && bytes.Equal(a.encoded[sizePrefix:], a.oldJSON) {
		return nil // nothing changes
	}
	c.changed = true
	items := b.Bucket(bucketItems)
	items.FillPercent = fillPercent
	number := int64(0)
	switch {
	case a.new == nil:
		number = -1
		if err := items.Delete(a.key); err != nil {
			return err
		}
	default:
		if a.old == nil {
			number = 1
		}
		if err := items.Put(a.key, a.encoded); err != nil {
			return err
		}
	}
	if err := count(b, nil, number, int64(a.newSize-a.oldSize)); err != nil {
		return err
	}
	for _, x := range a.table.indexes {
		if err := a.index(b, x); err != nil {
			return err
		}
	}
	if a.table.Expiry != "" {
		if err := move(b.Bucket(bucketExpiry), expiryEntry(a.table, a.old, a.key), expiryEntry(a.table, a.new, a.key), a.key); err != nil {
			return err
		}
	}
	if a.table.streams() {
		return c.record(a)
	}
	return nil
}

// index stores the item after the action in an index.
func (a *action) index(b *bbolt.Bucket, x *index) error {
	from, to := x.entry(a.old, a.key), x.entry(a.new, a.key)
	if err := move(b.Bucket(x.bucket), from, to, a.key); err != nil {
		return err
	}
	var items, size int64
	if from != nil {
		items, size = items-1, size-x.size(a.old, a.oldSize)
	}
	if to != nil {
		items, size = items+1, size+x.size(a.new, a.newSize)
	}
	return count(b, x, items, size)
}

// move replaces an entry of an index by another. Both may be nil.
func move(b *bbolt.Bucket, from, to, value []byte) error {
	b.FillPercent = fillPercent
	if bytes.Equal(from, to) {
		return nil
	}
	if from != nil {
		if err := b.Delete(from); err != nil {
			return err
		}
	}
	if to != nil {
		return b.Put(to, value)
	}
	return nil
}

// execute executes one action that is a request of its own.
func (s *Store) executeOne(name string, a *action) error {
	return retryChanged(func() error {
		t, err := s.table(name)
		if err != nil {
			return err
		}
		if err := a.on(t); err != nil {
			return err
		}
		return s.commit(func(c *change) error {
			b, err := c.buckets(t)
			if err != nil {
				return err
			}
			if err := a.evaluate(b.Bucket(bucketItems)); err != nil {
				return err
			}
			if err := a.write(c, b); err != nil {
				return err
			}
			c.observe(a)
			return nil
		})
	})
}

// writeInput has the parameters of PutItem, UpdateItem and DeleteItem.
type writeInput struct {
	actionInput
	ReturnValues                string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string

	// Parameters of the API's first version.
	Expected, AttributeUpdates any
	ConditionalOperator        string
}

// check validates the parameters. required is the item or the key.
func (in *writeInput) check(v verb, required attr.Item, field string) error {
	found := &violations{}
	if required == nil {
		found.capacity(in.ReturnConsumedCapacity)
		found.table(in.TableName)
		found.returnValues(in.ReturnValues)
		found.metrics(in.ReturnItemCollectionMetrics)
		found.null(field)
		return found.error()
	}
	if !found.table(in.TableName) {
		return found.error()
	}
	values := &violations{}
	if values.returnValues(in.ReturnValues); v == update && values.found != nil {
		// DynamoDB's list has a value that does not exist.
		return invalid("1 validation error detected: Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]")
	}
	found.capacity(in.ReturnConsumedCapacity)
	found.metrics(in.ReturnItemCollectionMetrics)
	found.returnValues(in.ReturnValues)
	found.onFailure(in.ReturnValuesOnConditionCheckFailure)
	if err := found.error(); err != nil {
		return err
	}
	return detected(legacy([]parameter{{"AttributeUpdates", in.AttributeUpdates != nil}, {"Expected", in.Expected != nil}, {"ConditionalOperator", in.ConditionalOperator != ""}},
		[]parameter{{"UpdateExpression", in.UpdateExpression != nil}, {"ConditionExpression", in.ConditionExpression != nil}}))
}

// parameter is the name of a parameter, and whether the request has it.
type parameter struct {
	name string
	set  bool
}

// legacy returns an error if the request has parameters of the API's first version.
func legacy(old, expressions []parameter) error {
	names := func(from []parameter) string {
		var set []string
		for _, p := range from {
			if p.set {
				set = append(set, p.name)
			}
		}
		return strings.Join(set, ", ")
	}
	switch {
	case names(old) == "":
		return nil
	case names(expressions) != "":
		return invalid("Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {%s} Expression parameters: {%s}", names(old), names(expressions))
	}
	return invalid("The legacy parameters {%s} are not supported: use expressions", names(old))
}

func (s *Store) putItem(_ context.Context, in *writeInput) ([]byte, error) {
	return s.write(put, in, in.Item, "item")
}

func (s *Store) deleteItem(_ context.Context, in *writeInput) ([]byte, error) {
	return s.write(remove, in, in.Key, "key")
}

func (s *Store) updateItem(_ context.Context, in *writeInput) ([]byte, error) {
	return s.write(update, in, in.Key, "key")
}

// write executes PutItem, UpdateItem or DeleteItem.
func (s *Store) write(v verb, in *writeInput, required attr.Item, field string) ([]byte, error) {
	if err := in.check(v, required, field); err != nil {
		return nil, err
	}
	returned := cmp.Or(in.ReturnValues, "NONE")
	if v != update && !slices.Contains([]string{"NONE", "ALL_OLD"}, returned) {
		return nil, detected(invalid("ReturnValues can only be ALL_OLD or NONE"))
	}
	a, err := in.action(v, false)
	if err != nil {
		return nil, detected(err)
	}
	if err := s.executeOne(*in.TableName, a); err != nil {
		return nil, err
	}
	o := newObject()
	if attributes := a.returned(returned); len(attributes) > 0 {
		o.item("Attributes", attributes)
	}
	u := newUsage(in.ReturnConsumedCapacity)
	u.addWrite(a, 1)
	u.single(o)
	m := newMetrics(in.ReturnItemCollectionMetrics)
	m.add(a)
	m.single(o)
	return o.done(), nil
}

// returned returns the attributes for a value of ReturnValues.
func (a *action) returned(values string) attr.Item {
	switch values {
	case "ALL_OLD":
		return a.old
	case "ALL_NEW":
		return a.new
	case "UPDATED_OLD":
		return expr.Projection(a.updatedPaths()).Updated(a.old)
	case "UPDATED_NEW":
		return expr.Projection(a.updatedPaths()).Updated(a.new)
	}
	return nil
}
