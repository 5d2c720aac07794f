package embedded

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
)

// sdkItem is an item in the form that the AWS SDK uses.
type sdkItem = map[string]types.AttributeValue

// observer is a table name, and the function that receives the changes of this table.
type observer struct {
	table   string
	observe func(before, after []sdkItem)
}

// Observe calls the function observe after each write or transaction that changes items of the
// table. The calls have the order of the writes. The parameters before and after contain each
// changed item before and after the write. An element is nil if the item does not exist at that
// time. Writes wait for observe, so observe must not send requests to the store.
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

// notifyObservers notifies the observers about the actions after the commit has succeeded.
func (c *commitState) notifyObservers(actions ...*action) {
	// Read c.observers after the commit, because Observe may add an observer during the commit.
	c.after = append(c.after, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for o := range c.observers {
			var before, after []sdkItem
			for _, a := range actions {
				if a.Table.TableName == o.table && a.verb != verbCheck && !(attr.Value{Kind: attr.Map, Map: a.Old}).Equal(attr.Value{Kind: attr.Map, Map: a.New}) {
					before, after = append(before, toSDKItem(a.Old)), append(after, toSDKItem(a.New))
				}
			}
			if len(before) > 0 {
				o.observe(before, after)
			}
		}
	})
}

// toSDKItem converts an item to the SDK's type. If from is nil, the result is nil.
func toSDKItem(from attr.Item) sdkItem {
	if from == nil {
		return nil
	}
	to := make(sdkItem, len(from))
	for name, v := range from {
		to[name] = toSDKValue(v)
	}
	return to
}

// toSDKValue converts a value to the SDK's type.
func toSDKValue(v attr.Value) types.AttributeValue {
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
		return &types.AttributeValueMemberM{Value: toSDKItem(v.Map)}
	case attr.List:
		values := make([]types.AttributeValue, len(v.List))
		for i, e := range v.List {
			values[i] = toSDKValue(e)
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
