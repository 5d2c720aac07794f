package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/templates"

	"github.com/ordergraph/ordergraph/graph/operation"
)

// The import paths of the packages that the generated code uses.
const (
	storePackage     = "github.com/ordergraph/ordergraph/dynamo"
	modelPackage     = storePackage + "/model"
	operationPackage = graphPackage + "/operation"
	pagingPackage    = graphPackage + "/paging"
	feedPackage      = storePackage + "/feed"
	loadersPackage   = "github.com/ordergraph/ordergraph/loaders"
	scalarPackage    = graphPackage + "/scalar"
)

// typedPattern is an access pattern, with the Go types of its keys and its records.
type typedPattern struct {
	accessPattern
	// key is the type of the keys that a LookupPattern uses to find records. It is nil if the access
	// pattern is not a LookupPattern.
	key types.Type
	// value is the type of the records. It is nil if the access pattern is neither a LookupPattern nor
	// a ListPattern.
	value types.Type
}

// pluralRecordName returns the plural of the record type's name, such as customers for
// *commerce.Customer. In the generated code, a method of plan and a field of pendingRecords have
// this name.
func (r typedPattern) pluralRecordName() string {
	return plural(lcFirst(namedType(r.value).Obj().Name()))
}

// typedPatterns returns the access patterns with their Go types. The keys of the map are the IDs of
// the access patterns.
func typedPatterns(model *types.Package, patterns []accessPattern) map[string]typedPattern {
	found := map[string]typedPattern{}
	for _, p := range patterns {
		r := typedPattern{accessPattern: p}
		variable := model.Scope().Lookup(p.name)
		if variable == nil {
			fail("package model has no variable %s", p.name)
		}
		if p.typed {
			arguments := namedType(variable.Type()).TypeArgs()
			r.value = arguments.At(arguments.Len() - 1)
			if arguments.Len() == 2 {
				r.key = arguments.At(0)
			}
		}
		found[p.id()] = r
	}
	return found
}

// namedType returns t or, if t is a pointer, the type to which t points. If the result would not be
// a named type, namedType returns nil.
func namedType(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

// readsDirective is one @reads directive of a field. It names the access pattern that reads the
// field.
type readsDirective struct {
	typedPattern
	with                     []string
	selecting, by, sum, feed string
	byHand                   bool
}

// readsDirectives returns the @reads directives of a field. If the field has such directives, and
// none of them has the argument byHand, the result generated is true. The generator then writes the
// query plan and the resolver.
func (g *generator) readsDirectives(f *codegen.Field) (all []readsDirective, generated bool) {
	defer prefixFailure("%s", fullName(f))
	generated = true
	for _, d := range f.FieldDefinition.Directives.ForNames("reads") {
		text := func(name string) string {
			if a := d.Arguments.ForName(name); a != nil {
				return a.Value.Raw
			}
			return ""
		}
		r := readsDirective{selecting: text("selecting"), by: text("by"), sum: text("sum"), feed: text("feed"), byHand: d.Arguments.ForName("byHand") != nil}
		var ok bool
		if r.typedPattern, ok = g.typedPatterns[text("pattern")]; !ok {
			fail("@reads names the access pattern %q, which is not declared", text("pattern"))
		}
		if with := d.Arguments.ForName("with"); with != nil {
			for _, name := range with.Value.Children {
				if f.Arguments.ForName(name.Value.Raw) == nil {
					fail("@reads(pattern: %q): the field has no argument %q", r.id(), name.Value.Raw)
				}
				r.with = append(r.with, name.Value.Raw)
			}
		}
		generated = generated && !r.byHand
		all = append(all, r)
	}
	return all, generated && len(all) > 0
}

// isList reports whether a field returns a list in pages. Such a field has the argument first.
func isList(f *codegen.Field) bool { return f.Arguments.ForName("first") != nil }

// fullName returns the name of a field in the form Type.field. The name is part of the signature of
// each cursor, so a cursor is valid only for one field.
func fullName(f *codegen.Field) string { return f.Object.Name + "." + f.Name }

// argumentsType returns the name of the generated Go struct that contains the arguments of a field.
func argumentsType(f *codegen.Field) string {
	return strings.TrimLeft(lcFirst(funcName(f))+"Arguments", "_")
}

// filterMethod is a method of paging.Request that filters a list by the value of an argument.
type filterMethod struct {
	name string
	// canReject reports whether the method can reject an invalid value. The first parameter of such a
	// method is the name of the argument, because the error message contains this name.
	canReject bool
}

// pagingRequestFile is the file that declares the methods of paging.Request.
const pagingRequestFile = "graph/paging/request.go"

// filterMethods returns the methods of paging.Request that filter a list. The keys of the map are the
// Go types of the arguments, or the names of arguments that filter a list by a prefix (see
// operation.IsPrefixArgument).
func filterMethods() map[string]filterMethod {
	found := map[string]filterMethod{}
	for _, d := range mustValue(parser.ParseFile(token.NewFileSet(), pagingRequestFile, nil, 0)).Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || types.ExprString(f.Recv.List[0].Type) != "*Request" || !f.Name.IsExported() {
			continue
		}
		parameters := f.Type.Params.List
		key := types.ExprString(parameters[len(parameters)-1].Type)
		if operation.IsPrefixArgument(f.Name.Name) {
			key = lcFirst(f.Name.Name)
		}
		if found[key].name != "" {
			fail("%s: the methods %s and %s have the same argument type: use different types", pagingRequestFile, found[key].name, f.Name.Name)
		}
		found[key] = filterMethod{f.Name.Name, len(parameters) > 1}
	}
	return found
}

