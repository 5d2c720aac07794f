package bulk

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyjson "github.com/aws/smithy-go/encoding/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// In an exported file, each line contains one record in the JSON format of DynamoDB's export to S3,
// {"Item":{"pk":{"S":"..."},...}}.

// The SDK's package attributevalue is not used for this format, because it writes maps in random
// order and accepts duplicate names.

// itemMemberName is the only name in the JSON object of a line. The value with this name is the
// record.
const itemMemberName = "Item"

// maxNameBytes is DynamoDB's maximum length of an attribute name, in bytes.
const maxNameBytes = 1<<16 - 1

// toJSON returns the line for a record. It sorts attribute names and the elements of sets. So equal
// records have equal lines, unless they write the same number differently, such as 5 and 5.0.
//
// Errors: model.ErrCorrupt for a value of an unknown type.
func toJSON(r model.Record) ([]byte, error) {
	enc := smithyjson.NewEncoder()
	line := enc.Object()
	if err := writeJSONAttributes(line.Key(itemMemberName), r); err != nil {
		return nil, fmt.Errorf("%w: record %s: %w", model.ErrCorrupt, r.KeyText(), err)
	}
	line.Close()
	return append(enc.Bytes(), '\n'), nil
}

func writeJSONAttributes(to smithyjson.Value, attributes map[string]types.AttributeValue) error {
	object := to.Object()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if err := writeJSONValue(object.Key(name), attributes[name]); err != nil {
			return fmt.Errorf("attribute %q: %w", name, err)
		}
	}
	object.Close()
	return nil
}

func writeJSONValue(to smithyjson.Value, v types.AttributeValue) error {
	object := to.Object()
	defer object.Close()
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		object.Key("S").String(v.Value)
	case *types.AttributeValueMemberN:
		object.Key("N").String(v.Value)
	case *types.AttributeValueMemberB:
		object.Key("B").Base64EncodeBytes(v.Value)
	case *types.AttributeValueMemberBOOL:
		object.Key("BOOL").Boolean(v.Value)
	case *types.AttributeValueMemberNULL:
		object.Key("NULL").Boolean(v.Value)
	case *types.AttributeValueMemberSS:
		writeJSONStrings(object.Key("SS"), slices.Sorted(slices.Values(v.Value)))
	case *types.AttributeValueMemberNS:
		writeJSONStrings(object.Key("NS"), slices.Sorted(slices.Values(v.Value)))
	case *types.AttributeValueMemberBS:
		array := object.Key("BS").Array()
		for _, b := range slices.SortedFunc(slices.Values(v.Value), bytes.Compare) {
			array.Value().Base64EncodeBytes(b)
		}
		array.Close()
	case *types.AttributeValueMemberL:
		array := object.Key("L").Array()
		for _, e := range v.Value {
			if err := writeJSONValue(array.Value(), e); err != nil {
				return err
			}
		}
		array.Close()
	case *types.AttributeValueMemberM:
		return writeJSONAttributes(object.Key("M"), v.Value)
	default:
		return fmt.Errorf("the value has the unknown type %T", v)
	}
	return nil
}

func writeJSONStrings(to smithyjson.Value, values []string) {
	array := to.Array()
	for _, s := range values {
		array.Value().String(s)
	}
	array.Close()
}

// fromJSON returns the record in a line. It rejects duplicate names in JSON objects, and attribute
// values that are not valid in DynamoDB.
//
// Its errors describe the problem of the line.
func fromJSON(line []byte) (model.Record, error) {
	in := jsonReader{jsontext.NewDecoder(bytes.NewBuffer(line))}
	r, err := in.record()
	if err == nil {
		err = in.expectEnd()
	}
	if err == nil {
		return r, nil
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the line is not JSON, because it is blank")
	} else if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		err = fmt.Errorf("the line is not JSON: %w", syntax)
	}
	return nil, err
}

// jsonReader reads a record, one JSON token at a time. Its decoder rejects duplicate names, invalid
// UTF-8 and unpaired surrogates.
type jsonReader struct{ *jsontext.Decoder }

func (j jsonReader) record() (r model.Record, err error) {
	err = j.object(func(name string) (err error) {
		if name != itemMemberName {
			return fmt.Errorf("the line is not a record: unexpected name %q, expected {%q: {...}}", name, itemMemberName)
		}
		r, err = j.attributes(0)
		return err
	})
	if err == nil && r == nil {
		err = fmt.Errorf("the line is not a record: expected {%q: {...}}", itemMemberName)
	}
	return r, err
}

