package bulk

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Mapping describes the records of a table of other software, so that Convert can convert them.
type Mapping struct {
	// PK and SK are the names of the table's key attributes.
	PK string `json:"pk"`
	SK string `json:"sk"`
	// Ignore contains names of attributes that are not converted.
	Ignore []string `json:"ignore"`
	// Entities maps the name of an entity to the form of its records.
	Entities map[string]EntityMapping `json:"entities"`
}

// EntityMapping describes the records of one entity. The keys of its maps are the names of
// Ordergraph's attributes.
type EntityMapping struct {
	// PK and SK are the templates of the keys. Each placeholder is the name of an attribute. It has the
	// value of the attribute if the record lacks it.
	PK model.KeyTemplate `json:"pk"`
	SK model.KeyTemplate `json:"sk"`
	// Attributes contains the attributes that have another name in the records.
	Attributes map[string]string `json:"attributes"`
	// Defaults contains the values of attributes that a record lacks.
	Defaults map[string]string `json:"defaults"`
	// Values maps values of attributes to Ordergraph's values.
	Values map[string]map[string]string `json:"values"`

	entity *model.Entity
	// types maps the name of each attribute that the mapping can contain to its type in DynamoDB.
	types map[string]string
}

// mappedEntities returns the entities that a mapping can contain. Convert looks for a record's entity
// in this order.
func mappedEntities() []*model.Entity {
	return []*model.Entity{&model.EntityCustomer, &model.EntityOrder, &model.EntityOrderItem, &model.EntityProduct, &model.EntityInventoryLevel, &model.EntityWarehouse, &model.EntityEmployee}
}

// mappedAttributes returns the types of the attributes that a mapping of an entity can contain. These
// attributes do not follow from other records.
func mappedAttributes(e *model.Entity) map[string]string {
	attributes := map[string]string{}
	for _, a := range model.AttributesOf(e) {
		attributes[a.Name] = a.Type
	}
	derived := []string{model.AttrVersion, model.AttrSpendingComplete, "items", "itemCount"}
	if e == &model.EntityOrder {
		derived = append(derived, "accountRepId") // the customer's account rep
	}
	for _, s := range derive.Sums() {
		if s.Target == e {
			derived = append(derived, s.Attributes...)
		}
	}
	for _, name := range derived {
		delete(attributes, name)
	}
	return attributes
}

// keyAttributes returns the names of the attributes that identify a record of an entity.
func keyAttributes(e *model.Entity) (names []string) {
	for _, placeholder := range slices.Concat(e.PK.Placeholders(), e.SK.Placeholders()) {
		names = append(names, e.AttributeForPlaceholder(placeholder))
	}
	return names
}

// ParseMapping parses and validates a mapping in JSON. Its errors contain the line or the entity, and
// what to change.
func ParseMapping(text []byte) (*Mapping, error) {
	m := &Mapping{}
	if err := json.Unmarshal(text, m, json.RejectUnknownMembers(true)); err != nil {
		return nil, explainMappingError(text, err)
	}
	if m.PK == "" || m.SK == "" {
		return nil, errors.New(`set "pk" and "sk" to the names of the table's partition key and sort key, such as "PK" and "SK"`)
	}
	known := map[string]*model.Entity{}
	for _, e := range mappedEntities() {
		known[e.Name] = e
	}
	if len(m.Entities) == 0 {
		return nil, fmt.Errorf(`"entities" is empty: use %s`, sortedNames(known))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Entities)) {
		if known[name] == nil {
			return nil, fmt.Errorf("unknown entity %q: use %s", name, sortedNames(known))
		}
		e := m.Entities[name]
		e.entity, e.types = known[name], mappedAttributes(known[name])
		if err := e.validate(); err != nil {
			return nil, fmt.Errorf("entity %s: %w", name, err)
		}
		m.Entities[name] = e
	}
	return m, nil
}

// sortedNames returns the keys of a map for an error message.
func sortedNames[V any](of map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(of)), ", ")
}

