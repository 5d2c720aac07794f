package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/codegen"

	"github.com/ordergraph/ordergraph/graph/operation"
)

// The packages that generated code names: modelPackage declares the access patterns.
const (
	storePackage     = "github.com/ordergraph/ordergraph/dynamo"
	modelPackage     = storePackage + "/model"
	operationPackage = graphPackage + "/operation"
	pagingPackage    = graphPackage + "/paging"
	scalarPackage    = graphPackage + "/scalar"
)

// reading is an access pattern with its Go types.
type reading struct {
	pattern
	// key is the type of the keys of a Lookup; nil for a List.
	key types.Type
	// value is the type of the records; nil for a pattern that is neither a Lookup nor a List.
	value types.Type
}

// follows names what plans the reads that follow from records, and the keys of such records that a
// level of a plan collects: customers for *commerce.Customer.
func (r reading) follows() string { return plural(lcFirst(named(r.value).Obj().Name())) }

// readings returns the access patterns, by ID.
func readings(model *types.Package, patterns []pattern) map[string]reading {
	found := map[string]reading{}
	for _, p := range patterns {
		r := reading{pattern: p}
		variable := model.Scope().Lookup(p.name)
		if variable == nil {
			fail("%s: %s has no type", patternsFile, p.name)
		}
		if p.typed {
			arguments := named(variable.Type()).TypeArgs()
			r.value = arguments.At(arguments.Len() - 1)
			if arguments.Len() == 2 {
				r.key = arguments.At(0)
			}
		}
		found[p.id()] = r
	}
	return found
}

// named is a type, or what it points to, as a named one.
func named(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

// read is one @reads of a field.
type read struct {
	reading
	with          []string
	selecting, by string
	byHand        bool
}

// reads returns the @reads of a field, and whether its plan and its resolver are generated: it has
// some, and none is by hand. It fails for a directive that names no pattern, or an argument that
// the field does not have.
func (g *generator) reads(f *codegen.Field) (all []read, generated bool) {
	defer within("%s", fullName(f))
	generated = true
	for _, d := range f.FieldDefinition.Directives.ForNames("reads") {
		text := func(name string) string {
			if a := d.Arguments.ForName(name); a != nil {
				return a.Value.Raw
			}
			return ""
		}
		r := read{selecting: text("selecting"), by: text("by"), byHand: d.Arguments.ForName("byHand") != nil}
		var ok bool
		if r.reading, ok = g.readings[text("pattern")]; !ok {
			fail("@reads: there is no access pattern %q", text("pattern"))
		}
		if with := d.Arguments.ForName("with"); with != nil {
			for _, name := range with.Value.Children {
				if f.Arguments.ForName(name.Value.Raw) == nil {
					fail("@reads(pattern: %q): there is no argument %q", r.id(), name.Value.Raw)
				}
				r.with = append(r.with, name.Value.Raw)
			}
		}
		generated = generated && !r.byHand
		all = append(all, r)
	}
	return all, generated && len(all) > 0
}

// isList reports whether a field returns a page of a list.
func isList(f *codegen.Field) bool { return f.Arguments.ForName("first") != nil }

// fullName is the name of a field by which cursors know its list.
func fullName(f *codegen.Field) string { return f.Object.Name + "." + f.Name }

// argumentsType names the Go type of a field's arguments.
func argumentsType(f *codegen.Field) string {
	return strings.TrimLeft(lcFirst(funcName(f))+"Arguments", "_")
}

// pagingArguments choose the page. All others belong to the list, and so to its cursors.
var pagingArguments = []string{"first", "after", "last", "before"}

// limit is a method of paging.Request that limits a list by an argument.
type limit struct {
	name string
	// refuses reports that a value can be wrong. Then the method gets the argument's name, too.
	refuses bool
}

// requestFile declares the methods of paging.Request.
const requestFile = "graph/paging/request.go"

// prefixMethod is for arguments that operation.IsPrefix tells by their names.
var prefixMethod = limit{name: "Prefix"}

// limits returns the methods for all other arguments, by the argument's Go type.
func limits() map[string]limit {
	found := map[string]limit{}
	for _, d := range must(parser.ParseFile(token.NewFileSet(), requestFile, nil, 0)).Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || types.ExprString(f.Recv.List[0].Type) != "*Request" || !f.Name.IsExported() || f.Name.Name == prefixMethod.name {
			continue
		}
		parameters := f.Type.Params.List
		of := types.ExprString(parameters[len(parameters)-1].Type)
		if found[of].name != "" {
			fail("%s: %s and %s are for arguments of one type", requestFile, found[of].name, f.Name.Name)
		}
		found[of] = limit{f.Name.Name, len(parameters) > 1}
	}
	return found
}

