package embedded

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/capacity"
	"github.com/ordergraph/ordergraph/embedded/internal/expr"
	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/read"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/throttle"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// writeRequest is one element of BatchWriteItem.
type writeRequest struct {
	PutRequest    *struct{ Item attr.Item }
	DeleteRequest *struct{ Key attr.Item }
}

// batchWriteInput contains the parameters of BatchWriteItem.
type batchWriteInput struct {
	RequestItems                map[string][]writeRequest
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}

// check validates the parameters.
func (in *batchWriteInput) check() error {
	v := &wire.Violations{}
	v.CheckReturnCapacity(in.ReturnConsumedCapacity)
	v.CheckReturnMetrics(in.ReturnItemCollectionMetrics)
	total := 0
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		if !isTableName(name) {
			v.Add("'{"+name+"=["+formatWrites(in.RequestItems[name])+"]}'", "requestItems", tableNameConstraint)
		}
		n := len(in.RequestItems[name])
		total += n
		if n < 1 || n > maxBatchWrites {
			v.Add(fmt.Sprintf("'{%s=%s}'", name, formatList(n, "WriteRequest")), "requestItems",
				"Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]")
		}
	}
	if err := v.Err(); err != nil {
		return err
	}
	if len(in.RequestItems) == 0 {
		return noRequestItemsError()
	}
	if total > maxBatchWrites {
		return wire.Invalid("Too many items requested for the BatchWriteItem call")
	}
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		for _, r := range in.RequestItems[name] {
			if err := r.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// formatWrites formats the writes to one table for an error message, like DynamoDB does.
func formatWrites(all []writeRequest) string {
	var texts []string
	for _, r := range all {
		switch {
		case r.PutRequest != nil:
			texts = append(texts, "WriteRequest(putRequest=PutRequest(item="+formatItem(r.PutRequest.Item)+"))")
		case r.DeleteRequest != nil:
			texts = append(texts, "WriteRequest(deleteRequest=DeleteRequest(key="+formatItem(r.DeleteRequest.Key)+"))")
		default:
			texts = append(texts, "WriteRequest()")
		}
	}
	return strings.Join(texts, ", ")
}

// formatItem formats an item for an error message.
func formatItem(item attr.Item) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		texts = append(texts, name+"="+string(item[name].AppendJSON(nil)))
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// check validates one write of a batch.
func (r writeRequest) check() (err error) {
	switch {
	case (r.PutRequest == nil) == (r.DeleteRequest == nil):
		return wire.Invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	case r.DeleteRequest != nil:
		_, err = r.DeleteRequest.Key.Normalize()
	default:
		_, err = r.PutRequest.Item.Normalize()
	}
	return wire.AsInvalid(attr.OlderMessage(err))
}

// noRequestItemsError returns the error for a batch request that names no table.
func noRequestItemsError() error {
	return wire.Invalid("1 validation error detected: Value at 'RequestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
}

func (s *Store) batchWriteItem(_ context.Context, in *batchWriteInput) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var actions, throttled []*action
	err := retryChanged(func() (err error) {
		if actions, err = in.parseActions(s); err != nil {
			return err
		}
		return s.commit(func(c *commitState) error {
			buckets, failure := make([]*file.Bucket, len(actions)), (*wire.Failure)(nil)
			throttled = nil
			for i, a := range actions {
				if buckets[i], err = c.tableBucket(a.Table); err != nil {
					return err
				}
				if err := a.evaluate(storage.ItemBucket(buckets[i])); err != nil {
					return err
				}
			}
			for i, a := range actions {
				if f := c.admit(a, 1); f != nil {
					throttled, failure = append(throttled, a), f
					continue
				}
				if err := a.write(c, buckets[i]); err != nil {
					return err
				}
				c.notifyObservers(a)
			}
			if len(throttled) == len(actions) {
				return failure
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	o := wire.NewObjectWriter()
	o.Nested("UnprocessedItems", func() { writeUnprocessed(o, throttled) })
	u := capacity.New(in.ReturnConsumedCapacity)
	m := newCollectionMetrics(in.ReturnItemCollectionMetrics)
	for _, a := range actions {
		if !slices.Contains(throttled, a) {
			u.AddWrite(&a.Change, 1)
			m.add(a)
		}
	}
	u.AppendTableList(o)
	m.writeList(o)
	return o.Done(), nil
}

// writeUnprocessed adds the throttled writes to the response, sorted by table like the request.
func writeUnprocessed(o *wire.ObjectWriter, throttled []*action) {
	for len(throttled) > 0 {
		t, n := throttled[0].Table, 1
		for n < len(throttled) && throttled[n].Table == t {
			n++
		}
		o.List(t.TableName, n, func(i int) {
			o.Open()
			if a := throttled[i]; a.verb == verbPut {
				o.Nested("PutRequest", func() { o.Item("Item", a.item) })
			} else {
				o.Nested("DeleteRequest", func() { o.Item("Key", a.lookup) })
			}
			o.Close()
		})
		throttled = throttled[n:]
	}
}

// parseActions validates the writes of a batch and returns them.
func (in *batchWriteInput) parseActions(s *Store) (actions []*action, _ error) {
	seen := map[string]bool{}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		t, err := s.table(name)
		if err != nil {
			return nil, err
		}
		for _, r := range in.RequestItems[name] {
			a := &action{verb: verbPut}
			if r.DeleteRequest != nil {
				a.verb, a.lookup = verbDelete, r.DeleteRequest.Key
			} else {
				a.item = r.PutRequest.Item
				for _, k := range t.Key {
					if v, ok := a.item[k.Name]; !ok || v.Kind != k.Kind {
						return nil, wire.AsInvalid(schema.ErrKeySchema)
					}
				}
			}
			if err := a.setTable(t); err != nil {
				return nil, err
			}
			id := string(t.BucketName) + "/" + string(a.Key)
			if seen[id] {
				return nil, wire.Invalid("Provided list of item keys contains duplicates")
			}
			seen[id] = true
			size += a.NewSize
			actions = append(actions, a)
		}
	}
	if size > maxBatchBytes {
		return nil, wire.Invalid("The total size of the items of a batch exceeds %d bytes", maxBatchBytes)
	}
	return actions, nil
}

// keysAndAttributes contains the keys that BatchGetItem reads from one table, and the options of
// these reads.
type keysAndAttributes struct {
	Keys                     []attr.Item
	ProjectionExpression     *string           `json:",omitzero"`
	ExpressionAttributeNames map[string]string `json:",omitzero"`
	ConsistentRead           bool              `json:",omitzero"`
	AttributesToGet          any               `json:",omitzero"`
}

var tableNamePattern = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// isTableName reports whether a key of RequestItems is a valid table name or an ARN.
func isTableName(name string) bool {
	return tableNamePattern.MatchString(name) || strings.HasPrefix(name, "arn:")
}

// tableNameConstraint is the part of DynamoDB's error message about an invalid table name in
// RequestItems.
const tableNameConstraint = "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]"

// batchGetInput contains the parameters of BatchGetItem.
type batchGetInput struct {
	RequestItems           map[string]*keysAndAttributes
	ReturnConsumedCapacity string
}

// check validates the parameters.
func (in *batchGetInput) check() error {
	v := &wire.Violations{}
	for name := range in.RequestItems {
		if !isTableName(name) {
			echo, err := json.Marshal(in.RequestItems, json.Deterministic(true))
			if err != nil {
				return err
			}
			v.Add(wire.Quote(string(echo)), "requestItems", tableNameConstraint)
			break
		}
	}
	v.CheckReturnCapacity(in.ReturnConsumedCapacity)
	total := 0
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		n := len(in.RequestItems[name].Keys)
		total += n
		if n > maxBatchGets {
			return wire.Invalid("1 validation error detected: Value at 'RequestItems.%s.member.Keys' failed to satisfy constraint: Member must have length less than or equal to %d", name, maxBatchGets)
		}
		if n == 0 {
			return wire.Invalid("1 validation error detected: Value at 'RequestItems.%s.member.Keys' failed to satisfy constraint: Member must have length greater than or equal to 1", name)
		}
	}
	if err := v.Err(); err != nil {
		return err
	}
	if len(in.RequestItems) == 0 {
		return noRequestItemsError()
	}
	if total > maxBatchGets {
		return wire.Invalid("Too many items requested for the BatchGetItem call")
	}
	for _, k := range in.RequestItems {
		if err := wire.CheckLegacy([]wire.Parameter{{Name: "AttributesToGet", Set: k.AttributesToGet != nil}}, []wire.Parameter{{Name: "ProjectionExpression", Set: k.ProjectionExpression != nil}}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) batchGetItem(_ context.Context, in *batchGetInput) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(in.RequestItems))
	gets := map[string][]*read.Get{}
	for _, name := range names {
		k := in.RequestItems[name]
		p := &expr.Placeholders{Names: k.ExpressionAttributeNames}
		template, err := read.NewGet(k.ProjectionExpression, p)
		if err != nil {
			return nil, err
		}
		t, err := s.table(name)
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, key := range k.Keys {
			g := *template
			if err := g.SetTable(t, key); err != nil {
				return nil, wire.AsInvalid(err)
			}
			if seen[string(g.Key)] {
				return nil, wire.Invalid("Provided list of item keys contains duplicates")
			}
			seen[string(g.Key)] = true
			gets[name] = append(gets[name], &g)
		}
	}
	o := wire.NewObjectWriter()
	u := capacity.New(in.ReturnConsumedCapacity)
	unprocessed := map[string][]attr.Item{}
	consistent := slices.ContainsFunc(names, func(name string) bool { return in.RequestItems[name].ConsistentRead })
	err := s.view(consistent)(func(tx *file.Tx) error {
		size, processed, failure := 0, 0, (*wire.Failure)(nil)
		o.BeginMember("Responses")
		o.Open()
		for _, name := range names {
			found := [][]byte{}
			for i, g := range gets[name] {
				if err := g.Read(tx); err != nil {
					return err
				}
				load := throttle.Load{Table: g.Table, Key: g.Key, Units: capacity.ReadUnits(g.Size, in.RequestItems[name].ConsistentRead)}
				f := s.limiter.Check(load)
				if f != nil || size+g.Size > maxBatchBytes {
					unprocessed[name], failure = append(unprocessed[name], in.RequestItems[name].Keys[i]), f
					continue
				}
				size, processed = size+g.Size, processed+1
				s.limiter.Charge(load)
				u.Add(g.Table, load.Units, nil)
				if g.JSON != nil {
					found = append(found, g.JSON)
				}
			}
			o.List(name, len(found), func(i int) { o.Element(found[i]) })
		}
		o.Close()
		if processed == 0 { // all keys are throttled
			return failure
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.Nested("UnprocessedKeys", func() {
		for name, keys := range unprocessed {
			o.Nested(name, func() {
				o.List("Keys", len(keys), func(i int) { o.Element(keys[i].AppendJSON(nil)) })
				if p := in.RequestItems[name].ProjectionExpression; p != nil {
					o.Text("ProjectionExpression", *p)
					if n := in.RequestItems[name].ExpressionAttributeNames; n != nil {
						o.Value("ExpressionAttributeNames", n)
					}
				}
				o.Bool("ConsistentRead", in.RequestItems[name].ConsistentRead)
			})
		}
	})
	u.AppendTableList(o)
	return o.Done(), nil
}
