package check

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// difference describes a wrong attribute of a record. have is the stored value, or nil if the
// attribute is missing. want is the expected value, or nil if the attribute should not exist.
type difference struct {
	name       string
	have, want types.AttributeValue
}

// text describes the difference between the stored value and the expected value.
func (d difference) text() string {
	switch {
	case d.want == nil:
		return fmt.Sprintf("%s is %s, should not exist", d.name, valueText(d.have))
	case d.have == nil:
		return fmt.Sprintf("%s is missing, should be %s", d.name, valueText(d.want))
	default:
		return fmt.Sprintf("%s is %s, should be %s", d.name, valueText(d.have), valueText(d.want))
	}
}

// maxValueText is the maximum length, in bytes, of a value in the text of a finding. Longer values
// are cut off.
const maxValueText = 120

// valueText formats a value for a message.
func valueText(v types.AttributeValue) string {
	var text string
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		text = fmt.Sprintf("%q", v.Value)
	case *types.AttributeValueMemberN:
		text = v.Value
	case *types.AttributeValueMemberBOOL:
		text = strconv.FormatBool(v.Value)
	case *types.AttributeValueMemberL:
		parts := make([]string, len(v.Value))
		for i, e := range v.Value {
			parts[i] = valueText(e)
		}
		text = "[" + strings.Join(parts, ", ") + "]"
	case *types.AttributeValueMemberM:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v.Value)) {
			parts = append(parts, name+": "+valueText(v.Value[name]))
		}
		text = "{" + strings.Join(parts, ", ") + "}"
	default:
		text = fmt.Sprintf("a value of type %s", strings.TrimPrefix(fmt.Sprintf("%T", v), "*types.AttributeValueMember"))
	}
	if len(text) > maxValueText {
		text = strings.ToValidUTF8(text[:maxValueText], "") + "..."
	}
	return text
}

// differences returns the attributes of a stored record (have) that differ from the expected record
// (want). It ignores attributes that the model does not define. If a record has no currency, its
// currency is c.
func differences(c commerce.Currency, e *model.Entity, have, want model.Record) []difference {
	var found []difference
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch v, there := have[name]; {
		case !there && !isOptional(c, e, name, want):
			found = append(found, difference{name: name, want: want[name]})
		case there && !sameAttribute(c, name, v, want[name], want):
			found = append(found, difference{name: name, have: v, want: want[name]})
		}
	}
	for _, name := range presenceCheckedAttributes(e) {
		if v, there := have[name]; there && want[name] == nil {
			found = append(found, difference{name: name, have: v})
		}
	}
	return found
}

// presenceCheckedAttributes returns the attributes, such as the index keys, that a stored record
// must not have if the expected record lacks them.
func presenceCheckedAttributes(e *model.Entity) []string {
	names := []string{model.AttrIndexPK, model.AttrIndexSK}
	checked := e.IsEdge() || e.BaseEntity() == &model.EntityOrder || e == &model.EntityDeletedCustomer
	for _, a := range model.AttributesOf(e) {
		// The item count is an exception. A stored order may have it, even if the expected order lacks
		// it.
		if a.Optional && a.Name != "itemCount" && (checked && !slices.Contains(e.Omitted, a.Name) || a.Personal) {
			names = append(names, a.Name)
		}
	}
	return names
}

// isOptional reports whether a stored record may lack an attribute that the expected record (want)
// has. This is allowed if the expected value is the default, or if other software may omit the
// attribute.
func isOptional(c commerce.Currency, e *model.Entity, name string, want model.Record) bool {
	switch name {
	case "entity", "itemCount", "items":
		return true
	case "updatedAt": // readers then use createdAt
		return want["createdAt"] == nil || sameTime(want["updatedAt"], want["createdAt"])
	case "currency":
		return model.EqualsText(want[name], string(c))
	case "createdAt":
		// An order whose ID contains the creation time does not need createdAt.
		if e.BaseEntity() == &model.EntityOrder {
			_, hasTime := commerce.OrderID(model.TextOf(want, "orderId")).Time()
			return hasTime
		}
	case model.AttrAuthorized, model.AttrCaptured, model.AttrRefunded, model.AttrFulfillments: // a record with them has a payment or fulfillment
		return false
	case model.AttrProductCount: // while a warehouse lacks the number, readers get an error
		return false
	case "orderId", "customerId":
		return e.Name == model.EntityOrderItem.Name
	}
	return isZeroValue(want[name]) && !model.IsCustomField(e, name)
}

// isZeroValue reports whether a value, such as an empty string, means the same as a missing
// attribute.
func isZeroValue(v types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value == ""
	case *types.AttributeValueMemberL:
		return len(v.Value) == 0
	case *types.AttributeValueMemberN:
		return model.EqualNumbers(v.Value, "0")
	case *types.AttributeValueMemberBOOL:
		return !v.Value
	case *types.AttributeValueMemberM:
		for _, member := range v.Value {
			if !isZeroValue(member) {
				return false
			}
		}
		return true
	}
	return false
}

// sameAttribute is like equivalent, with three exceptions. It compares createdAt and updatedAt only
// to the millisecond, names only in normalized form, and it ignores the order of an item list.
// expected is the record that contains want.
func sameAttribute(c commerce.Currency, name string, have, want types.AttributeValue, expected model.Record) bool {
	switch name {
	case "createdAt", "updatedAt":
		if sameTime(have, want) {
			return true
		}
	case "name", "jobTitle", model.AttrCategory:
		if s, ok := have.(*types.AttributeValueMemberS); ok && model.EqualsText(want, commerce.NormalizeName(s.Value)) {
			return true
		}
	case "items":
		at := model.Reader{Record: expected}
		currency := at.Currency(c)
		expected, err := decodeLines(want, currency)
		if err != nil {
			return false
		}
		lines, err := decodeLines(have, currency)
		return err == nil && slices.EqualFunc(model.SortBySKU(lines), model.SortBySKU(expected), sameLine)
	}
	return equivalent(have, want)
}

