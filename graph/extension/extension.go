// Package extension reads the schema extension of a shop: a file in the GraphQL schema language that
// adds custom fields to the types of the schema (docs/custom-fields.md). Within the module, it imports
// only access, commerce, dynamo/model and graph/document.
package extension

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Extension contains the custom fields that a file declares. The zero value contains none.
type Extension struct {
	// Fields maps the name of a type, such as Order, to its custom fields in the order of the file.
	Fields map[string][]Field
	// enums are the enums that the file declares.
	enums ast.DefinitionList
	// pageArguments are the definitions of the arguments that choose a page of a list.
	pageArguments string
}

// Field is a custom field of a type.
type Field struct {
	commerce.CustomField
	// Description is the field's description in the file. It can be empty.
	Description string
	// SetBy contains the roles that may set the field. SeenBy contains the roles that may read the
	// field. If SeenBy is nil, all callers who may read the type may also read the field.
	SetBy, SeenBy []access.Role
	// valueType is the name of the type of the field's values.
	valueType string
}

// The directives of an extension. FieldDirective declares a custom field. ListDirective declares a query
// for the records with a value of the field, and UniqueDirective one for the only record with a value.
const (
	FieldDirective  = "field"
	ListDirective   = "list"
	UniqueDirective = "unique"
)

// QueryPermission maps the name of a type to the permission that queries by its custom fields require.
var QueryPermission = map[string]access.Permission{
	"Customer":  access.PermissionListCustomers,
	"Employee":  access.PermissionReadStaff,
	"Order":     access.PermissionListOrders,
	"Product":   access.PermissionReadCatalog,
	"Warehouse": access.PermissionReadStock,
}

// inputs maps the name of a type with custom fields to the inputs that set them.
var inputs = map[string][]string{
	"Customer":  {"CreateCustomerInput", "UpdateCustomerInput"},
	"Employee":  {"HireEmployeeInput", "UpdateEmployeeInput"},
	"Order":     {"PlaceOrderInput", "QuoteInput", "SetCustomFieldsInput"},
	"OrderItem": {"OrderLineInput", "SetOrderItemInput", "ItemFieldsInput"},
	"Product":   {"CreateProductInput", "UpdateProductInput"},
	"Warehouse": {"CreateWarehouseInput", "UpdateWarehouseInput"},
}

// TypeSetBy returns the name of the type whose custom fields an input sets, such as Order for
// PlaceOrderInput. If the input sets no custom fields, it returns "".
func TypeSetBy(input string) string {
	for typ, names := range inputs {
		if slices.Contains(names, input) {
			return typ
		}
	}
	return ""
}

// Field returns a custom field of a type. If there is no such field, it returns nil.
func (e Extension) Field(typ, name string) *Field {
	fields := e.Fields[typ]
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &fields[i]
}

// ChangesOrders reports whether orders or line items have custom fields.
func (e Extension) ChangesOrders() bool { return len(e.Fields["Order"])+len(e.Fields["OrderItem"]) > 0 }

// Declare declares the custom fields of all records of the process, and what is needed to query by them
// (model.DeclareCustomFields). It returns a function that restores the previous declaration.
func (e Extension) Declare() (restore func()) { return model.DeclareCustomFields(e.declarations()) }

// Declarations returns the declarations of the records with the custom fields, which Declare would make.
func (e Extension) Declarations() model.Declarations { return model.DeclarationsWith(e.declarations()) }

// Queries returns the queries by custom fields.
func (e Extension) Queries() []model.CustomQuery { return model.QueriesOf(e.declarations()) }

// declarations returns the custom fields of each type.
func (e Extension) declarations() map[string][]commerce.CustomField {
	declared := map[string][]commerce.CustomField{}
	for typ, fields := range e.Fields {
		for _, f := range fields {
			declared[typ] = append(declared[typ], f.CustomField)
		}
	}
	return declared
}

// QueryRoles returns the roles that may use a query by a custom field. If all roles with the permission
// QueryPermission may use it, the result is nil.
func (e Extension) QueryRoles(q model.CustomQuery) []access.Role {
	seenBy := e.Field(q.RecordType, q.Field.Name).SeenBy
	if seenBy == nil {
		return nil
	}
	with := rolesWith(QueryPermission[q.RecordType])
	return slices.DeleteFunc(slices.Clone(seenBy), func(role access.Role) bool { return !slices.Contains(with, role) })
}

