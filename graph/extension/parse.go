package extension

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/govalues/decimal"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/document"
)

// Limits of a schema extension.
const (
	maxFieldsPerType = 50
	maxEnumValues    = 100
	maxNameLength    = 64
	maxTextLength    = 1000
	defaultMaxLength = 255
	// maxDirectives and maxArguments are the numbers of different directives of a field, and of
	// different arguments of @field.
	maxDirectives = 3
	maxArguments  = 7
	maxListItems  = commerce.MaxPhoneNumbers // the cost of every list of scalars assumes this length
	// maxQueryLength limits the values of a field with a query, because they are in keys. maxQueriesPerType
	// limits the records that a mutation writes. maxOrderLists does so for orders, because shipping an order
	// with commerce.MaxLines line items and an outstanding payment leaves room for only this many records in
	// its transaction.
	maxQueryLength    = 255
	maxQueriesPerType = 10
	maxOrderLists     = 3
	// maxItemBytes limits the custom fields of one line item, because an order's record can contain 25
	// line items and has at most 400 KB. maxRecordBytes limits the custom fields of other records.
	maxItemBytes   = 4_000
	maxRecordBytes = 32_000
)

// fileParser reads a schema extension. It collects all errors.
type fileParser struct {
	schema *ast.Schema
	enums  map[string]*ast.Definition
	// reserved reports whether records of a type may contain an attribute with this name already.
	reserved func(typ, name string) bool
	// queries contains the names of the queries that the file declares.
	queries map[string]bool
	out     Extension
	errs    []Mistake
}

// Mistake is an error in a line of the file.
type Mistake struct {
	Line int
	Text string
}

// MistakesError contains all mistakes in a file.
type MistakesError struct {
	File     string
	Mistakes []Mistake
}

// Error returns a line for each mistake, with the file, the line and the correction.
func (e *MistakesError) Error() string {
	var lines []string
	for _, m := range e.Mistakes {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", e.File, m.Line, m.Text))
	}
	return strings.Join(lines, "\n")
}

// Parse reads a schema extension from the text of a file. schema is the schema that it extends.
// reserved reports whether records of a type, such as Order, can contain an attribute with the given
// name that is no custom field.
//
// The error is a *MistakesError.
func Parse(file, text string, schema *ast.Schema, reserved func(typ, name string) bool) (Extension, error) {
	doc, err := parser.ParseSchema(&ast.Source{Name: file, Input: text})
	if err != nil {
		mistake := Mistake{1, err.Error()}
		var syntax *gqlerror.Error
		if errors.As(err, &syntax) && len(syntax.Locations) > 0 {
			mistake = Mistake{syntax.Locations[0].Line, syntax.Message}
		}
		return Extension{}, &MistakesError{file, []Mistake{mistake}}
	}
	p := &fileParser{schema: schema, enums: map[string]*ast.Definition{}, reserved: reserved, queries: map[string]bool{}, out: Extension{Fields: map[string][]Field{}}}
	p.document(doc)
	if len(p.errs) == 0 {
		return p.out, nil
	}
	slices.SortStableFunc(p.errs, func(a, b Mistake) int { return a.Line - b.Line })
	return Extension{}, &MistakesError{file, p.errs}
}

func (p *fileParser) fail(at *ast.Position, format string, args ...any) {
	p.errs = append(p.errs, Mistake{at.Line, fmt.Sprintf(format, args...)})
}