// writeListArguments writes the method that copies the arguments of a list field to a
// paging.Request. If paging.Request has no method for the Go type of an argument,
// writeListArguments fails.
func (g *generator) writeListArguments(f *codegen.Field, all []readsDirective) {
	g.line(`
// list adds the arguments to a request. Cursors are valid only for the same arguments,
// except the arguments that choose the page.
func (a *%s) list(q *paging.Request, beyond operation.PageInfoSelection) {`, argumentsType(f))
	slices.SortStableFunc(all, func(a, b readsDirective) int { return len(b.with) - len(a.with) })
	chosen := map[string]bool{}
	for _, r := range all {
		for _, name := range r.with {
			chosen[name] = true
		}
	}
	for _, a := range f.Args {
		if slices.Contains(pagingArguments, a.Name) {
			continue
		}
		key := g.typeName(a.TypeReference.GO)
		if operation.IsPrefixArgument(a.Name) {
			key = a.Name
		}
		method := g.limitMethods[key]
		if method.name == "" {
			fail("%s: paging.Request has no method for the argument %s of type %s: add a method", fullName(f), a.Name, g.typeName(a.TypeReference.GO))
		}
		assignment := ""
		if chosen[a.Name] {
			assignment = a.VarName + " := "
		}
		name := ""
		if method.canReject {
			name = strconv.Quote(a.Name) + ", "
		}
		g.line("%sq.%s(%sa.%s)", assignment, method.name, name, a.VarName)
	}
	if len(chosen) > 0 {
		g.line("switch {")
		for _, r := range all {
			if len(r.with) > 0 {
				conditions := make([]string, len(r.with))
				for i, name := range r.with {
					conditions[i] = f.Args[slices.IndexFunc(f.Args, func(a *codegen.FieldArgument) bool { return a.Name == name })].VarName
				}
				g.line("case %s:\nq.Key.Pattern = &model.%s.AccessPattern", strings.Join(conditions, " && "), r.name)
			}
		}
		g.line("}")
		g.addImport(modelPackage, "model")
	}
	g.line(`q.SetPage(paging.Arguments{First: a.first, After: a.after, Last: a.last, Before: a.before, Beyond: beyond})
}`)
}

// isBatch reports whether a field takes a list of keys and returns the records with these keys.
func isBatch(f *codegen.Field) bool { return operation.BatchArgument(f.FieldDefinition) != nil }

// writeBatchArguments writes a method for a field whose argument is a list of IDs. The method
// converts these IDs to the keys of records.
func (g *generator) writeBatchArguments(f *codegen.Field, key types.Type) {
	g.line("\n// keys converts the argument to keys of records. A malformed ID becomes an empty key.")
	g.line("func (a *%s) keys() ([]%s, error) { return lookupIDs[%s](%q, a.%s) }", argumentsType(f), g.typeName(key), g.typeName(key), f.Args[0].Name, f.Args[0].VarName)
}

