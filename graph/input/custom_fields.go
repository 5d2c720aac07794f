package input

import (
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/ordergraph/ordergraph/commerce"
)

// CustomFields contains the values of custom fields in an input, in the types of coerced GraphQL
// values. It is the Go type of a scalar that is not served: the executor sets it, and clients set the
// custom fields themselves.
type CustomFields struct {
	// RecordType is the name of the type with the custom fields, such as Order.
	RecordType string
	Values     map[string]any
}

// UnmarshalGQL accepts only a value that the executor has set.
func (f *CustomFields) UnmarshalGQL(v any) error {
	set, ok := v.(CustomFields)
	if !ok {
		return errors.New("must not be set")
	}
	*f = set
	return nil
}

// MarshalGQL writes null, because no field returns the scalar.
func (CustomFields) MarshalGQL(w io.Writer) { _, _ = io.WriteString(w, "null") }

// parseCustomFields validates custom fields. path is the path of the object that contains them.
func parseCustomFields(c *Validator, in *CustomFields, path ...string) commerce.CustomValues {
	if in == nil {
		return commerce.CustomValues{}
	}
	return commerce.ParseCustomValues(in.RecordType, in.Values, func(field []string, problem string) {
		c.reject(commerce.NewInvalidInput(slices.Concat(path, field), "%s", problem))
	})
}

// Command validates the input and returns a commerce.CustomFieldsChange.
func (in SetCustomFieldsInput) Command(c *Validator) commerce.CustomFieldsChange {
	change := commerce.CustomFieldsChange{
		OrderID:         parseValue(c, commerce.ParseOrderID, in.OrderID, "orderId"),
		CustomFields:    parseCustomFields(c, in.CustomFields),
		ExpectedVersion: parseExpectedVersion(c, in.ExpectedVersion),
	}
	if len(in.Items) > maxValidatedLines {
		c.reject(commerce.NewTooManyLines(commerce.FieldPath("items"), len(in.Items), commerce.MaxLines))
		return change
	}
	for i, item := range in.Items {
		change.Items = append(change.Items, parseItemFields(c, item, strconv.Itoa(i)))
	}
	return change
}

func parseItemFields(c *Validator, in *ItemFieldsInput, index string) commerce.ItemFieldsChange {
	return commerce.ItemFieldsChange{
		SKU:          parseValue(c, commerce.ParseID[commerce.SKU], in.Sku, "items", index, "sku"),
		CustomFields: parseCustomFields(c, in.CustomFields, "items", index),
	}
}