func (p *fileParser) document(doc *ast.SchemaDocument) {
	for _, d := range doc.Directives {
		p.fail(d.Position, "the directive @%s cannot be defined: use only the directives @%s, @%s and @%s", d.Name, FieldDirective, ListDirective, UniqueDirective)
	}
	for _, d := range slices.Concat(doc.Schema, doc.SchemaExtension) {
		p.fail(d.Position, "the schema itself cannot be changed: declare only enums and `extend type`")
	}
	for _, d := range doc.Definitions {
		p.enum(d)
	}
	extended := map[string]*typeExtensions{}
	for _, typ := range Types() {
		extended[typ] = &typeExtensions{}
	}
	for _, d := range doc.Extensions {
		if e := extended[d.Name]; e != nil {
			e.fields += len(d.Fields)
			e.last = d.Position
		}
	}
	for _, d := range doc.Extensions {
		p.extendType(d, extended[d.Name])
	}
	for _, typ := range Types() {
		p.checkType(typ, extended[typ])
	}
	var arguments strings.Builder
	for _, name := range pageArguments {
		a := p.schema.Query.Fields.ForName("customers").Arguments.ForName(name)
		describe(&arguments, "    ", a.Description)
		fmt.Fprintf(&arguments, "    %s: %s\n", name, a.Type)
	}
	p.out.pageArguments = arguments.String()
}

// typeExtensions are all extensions of one type.
type typeExtensions struct {
	// fields is the number of fields that they declare.
	fields int
	// last is the position of the last extension. If it is nil, the file does not extend the type.
	last *ast.Position
}

// pageArguments are the arguments that choose a page of a list.
var pageArguments = []string{"first", "after", "last", "before"}

func (p *fileParser) enum(d *ast.Definition) {
	switch {
	case d.Kind != ast.Enum:
		p.fail(d.Position, "%s is not an enum: declare only enums, and fields with `extend type`", d.Name)
	case p.schema.Types[d.Name] != nil || p.enums[d.Name] != nil || strings.HasPrefix(d.Name, "_"):
		p.fail(d.Position, "the name %s is already used: choose another name", d.Name)
	case !validName.MatchString(d.Name) || len(d.Name) > maxNameLength:
		p.fail(d.Position, "%s is not a name for an enum: use up to %d letters and digits", d.Name, maxNameLength)
	case len(d.EnumValues) == 0 || len(d.EnumValues) > maxEnumValues:
		p.fail(d.Position, "the enum %s has %d values: use 1 to %d", d.Name, len(d.EnumValues), maxEnumValues)
	case len(d.Directives) > 0:
		p.fail(d.Position, "the enum %s has the directive @%s: remove it", d.Name, d.Directives[0].Name)
	}
	// The work for each value depends on the number of values, and so does the work for each field.
	d.EnumValues = d.EnumValues[:min(len(d.EnumValues), maxEnumValues)]
	p.description(d.Position, "the enum "+d.Name, d.Description)
	for i, v := range d.EnumValues {
		switch {
		case slices.ContainsFunc(d.EnumValues[:i], func(other *ast.EnumValueDefinition) bool { return other.Name == v.Name }):
			p.fail(v.Position, "the enum %s has the value %s twice: remove one", d.Name, v.Name)
		case len(v.Name) > maxNameLength || slices.Contains([]string{"true", "false", "null"}, v.Name) || strings.HasPrefix(v.Name, "__"):
			p.fail(v.Position, "the enum %s cannot have the value %s: choose another name", d.Name, v.Name)
		case len(v.Directives) > 0:
			p.fail(v.Position, "the value %s has the directive @%s: remove it", v.Name, v.Directives[0].Name)
		}
		p.description(v.Position, "the value "+v.Name, v.Description)
	}
	p.enums[d.Name] = d
	p.out.enums = append(p.out.enums, d)
}

var validName = regexp.MustCompile("^[A-Za-z][A-Za-z0-9]*$")

// description rejects the characters that a description in the served schema cannot contain. An
// escape sequence such as \u0000 can produce them.
func (p *fileParser) description(at *ast.Position, of, text string) {
	i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' })
	if i >= 0 {
		p.fail(at, "%s has the control character %U in its description: remove it", of, text[i])
	}
}