// writeKeyArguments writes the method that converts the arguments of a field to the key of one
// record.
func (g *generator) writeKeyArguments(f *codegen.Field, key types.Type) {
	name, parameter := g.typeName(key), ""
	parts, isStruct := key.Underlying().(*types.Struct)
	if !f.Object.Root {
		parameter = "parent " + g.typeName(parts.Field(0).Type())
	}
	g.line(`
// key converts the arguments to the key of a record. It returns false if an ID is malformed.
func (a *%s) key(%s) (key %s, ok bool) {`, argumentsType(f), parameter, name)
	if isStruct {
		arguments := f.Args
		for part := range parts.Fields() {
			if parameter != "" && len(arguments) == len(f.Args) && part == parts.Field(0) {
				g.line("key.%s = parent", part.Name())
				continue
			}
			a := arguments[0]
			arguments = arguments[1:]
			g.line(`if key.%s, ok = lookupID[%s](a.%s); !ok {
return key, false
}`, part.Name(), g.typeName(part.Type()), a.VarName)
		}
		g.line("return key, true\n}")
		return
	}
	a := f.Args[0]
	if namedType(key) == nil {
		g.addImport(commerceImport, "commerce")
		g.line("key, err := commerce.%sKey(a.%s)\nreturn key, err == nil\n}", templates.UcFirst(a.Name), a.VarName)
		return
	}
	g.line("return lookupID[%s](a.%s)\n}", name, a.VarName)
}

// sameType reports whether two types have the same name and package. If a package has been loaded
// twice, types.Identical returns false for the two copies of a type.
func sameType(a, b types.Type) bool { return types.Unalias(a).String() == types.Unalias(b).String() }

// fieldOfType returns the name of the struct field with the type t. If the parameter by is not
// empty, the field must also have this name, in upper or lower case. If several fields match,
// fieldOfType returns ID. If no field matches, or several match and none is ID, it fails.
func fieldOfType(structType types.Type, t types.Type, by string) string {
	s, ok := namedType(structType).Underlying().(*types.Struct)
	if !ok {
		fail("%s is not a struct", structType)
	}
	var found []string
	for field := range s.Fields() {
		if sameType(field.Type(), t) && (by == "" || strings.EqualFold(field.Name(), by)) {
			found = append(found, field.Name())
		}
	}
	if len(found) > 1 && slices.Contains(found, "ID") {
		found = []string{"ID"}
	}
	if len(found) != 1 {
		fail("%s has %d fields of type %s: choose one of them with @reads(by: ...)", structType, len(found), t)
	}
	return found[0]
}

// lookupPatternOf returns the first access pattern that looks up records of the given type by their
// keys. If there is none, it returns the zero value.
func (g *generator) lookupPatternOf(o *codegen.Object) typedPattern {
	for _, p := range g.patterns {
		if r := g.typedPatterns[p.id()]; r.key != nil && o.Type != nil && namedType(r.value) != nil && sameType(namedType(r.value), namedType(o.Reference())) {
			return r
		}
	}
	return typedPattern{}
}

// plannedField is a field with a generated query plan and a generated resolver.
type plannedField struct {
	*codegen.Field
	reads []readsDirective
	// pattern is the first of the access patterns that reads only the field's records.
	pattern readsDirective
}

// objectPlan describes the fields with @reads of an object type.
type objectPlan struct {
	// lists and references report whether the generated plan reads lists, and records to which the
	// object refers. byHand reports whether a part of the plan is written by hand.
	lists, references, byHand bool
}

// fieldNumber returns the name of the constant that contains the number of a field with @reads, as
// in operation.Field.Number.
func fieldNumber(object, field string) string {
	return "field" + object + templates.UcFirst(field)
}

