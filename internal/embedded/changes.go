package embedded

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"
)

// item is a record as the SDK's type.
type item = map[string]types.AttributeValue

// observer is a callback for the changes of a table.
type observer struct {
	table   string
	observe func(before, after []item)
}

// Observe calls observe for every change of a table's records until stop is called. The arguments
// are the records before and after, nil if a record does not exist. All changes of a transaction
// are in one call. As in DynamoDB Streams, a write that changes nothing is not reported. Unlike
// DynamoDB Streams, Observe needs no setting of the table.
//
// The calls are sequential, in commit order, before the writer gets its response, and they block
// all requests. So observe must be fast and must not send requests. After stop has returned, there
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

// observed reports whether a table has observers.
func (s *Store) observed(table string) bool {
	for o := range s.observers {
		if o.table == table {
			return true
		}
	}
	return false
}

// tell reports the changes of actions to the observers.
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

// tellOf reports the changes in one table to its observers.
func (s *Store) tellOf(table string, before []item, after []record) {
	var was, is []item
	for i, old := range before {
		// The engine returns a record without attributes if an update did nothing.
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

// watching reads the records before the engine writes them itself. It returns a function that reads
// them again and reports the changes.
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
	// If the table or a key is invalid, the engine will return the error.
	before, err := read()
	if err != nil {
		return func() error { return nil }
	}
	was := make([]item, len(before))
	for i, r := range before {
		was[i] = itemOf(r) // copied now, because the engine may modify records in place
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

// batchWriteItem lets the engine execute the batch and reports the changes.
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
	// A failed batch may be partly written.
	for _, told := range tell {
		if failed := told(); err == nil {
			err = failed
		}
	}
	return out, err
}

// itemOf converts a record to the SDK's type. It returns nil for an empty record.
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

// valueOf converts a value to the SDK's type. It copies the value, because the engine may modify
// its own.
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