// listArguments writes the method that reads the arguments of a list. It fails for an argument of a
// Go type that limits no list.
func (g *generator) listArguments(f *codegen.Field, all []read) {
	g.p("\n// list reads the arguments into a request. Each is part of the list's cursors but those that choose the page.\nfunc (a *%s) list(q *paging.Request, beyond operation.Beyond) {", argumentsType(f))
	slices.SortStableFunc(all, func(a, b read) int { return len(b.with) - len(a.with) })
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
		method := prefixMethod
		if !operation.IsPrefix(a.Name) {
			if method = g.limits[g.name(a.TypeReference.GO)]; method.name == "" {
				fail("%s: the argument %s is a %s, which limits no list: give paging.Request a method for it", fullName(f), a.Name, g.name(a.TypeReference.GO))
			}
		}
		given := ""
		if chosen[a.Name] {
			given = a.VarName + " := "
		}
		name := ""
		if method.refuses {
			name = strconv.Quote(a.Name) + ", "
		}
		g.p("%sq.%s(%sa.%s)", given, method.name, name, a.VarName)
	}
	if len(chosen) > 0 {
		g.p("switch {")
		for _, r := range all {
			if len(r.with) > 0 {
				given := make([]string, len(r.with))
				for i, name := range r.with {
					given[i] = f.Args[slices.IndexFunc(f.Args, func(a *codegen.FieldArgument) bool { return a.Name == name })].VarName
				}
				g.p("case %s:\nq.Key.Pattern = &model.%s.AccessPattern", strings.Join(given, " && "), r.name)
			}
		}
		g.p("}")
		g.imported(modelPackage, "model")
	}
	g.p("q.SetPage(paging.Arguments{First: a.first, After: a.after, Last: a.last, Before: a.before, Beyond: beyond})\n}")
}

// isBatch reports whether a field looks records up by a list of keys.
func isBatch(f *codegen.Field) bool { return operation.BatchArgument(f.FieldDefinition) != nil }

// batchArguments writes the method that reads the argument of a field as keys of its records.
func (g *generator) batchArguments(f *codegen.Field, key types.Type) {
	g.p("\n// keys reads the argument as the keys of records, an empty one where no record can have it.")
	g.p("func (a *%s) keys() ([]%s, error) { return lookupIDs[%s](%q, a.%s) }", argumentsType(f), g.name(key), g.name(key), f.Args[0].Name, f.Args[0].VarName)
}

// keyArguments writes the method that reads the arguments of a field as the key of its record.
func (g *generator) keyArguments(f *codegen.Field, key types.Type) {
	name := g.name(key)
	g.p("\n// key reads the arguments as the key of a record, and returns false where no record can have it.\nfunc (a *%s) key() (key %s, ok bool) {", argumentsType(f), name)
	if parts, ok := key.Underlying().(*types.Struct); ok {
		for i := range parts.NumFields() {
			part, a := parts.Field(i), f.Args[i]
			g.p("if key.%s, ok = lookupID[%s](a.%s); !ok {\nreturn key, false\n}", part.Name(), g.name(part.Type()), a.VarName)
		}
		g.p("return key, true\n}")
		return
	}
	a := f.Args[0]
	g.p("return lookupID[%s](a.%s)\n}", name, a.VarName)
}

// same reports whether two types are one. Packages that were loaded apart have their own copies of
// the types of a third one, so types.Identical does not tell.
func same(a, b types.Type) bool { return types.Unalias(a).String() == types.Unalias(b).String() }

// member returns the field of a struct that has a type, or the name that by gives. It fails where
// there is none, or more than one.
func member(of types.Type, t types.Type, by string) string {
	s, ok := named(of).Underlying().(*types.Struct)
	if !ok {
		fail("%s has no fields", of)
	}
	var found []string
	for field := range s.Fields() {
		if same(field.Type(), t) && (by == "" || strings.EqualFold(field.Name(), by)) {
			found = append(found, field.Name())
		}
	}
	if len(found) > 1 && slices.Contains(found, "ID") {
		found = []string{"ID"}
	}
	if len(found) != 1 {
		fail("%s has %d fields of type %s: name the attribute with by", of, len(found), t)
	}
	return found[0]
}

// ownKey is the lookup by whose keys the records of a type are known: the first one that reads
// them.
func (g *generator) ownKey(o *codegen.Object) (reading, bool) {
	for _, p := range g.patterns {
		if r := g.readings[p.id()]; r.key != nil && o.Type != nil && named(r.value) != nil && same(named(r.value), named(o.Reference())) {
			return r, true
		}
	}
	return reading{}, false
}

