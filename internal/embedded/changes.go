package embedded

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"
)

// item is a record in the SDK's terms.
type item = map[string]types.AttributeValue

// observer is somebody who is told what changes in a table.
type observer struct {
	table   string
	observe func(before, after []item)
}

// Observe calls observe for every change of a table's records until stop is called: with the
// records as they were before and as they are after, nil for none, those of a transaction at once.
// A write that changes nothing is none, as with DynamoDB's streams. Unlike those, it asks for no
// setting of the table.
//
// The calls come one after the other, in the order of the commits, before the writer gets its
// answer, while nobody else is served: so observe must be quick, and not make requests of its own.
// None comes when stop has returned.
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

// observed reports whether anybody observes a table.
func (s *Store) observed(table string) bool {
	for o := range s.observers {
		if o.table == table {
			return true
		}
	}
	return false
}

// tell tells what actions did.
func (s *Store) tell(actions []*action) {
	if len(s.observers) == 0 {
		return
	}
	before, after := map[string][]item{}, map[string][]record{}
	for _, a := range actions {
		if name := aws.ToString(a.TableName); a.verb != checked && s.observed(name) {
			before[name], after[name] = append(before[name], itemOf(a.old)), append(after[name], a.new)
		}
	}
	for name := range before {
		s.tellOf(name, before[name], after[name])
	}
}

// tellOf tells of changes in one table.
func (s *Store) tellOf(table string, before []item, after []record) {
	var was, is []item
	for i, old := range before {
		// An update of nothing is a record of no attributes to the engine.
		if now := itemOf(after[i]); !reflect.DeepEqual(old, now) {
			was, is = append(was, old), append(is, now)
		}
	}
	if len(was) == 0 {
		return
	}
	for o := range s.observers {
		if o.table == table {
			o.observe(was, is)
		}
	}
}

// watching looks at records of a table that the engine is about to write by itself, and returns
// what tells of the change then.
func (s *Store) watching(ctx context.Context, table *string, keys ...record) (told func() error) {
	name := aws.ToString(table)
	if !s.observed(name) {
		return func() error { return nil }
	}
	read := func() ([]record, error) {
		records := make([]record, len(keys))
		for i, key := range keys {
			got, err := s.engine.GetItem(ctx, &server.GetItemInput{TableName: table, Key: key})
			if err != nil {
				return nil, err
			}
			records[i] = got.Item
		}
		return records, nil
	}
	// Where the table or a key is wrong, the engine will say so.
	before, err := read()
	if err != nil {
		return func() error { return nil }
	}
	was := make([]item, len(before))
	for i, r := range before {
		was[i] = itemOf(r) // now, as the engine may change records in place
	}
	return func() error {
		after, err := read()
		if err != nil {
			return err
		}
		for i, r := range after {
			s.tellOf(name, was[i:i+1], []record{r})
		}
		return nil
	}
}

// batchWriteItem is the engine's, and tells of the changes.
func (s *Store) batchWriteItem(ctx context.Context, in *server.BatchWriteItemInput) (*server.BatchWriteItemOutput, error) {
	var tell []func() error
	for name, requests := range in.RequestItems {
		t, known := s.tables[name]
		if !known || !s.observed(name) {
			continue
		}
		var keys []record
		for _, r := range requests {
			switch {
			case r.PutRequest != nil:
				keys = append(keys, t.keyOf(r.PutRequest.Item))
			case r.DeleteRequest != nil:
				keys = append(keys, r.DeleteRequest.Key)
			}
		}
		tell = append(tell, s.watching(ctx, &name, keys...))
	}
	out, err := s.engine.BatchWriteItem(ctx, in)
	// Where it failed, a part may have been written.
	for _, told := range tell {
		if failed := told(); err == nil {
			err = failed
		}
	}
	return out, err
}

// itemOf is a record in the SDK's terms, nil for none.
func itemOf(r record) item {
	if len(r) == 0 {
		return nil
	}
	out := make(item, len(r))
	for name, v := range r {
		if !emptied(v) {
			out[name] = valueOf(v)
		}
	}
	return out
}

// valueOf is a value in the SDK's terms. It shares nothing with the engine's, which may change its
// own.
func valueOf(v *server.AttributeValue) types.AttributeValue {
	texts := func(from []*string) []string {
		to := make([]string, len(from))
		for i, s := range from {
			to[i] = aws.ToString(s)
		}
		return to
	}
	switch {
	case v.S != nil:
		return &types.AttributeValueMemberS{Value: *v.S}
	case v.N != nil:
		return &types.AttributeValueMemberN{Value: *v.N}
	case v.BOOL != nil:
		return &types.AttributeValueMemberBOOL{Value: *v.BOOL}
	case v.B != nil:
		return &types.AttributeValueMemberB{Value: append([]byte{}, v.B...)}
	case v.SS != nil:
		return &types.AttributeValueMemberSS{Value: texts(v.SS)}
	case v.NS != nil:
		return &types.AttributeValueMemberNS{Value: texts(v.NS)}
	case v.BS != nil:
		bytes := make([][]byte, len(v.BS))
		for i, b := range v.BS {
			bytes[i] = append([]byte{}, b...)
		}
		return &types.AttributeValueMemberBS{Value: bytes}
	case v.L != nil:
		values := make([]types.AttributeValue, len(v.L))
		for i, e := range v.L {
			values[i] = valueOf(e)
		}
		return &types.AttributeValueMemberL{Value: values}
	case v.M != nil:
		values := make(map[string]types.AttributeValue, len(v.M))
		for name, e := range v.M {
			values[name] = valueOf(e)
		}
		return &types.AttributeValueMemberM{Value: values}
	default:
		return &types.AttributeValueMemberNULL{Value: true}
	}
}
