package model

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// Declarations contains all kinds of records of a table and all ways to read and write them, with
// the custom fields of a schema extension. It describes records, for example to compute what a
// schema extension would cost. It does not change which records the process reads and writes: see
// DeclareCustomFields.
type Declarations struct {
	Entities       []*Entity
	AccessPatterns []AccessPattern
	WritePatterns  []WritePattern

	queries []CustomQuery
	fields  map[string][]commerce.CustomField
}

// DeclarationsWith returns the declarations with the given custom fields, instead of the fields of
// the process. The keys of the map are the names of the record types.
func DeclarationsWith(fields map[string][]commerce.CustomField) Declarations {
	queries := QueriesOf(fields)
	entities := slices.DeleteFunc(slices.Clone(allEntities), func(e *Entity) bool { return e.keyField != nil })
	for _, q := range queries {
		entities = append(entities, q.Entity)
	}
	return Declarations{entities, withCustomQueries(builtInPatterns(), queries), withCustomFields(builtInWritePatterns(), queries), queries, fields}
}

// DeclaredInProcess returns the declarations of the process.
func DeclaredInProcess() Declarations {
	fields := map[string][]commerce.CustomField{}
	for _, e := range allEntities {
		fields[e.recordType()] = commerce.CustomFieldsOf(e.recordType())
	}
	return Declarations{allEntities, AccessPatterns(), WritePatterns(), customQueries, fields}
}

// Queries returns the queries by custom fields. Do not modify them.
func (d Declarations) Queries() []CustomQuery { return d.queries }

// CustomFields returns the custom fields of a record type, such as Order. Do not modify them.
func (d Declarations) CustomFields(recordType string) []commerce.CustomField {
	return d.fields[recordType]
}

// recordType returns the name of the type whose custom fields the records of an entity contain.
func (e *Entity) recordType() string {
	name := e.BaseEntity().Name
	return strings.ToUpper(name[:1]) + name[1:]
}

// EntitiesOf is AccessPattern.Entities among the entities of d.
func (d Declarations) EntitiesOf(p AccessPattern) []*Entity { return p.entitiesIn(d.Entities) }

// AttributesOf returns the attributes that the records of an entity contain. The Boolean of each is
// true if it is a custom field.
func (d Declarations) AttributesOf(e *Entity) (attributes []Attribute, custom []bool) {
	for _, a := range AttributesOf(e) {
		if !IsCustomField(e, a.Name) && !slices.Contains(e.Omitted, a.Name) {
			attributes, custom = append(attributes, a), append(custom, false)
		}
	}
	if e.Kind == Claim || e.KeysOnly {
		return attributes, custom
	}
	for i := range d.fields[e.recordType()] {
		f := &d.fields[e.recordType()][i]
		dynamoType, most := typeOfCustomField(f)
		attributes, custom = append(attributes, Attribute{f.Name, dynamoType, most, false, true, true}), append(custom, true)
	}
	return attributes, custom
}

// largestAttributes returns the attributes of the largest record of an entity.
func (d Declarations) largestAttributes(e *Entity) Record {
	attributes := e.codec.encode(e.codec.largest())
	d.replaceLargestFields(e.recordType(), attributes)
	if lines, ok := attributes["items"].(*types.AttributeValueMemberL); ok && e.recordType() == "Order" {
		for _, line := range lines.Value {
			d.replaceLargestFields("OrderItem", line.(*types.AttributeValueMemberM).Value)
		}
	}
	return attributes
}

// replaceLargestFields replaces the largest values of the process's custom fields by the ones in d.
func (d Declarations) replaceLargestFields(recordType string, r Record) {
	for _, f := range commerce.CustomFieldsOf(recordType) {
		delete(r, f.Name)
	}
	for i := range d.fields[recordType] {
		f := &d.fields[recordType][i]
		r[f.Name] = attributeOf(f.Largest())
	}
}
