package embedded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
	"github.com/ordergraph/ordergraph/internal/embedded/expr"
)

// writeRequest is one element of BatchWriteItem.
type writeRequest struct {
	PutRequest    *struct{ Item attr.Item }
	DeleteRequest *struct{ Key attr.Item }
}

// batchWriteInput has the parameters of BatchWriteItem.
type batchWriteInput struct {
	RequestItems                map[string][]writeRequest
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}

// check validates the parameters.
func (in *batchWriteInput) check() error {
	v := &violations{}
	v.capacity(in.ReturnConsumedCapacity)
	v.metrics(in.ReturnItemCollectionMetrics)
	total := 0
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		n := len(in.RequestItems[name])
		total += n
		if n < 1 || n > maxBatchWrites {
			v.add(fmt.Sprintf("'{%s=%s}'", name, describeList(n, "WriteRequest")), "requestItems",
				"Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]")
		}
	}
	if err := v.error(); err != nil {
		return err
	}
	if len(in.RequestItems) == 0 {
		return noRequestItems()
	}
	if total > maxBatchWrites {
		return invalid("Too many items requested for the BatchWriteItem call")
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

// check validates the values of one write.
func (r writeRequest) check() (err error) {
	switch {
	case (r.PutRequest == nil) == (r.DeleteRequest == nil):
		return invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	case r.DeleteRequest != nil:
		_, err = r.DeleteRequest.Key.Normalize()
	default:
		_, err = r.PutRequest.Item.Normalize()
	}
	return asInvalid(attr.Older(err))
}

// noRequestItems returns the error for a batch without tables.
func noRequestItems() error {
	return invalid("1 validation error detected: Value at 'RequestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
}

func (s *Store) batchWriteItem(_ context.Context, in *batchWriteInput) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var actions []*action
	err := retryChanged(func() (err error) {
		if actions, err = in.actions(s); err != nil {
			return err
		}
		return s.commit(func(c *change) error {
			buckets := make([]*bbolt.Bucket, len(actions))
			for i, a := range actions {
				if buckets[i], err = c.buckets(a.table); err != nil {
					return err
				}
				if err := a.evaluate(buckets[i].Bucket(bucketItems)); err != nil {
					return err
				}
			}
			for i, a := range actions {
				if err := a.write(c, buckets[i]); err != nil {
					return err
				}
				c.observe(a)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	o := newObject()
	o.nested("UnprocessedItems", func() {})
	u := newUsage(in.ReturnConsumedCapacity)
	m := newMetrics(in.ReturnItemCollectionMetrics)
	for _, a := range actions {
		u.addWrite(a, 1)
		m.add(a)
	}
	u.list(o)
	m.list(o)
	return o.done(), nil
}

// actions validates the writes of a batch.
func (in *batchWriteInput) actions(s *Store) (actions []*action, _ error) {
	seen := map[string]bool{}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		t, err := s.table(name)
		if err != nil {
			return nil, err
		}
		for _, r := range in.RequestItems[name] {
			a := &action{verb: put}
			if r.DeleteRequest != nil {
				a.verb, a.lookup = remove, r.DeleteRequest.Key
			} else {
				a.item = r.PutRequest.Item
				for _, k := range t.key {
					if v, ok := a.item[k.Name]; !ok || v.Kind != k.Kind {
						return nil, asInvalid(errKeySchema)
					}
				}
			}
			if err := a.on(t); err != nil {
				return nil, err
			}
			id := string(t.bucket) + "/" + string(a.key)
			if seen[id] {
				return nil, invalid("Provided list of item keys contains duplicates")
			}
			seen[id] = true
			size += a.newSize
			actions = append(actions, a)
		}
	}
	if size > maxBatchBytes {
		return nil, invalid("The total size of the items of a batch exceeds %d bytes", maxBatchBytes)
	}
	return actions, nil
}

// keysAndAttributes are the keys of one table in BatchGetItem.
type keysAndAttributes struct {
	Keys                     []attr.Item
	ProjectionExpression     *string           `json:",omitzero"`
	ExpressionAttributeNames map[string]string `json:",omitzero"`
	ConsistentRead           bool              `json:",omitzero"`
	AttributesToGet          any               `json:",omitzero"`
}

// batchGetInput has the parameters of BatchGetItem.
type batchGetInput struct {
	RequestItems           map[string]*keysAndAttributes
	ReturnConsumedCapacity string
}

// check validates the parameters.
func (in *batchGetInput) check() error {
	v := &violations{}
	for name := range in.RequestItems {
		if !tableNamePattern.MatchString(name) && !strings.HasPrefix(name, "arn:") {
			echo, err := json.Marshal(in.RequestItems, json.Deterministic(true))
			if err != nil {
				return err
			}
			v.add(quote(string(echo)), "requestItems", "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]")
			break
		}
	}
	v.capacity(in.ReturnConsumedCapacity)
	total := 0
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		n := len(in.RequestItems[name].Keys)
		total += n
		if n > maxBatchGets {
			return invalid("1 validation error detected: Value at 'RequestItems.%s.member.Keys' failed to satisfy constraint: Member must have length less than or equal to %d", name, maxBatchGets)
		}
		if n == 0 {
			return invalid("1 validation error detected: Value at 'RequestItems.%s.member.Keys' failed to satisfy constraint: Member must have length greater than or equal to 1", name)
		}
	}
	if err := v.error(); err != nil {
		return err
	}
	if len(in.RequestItems) == 0 {
		return noRequestItems()
	}
	if total > maxBatchGets {
		return invalid("Too many items requested for the BatchGetItem call")
	}
	for _, k := range in.RequestItems {
		if err := legacy([]parameter{{"AttributesToGet", k.AttributesToGet != nil}}, []parameter{{"ProjectionExpression", k.ProjectionExpression != nil}}); err != nil {
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
	gets := map[string][]*get{}
	for _, name := range names {
		k := in.RequestItems[name]
		p := &expr.Placeholders{Names: k.ExpressionAttributeNames}
		template, err := newGet(k.ProjectionExpression, p)
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
			if err := g.on(t, key); err != nil {
				return nil, asInvalid(err)
			}
			if seen[string(g.key)] {
				return nil, invalid("Provided list of item keys contains duplicates")
			}
			seen[string(g.key)] = true
			gets[name] = append(gets[name], &g)
		}
	}
	o := newObject()
	u := newUsage(in.ReturnConsumedCapacity)
	unprocessed := map[string][]attr.Item{}
	err := s.db.View(func(tx *bbolt.Tx) error {
		size := 0
		o.name("Responses")
		o.open()
		for _, name := range names {
			found := [][]byte{}
			for i, g := range gets[name] {
				if err := g.read(tx); err != nil {
					return err
				}
				if size += g.size; size > maxBatchBytes {
					unprocessed[name] = append(unprocessed[name], in.RequestItems[name].Keys[i])
					continue
				}
				u.add(g.table, readUnits(g.size, in.RequestItems[name].ConsistentRead), nil)
				if g.json != nil {
					found = append(found, g.json)
				}
			}
			o.list(name, len(found), func(i int) { o.element(found[i]) })
		}
		o.close()
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.nested("UnprocessedKeys", func() {
		for name, keys := range unprocessed {
			o.nested(name, func() {
				o.list("Keys", len(keys), func(i int) { o.element(keys[i].AppendJSON(nil)) })
				if p := in.RequestItems[name].ProjectionExpression; p != nil {
					o.text("ProjectionExpression", *p)
					if n := in.RequestItems[name].ExpressionAttributeNames; n != nil {
						o.value("ExpressionAttributeNames", n)
					}
				}
				o.bool("ConsistentRead", in.RequestItems[name].ConsistentRead)
			})
		}
	})
	u.list(o)
	return o.done(), nil
}