// planned is a field whose plan and resolver are generated.
type planned struct {
	*codegen.Field
	number int
	reads  []read
}

// plans writes what plans and resolves the fields of a type that access patterns read.
func (g *generator) plans(o *codegen.Object) {
	var lists, lookups, references []planned
	for i, f := range o.Fields {
		all, generated := g.reads(f)
		p := planned{f, i + 1, all}
		switch {
		case !generated || all[0].value == nil: // it comes with the record
			continue
		case isList(f):
			lists = append(lists, p)
		case o.Root:
			lookups = append(lookups, p)
		case len(f.Args) == 0:
			references = append(references, p)
		default:
			fail("%s: a record by arguments and the parent's key is read by hand: say so with byHand", fullName(f))
		}
		g.resolver(p)
	}
	own, _ := g.ownKey(o)
	if len(lists) > 0 {
		g.pages(o, own, lists)
	}
	if len(lookups) > 0 {
		g.p("\n// rootRecord adds the record that a field of Query reads by its arguments. It returns false for other fields.")
		g.p("func (p plan) rootRecord(f *operation.Field, to *refs) bool {\nswitch f.Number {")
		for _, f := range lookups {
			g.p("case %d: // %s", f.number, f.Name)
			list := "to." + f.reads[0].follows()
			if isBatch(f.Field) {
				g.p("addBatch(&%s, f, argumentsOf[%s](p, f))", list, argumentsType(f.Field))
				continue
			}
			if slices.ContainsFunc(f.reads, func(r read) bool { return r.selecting != "" }) {
				// What is selected decides whether the record is read with its item collection.
				list = "to." + lcFirst(named(f.reads[0].value).Obj().Name()) + "(f.Records)"
			}
			g.p("if key, ok := argumentsOf[%s](p, f).key(); ok {\n%s.add(key, f.Path, f.Records)\n}", argumentsType(f.Field), list)
		}
		g.p("default:\nreturn false\n}\nreturn true\n}")
	}
	if len(references) > 0 {
		g.references(o, own, references)
	}
}

// pages writes what plans the lists of a type: of Query, or those that belong to a record.
func (g *generator) pages(o *codegen.Object, own reading, lists []planned) {
	if o.Root {
		g.p("\n// rootLists plans the lists of Query.\nfunc (p plan) rootLists(ctx context.Context, root *operation.SelectionSet) {")
	} else {
		g.p("\n// %sLists plans the lists that belong to records of type %s.", lcFirst(o.Name), o.Name)
		g.p("func (p plan) %sLists(ctx context.Context, targets []target[%s]) {", lcFirst(o.Name), g.name(own.key))
	}
	names := make([]string, len(lists))
	for i, f := range lists {
		names[i] = f.Name
	}
	g.p("var %s wanted[dynamo.ListRequest]", strings.Join(names, ", "))
	if o.Root {
		g.p("for _, f := range root.Reads {\nswitch f.Number {")
	} else {
		g.p("for key, f := range fields(targets) {\nswitch f.Number {")
	}
	for _, f := range lists {
		of := ""
		if !o.Root {
			of = ", string(key)"
		}
		g.p("case %d: // %s\nq := p.resolver.list(%q%s)", f.number, f.Name, fullName(f.Field), of)
		g.p("argumentsOf[%s](p, f).list(&q, f.Beyond)\naddList(p, &%s, f, &q)", argumentsType(f.Field), f.Name)
	}
	g.p("}\n}")
	for _, f := range lists {
		g.p("startList(ctx, p, &%s, model.%s, plan.%s)", f.Name, f.reads[0].name, f.reads[0].follows())
	}
	g.p("}")
	g.imported(storePackage, "dynamo")
	g.imported(modelPackage, "model")
	g.imported("context", "context")
}

// references writes what adds the records that records of a type refer to. They are known by the
// record's own key where that has them, so that nobody has to wait for the record.
func (g *generator) references(o *codegen.Object, own reading, references []planned) {
	of, what := o.Reference(), "record"
	if own.key != nil {
		if _, ok := own.key.Underlying().(*types.Struct); ok {
			of, what = own.key, "key"
		}
	}
	g.p("\n// %sReference adds the record that a field refers to.", lcFirst(o.Name))
	g.p("func %sReference(%s %s, f *operation.Field, to *refs) {\nswitch f.Number {", lcFirst(o.Name), what, g.name(of))
	for _, f := range references {
		r := f.reads[0]
		g.p("case %d: // %s\naddRef(&to.%s, f, %s.%s)", f.number, f.Name, r.follows(), what, member(of, r.key, r.by))
	}
	g.p("}\n}")
}