// writeFieldPlans writes the query plans and the resolvers for the fields of an object type. It
// handles only the fields that return the result of an access pattern.
func (g *generator) writeFieldPlans(o *codegen.Object) {
	var lists, lookups, references []plannedField
	byHand := false
	for i, f := range o.Fields {
		all, generated := g.readsDirectives(f)
		if len(all) > 0 || o.Name == "Query" && !strings.HasPrefix(f.Name, "_") {
			g.line("\nconst %s = %d", fieldNumber(o.Name, f.Name), i+1)
		}
		byHand = byHand || slices.ContainsFunc(all, func(r readsDirective) bool { return r.byHand })
		typed := slices.IndexFunc(all, func(r readsDirective) bool { return r.value != nil })
		if !generated || typed < 0 { // the code is written by hand, or the parent's record contains the value
			continue
		}
		p := plannedField{f, all, all[typed]}
		switch {
		case p.pattern.feed != "": // there is nothing to plan
		case isList(f), p.pattern.key == nil, !o.Root && len(f.Args) > 0:
			lists = append(lists, p)
		case o.Root:
			lookups = append(lookups, p)
		default:
			references = append(references, p)
		}
		g.writeResolver(p)
	}
	own := g.lookupPatternOf(o)
	if !byHand && !o.Root {
		g.writeRecordPlan(o, own, len(lists) > 0, len(references) > 0)
	}
	if len(lists) > 0 {
		g.writeListPlans(o, own, lists)
	}
	if len(lookups) > 0 {
		g.line("\n// rootRecord adds the key of the record that a field of Query reads by its arguments.\n// It returns false for other fields.")
		g.line(`func (p plan) rootRecord(f *operation.Field, to *pendingRecords) bool {
switch f.Number {`)
		for _, f := range lookups {
			g.line("case %s:", fieldNumber(o.Name, f.Name))
			if isBatch(f.Field) {
				g.line("addBatch(&to.%s, f, argumentsOf[%s](p, f))", f.pattern.pluralRecordName(), argumentsType(f.Field))
				continue
			}
			g.line(`if key, ok := argumentsOf[%s](p, f).key(); ok {
to.%s(f.Records).add(key, f.Path, f.Records)
}`, argumentsType(f.Field), f.Name)
		}
		g.line(`default:
return false
}
return true
}`)
	}
	if len(lookups) > 0 {
		g.writePendingRecords(slices.DeleteFunc(lookups, func(f plannedField) bool { return isBatch(f.Field) }))
	}
	if len(references) > 0 {
		g.writeReferencePlans(o, own, references)
	}
	others := slices.ContainsFunc(references, func(f plannedField) bool { return f.pattern.number != own.number })
	g.plans[o.Name] = objectPlan{len(lists) > 0, others, byHand}
}

// writePendingRecords writes the type pendingRecords, with one list of keys for each kind of record
// that a field of Query looks up by its key. For each kind, it also writes the method that chooses
// between the record and its item collection. The choice depends on the fields that the client selects.
func (g *generator) writePendingRecords(lookups []plannedField) {
	methods := ""
	g.line(`
// pendingRecords contains the keys of the records that one level of the plan reads. Lookups of the
// same kind of record share a request. The keys of records that are read with their item collections
// are in separate lists.
type pendingRecords struct {`)
	for _, f := range lookups {
		list, key := f.pattern.pluralRecordName(), g.typeName(f.pattern.key)
		g.line("%s pendingKeys[%s]", list, key)
		methods += fmt.Sprintf("\n// %s returns the list to which the key of a record with these selections must be added.\n", f.Name)
		methods += fmt.Sprintf("func (r *pendingRecords) %s(selections []*operation.SelectionSet) *pendingKeys[%s] {\n", f.Name, key)
		for _, r := range f.reads {
			if r.selecting != "" {
				g.line("%sCollections pendingKeys[%s]", f.Name, key)
				methods += fmt.Sprintf("if operation.SelectsFieldWithReads(selections, %s) {\nreturn &r.%sCollections\n}\n", fieldNumber(f.TypeReference.Definition.Name, r.selecting), f.Name)
			}
		}
		methods += fmt.Sprintf("return &r.%s\n}\n", list)
	}
	g.line("}\n%s", methods)
	g.lookups = lookups
}

// writePlanReferences writes the method that plans the lookups of all pending records. The keys with
// several parts are first, because they contain the keys of further records.
func (g *generator) writePlanReferences() {
	g.line(`
// planReferences plans lookups of the records in r, and the reads that depend only on their IDs.
func (p plan) planReferences(ctx context.Context, r *pendingRecords) {`)
	after := ""
	for _, f := range g.lookups {
		object, list, pattern := f.TypeReference.Definition.Name, f.pattern.pluralRecordName(), f.pattern.name
		kind, then := g.plans[object], "nil"
		_, hasParts := f.pattern.key.Underlying().(*types.Struct)
		switch {
		case !sameType(f.pattern.value, f.TypeReference.GO): // the lookup returns only the ID of the record
		case hasParts:
			g.line("planRecords(ctx, p, &r.%s, model.%s, nil)", list, pattern)
			if kind.references {
				g.line("add%sReferences(r.%s.targets(), r)", object, list)
			}
		case kind.byHand:
			after += fmt.Sprintf("p.plan%sByID(ctx, &r.%s)\n", templates.UcFirst(list), list)
		default:
			if kind.references {
				then = "plan." + lcFirst(object) + "References"
			}
			after += fmt.Sprintf("planRecords(ctx, p, &r.%s, model.%s, %s)\n", list, pattern, then)
			if kind.lists {
				after += fmt.Sprintf("p.%sLists(ctx, r.%s.targets())\n", lcFirst(object), list)
			}
		}
	}
	g.line("%s}", after)
}