// extendType reads one extension of a type. If the type is not one of Types, all is nil.
func (p *fileParser) extendType(d *ast.Definition, all *typeExtensions) {
	if d.Kind != ast.Object || all == nil {
		p.fail(d.Position, "%s cannot have custom fields: extend one of the types %s", d.Name, strings.Join(Types(), ", "))
		return
	}
	if len(d.Interfaces) > 0 || len(d.Directives) > 0 {
		p.fail(d.Position, "an extension of %s can only declare fields: remove interfaces and directives", d.Name)
	}
	if all.fields > maxFieldsPerType {
		return // checkType reports this; the work for each field depends on the number of fields
	}
	for _, f := range d.Fields {
		if field, ok := p.field(d.Name, f); ok {
			p.out.Fields[d.Name] = append(p.out.Fields[d.Name], field)
		}
	}
}

// checkType checks the limits for all custom fields of a type.
func (p *fileParser) checkType(typ string, all *typeExtensions) {
	if all.fields > maxFieldsPerType {
		p.fail(all.last, "%s has %d custom fields: declare at most %d", typ, all.fields, maxFieldsPerType)
	}
	lists, queries, bytes := 0, 0, 0
	for _, f := range p.out.Fields[typ] {
		if f.ListQuery != "" {
			lists++
		}
		if f.ListQuery+f.LookupQuery != "" {
			queries++
		}
		encoded, _ := json.Marshal(f.Largest())
		bytes += len(f.Name) + len(encoded)
	}
	if queries > maxQueriesPerType || typ == "Order" && lists > maxOrderLists {
		p.fail(all.last, "%s has %d lists and %d other queries: declare at most %d queries for a type, and at most %d lists of orders", typ, lists, queries-lists, maxQueriesPerType, maxOrderLists)
	}
	limit := maxRecordBytes
	if typ == "OrderItem" {
		limit = maxItemBytes
	}
	if bytes > limit {
		p.fail(all.last, "the custom fields of %s can have %d bytes in one record, but the limit is %d: declare fewer fields, or a smaller maxLength or maxItems", typ, bytes, limit)
	}
}

// scalarTypes are the types of custom fields, except enums.
var scalarTypes = []commerce.CustomFieldType{
	commerce.CustomString, commerce.CustomID, commerce.CustomInt, commerce.CustomBoolean, commerce.CustomDecimal,
	commerce.CustomMoney, commerce.CustomDate, commerce.CustomDateTime,
}

// field reads the declaration of a field. If it has mistakes, field reports them and returns false.
func (p *fileParser) field(typ string, d *ast.FieldDefinition) (f Field, ok bool) {
	failed := len(p.errs)
	name := typ + "." + d.Name
	fail := func(at *ast.Position, format string, args ...any) {
		p.fail(at, "%s %s", name, fmt.Sprintf(format, args...))
	}
	f.Name, f.Description, f.Required, f.List = d.Name, d.Description, d.Type.NonNull, d.Type.Elem != nil
	f.valueType = d.Type.Name()
	f.Type = commerce.CustomFieldType(f.valueType)
	enum := p.enums[f.valueType]
	if enum != nil {
		f.Type = commerce.CustomEnum
		for _, v := range enum.EnumValues {
			f.EnumValues = append(f.EnumValues, v.Name)
		}
	}
	p.description(d.Position, name, d.Description)
	switch {
	case f.List && d.Type.Elem.Elem != nil:
		fail(d.Position, "has a list of lists as its type: write [%s!]", f.valueType)
		return f, false // the text of a deep type takes too much work
	case enum == nil && !slices.Contains(scalarTypes, f.Type):
		fail(d.Position, "has the type %s: use String, ID, Int, Boolean, Decimal, Money, Date, DateTime, or an enum of this file", f.valueType)
	case f.List && !d.Type.Elem.NonNull:
		fail(d.Position, "has the type %s: write [%s!]", d.Type, f.valueType)
	case len(d.Arguments) > 0:
		fail(d.Position, "has arguments: remove them")
	}
	switch {
	case !validName.MatchString(d.Name) || len(d.Name) > maxNameLength:
		fail(d.Position, "has a name that a field cannot have: use up to %d letters and digits", maxNameLength)
	case p.schema.Types[typ].Fields.ForName(d.Name) != nil || p.usedByInput(typ, d.Name) || p.reserved(typ, d.Name):
		fail(d.Position, "has a name that is already used: choose another name")
	case p.out.Field(typ, d.Name) != nil:
		fail(d.Position, "is declared twice: remove one declaration")
	}
	if len(d.Directives) > maxDirectives {
		fail(d.Position, "has %d directives: use only @%s, @%s and @%s, each once", len(d.Directives), FieldDirective, ListDirective, UniqueDirective)
		return f, false
	}
	var declaration *ast.Directive
	for i, directive := range d.Directives {
		switch {
		case i > 0 && d.Directives[:i].ForName(directive.Name) != nil:
			fail(directive.Position, "has the directive @%s twice: remove one", directive.Name)
		case directive.Name == FieldDirective:
			declaration = directive
		case directive.Name != ListDirective && directive.Name != UniqueDirective:
			fail(directive.Position, "has the directive @%s: use only @%s, @%s and @%s", directive.Name, FieldDirective, ListDirective, UniqueDirective)
		}
	}
	if declaration == nil {
		fail(d.Position, "lacks the directive @%s: declare the field as `%s: %s @%[1]s`", FieldDirective, d.Name, d.Type)
		return f, false
	}
	p.arguments(&f, declaration, fail)
	for _, directive := range d.Directives {
		if directive.Name == ListDirective || directive.Name == UniqueDirective {
			p.query(typ, &f, directive, fail)
		}
	}
	return f, len(p.errs) == failed
}