func sameLine(a, b commerce.LineItem) bool {
	for _, f := range commerce.CustomFieldsOf("OrderItem") {
		if !reflect.DeepEqual(a.CustomFields.Get(f.Name), b.CustomFields.Get(f.Name)) {
			return false
		}
	}
	return a.SKU == b.SKU && a.Name == b.Name && a.Quantity == b.Quantity && sameMoney(a.UnitPrice, b.UnitPrice)
}

// sameMoney reports whether two amounts and their currencies are equal.
func sameMoney(a, b commerce.Money) bool {
	return a.Currency == b.Currency && a.Amount.Cmp(b.Amount) == 0
}

// decodeLines decodes the item list that an order record embeds.
//
// It returns ErrCorrupt if the list is malformed.
func decodeLines(v types.AttributeValue, c commerce.Currency) ([]commerce.LineItem, error) {
	l, ok := v.(*types.AttributeValueMemberL)
	if !ok {
		return nil, fmt.Errorf("%w: attribute %q is missing or not a list", model.ErrCorrupt, "items")
	}
	lines := make([]commerce.LineItem, 0, len(l.Value))
	for _, e := range l.Value {
		m, ok := e.(*types.AttributeValueMemberM)
		if !ok {
			return nil, fmt.Errorf("%w: attribute %q has an element that is not a map", model.ErrCorrupt, "items")
		}
		line, err := model.DecodeEmbeddedItem(model.Reader{Record: m.Value}, c)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// equivalent reports whether a stored value (have) means the same as the expected value (want). It
// ignores the notation of numbers, the order of sets, and additional members of stored maps.
func equivalent(have, want types.AttributeValue) bool {
	switch w := want.(type) {
	case *types.AttributeValueMemberS:
		return model.EqualsText(have, w.Value)
	case *types.AttributeValueMemberN:
		h, ok := have.(*types.AttributeValueMemberN)
		return ok && model.EqualNumbers(h.Value, w.Value)
	case *types.AttributeValueMemberBOOL:
		h, ok := have.(*types.AttributeValueMemberBOOL)
		return ok && h.Value == w.Value
	case *types.AttributeValueMemberL:
		if set, ok := have.(*types.AttributeValueMemberSS); ok {
			at := model.Reader{Record: model.Record{"": want}}
			return slices.Equal(slices.Sorted(slices.Values(set.Value)), slices.Sorted(slices.Values(at.Texts(""))))
		}
		h, ok := have.(*types.AttributeValueMemberL)
		return ok && slices.EqualFunc(h.Value, w.Value, equivalent)
	case *types.AttributeValueMemberM:
		h, ok := have.(*types.AttributeValueMemberM)
		if !ok {
			return false
		}
		for name, v := range w.Value {
			if got, there := h.Value[name]; !there && !isZeroValue(v) || there && !equivalent(got, v) {
				return false
			}
		}
		return true
	}
	return false
}

// withUnknownMembers returns the expected value (want), plus the map members that exist only in the
// stored value (have). Other software may have written such members, so a repair must keep them.
func withUnknownMembers(have, want types.AttributeValue) types.AttributeValue {
	switch w := want.(type) {
	case *types.AttributeValueMemberM:
		h, ok := have.(*types.AttributeValueMemberM)
		if !ok {
			return want
		}
		merged := maps.Clone(h.Value)
		for name, v := range w.Value {
			merged[name] = withUnknownMembers(merged[name], v)
		}
		return &types.AttributeValueMemberM{Value: merged}
	case *types.AttributeValueMemberL:
		h, ok := have.(*types.AttributeValueMemberL)
		if !ok {
			return want
		}
		lines := map[string]types.AttributeValue{}
		for _, v := range h.Value {
			lines[lineSKU(v)] = v
		}
		merged := make([]types.AttributeValue, len(w.Value))
		for i, v := range w.Value {
			merged[i] = v
			if sku := lineSKU(v); sku != "" {
				merged[i] = withUnknownMembers(lines[sku], v)
				removeAbsentCustomFields(merged[i], v)
			}
		}
		return &types.AttributeValueMemberL{Value: merged}
	}
	return want
}

// removeAbsentCustomFields removes the declared custom fields that the expected line item (want) lacks.
func removeAbsentCustomFields(line, want types.AttributeValue) {
	for _, f := range commerce.CustomFieldsOf("OrderItem") {
		if want.(*types.AttributeValueMemberM).Value[f.Name] == nil {
			delete(line.(*types.AttributeValueMemberM).Value, f.Name)
		}
	}
}

// lineSKU returns the SKU of a line in an item list. For any other value, it returns an empty
// string.
func lineSKU(v types.AttributeValue) string {
	if line, ok := v.(*types.AttributeValueMemberM); ok {
		return model.TextOf(line.Value, "productId")
	}
	return ""
}

// sameTime reports whether two times are equal with millisecond precision, which is the precision
// of stored times.
func sameTime(have, want types.AttributeValue) bool {
	h, ok := have.(*types.AttributeValueMemberS)
	if !ok {
		return false
	}
	w, ok := want.(*types.AttributeValueMemberS)
	if !ok {
		return false
	}
	a, err := time.Parse(time.RFC3339, h.Value)
	if err != nil {
		return false
	}
	b, err := time.Parse(time.RFC3339, w.Value)
	return err == nil && a.Truncate(time.Millisecond).Equal(b.Truncate(time.Millisecond))
}