// writeListPlans writes the function that schedules the reads for the list fields of an object
// type. The object type is Query or the type of a record.
func (g *generator) writeListPlans(o *codegen.Object, own typedPattern, lists []plannedField) {
	if o.Root {
		g.line(`
// rootLists plans the lists of Query.
func (p plan) rootLists(ctx context.Context, root *operation.SelectionSet) {`)
	} else {
		g.line("\n// %sLists plans the lists that belong to records of type %s.", lcFirst(o.Name), o.Name)
		g.line("func (p plan) %sLists(ctx context.Context, targets []planTarget[%s]) {", lcFirst(o.Name), g.typeName(own.key))
	}
	for _, f := range lists {
		key := "dynamo.ListRequest"
		if f.pattern.key != nil {
			key = g.typeName(f.pattern.key)
		}
		g.line("var %s pendingKeys[%s]", f.Name, key)
	}
	parent, parentValue := ", string(key)", "string(key)"
	if o.Root {
		parent, parentValue = "", `""`
		g.line(`for _, f := range root.Reads {
switch f.Number {`)
	} else {
		g.line(`for key, f := range selectedFields(targets) {
switch f.Number {`)
	}
	for _, f := range lists {
		g.line("case %s:", fieldNumber(o.Name, f.Name))
		switch {
		case isList(f.Field):
			g.line(`q := p.resolver.pageRequest(%q%s)
argumentsOf[%s](p, f).list(&q, f.PageInfo)
addList(&%s, f, &q)`, fullName(f.Field), parent, argumentsType(f.Field), f.Name)
		case f.pattern.key == nil:
			g.line("%s.add(loaders.AllRecords(&model.%s.AccessPattern, %s), f.Path, f.Records)", f.Name, f.pattern.name, parentValue)
		default:
			g.line(`if key, ok := argumentsOf[%s](p, f).key(key); ok {
%s.add(key, f.Path, f.Records)
}`, argumentsType(f.Field), f.Name)
		}
	}
	g.line("}\n}")
	for _, f := range lists {
		if r := f.pattern; r.key != nil {
			g.line("plan%s(ctx, p, &%s, model.%s, func(key %s) %s { return key.%s })", templates.UcFirst(r.pluralRecordName()), f.Name, r.name, g.typeName(r.key), g.typeName(r.key.Underlying().(*types.Struct).Field(1).Type()), r.key.Underlying().(*types.Struct).Field(1).Name())
		} else {
			g.line("planList(ctx, p, &%s, model.%s, %s)", f.Name, r.name, g.planOf(r.value))
		}
	}
	g.line("}")
	g.addImport(storePackage, "dynamo")
	g.addImport(modelPackage, "model")
	g.addImport("context", "context")
}

// planOf returns the method of plan that plans the reads after records of a type. If no field of
// these records needs a read, it returns nil.
func (g *generator) planOf(record types.Type) string {
	for _, o := range g.data.Objects {
		if o.Type != nil && namedType(record) != nil && sameType(namedType(o.Reference()), namedType(record)) && slices.ContainsFunc(o.Fields, func(f *codegen.Field) bool { return f.FieldDefinition.Directives.ForName("reads") != nil }) {
			return "plan." + typedPattern{value: record}.pluralRecordName()
		}
	}
	return "nil"
}