// expectEnd verifies that the line contains nothing after the record.
func (j jsonReader) expectEnd() error {
	_, err := j.ReadToken()
	switch {
	case err == nil:
		return errors.New("the line is not JSON, because a second value follows the record")
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// object reads a JSON object. For each name, it calls member, which must read the value.
func (j jsonReader) object(member func(name string) error) error {
	if _, err := j.token("an object", jsontext.KindBeginObject); err != nil {
		return err
	}
	for j.PeekKind() != jsontext.KindEndObject {
		name, err := j.ReadToken()
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("the object contains the duplicate name %q", syntax.JSONPointer.LastToken())
		}
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := j.ReadToken()
	return err
}

// array reads a JSON array. For each element, it calls element, which must read the element's
// value.
func (j jsonReader) array(element func() error) error {
	if _, err := j.token("an array", jsontext.KindBeginArray); err != nil {
		return err
	}
	for j.PeekKind() != jsontext.KindEndArray {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := j.ReadToken()
	return err
}

// token reads a JSON token and verifies that it has one of the given kinds. The parameter what is a
// description of these kinds for the error message.
func (j jsonReader) token(what string, kinds ...jsontext.Kind) (jsontext.Token, error) {
	token, err := j.ReadToken()
	if err == nil && !slices.Contains(kinds, token.Kind()) {
		err = fmt.Errorf("the value is %s, expected %s", describeKind(token.Kind()), what)
	}
	return token, err
}

// describeKind describes a JSON token by its kind, for error messages. The messages do not contain
// the token's value, because it may be long or secret.
func describeKind(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	}
	return kind.String() // null, true or false
}

func (j jsonReader) text() (string, error) {
	token, err := j.token("a string", jsontext.KindString)
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

func (j jsonReader) boolean(what string) (bool, error) {
	token, err := j.token(what, jsontext.KindTrue, jsontext.KindFalse)
	return err == nil && token.Bool(), err
}

func (j jsonReader) attributes(depth int) (map[string]types.AttributeValue, error) {
	attributes := map[string]types.AttributeValue{}
	err := j.object(func(name string) error {
		switch {
		case depth == 0 && name == "":
			return errors.New("an attribute has an empty name")
		case depth == 0 && len(name) > maxNameBytes:
			return fmt.Errorf("the name of an attribute has %d bytes, but the maximum is %d", len(name), maxNameBytes)
		}
		v, err := j.value(depth)
		if err != nil {
			return fmt.Errorf("attribute %q: %w", name, err)
		}
		attributes[name] = v
		return nil
	})
	return attributes, err
}

// value reads an attribute value. It is an object whose only name is the type, such as
// {"S":"text"}.
func (j jsonReader) value(depth int) (v types.AttributeValue, err error) {
	err = j.object(func(kind string) (err error) {
		if v != nil {
			return fmt.Errorf("the value has two types, but only one is allowed; the second type is %q", kind)
		}
		v, err = j.valueOfKind(kind, depth)
		return err
	})
	if err == nil && v == nil {
		err = errors.New("the value has no type")
	}
	return v, err
}

func (j jsonReader) valueOfKind(kind string, depth int) (types.AttributeValue, error) {
	if depth == model.MaxDepth && (kind == "L" || kind == "M") {
		return nil, fmt.Errorf("the value is nested deeper than the maximum of %d levels", model.MaxDepth)
	}
	switch kind {
	case "S":
		s, err := j.text()
		return &types.AttributeValueMemberS{Value: s}, err
	case "N":
		n, err := j.number()
		return &types.AttributeValueMemberN{Value: n}, err
	case "B":
		b, err := j.bytes()
		return &types.AttributeValueMemberB{Value: b}, err
	case "BOOL":
		b, err := j.boolean("true or false")
		return &types.AttributeValueMemberBOOL{Value: b}, err
	case "NULL":
		b, err := j.boolean("true")
		if err == nil && !b {
			err = errors.New("the value is false, expected true")
		}
		return &types.AttributeValueMemberNULL{Value: b}, err
	case "SS":
		set, err := readSet(j, j.text, func(s string) string { return s })
		return &types.AttributeValueMemberSS{Value: set}, err
	case "NS":
		set, err := readSet(j, j.number, model.ParseValidNumber)
		return &types.AttributeValueMemberNS{Value: set}, err
	case "BS":
		set, err := readSet(j, j.bytes, func(b []byte) string { return string(b) })
		return &types.AttributeValueMemberBS{Value: set}, err
	case "L":
		l := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
		err := j.array(func() error {
			v, err := j.value(depth + 1)
			l.Value = append(l.Value, v)
			return err
		})
		return l, err
	case "M":
		m, err := j.attributes(depth + 1)
		return &types.AttributeValueMemberM{Value: m}, err
	}
	return nil, fmt.Errorf("the value has the type %q, but DynamoDB has no such type", kind)
}

func (j jsonReader) number() (string, error) {
	n, err := j.text()
	if err != nil {
		return "", err
	}
	if _, ok := model.ParseNumber(n); !ok {
		return "", fmt.Errorf("%q is not a number that DynamoDB accepts", n)
	}
	return n, nil
}

func (j jsonReader) bytes() ([]byte, error) {
	text, err := j.text()
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the value is not base64: %w", err)
	}
	return b, nil
}

// readSet reads a set. If the set is empty or has duplicate elements, readSet returns an error. Two
// elements are duplicates if key returns the same result for both.
func readSet[E any, K comparable](j jsonReader, element func() (E, error), key func(E) K) ([]E, error) {
	var set []E
	seen := map[K]bool{}
	err := j.array(func() error {
		e, err := element()
		if err != nil {
			return err
		}
		if seen[key(e)] {
			return errors.New("the set contains a duplicate element")
		}
		seen[key(e)] = true
		set = append(set, e)
		return nil
	})
	if err == nil && len(set) == 0 {
		err = errors.New("the value is an empty set, but DynamoDB does not allow empty sets")
	}
	return set, err
}
