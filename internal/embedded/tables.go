package embedded

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"
)

// record is a record, or a part of one, in the engine's terms.
type record = map[string]*server.AttributeValue

// table is what the store has to know of a table; the engine does not tell it.
type table struct {
	// hash is the attribute that is the partition key, keys are the names of all key attributes.
	hash string
	keys []string
	// defined are the types of all attributes that are keys, of the table or of an index.
	defined map[string]types.ScalarAttributeType
	// expiry is the attribute of the time to live, "" where there is none.
	expiry string
	// stream is the setting of the stream, nil where it is off.
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

// describe adds to the engine's description of the table what it does not know.
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

// updateTable turns the stream on or off, too.
//
// Errors: ResourceNotFoundException, ValidationException where the stream is so already.
func (s *Store) updateTable(ctx context.Context, in *server.UpdateTableInput) (*server.UpdateTableOutput, error) {
	t, err := s.table(in.TableName)
	if err != nil {
		return nil, err
	}
	stream := in.StreamSpecification
	if stream != nil && aws.ToBool(stream.StreamEnabled) == (t.stream != nil) {
		return nil, invalid("Table already has, or has not, an enabled stream: %s", *in.TableName)
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

// table returns what is known of a table.
//
// Errors: ResourceNotFoundException.
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

// keyOf is the part of a record that is its key.
func (t *table) keyOf(r record) record {
	key := maps.Clone(r)
	maps.DeleteFunc(key, func(name string, _ *server.AttributeValue) bool { return !slices.Contains(t.keys, name) })
	return key
}

// leavesIndex says whether a record that becomes another loses a key of an index. It may still be
// in none or in another: that is as well.
func (t *table) leavesIndex(from, to record) bool {
	for name := range t.defined {
		if from[name] != nil && to[name] == nil {
			return true
		}
	}
	return false
}

// checkKeys refuses a record whose keys, of the table or an index, have another type than was
// defined, or are empty. The engine would notice some of it when half of its lists are written.
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