// writeRecordPlan writes the functions that plan the reads after records of an object type.
func (g *generator) writeRecordPlan(o *codegen.Object, own typedPattern, lists, references bool) {
	record := typedPattern{value: o.Reference()}
	if !slices.ContainsFunc(g.patterns, func(p accessPattern) bool { return p.typed && sameType(g.typedPatterns[p.id()].value, record.value) }) || !lists && !references {
		return
	}
	parent, _ := g.parentOf(o, own)
	keys := ""
	if own.key != nil {
		key := ""
		if parts, ok := own.key.Underlying().(*types.Struct); ok {
			var values []string
			for part := range parts.Fields() {
				values = append(values, part.Name()+": r."+fieldOfType(record.value, part.Type(), ""))
			}
			key = g.typeName(own.key) + "{" + strings.Join(values, ", ") + "}"
		} else {
			key = "r." + fieldOfType(record.value, own.key, "")
		}
		keys = fmt.Sprintf("targetIDs(targets, func(r %s) %s { return %s })", g.typeName(record.value), g.typeName(own.key), key)
	}
	if references {
		g.line(`
// add%[1]sReferences adds the keys of the records to which the selected fields refer.
func add%[1]sReferences(targets []planTarget[%[2]s], to *pendingRecords) {
for parent, f := range selectedFields(targets) {
%[3]sReference(parent, f, to)
}
}

// %[3]sReferences plans the reads of the records to which the selected fields refer.
func (p plan) %[3]sReferences(ctx context.Context, targets []planTarget[%[2]s]) {
var to pendingRecords
add%[1]sReferences(targets, &to)
p.planReferences(ctx, &to)
}`, o.Name, g.typeName(parent), lcFirst(o.Name))
	}
	g.line("\n// %s plans the reads that the selected fields of records require, after the records were read.", record.pluralRecordName())
	g.line("func (p plan) %s(ctx context.Context, targets []planTarget[%s]) {", record.pluralRecordName(), g.typeName(record.value))
	if references {
		targets := "targets"
		if parent == own.key {
			targets = keys
		}
		g.line("p.%sReferences(ctx, %s)", lcFirst(o.Name), targets)
	}
	if lists {
		g.line("p.%sLists(ctx, %s)", lcFirst(o.Name), keys)
	}
	g.line("}")
	g.addImport("context", "context")
}

// parentOf returns the type of the value that contains the references of an object type: the key of
// its records if this key has several parts, otherwise the record.
func (g *generator) parentOf(o *codegen.Object, own typedPattern) (parent types.Type, parameter string) {
	if own.key != nil {
		if _, ok := own.key.Underlying().(*types.Struct); ok {
			return own.key, "key"
		}
	}
	return o.Reference(), "record"
}

// writeReferencePlans writes a function for the fields that refer to other records. The function
// schedules the reads of these records. If the key of the referring record contains the references,
// the function takes only this key as a parameter.
func (g *generator) writeReferencePlans(o *codegen.Object, own typedPattern, references []plannedField) {
	parentType, parameter := g.parentOf(o, own)
	g.line("\n// %sReference adds the key of the record that a field refers to.", lcFirst(o.Name))
	g.line(`func %sReference(%s %s, f *operation.Field, to *pendingRecords) {
switch f.Number {`, lcFirst(o.Name), parameter, g.typeName(parentType))
	for _, f := range references {
		r := f.pattern
		if r.number == own.number {
			g.line(`case %s:
if record.Partial {
to.%s.add(record.%s, f.Path, nil)
}`, fieldNumber(o.Name, f.Name), r.pluralRecordName(), fieldOfType(parentType, r.key, ""))
			continue
		}
		list, key := "&to."+r.pluralRecordName(), parameter+"."+fieldOfType(parentType, r.key, r.by)
		if slices.ContainsFunc(f.reads, func(r readsDirective) bool { return r.selecting != "" }) {
			list = "to." + lcFirst(f.TypeReference.Definition.Name) + "(f.Records)"
		}
		g.line("case %s:\naddReference(%s, f, %s)", fieldNumber(o.Name, f.Name), list, key)
	}
	g.line("}\n}")
}

// parentContains reports whether the parent's struct has a field that can contain the value of f.
func parentContains(f plannedField) bool {
	value, _, _ := types.LookupFieldOrMethod(f.Object.Reference(), true, nil, f.GoFieldName)
	field, ok := value.(*types.Var)
	return ok && sameType(field.Type(), f.TypeReference.GO)
}

