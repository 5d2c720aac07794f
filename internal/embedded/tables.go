package embedded

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"
)

// record is a record, or a part of a record, as the engine's type.
type record = map[string]*server.AttributeValue

// table has the properties of a table that the engine does not return.
type table struct {
	// hash is the name of the partition key. keys are the names of all key attributes.
	hash string
	keys []string
	// defined has the types of all key attributes of the table and its indexes.
	defined map[string]types.ScalarAttributeType
	// expiry is the time-to-live attribute, or "".
	expiry string
	// stream is the setting of the stream, or nil if the stream is disabled.
	stream *types.StreamSpecification
}

func (s *Store) createTable(ctx context.Context, in *server.CreateTableInput) (*server.CreateTableOutput, error) {
	out, err := s.engine.CreateTable(ctx, in)
	if err != nil {
		return nil, err
	}
	t := &table{defined: map[string]types.ScalarAttributeType{}}
	for _, k := range in.KeySchema {
		t.keys = append(t.keys, aws.ToString(k.AttributeName))
		if k.KeyType == types.KeyTypeHash {
			t.hash = aws.ToString(k.AttributeName)
		}
	}
	t.define(in.AttributeDefinitions)
	if on := in.StreamSpecification; on != nil && aws.ToBool(on.StreamEnabled) {
		t.stream = on
	}
	s.tables[aws.ToString(in.TableName)] = t
	t.describe(out.TableDescription)
	return out, nil
}

// describe adds the stream to the engine's description of the table.
func (t *table) describe(description any) {
	if d, ok := description.(*types.TableDescription); ok {
		d.StreamSpecification = t.stream
	}
}

func (s *Store) describeTable(ctx context.Context, in *server.DescribeTableInput) (*server.DescribeTableOutput, error) {
	out, err := s.engine.DescribeTable(ctx, in)
	if err != nil {
		return nil, err
	}
	s.tables[aws.ToString(in.TableName)].describe(out.Table)
	return out, nil
}

// updateTable also enables or disables the stream. It returns ResourceNotFoundException, or
// ValidationException if the stream already has that state.
func (s *Store) updateTable(ctx context.Context, in *server.UpdateTableInput) (*server.UpdateTableOutput, error) {
	t, err := s.table(in.TableName)
	if err != nil {
		return nil, err
	}
	stream := in.StreamSpecification
	if stream != nil && aws.ToBool(stream.StreamEnabled) == (t.stream != nil) {
		return nil, invalid("the stream of table %s already has this state", *in.TableName)
	}
	out, err := s.engine.UpdateTable(ctx, in)
	if err != nil {
		return nil, err
	}
	t.define(in.AttributeDefinitions)
	if stream != nil {
		if t.stream = stream; !aws.ToBool(stream.StreamEnabled) {
			t.stream = nil
		}
	}
	t.describe(out.TableDescription)
	return out, nil
}

func (s *Store) deleteTable(ctx context.Context, in *server.DeleteTableInput) (*server.DeleteTableOutput, error) {
	out, err := s.engine.DeleteTable(ctx, in)
	if err == nil {
		delete(s.tables, aws.ToString(in.TableName))
	}
	return out, err
}

// table returns the properties of a table. It returns ResourceNotFoundException.
func (s *Store) table(name *string) (*table, error) {
	if t, ok := s.tables[aws.ToString(name)]; ok {
		return t, nil
	}
	return nil, &failure{Type: codeNoTable, Message: "Cannot do operations on a non-existent table"}
}

func (t *table) define(attributes []types.AttributeDefinition) {
	for _, d := range attributes {
		t.defined[aws.ToString(d.AttributeName)] = d.AttributeType
	}
}

// keyOf returns the key attributes of a record.
func (t *table) keyOf(r record) record {
	key := maps.Clone(r)
	maps.DeleteFunc(key, func(name string, _ *server.AttributeValue) bool { return !slices.Contains(t.keys, name) })
	return key
}

// leavesIndex reports whether a replaced record loses a key of an index. It may be true for a
// record that is in no index, which does no harm.
func (t *table) leavesIndex(from, to record) bool {
	for name := range t.defined {
		if from[name] != nil && to[name] == nil {
			return true
		}
	}
	return false
}

// checkKeys returns an error if a key attribute of the table or an index is empty or has the wrong
// type. The engine detects only some of these errors, after it has updated a part of its indexes.
func (t *table) checkKeys(r record) error {
	for name, want := range t.defined {
		v := r[name]
		if v == nil {
			continue
		}
		var ok bool
		switch want {
		case types.ScalarAttributeTypeS:
			ok = aws.ToString(v.S) != ""
		case types.ScalarAttributeTypeN:
			ok = v.N != nil
		case types.ScalarAttributeTypeB:
			ok = len(v.B) > 0
		}
		if !ok {
			return refused("One or more parameter values were invalid: Type mismatch for, or empty value of, the key attribute %s; expected %s", name, want)
		}
	}
	return nil
}