// query reads the directive @list or @unique of a field.
func (p *fileParser) query(typ string, f *Field, d *ast.Directive, fail func(*ast.Position, string, ...any)) {
	a := d.Arguments.ForName("query")
	if a == nil || len(d.Arguments) != 1 || a.Value.Kind != ast.StringValue || !validName.MatchString(a.Value.Raw) || len(a.Value.Raw) > maxNameLength {
		fail(d.Position, "has the directive @%s without a valid name: write @%[1]s(query: \"...\") with up to %d letters and digits", d.Name, maxNameLength)
		return
	}
	name := a.Value.Raw
	switch {
	case !model.CanQuery(typ):
		fail(d.Position, "cannot have the directive @%s, because line items are found through their orders: remove it", d.Name)
	case f.List || f.Type == commerce.CustomMoney:
		fail(d.Position, "cannot have the directive @%s, because its type is %s: use a field with a single value that is not an amount of money", d.Name, f.typeText(f.valueType, f.Required))
	case f.ListQuery+f.LookupQuery != "":
		fail(d.Position, "has both @%s and @%s: remove one, because at most one record can have a unique value", ListDirective, UniqueDirective)
	case d.Name == UniqueDirective && f.Default != nil:
		fail(d.Position, "has a default and @%s, but only one record can have the value: remove the default", d.Name)
	case slices.Contains(pageArguments, f.Name):
		fail(d.Position, "cannot have the directive @%s, because lists have an argument with its name: choose another name", d.Name)
	case (f.Type == commerce.CustomString || f.Type == commerce.CustomID) && f.MaxLength > maxQueryLength:
		fail(d.Position, "has a maxLength of %d, but its values are in keys: use at most %d", f.MaxLength, maxQueryLength)
	case p.schema.Query.Fields.ForName(name) != nil || p.queries[name]:
		fail(d.Position, "has a query with the name %s, which is already used: choose another name", name)
	}
	p.queries[name] = true
	if d.Name == ListDirective {
		f.ListQuery = name
	} else {
		f.LookupQuery = name
	}
}

func (p *fileParser) usedByInput(typ, name string) bool {
	return slices.ContainsFunc(inputs[typ], func(input string) bool {
		d := p.schema.Types[input]
		return name == "customFields" || d != nil && d.Fields.ForName(name) != nil
	})
}