// writeResolver writes the resolver of a field. The resolver returns the value that the query plan
// has read. If the query plan has not read the value, the resolver reads it.
func (g *generator) writeResolver(f plannedField) {
	defer prefixFailure("%s", fullName(f.Field))
	parameters, values, result := "ctx context.Context", make([]string, len(f.Args)), g.typeName(f.TypeReference.GO)
	if !f.Object.Root {
		parameters += ", obj " + g.typeName(f.Object.Reference())
	}
	for i, a := range f.Args {
		parameters += ", " + a.VarName + " " + g.typeName(a.TypeReference.GO)
		values[i] = a.VarName
	}
	r := f.pattern
	own := g.lookupPatternOf(f.Object)
	parent, parentKey := `""`, ""
	if _, ok := own.key.(*types.Named); ok && !f.Object.Root && own.key.Underlying() == types.Typ[types.String] {
		parentKey = "obj." + fieldOfType(f.Object.Reference(), own.key, "")
		parent = "string(" + parentKey + ")"
	}
	if r.feed != "" {
		result = "<-chan " + result
	}
	g.addImport("context", "context")
	g.addImport(modelPackage, "model")
	g.line(`
func (r *%sResolver) %s(%s) (%s, error) {`, lcFirst(f.Object.Name), f.GoFieldName, parameters, result)
	arguments := fmt.Sprintf("(&%s{%s})", argumentsType(f.Field), strings.Join(values, ", "))
	switch {
	case isList(f.Field):
		switch parent = ", " + parent; {
		case f.Object.Root:
			parent = ""
		case parentKey == "":
			fail("no access pattern looks up the records of the type %s by their key", f.Object.Name)
		}
		g.line(`q := r.pageRequest(%q%s)
%s.list(&q, currentField(ctx).PageInfo)
return connection(ctx, model.%s, &q)
}`, fullName(f.Field), parent, arguments, r.name)
	case r.feed != "":
		g.addImport(feedPackage, "feed")
		g.line("return subscribe(ctx, r.Resolver, %q, %s, (*Resolver).check%[3]sSubscription, (*feed.Feed).Subscribe%[3]s)\n}", f.Args[0].Name, strings.Join(values, ", "), r.feed)
	case r.key == nil:
		if r.sum == "" {
			fail("the field is neither a connection nor a sum: add the argument sum to @reads")
		}
		g.line("return %s\n}", g.nullableCount(f, fmt.Sprintf("loaders.Sum(ctx, loadersOf(ctx), model.%s, %s, loaders.%s)", r.name, parent, r.sum)))
	case len(f.Args) == 0 && r.number == own.number:
		g.line("own, err := loaders.Complete(ctx, loadersOf(ctx), model.%s, %s, obj, obj.Partial)", r.name, parentKey)
		g.line("return %s\n}", g.nullableCount(f, fmt.Sprintf("own.%s, err", f.GoFieldName)))
	case !f.Object.Root && len(f.Args) > 0:
		g.line(`key, ok := %s.key(%s)
if !ok {
return nil, nil
}
return record(ctx, model.%s, key)
}`, arguments, parentKey, r.name)
	case isBatch(f.Field):
		g.line(`keys, err := %s.keys()
if err != nil {
return nil, err
}
return batch(ctx, model.%s, keys)
}`, arguments, r.name)
	case f.Object.Root:
		read := fmt.Sprintf("record(ctx, model.%s, key)", r.name)
		switch {
		case r.embedded:
			read = fmt.Sprintf("nullIfNotFound(loadersOf(ctx).%sByID(ctx, key))", r.name)
		case len(f.reads) > 1 && f.reads[1].key != nil:
			read = fmt.Sprintf("recordByReference(ctx, model.%s, model.%s, key)", r.name, f.reads[1].name)
		}
		g.line(`key, ok := %s.key()
if !ok {
return nil, nil
}
return %s
}`, arguments, read)
	default:
		if parentContains(f) {
			g.line("if obj.%[1]s != nil {\nreturn obj.%[1]s, nil\n}", f.GoFieldName)
		}
		reference := fmt.Sprintf("reference(ctx, model.%s, obj.%s)", r.name, fieldOfType(f.Object.Reference(), r.key, r.by))
		if g.typeName(f.TypeReference.GO) == "int32" { // the number follows from the record and the parent
			g.line("of, err := %s\nreturn %s\n}", reference, g.nullableCount(f, fmt.Sprintf("obj.%sIn(of), err", f.GoFieldName)))
			return
		}
		g.line("return %s\n}", reference)
	}
}

// nullableCount returns an expression that converts a value and an error to the results of a field's
// resolver. The value can be a number, or a pointer to a number that the record may lack.
func (g *generator) nullableCount(f plannedField, values string) string {
	switch g.typeName(f.TypeReference.GO) {
	case "int32":
		g.addImport(scalarPackage, "scalar")
		return "scalar.ToInt(" + values + ")"
	case "*int32":
		return "storedCount(" + values + ")"
	default:
		return values
	}
}