// explainMappingError describes an error of package json without the Go types.
func explainMappingError(text []byte, err error) error {
	line := func(offset int64) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("line %d: the text is not JSON: %w %s", line(syntax.ByteOffset), syntax.Err, syntax.JSONPointer)
	}
	semantic, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, json.ErrUnknownName):
		var members []string
		for field := range semantic.GoType.Fields() {
			if name := field.Tag.Get("json"); name != "" {
				members = append(members, name)
			}
		}
		return fmt.Errorf("line %d: unknown member %q: use %s", line(semantic.ByteOffset), semantic.JSONPointer.LastToken(), strings.Join(members, ", "))
	}
	expected := map[reflect.Kind]string{reflect.String: "a string", reflect.Slice: "an array of strings"}[semantic.GoType.Kind()]
	return fmt.Errorf("line %d: %s must be %s", line(semantic.ByteOffset), semantic.JSONPointer, cmp.Or(expected, "an object"))
}

// validate returns an error if a template or the name of an attribute is invalid.
func (e EntityMapping) validate() error {
	var placeholders []string
	for _, t := range []model.KeyTemplate{e.PK, e.SK} {
		if !isReversible(t) {
			return fmt.Errorf("the key template %q is invalid: use a form such as CUST#{customerId}, where each placeholder ends before # or at the end of the key", t)
		}
		placeholders = append(placeholders, t.Placeholders()...)
	}
	for _, name := range slices.Concat(placeholders, slices.Sorted(maps.Keys(e.Attributes)), slices.Sorted(maps.Keys(e.Defaults)), slices.Sorted(maps.Keys(e.Values))) {
		if e.types[name] == "" {
			return fmt.Errorf("the entity has no attribute %q: use %s", name, sortedNames(e.types))
		}
	}
	for _, name := range keyAttributes(e.entity) {
		if e.Attributes[name] == "" && !slices.Contains(placeholders, name) {
			return fmt.Errorf(`no key template contains {%s}: add it to "pk" or "sk", or add the attribute with this value to "attributes"`, name)
		}
	}
	return nil
}

// isReversible reports whether the values in a key can be read from the key.
func isReversible(t model.KeyTemplate) bool {
	values := slices.Repeat([]string{"x"}, len(t.Placeholders()))
	key, err := t.Build(values...)
	read, ok := t.Values(key)
	return err == nil && ok && slices.Equal(read, values) && key != "" && !strings.ContainsAny(key, "{}")
}

// match returns the mapping of the entity whose templates match a key, and the values of the
// placeholders. If no templates match, it returns nil.
func (m *Mapping) match(k model.Keys) (*EntityMapping, map[string]string) {
	for _, entity := range mappedEntities() {
		e, ok := m.Entities[entity.Name]
		ofPK, okPK := e.PK.Values(k.PK)
		ofSK, okSK := e.SK.Values(k.SK)
		if !ok || !okPK || !okSK {
			continue
		}
		values, inKey := map[string]string{}, slices.Concat(ofPK, ofSK)
		for i, name := range slices.Concat(e.PK.Placeholders(), e.SK.Placeholders()) {
			values[name] = inKey[i]
		}
		return &e, values
	}
	return nil, nil
}

// attributesOf returns the attributes that a record has in Ordergraph. values contains the values of
// the placeholders in its key. It also returns the names of the record's attributes that it has read.
func (m *Mapping) attributesOf(e *EntityMapping, rec model.Record, values map[string]string) (converted model.Record, read []string) {
	converted = model.Record{}
	for name, dynamoType := range e.types {
		source := cmp.Or(e.Attributes[name], name)
		read = append(read, source)
		v := rec[source]
		if _, null := v.(*types.AttributeValueMemberNULL); null || slices.Contains(m.Ignore, source) {
			v = nil
		}
		if text, ok := values[name]; ok && v == nil {
			v = model.Str(text)
		}
		if text, ok := e.Defaults[name]; ok && v == nil {
			v = model.Str(text)
		}
		if v != nil {
			converted[name] = convertValue(v, e.Values[name], dynamoType)
		}
	}
	return converted, read
}

// convertValue converts a string or number to the type of an attribute. If replacements contains the
// value, it uses the replacement. It returns other values unchanged.
func convertValue(v types.AttributeValue, replacements map[string]string, dynamoType string) types.AttributeValue {
	var text string
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		text = v.Value
	case *types.AttributeValueMemberN:
		text = v.Value
	default:
		return v
	}
	if replacement, ok := replacements[text]; ok {
		text = replacement
	}
	if _, ok := model.ParseNumber(text); ok && dynamoType == "N" {
		return model.NumberText(text)
	}
	return model.Str(text)
}