// arguments reads the arguments of @field.
func (p *fileParser) arguments(f *Field, d *ast.Directive, fail func(*ast.Position, string, ...any)) {
	f.MaxLength, f.MaxItems = defaultMaxLength, maxListItems
	f.SetBy = []access.Role{access.RoleStaff, access.RoleAdmin}
	isText := f.Type == commerce.CustomString || f.Type == commerce.CustomID
	isNumber := f.Type == commerce.CustomInt || f.Type == commerce.CustomDecimal
	if len(d.Arguments) > maxArguments {
		fail(d.Position, "has the directive @%s with %d arguments: use only default, maxLength, maxItems, min, max, setBy and seenBy, each once", d.Name, len(d.Arguments))
		return
	}
	var defaultValue *ast.Value
	for i, a := range d.Arguments {
		if slices.ContainsFunc(d.Arguments[:i], func(other *ast.Argument) bool { return other.Name == a.Name }) {
			fail(a.Position, "has the argument %s twice: remove one", a.Name)
		}
		switch a.Name {
		case "default":
			defaultValue = a.Value
		case "maxLength":
			if !isText {
				fail(a.Position, "has the argument maxLength, which applies only to String and ID: remove it")
			}
			f.MaxLength = wholeArgument(a, maxTextLength, fail)
		case "maxItems":
			if !f.List {
				fail(a.Position, "has the argument maxItems, which applies only to lists: remove it")
			}
			f.MaxItems = wholeArgument(a, maxListItems, fail)
		case "min", "max":
			limit, err := decimal.Parse(a.Value.Raw)
			if err != nil || !isNumber {
				fail(a.Position, "has the argument %s, which applies only to Int and Decimal and must be a number: correct or remove it", a.Name)
				continue
			}
			if a.Name == "min" {
				f.Min = &limit
			} else {
				f.Max = &limit
			}
		case "setBy":
			f.SetBy = rolesArgument(a, fail)
		case "seenBy":
			f.SeenBy = rolesArgument(a, fail)
		default:
			fail(a.Position, "has the unknown argument %s: use default, maxLength, maxItems, min, max, setBy or seenBy", a.Name)
		}
	}
	if f.Min != nil && f.Max != nil && f.Min.Cmp(*f.Max) > 0 {
		fail(d.Position, "has a min that exceeds its max: exchange them")
	}
	switch {
	case defaultValue == nil && f.Required:
		fail(d.Position, "is not null, so existing records need a value: add a default, such as @%s(default: ...), or remove the !", FieldDirective)
	case defaultValue != nil:
		value, err := f.Parse(document.LiteralValue(defaultValue))
		if err == nil && value == nil {
			err = commerce.NewInvalidError("is null: remove it")
		}
		if err != nil {
			fail(defaultValue.Position, "has a default that %s", err)
		}
		f.Default = value
	}
}

func wholeArgument(a *ast.Argument, most int, fail func(*ast.Position, string, ...any)) int {
	n, err := strconv.Atoi(a.Value.Raw)
	if err != nil || a.Value.Kind != ast.IntValue || n < 1 || n > most {
		fail(a.Position, "has an invalid %s: use a whole number from 1 to %d", a.Name, most)
		return 1
	}
	return n
}

// rolesArgument reads a list of roles. Administrators are always included.
func rolesArgument(a *ast.Argument, fail func(*ast.Position, string, ...any)) []access.Role {
	roles := []access.Role{access.RoleAdmin}
	values := []*ast.Value{a.Value}
	if a.Value.Kind == ast.ListValue {
		values = nil
		for _, child := range a.Value.Children {
			values = append(values, child.Value)
		}
	}
	for _, v := range values {
		role, ok := access.ParseRole(v.Raw)
		if !ok || v.Kind != ast.EnumValue {
			fail(a.Position, "has an invalid role in %s: use CUSTOMER, STAFF, ADMIN or SERVICE", a.Name)
			break // a list can have thousands of them
		}
		roles = append(roles, role)
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}
