package model

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// customFields declares the custom fields of a record type, such as Order. Each field is an attribute
// with the field's name. A stored value that does not match the declaration stays unchanged, and is
// invalid.
func (a *attributeVisitor) customFields(recordType string, v *commerce.CustomValues) {
	fields := commerce.CustomFieldsOf(recordType)
	if len(fields) == 0 {
		return
	}
	switch a.mode {
	case modeReading:
		if *v = commerce.StoredCustomValues(a.Item.Doc, commerce.RecordPosition{First: a.Item.First, End: a.Item.End}); a.Item.Doc == nil {
			*v = commerce.StoredCustomValues(storedRecord(a.Record), commerce.RecordPosition{})
		}
		if a.onInvalid != nil {
			for i := range fields {
				if value := v.Get(fields[i].Name); value != nil {
					_, err := fields[i].Parse(value)
					a.reportInvalid(fields[i].Name, err)
				}
			}
		}
	case modeWriting:
		for i := range fields {
			if value := customAttribute(fields[i].Name, *v); value != nil {
				a.encoded[fields[i].Name] = value
			}
		}
	case modeMaximizing:
		largest := map[string]any{}
		for i := range fields {
			largest[fields[i].Name] = fields[i].Largest()
		}
		*v = commerce.NewCustomValues(largest)
	case modeDescribing:
		for i := range fields {
			dynamoType, most := typeOfCustomField(&fields[i])
			a.describe(fields[i].Name, dynamoType, most, presenceOptional)
			personal(a, v)
		}
	case modeErasing:
		personal(a, v)
	}
}

// IsCustomField reports whether an attribute of an entity is a custom field, or a copy of one.
func IsCustomField(e *Entity, name string) bool {
	of := e.BaseEntity().Name
	fields := commerce.CustomFieldsOf(strings.ToUpper(of[:1]) + of[1:])
	return slices.ContainsFunc(fields, func(f commerce.CustomField) bool { return f.Name == name })
}

// IsReservedAttribute reports whether records of a type, such as Order, can have an attribute with this
// name that is no custom field.
func IsReservedAttribute(recordType, name string) bool {
	if slices.ContainsFunc(commerce.CustomFieldsOf(recordType), func(f commerce.CustomField) bool { return f.Name == name }) {
		return false
	}
	named := func(a Attribute) bool { return a.Name == name }
	for _, e := range allEntities {
		if strings.EqualFold(e.Name, recordType) && slices.ContainsFunc(AttributesOf(e), named) {
			return true
		}
	}
	return IsRevision(name) || recordType == "OrderItem" && slices.ContainsFunc(EmbeddedItemAttributes(), named) ||
		slices.Contains(reservedAttributes, name)
}

// reservedAttributes are the names that no custom field can have. Some of them have a meaning in all
// records, and others are placeholders in keys.
var reservedAttributes = []string{
	AttrPK, AttrSK, AttrIndexPK, AttrIndexSK, "entity", AttrElectroDBEntity, AttrElectroDBVersion,
	"items", "itemCount", "currency", "createdAt", "updatedAt", AttrVersion, foldedNamePlaceholder, emailKeyPlaceholder,
}

// typeOfCustomField returns the DynamoDB type of a field's attribute and, for a text or a list, its
// maximum length.
func typeOfCustomField(f *commerce.CustomField) (dynamoType string, maxLength int) {
	if f.List {
		return "L", f.MaxItems
	}
	switch f.Type {
	case commerce.CustomBoolean:
		return "BOOL", 0
	case commerce.CustomInt, commerce.CustomDecimal:
		return "N", 0
	case commerce.CustomMoney:
		return "M", 0
	}
	text, _ := f.Largest().(string)
	return "S", len(text)
}

// customAttribute returns the attribute with the value of a custom field. If there is no value, it
// returns nil.
func customAttribute(name string, v commerce.CustomValues) types.AttributeValue {
	if value, changed := v.Changed(name); changed {
		return attributeOf(value)
	}
	switch stored, at := v.Stored(); stored := stored.(type) {
	case *Document:
		return stored.attribute(at, name)
	case storedRecord:
		return stored[name]
	case embeddedLine:
		return stored[name]
	}
	return nil
}

// attributeOf converts a value that commerce.CustomField.Parse has returned.
func attributeOf(value any) types.AttributeValue {
	switch value := value.(type) {
	case string:
		return Str(value)
	case json.Number:
		return NumberText(value.String())
	case bool:
		return Bool(value)
	case commerce.Money:
		return &types.AttributeValueMemberM{Value: Record{commerce.MoneyAmount: AmountValue(value), commerce.MoneyCurrency: Str(string(value.Currency))}}
	case []any:
		elements := make([]types.AttributeValue, len(value))
		for i := range value {
			elements[i] = attributeOf(value[i])
		}
		return ListValue(elements...)
	}
	return nil
}

// storedRecord and embeddedLine read the custom fields of a record in the types of the AWS SDK. An
// embeddedLine is a line item in an order's record.
type (
	storedRecord Record
	embeddedLine Record
)

// StoredValue implements commerce.StoredValues.
func (r storedRecord) StoredValue(_ commerce.RecordPosition, name string) any {
	return neutralValue(r[name])
}

// StoredValue implements commerce.StoredValues.
func (r embeddedLine) StoredValue(_ commerce.RecordPosition, name string) any {
	return neutralValue(r[name])
}

// StoredValue implements commerce.StoredValues for the records in a response.
func (d *Document) StoredValue(at commerce.RecordPosition, name string) any {
	return neutralValue(d.attribute(at, name))
}

func (d *Document) attribute(at commerce.RecordPosition, name string) types.AttributeValue {
	if found, ok := (Item{d, at.First, at.End}).Find(name); ok {
		return d.attributeValue(found)
	}
	return nil
}

// keepUnknownMembers adds the members that this process does not know to an embedded line item. They can
// be custom fields that only other servers declare. Other records need no such code, because updates
// keep unknown attributes.
func keepUnknownMembers(line Record, v commerce.CustomValues) {
	stored, _ := v.Stored()
	members, _ := stored.(embeddedLine)
	for name, value := range members {
		if _, changed := v.Changed(name); line[name] == nil && !changed {
			line[name] = value
		}
	}
}

// neutralValue converts an attribute value to the types of commerce.StoredValues. A binary value or a
// set, which no custom field can have, becomes an empty map.
func neutralValue(v types.AttributeValue) any {
	switch v := v.(type) {
	case nil, *types.AttributeValueMemberNULL:
		return nil
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return json.Number(v.Value)
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberL:
		elements := make([]any, len(v.Value))
		for i := range v.Value {
			elements[i] = neutralValue(v.Value[i])
		}
		return elements
	case *types.AttributeValueMemberM:
		members := make(map[string]any, len(v.Value))
		for name, member := range v.Value {
			members[name] = neutralValue(member)
		}
		return members
	default:
		return map[string]any{}
	}
}