// resolver writes the resolver of a field, which returns what was planned.
func (g *generator) resolver(f planned) {
	defer within("%s", fullName(f.Field))
	parameters, values := "ctx context.Context", make([]string, len(f.Args))
	if !f.Object.Root {
		parameters += ", obj " + g.name(f.Object.Reference())
	}
	for i, a := range f.Args {
		parameters += ", " + a.VarName + " " + g.name(a.TypeReference.GO)
		values[i] = a.VarName
	}
	r := f.reads[0]
	g.imported("context", "context")
	g.imported(modelPackage, "model")
	g.p("\nfunc (r *%sResolver) %s(%s) (%s, error) {", lcFirst(f.Object.Name), f.GoFieldName, parameters, g.name(f.TypeReference.GO))
	arguments := fmt.Sprintf("(&%s{%s})", argumentsType(f.Field), strings.Join(values, ", "))
	switch {
	case isList(f.Field):
		of := ""
		if !f.Object.Root {
			own, ok := g.ownKey(f.Object)
			if !ok {
				fail("no access pattern reads the records of %s by a key", f.Object.Name)
			}
			of = ", string(obj." + member(f.Object.Reference(), own.key, "") + ")"
		}
		g.p("q := r.list(%q%s)\n%s.list(&q, resolving(ctx).Beyond)\nreturn connection(ctx, model.%s, &q)\n}", fullName(f.Field), of, arguments, r.name)
	case isBatch(f.Field):
		g.p("keys, err := %s.keys()\nif err != nil {\nreturn nil, err\n}\nreturn batch(ctx, model.%s, keys)\n}", arguments, r.name)
	case f.Object.Root:
		g.p("key, ok := %s.key()\nif !ok {\nreturn nil, nil\n}\nreturn record(ctx, model.%s, key)\n}", arguments, r.name)
	default:
		g.p("return reference(ctx, model.%s, obj.%s)\n}", r.name, member(f.Object.Reference(), r.key, r.by))
	}
}

// readArguments writes the methods that read the arguments of a field as a list or as a key.
func (g *generator) readArguments(f *codegen.Field) {
	switch all, _ := g.reads(f); {
	case len(all) == 0:
	case isList(f):
		g.listArguments(f, all)
	case isBatch(f):
		g.batchArguments(f, all[0].key)
	case f.Object.Root && all[0].key != nil && named(all[0].key) != nil && g.name(f.Args[0].TypeReference.GO) == "string":
		g.keyArguments(f, all[0].key)
	}
}

// generateReads writes the plan and the resolvers of the fields that access patterns
// read, of the resolvers of mutations, and of the types of all resolvers.
func generateReads(data *codegen.Data, p plugin) {
	g := newGenerator(data)
	g.imported(operationPackage, "operation")
	g.imported(pagingPackage, "paging")
	g.patterns, g.mutations = p.patterns, p.derived.mutations
	g.readings, g.limits = readings(p.model, p.patterns), limits()
	var resolvers []string
	for _, o := range data.Objects {
		if o.HasResolvers() {
			resolvers = append(resolvers, o.Name)
		}
		o = withoutIntrospection(o)
		for _, f := range o.Fields {
			g.readArguments(f)
		}
		g.plans(o)
		if o.Name == "Mutation" {
			g.changes(o)
		}
	}
	slices.Sort(resolvers)
	for _, name := range resolvers {
		g.p("\n// %s returns the resolvers of %s.\nfunc (r *Resolver) %s() %sResolver { return &%sResolver{r} }", name, name, name, name, lcFirst(name))
	}
	g.p("\ntype (")
	for _, name := range resolvers {
		g.p("%sResolver struct{ *Resolver }", lcFirst(name))
	}
	g.p(")")
	g.write(readsFile)
}

// changes writes the resolvers of mutations.
func (g *generator) changes(o *codegen.Object) {
	for _, f := range o.Fields {
		m, input := g.mutations[f.Name], f.Args[0]
		key := "nil"
		if m.repeatable {
			key = input.VarName + ".IdempotencyKey"
		}
		g.p("\nfunc (r *mutationResolver) %s(ctx context.Context, %s %s) (%s, error) {", f.GoFieldName, input.VarName, g.name(input.TypeReference.GO), g.name(f.TypeReference.GO))
		g.p("return mutate(ctx, r.Resolver, r.store.%s, %s.Command, %s)\n}", m.method, input.VarName, key)
	}
}
