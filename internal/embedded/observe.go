package embedded

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
)

// item is an item as the SDK's type.
type item = map[string]types.AttributeValue

// observer is a callback for the changes of a table.
type observer struct {
	table   string
	observe func(before, after []item)
}

// Observe calls observe for every change of a table's items until stop is called. The arguments are
// the items before and after, nil if an item does not exist. All changes of a transaction are in
// one call. As in DynamoDB Streams, a write that changes nothing is not reported. Unlike DynamoDB
// Streams, Observe needs no setting of the table.
//
// The calls are sequential, in commit order, before the writer gets its response, and they delay
// all writes. So observe must be fast and must not send requests. After stop has returned, there
// are no more calls.
func (s *Store) Observe(table string, observe func(before, after []map[string]types.AttributeValue)) (stop func()) {
	o := &observer{table: table, observe: observe}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observers[o] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.observers, o)
	}
}

// observe reports the changes of actions to the observers after the commit.
func (c *change) observe(actions ...*action) {
	// An observer may be added until the changes are visible, so the check is after the commit.
	c.after = append(c.after, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for o := range c.observers {
			var before, after []item
			for _, a := range actions {
				if a.Table.TableName == o.table && a.verb != check && !(attr.Value{Kind: attr.Map, Map: a.Old}).Equal(attr.Value{Kind: attr.Map, Map: a.New}) {
					before, after = append(before, itemOf(a.Old)), append(after, itemOf(a.New))
				}
			}
			if len(before) > 0 {
				o.observe(before, after)
			}
		}
	})
}

// itemOf converts an item to the SDK's type. It returns nil for nil.
func itemOf(from attr.Item) item {
	if from == nil {
		return nil
	}
	to := make(item, len(from))
	for name, v := range from {
		to[name] = valueOf(v)
	}
	return to
}

// valueOf converts a value to the SDK's type.
func valueOf(v attr.Value) types.AttributeValue {
	switch v.Kind {
	case attr.String:
		return &types.AttributeValueMemberS{Value: v.Text}
	case attr.Number:
		return &types.AttributeValueMemberN{Value: v.Text}
	case attr.Binary:
		return &types.AttributeValueMemberB{Value: []byte(v.Text)}
	case attr.Bool:
		return &types.AttributeValueMemberBOOL{Value: v.Bool}
	case attr.Map:
		return &types.AttributeValueMemberM{Value: itemOf(v.Map)}
	case attr.List:
		values := make([]types.AttributeValue, len(v.List))
		for i, e := range v.List {
			values[i] = valueOf(e)
		}
		return &types.AttributeValueMemberL{Value: values}
	case attr.StringSet:
		return &types.AttributeValueMemberSS{Value: slices.Clone(v.Set)}
	case attr.NumberSet:
		return &types.AttributeValueMemberNS{Value: slices.Clone(v.Set)}
	case attr.BinarySet:
		values := make([][]byte, len(v.Set))
		for i, e := range v.Set {
			values[i] = []byte(e)
		}
		return &types.AttributeValueMemberBS{Value: values}
	default:
		return &types.AttributeValueMemberNULL{Value: true}
	}
}