// writeArgumentConversion writes the method that converts the arguments of a field. If the field
// returns a list in pages, the method fills a paging.Request. If the argument is a list of IDs, the
// method returns the keys of the records. If the field returns one record, the method returns its
// key.
func (g *generator) writeArgumentConversion(f *codegen.Field) {
	switch all, _ := g.readsDirectives(f); {
	case len(all) == 0:
	case isList(f):
		g.writeListArguments(f, all)
	case isBatch(f):
		g.writeBatchArguments(f, all[0].key)
	case (f.Object.Root || len(f.Args) > 0) && all[0].key != nil && g.typeName(f.Args[0].TypeReference.GO) == "string":
		g.writeKeyArguments(f, all[0].key)
	}
}

// generateReads writes the query plans and resolvers of fields that return the result of an access
// pattern. It also writes the resolvers of mutations, and the Go types of all resolvers.
func generateReads(data *codegen.Data, p plugin) {
	g := newGenerator(data)
	g.addImport(operationPackage, "operation")
	g.addImport(pagingPackage, "paging")
	g.addImport(loadersPackage, "loaders")
	g.patterns, g.mutations = p.patterns, p.derived.mutations
	g.typedPatterns, g.limitMethods, g.plans = typedPatterns(p.model, p.patterns), filterMethods(), map[string]objectPlan{}
	var resolvers []string
	for _, o := range data.Objects {
		if o.HasResolvers() {
			resolvers = append(resolvers, o.Name)
		}
		o = withoutIntrospection(o)
		for _, f := range o.Fields {
			g.writeArgumentConversion(f)
		}
		g.writeFieldPlans(o)
		if o.Name == "Mutation" {
			g.writeMutationResolvers(o)
		}
	}
	g.writeEntityTypes()
	g.writePlanReferences()
	g.writePlanAfterRecord()
	slices.Sort(resolvers)
	for _, name := range resolvers {
		g.line(`
// %s returns the resolvers of %s.
func (r *Resolver) %s() %sResolver { return &%sResolver{r} }`, name, name, name, name, lcFirst(name))
	}
	g.line("\ntype (")
	for _, name := range resolvers {
		g.line("%sResolver struct{ *Resolver }", lcFirst(name))
	}
	g.line(")")
	g.write(readsFile)
}

// writeEntityTypes writes the list of the types with the directive @key.
func (g *generator) writeEntityTypes() {
	g.line("\n// entityTypes returns the entity types in alphabetical order of their names.\nfunc entityTypes() []entityType {\nreturn []entityType{")
	for _, o := range g.data.Objects {
		if key := o.Definition.Directives.ForName("key"); key != nil {
			g.line("newEntityType(%q, %q, model.%s, (*pendingRecords).%s),", o.Name, key.Arguments.ForName("fields").Value.Raw, g.lookupPatternOf(o).name, lcFirst(o.Name))
		}
	}
	g.line("}\n}")
}

// writePlanAfterRecord writes the method that plans the reads for the payload of a mutation.
func (g *generator) writePlanAfterRecord() {
	results := map[string]bool{}
	for _, m := range g.mutations {
		results[m.result] = true
	}
	g.line(`
// planAfterRecord plans the reads that the selections of a record require. The record itself has
// already been read. It is the result of a mutation.
func (p plan) planAfterRecord(ctx context.Context, record any, selections []*operation.SelectionSet) {
switch record := record.(type) {`)
	for _, name := range slices.Sorted(maps.Keys(results)) {
		g.line("case *commerce.%[1]s:\np.%[2]s(ctx, []planTarget[*commerce.%[1]s]{{record, selections}})", name, plural(lcFirst(name)))
	}
	g.line("}\n}")
}

// writeMutationResolvers writes the resolvers of all mutations.
func (g *generator) writeMutationResolvers(o *codegen.Object) {
	for _, f := range o.Fields {
		m, input := g.mutations[f.Name], f.Args[0]
		key := "nil"
		if m.repeatable() {
			key = input.VarName + ".IdempotencyKey"
		}
		g.line(`
func (r *mutationResolver) %s(ctx context.Context, %s %s) (%s, error) {`, f.GoFieldName, input.VarName, g.typeName(input.TypeReference.GO), g.typeName(f.TypeReference.GO))
		g.line(`return executeMutation(ctx, r.Resolver, r.store.%s, %s.Command, %s)
}`, m.method, input.VarName, key)
	}
}