// SDL returns the definitions that extend the served schema, in the GraphQL schema language.
func (e Extension) SDL() string {
	var b strings.Builder
	for _, enum := range e.enums {
		describe(&b, "", joined(enum.Description, "Values of custom fields."))
		fmt.Fprintf(&b, "enum %s {\n", enum.Name)
		for _, value := range enum.EnumValues {
			describe(&b, "  ", cmp.Or(value.Description, "Custom value."))
			fmt.Fprintf(&b, "  %s\n", value.Name)
		}
		b.WriteString("}\n\n")
	}
	for _, typ := range Types() {
		fields := e.Fields[typ]
		if len(fields) == 0 {
			continue
		}
		fmt.Fprintf(&b, "extend type %s {\n", typ)
		for _, f := range fields {
			describe(&b, "  ", joined(f.Description, "Custom field.", rolesText("Access", f.SeenBy)))
			fmt.Fprintf(&b, "  %s: %s\n", f.Name, f.typeText(f.valueType, f.Required))
		}
		b.WriteString("}\n\n")
		for _, input := range inputs[typ] {
			fmt.Fprintf(&b, "extend input %s {\n", input)
			for _, f := range fields {
				inputType := f.valueType
				if f.Type == commerce.CustomMoney {
					inputType = "MoneyInput"
				}
				describe(&b, "  ", joined(f.Description, "Custom field.", f.defaultText(), rolesText("Set by", f.SetBy)))
				fmt.Fprintf(&b, "  %s: %s\n", f.Name, f.typeText(inputType, false))
			}
			b.WriteString("}\n\n")
		}
	}
	e.describeQueries(&b)
	return b.String()
}

// describeQueries writes the queries by custom fields.
func (e Extension) describeQueries(b *strings.Builder) {
	queries := e.Queries()
	if len(queries) == 0 {
		return
	}
	b.WriteString("extend type Query {\n")
	for _, q := range queries {
		f, kind, id := e.Field(q.RecordType, q.Field.Name), strings.ToLower(q.RecordType), q.AccessPattern.ID
		arguments, result, reads := "", q.RecordType, fmt.Sprintf("@reads(pattern: %q)", id)
		var text, cost string
		if q.Claim != nil {
			text = fmt.Sprintf("The %s with this value of %#q, or null if no %[1]s has it.", kind, f.Name)
			cost = fmt.Sprintf("two DynamoDB GetItems, one after the other (access patterns %s and %s)", id, q.ByID.ID)
			reads += fmt.Sprintf(" @reads(pattern: %q)", q.ByID.ID)
		} else {
			order := "sorted by name"
			if q.AccessPattern.Direction == model.Descending {
				order = "newest first"
			}
			text = fmt.Sprintf("The %ss with this value of %#q, %s.", kind, f.Name, order)
			cost = fmt.Sprintf("one DynamoDB Query per shard (access pattern %s)", id)
			arguments, result = e.pageArguments, q.RecordType+"Connection!"
		}
		describe(b, "  ", fmt.Sprintf("%s\n\nCost: %s. %s", text, cost, rolesText("Access", e.rolesOfQuery(q))))
		fmt.Fprintf(b, "  %s(\n", q.Name)
		describe(b, "    ", fmt.Sprintf("The value of %#q.", f.Name))
		fmt.Fprintf(b, "    %s: %s!\n%s  ): %s @access(permission: %s) %s\n", f.Name, f.valueType, arguments, result, QueryPermission[q.RecordType], reads)
	}
	b.WriteString("}\n\n")
}

// rolesOfQuery returns the roles that may use a query by a custom field.
func (e Extension) rolesOfQuery(q model.CustomQuery) []access.Role {
	if roles := e.QueryRoles(q); roles != nil {
		return roles
	}
	return rolesWith(QueryPermission[q.RecordType])
}

// rolesWith returns the roles that have a permission for all records.
func rolesWith(p access.Permission) []access.Role {
	return slices.DeleteFunc(access.Roles(), func(role access.Role) bool { return access.StandardPolicy().GrantForRole(role, p) != access.GrantAll })
}

// Types returns the names of the types that can have custom fields.
func Types() []string {
	return []string{"Customer", "Order", "OrderItem", "Product", "Warehouse", "Employee"}
}

func (f *Field) typeText(name string, required bool) string {
	if f.List {
		name = "[" + name + "!]"
	}
	if required {
		name += "!"
	}
	return name
}

func (f *Field) defaultText() string {
	if f.Default == nil {
		return ""
	}
	return fmt.Sprintf("The default is `%v`.", f.Default)
}

func rolesText(verb string, roles []access.Role) string {
	switch len(roles) {
	case 0:
		return ""
	case len(access.Roles()):
		return verb + ": all callers."
	}
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = strings.ToLower(role.String())
	}
	return verb + ": " + strings.Join(names, ", ") + "."
}

func joined(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), " ")
}

// describe writes a description as a block string.
func describe(b *strings.Builder, indent, text string) {
	if text == "" {
		return
	}
	text = strings.ReplaceAll(text, `"""`, `\"""`)
	fmt.Fprintf(b, "%s\"\"\"\n", indent)
	for line := range strings.Lines(text) {
		fmt.Fprintf(b, "%s%s\n", indent, strings.TrimRight(line, "\n"))
	}
	fmt.Fprintf(b, "%s\"\"\"\n", indent)
}
