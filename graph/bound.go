package graph

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
)

// Bound is the most that an operation can ask of DynamoDB, whatever its variables and the table hold, for records that this program
// wrote and as far as dynamo.Bounds says.
type Bound struct {
	// Requests, RoundTrips and ReadUnits are what the explain output counts.
	Requests, RoundTrips int
	ReadUnits            float64
	// Patterns tell where they come from, by access pattern in the model's order, then by write pattern. Where it depends on a
	// variable which one of several patterns is read by, each of them is there.
	Patterns []PatternBound
}

// PatternBound is the part of one access pattern in a Bound.
type PatternBound struct {
	AccessPattern string
	Requests      int
	ReadUnits     float64
}

// mostBound is a bound that is as good as none.
const mostBound = math.MaxInt32

// boundOf computes the bound of a valid operation on a table of these bounds.
//
// It goes through the operation as plan and the resolvers do, but for any record of a type instead of those that there are: what a
// field reads is what the access patterns say that serve it. A field that none serves reads nothing. What one record of a type costs does not
// depend on where it stands, so it is computed once for each selection.
func boundOf(schema *ast.Schema, operation *ast.OperationDefinition, table dynamo.Bounds) Bound {
	b := newBounding(schema, operation, table)
	switch operation.Operation {
	case ast.Query:
		root := []ast.SelectionSet{operation.SelectionSet}
		b.findWhole(root)
		return b.bound(b.selection(schema.Query, root, origin{via: none, single: true}))
	case ast.Mutation:
		c := newCost(b)
		for _, f := range b.collect(schema.Mutation, []ast.SelectionSet{operation.SelectionSet}) {
			b.mutation(&c, f)
		}
		bound := b.bound(c)
		// Nobody plans what a payload reads, so any request may wait for any other.
		bound.RoundTrips = bound.Requests
		return bound
	default:
		return Bound{}
	}
}

// bounding computes a bound.
type bounding struct {
	schema   *ast.Schema
	bounds   dynamo.Bounds
	patterns []dynamo.AccessPattern
	writes   []dynamo.WritePattern
	// routes are the ways in which fields are read, by Type.field.
	routes map[string][]route
	// planned tells that there is a plan, by which look-ups share requests. Without it every key may be a request of its own.
	planned bool
	// whole are the fields, by Type.field, that the operation has come along with some record of their type, and wholeTypes these
	// types.
	whole, wholeTypes map[string]bool
	known             map[string]cost
	// steps counts the selections; an operation that fragments make endless has no bound.
	steps int
}

// maxSelections is how many different selections are looked at. A document of two thousand tokens has no more than a few hundred, unless
// it repeats fragments under the same names in ever new combinations.
const maxSelections = 10_000

// route is one way in which a field is read.
type route struct {
	// pattern is its place in bounding.patterns.
	pattern int
	// arguments are those that it is for; the first decides. sub is the field that must be selected below.
	arguments []string
	sub       string
}

var servedField = regexp.MustCompile(`^(\w+\.\w+)(?:\((.*)\))?(?: \{ (\w+) \})?$`)

func newBounding(schema *ast.Schema, operation *ast.OperationDefinition, table dynamo.Bounds) *bounding {
	b := &bounding{
		schema: schema, bounds: table, patterns: dynamo.AccessPatterns(), writes: dynamo.WritePatterns(),
		routes: map[string][]route{}, planned: operation.Operation == ast.Query,
		whole: map[string]bool{}, wholeTypes: map[string]bool{}, known: map[string]cost{},
	}
	for i, p := range b.patterns {
		for _, name := range p.GraphQL {
			m := servedField.FindStringSubmatch(name)
			if m == nil || p.With != "" || p.SK == "" && p.Index == "" && m[3] == "" {
				continue // it comes along with the record above
			}
			r := route{pattern: i, sub: m[3]}
			if m[2] != "" {
				r.arguments = strings.Split(m[2], ", ")
			}
			b.routes[m[1]] = append(b.routes[m[1]], r)
		}
	}
	return b
}

// demand is what is asked of DynamoDB for any number of records that come in any number of groups. Look-ups of a group share requests: n
// keys take one for each hundred of them, rounded up, which is at most n/100 + 99/100.
type demand struct {
	// each and group are hundredths of requests, for each record and for each group of them; units are read units for each.
	each, group, units float64
}

func (a *demand) add(more demand, records, groups float64) {
	a.each = sum(a.each, more.each*records)
	a.group = sum(a.group, more.group*groups)
	a.units = sum(a.units, more.units*records)
}

// sum keeps numbers where they can be calculated with.
func sum(a, b float64) float64 { return math.Min(a+b, 1e15) }

// cost is what a selection costs for each of the records that it applies to.
type cost struct {
	total demand
	// patterns are the parts of the access patterns and the write patterns.
	patterns []demand
	// key and record are the longest chains of requests that begin when the records' keys are known, and when the records are there.
	key, record int
}

func newCost(b *bounding) cost { return cost{patterns: make([]demand, len(b.patterns)+len(b.writes))} }

// read adds requests of a pattern.
func (c *cost) read(pattern int, a demand) {
	c.total.add(a, 1, 1)
	c.patterns[pattern].add(a, 1, 1)
}

// below adds what is selected of so many records, in so many groups, but not its chains.
func (c *cost) below(more cost, records, groups float64) {
	c.total.add(more.total, records, groups)
	for i, a := range more.patterns {
		c.patterns[i].add(a, records, groups)
	}
}

// either makes c the most of c and another cost, where records are of one type or of another: each type's are a group.
func (c *cost) either(other cost) {
	most := func(a *demand, b demand) {
		a.each, a.units, a.group = math.Max(a.each, b.each), math.Max(a.units, b.units), sum(a.group, b.group)
	}
	most(&c.total, other.total)
	for i, a := range other.patterns {
		most(&c.patterns[i], a)
	}
	c.key, c.record = max(c.key, other.key), max(c.record, other.record)
}

// bound is what a cost is for the one root.
func (b *bounding) bound(c cost) Bound {
	requests := func(a demand) int { return int(math.Min((a.each+a.group)/100, mostBound)) }
	units := func(a demand) float64 { return math.Min(math.Ceil(2*a.units)/2, mostBound) }
	bound := Bound{Requests: requests(c.total), ReadUnits: units(c.total), RoundTrips: max(c.key, c.record)}
	all := 0
	for i, a := range c.patterns {
		if a == (demand{}) {
			continue
		}
		id := ""
		if i < len(b.patterns) {
			id = b.patterns[i].ID
		} else {
			id = b.writes[i-len(b.patterns)].ID
		}
		bound.Patterns = append(bound.Patterns, PatternBound{AccessPattern: id, Requests: requests(a), ReadUnits: units(a)})
		all += requests(a)
	}
	bound.Requests = min(bound.Requests, all)
	bound.RoundTrips = min(bound.RoundTrips, bound.Requests)
	if b.steps > maxSelections {
		bound.Requests, bound.RoundTrips, bound.ReadUnits = mostBound, mostBound, mostBound
	}
	return bound
}

// origin is how records were come by.
type origin struct {
	// via is the look-up that gave them, none where another pattern did.
	via int
	// single tells that there is one record at most.
	single bool
}

const none = -1

// gathered is a field as it is executed: all selections of one name in the response.
type gathered struct {
	*ast.Field
	sets []ast.SelectionSet
}

// collect gathers the fields that selections may have for a type.
func (b *bounding) collect(typ *ast.Definition, sets []ast.SelectionSet) []*gathered {
	return b.gather(typ, sets, leftOut)
}

// gather is collect without what directives make out to be leftOut, or conditional.
func (b *bounding) gather(typ *ast.Definition, sets []ast.SelectionSet, out func(ast.DirectiveList) bool) []*gathered {
	var fields []*gathered
	places := map[string]*gathered{}
	seen := map[string]bool{}
	var walk func(set ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				if strings.HasPrefix(s.Name, "__") || out(s.Directives) {
					continue
				}
				g := places[s.Alias]
				if g == nil {
					g = &gathered{Field: s}
					places[s.Alias] = g
					fields = append(fields, g)
				}
				if len(s.SelectionSet) > 0 {
					g.sets = append(g.sets, s.SelectionSet)
				}
			case *ast.InlineFragment:
				if !out(s.Directives) && b.applies(s.TypeCondition, typ) {
					walk(s.SelectionSet)
				}
			case *ast.FragmentSpread:
				if !out(s.Directives) && !seen[s.Name] && b.applies(s.Definition.TypeCondition, typ) {
					seen[s.Name] = true
					walk(s.Definition.SelectionSet)
				}
			}
		}
	}
	for _, set := range sets {
		walk(set)
	}
	return fields
}

// applies tells whether a fragment on a type is for records of another.
func (b *bounding) applies(condition string, typ *ast.Definition) bool {
	return condition == "" || condition == typ.Name || slices.ContainsFunc(b.schema.PossibleTypes[condition], func(d *ast.Definition) bool { return d.Name == typ.Name })
}

// leftOut tells whether @skip or @include leave something out whatever the variables are.
func leftOut(directives ast.DirectiveList) bool {
	for _, d := range directives {
		if v := d.Arguments.ForName("if"); v != nil && v.Value.Kind == ast.BooleanValue && (d.Name == "skip" && v.Value.Raw == "true" || d.Name == "include" && v.Value.Raw == "false") {
			return true
		}
	}
	return false
}

// conditional tells whether @skip or @include may leave something out.
func conditional(directives ast.DirectiveList) bool {
	return directives.ForName("skip") != nil || directives.ForName("include") != nil
}

// selection is what selections of a type cost for each record.
func (b *bounding) selection(typ *ast.Definition, sets []ast.SelectionSet, from origin) cost {
	var name strings.Builder
	fmt.Fprint(&name, typ.Name, " ", from)
	for _, set := range sets {
		fmt.Fprintf(&name, " %p", &set[0])
	}
	if c, ok := b.known[name.String()]; ok {
		return c
	}
	c := newCost(b)
	if b.steps++; b.steps > maxSelections {
		return c
	}
	if typ.IsAbstractType() {
		for _, d := range b.schema.GetPossibleTypes(typ) {
			c.either(b.selection(d, sets, from))
		}
	} else {
		b.fields(&c, typ, b.collect(typ, sets), from)
	}
	b.known[name.String()] = c
	return c
}

func (b *bounding) fields(c *cost, typ *ast.Definition, fields []*gathered, from origin) {
	// Look-ups of one kind that a selection makes go together.
	shared := map[int]bool{}
	for _, f := range fields {
		if f.Name == entitiesField && typ == b.schema.Query {
			b.entities(c, f)
			continue
		}
		ways := b.ways(typ, f)
		if len(ways) == 0 {
			if len(f.sets) > 0 {
				part := b.selection(b.schema.Types[f.Definition.Type.Name()], f.sets, from)
				c.below(part, 1, 1)
				c.key, c.record = max(c.key, part.key), max(c.record, part.record)
			}
			continue
		}
		b.field(c, typ, f, ways, fields, from, shared)
	}
}

// ways are the alternatives by which a field may be read, each the patterns that it takes.
func (b *bounding) ways(typ *ast.Definition, f *gathered) [][]int {
	var whole, ways [][]int
	var plain []int
	routes := slices.Clone(b.routes[typ.Name+"."+f.Name])
	slices.SortStableFunc(routes, func(a, b route) int { return len(b.arguments) - len(a.arguments) })
	for _, r := range routes {
		switch {
		case r.sub != "":
			may, must := b.selects(f, r.sub)
			if must {
				return [][]int{{r.pattern}}
			}
			if may {
				whole = append(whole, []int{r.pattern})
			}
		case len(r.arguments) > 0:
			may, must := isGiven(f, r.arguments[0])
			if may {
				ways = append(ways, []int{r.pattern})
			}
			if must {
				return ways
			}
		default:
			plain = append(plain, r.pattern)
		}
	}
	if len(plain) > 0 {
		ways = append(ways, plain)
	}
	return append(whole, ways...)
}

// isGiven tells whether an argument may have a value and whether it must have one. An object may turn out to say nothing.
func isGiven(f *gathered, name string) (may, must bool) {
	a := f.Arguments.ForName(name)
	if a == nil || a.Value.Kind == ast.NullValue {
		return false, false
	}
	return true, a.Value.Kind == ast.ListValue || a.Value.Kind == ast.EnumValue
}

// selects tells whether a field may be selected below f and whether it must be, whatever the variables are.
func (b *bounding) selects(f *gathered, name string) (may, must bool) {
	typ := b.schema.Types[f.Definition.Type.Name()]
	named := func(g *gathered) bool { return g.Name == name }
	return slices.ContainsFunc(b.collect(typ, f.sets), named), slices.ContainsFunc(b.gather(typ, f.sets, conditional), named)
}

// findWhole notes which fields come along with records that the root names.
func (b *bounding) findWhole(root []ast.SelectionSet) {
	fields := b.collect(b.schema.Query, root)
	for _, f := range fields {
		if f.Name == entitiesField {
			fields = append(fields, b.named(f)...)
		}
	}
	for _, f := range fields {
		for _, r := range b.routes["Query."+f.Name] {
			if may, _ := b.selects(f, r.sub); r.sub != "" && may {
				typ := f.Definition.Type.Name()
				b.whole[typ+"."+r.sub], b.wholeTypes[typ] = true, true
			}
		}
	}
}

// field adds a field that reads.
func (b *bounding) field(c *cost, typ *ast.Definition, f *gathered, ways [][]int, beside []*gathered, from origin, shared map[int]bool) {
	rounds := b.reading(c, typ, f, ways, beside, from, shared)
	first := b.patterns[ways[0][0]]
	child, records, groups := newCost(b), 1.0, 1.0
	chain := rounds
	of := b.schema.Types[f.Definition.Type.Name()]
	switch {
	case isPage(f.Field):
		for _, sets := range b.nodes(of, f.sets) {
			part := b.selection(sets.typ, sets.sets, origin{via: none})
			child.below(part, 1, 1)
			child.key, child.record = max(child.key, part.key), max(child.record, part.record)
		}
		chain += max(child.key, child.record)
		records = float64(pageSize(f))
		// Some records carry the list, of the others it is read: what follows comes in two groups.
		if !from.single && (first.Fallback || b.whole[typ.Name+"."+f.Name]) {
			groups = 2
		}
	case len(f.sets) > 0:
		child = b.selection(of, f.sets, origin{via: b.lookUp(of, ways[0]), single: from.single})
		if first.Direction != "" {
			chain += max(child.key, child.record) // a whole record is planned by what came with it
		} else {
			// The key of the record is known when its own request begins.
			chain = max(rounds, rounds-1+child.key, rounds+child.record)
		}
		if !from.single && b.wholeTypes[of.Name] {
			groups = 2
		}
	}
	c.below(child, records, groups)
	if b.byKey(typ, f, ways) {
		c.key = max(c.key, chain)
	} else {
		c.record = max(c.record, chain)
	}
}

// reading adds the requests by which a field is read, and returns how many round trips they take one after another. They are the
// most of its alternatives; but for each pattern, what it takes where it is chosen.
func (b *bounding) reading(c *cost, typ *ast.Definition, f *gathered, ways [][]int, beside []*gathered, from origin, shared map[int]bool) int {
	most, rounds := demand{}, 0
	for _, way := range ways {
		all, longest := demand{}, 0
		for _, pattern := range way {
			if pattern == from.via {
				continue // it is at hand
			}
			a, trips := b.step(typ, f, pattern, beside, len(way) == 1, shared)
			c.patterns[pattern].add(a, 1, 1)
			all.add(a, 1, 1)
			longest += trips
		}
		most = demand{math.Max(most.each, all.each), math.Max(most.group, all.group), math.Max(most.units, all.units)}
		rounds = max(rounds, longest)
	}
	c.total.add(most, 1, 1)
	return rounds
}

// step is what one pattern takes for a field, and how many round trips.
func (b *bounding) step(typ *ast.Definition, f *gathered, pattern int, beside []*gathered, alone bool, shared map[int]bool) (demand, int) {
	p := b.patterns[pattern]
	var bound dynamo.ReadBound
	switch {
	case p.Direction == "": // a look-up
		a := demand{each: 100, units: b.bounds.KeyUnits(p, !b.planned)}
		if b.planned {
			a.each, a.group = 1, dynamo.KeysPerRequest-1
			if alone && shared[pattern] {
				a.group = 0
			}
			shared[pattern] = shared[pattern] || alone
		}
		return a, 1
	case isPage(f.Field):
		bound = b.bounds.Page(p, dynamo.Page{Limit: pageSize(f), More: b.asksBeyond(f)}, b.values(p, f), !b.planned)
		if p.Fallback && slices.ContainsFunc(beside, func(other *gathered) bool { return !isPage(other.Field) && b.serves(typ, other, pattern) }) {
			// The list may be read as a whole, as it is counted as well.
			bound.ReadUnits = math.Max(bound.ReadUnits, b.bounds.Count(p, !b.planned).ReadUnits)
		}
	case len(f.sets) > 0:
		bound = b.bounds.Collection(p, !b.planned)
	default:
		if p.Fallback && b.planned && slices.ContainsFunc(beside, func(other *gathered) bool { return isPage(other.Field) && b.serves(typ, other, pattern) }) {
			return demand{}, 1 // one Query serves the count and the page
		}
		bound = b.bounds.Count(p, !b.planned)
	}
	return demand{each: 100 * float64(bound.Requests), units: bound.ReadUnits}, bound.RoundTrips
}

// serves tells whether a pattern serves a field.
func (b *bounding) serves(typ *ast.Definition, f *gathered, pattern int) bool {
	return slices.ContainsFunc(b.routes[typ.Name+"."+f.Name], func(r route) bool { return r.pattern == pattern })
}

// byKey tells whether a field is read as soon as the key of the record above is known, instead of when the record is there.
func (b *bounding) byKey(typ *ast.Definition, f *gathered, ways [][]int) bool {
	if typ == b.schema.Query {
		return true
	}
	if len(f.sets) == 0 || b.whole[typ.Name+"."+f.Name] {
		return false // the record may tell a number, and may have come with the list
	}
	own, ok := kindOf(typ)
	known := append(own.PK.Names(), own.SK.Names()...)
	for _, way := range ways {
		for _, pattern := range way {
			for _, name := range b.patterns[pattern].PK.Names() {
				ok = ok && slices.Contains(known, name)
			}
			ok = ok && !b.patterns[pattern].Fallback
		}
	}
	return ok
}

// kindOf is the kind of record that a type is.
func kindOf(typ *ast.Definition) (dynamo.Entity, bool) {
	name := string(unicode.ToLower(rune(typ.Name[0]))) + typ.Name[1:]
	for _, e := range dynamo.Entities() {
		if e.Name == name {
			return e, true
		}
	}
	return dynamo.Entity{}, false
}

// lookUp is the pattern among some that reads a record of a type by its own key; none where there is none.
func (b *bounding) lookUp(typ *ast.Definition, among []int) int {
	if e, ok := kindOf(typ); ok {
		for _, pattern := range among {
			if p := b.patterns[pattern]; p.Direction == "" && p.PK == e.PK && p.SK == e.SK {
				return pattern
			}
		}
	}
	return none
}

// nodes are the selections of a connection's records.
func (b *bounding) nodes(connection *ast.Definition, sets []ast.SelectionSet) []gatheredType {
	var nodes []gatheredType
	add := func(f *gathered) {
		if len(f.sets) > 0 {
			nodes = append(nodes, gatheredType{b.schema.Types[f.Definition.Type.Name()], f.sets})
		}
	}
	for _, part := range b.collect(connection, sets) {
		switch part.Name {
		case "nodes":
			add(part)
		case "edges":
			for _, edge := range b.collect(b.schema.Types[part.Definition.Type.Name()], part.sets) {
				if edge.Name == "node" {
					add(edge)
				}
			}
		}
	}
	return nodes
}

type gatheredType struct {
	typ  *ast.Definition
	sets []ast.SelectionSet
}

// pageSize is how many records a page has at most; a size in a variable is any.
func pageSize(f *gathered) int {
	var sizes []int
	for _, name := range []string{"first", "last"} {
		a := f.Arguments.ForName(name)
		if a == nil || a.Value.Kind == ast.NullValue {
			continue
		}
		n, err := strconv.Atoi(a.Value.Raw)
		if a.Value.Kind != ast.IntValue || err != nil {
			n = maxPage
		}
		sizes = append(sizes, n)
	}
	return largestPage(sizes)
}

// asksBeyond tells whether a connection is asked for what lies beyond the page.
func (b *bounding) asksBeyond(f *gathered) bool {
	for _, part := range b.collect(b.schema.Types[f.Definition.Type.Name()], f.sets) {
		if part.Name != "pageInfo" {
			continue
		}
		next, _ := b.selects(part, "hasNextPage")
		previous, _ := b.selects(part, "hasPreviousPage")
		if next || previous {
			return true
		}
	}
	return false
}

// values is of how many values of a list's key a field may merge the lists: of the statuses that it names, or of all.
func (b *bounding) values(p dynamo.AccessPattern, f *gathered) int {
	if !slices.Contains(p.PK.Names(), "status") || f.Definition.Arguments.ForName("status") != nil {
		return 1
	}
	all := len(commerce.Statuses())
	a := f.Arguments.ForName("statuses")
	switch {
	case a == nil:
		return all
	case a.Value.Kind == ast.EnumValue:
		return 1
	case a.Value.Kind == ast.ListValue:
		named := map[string]bool{}
		for _, v := range a.Value.Children {
			named[v.Value.String()] = true
		}
		return min(max(len(named), 1), all)
	default:
		return all
	}
}

// entities adds records that a gateway names, of any type: each is read as the field of Query reads it that gives one of its type by its
// key.
func (b *bounding) entities(c *cost, f *gathered) {
	asked, named := maxRepresentations, map[string]bool(nil)
	if a := f.Arguments.ForName("representations"); a != nil && a.Value.Kind == ast.ListValue {
		asked, named = min(len(a.Value.Children), asked), typesNamed(a.Value.Children)
	}
	most := newCost(b)
	for _, one := range b.named(f) {
		// A record is looked up also where nothing is selected of its type: whether there is one has to be told.
		if named != nil && !named[one.Definition.Type.Name()] {
			continue
		}
		each := newCost(b)
		b.field(&each, b.schema.Query, one, b.ways(b.schema.Query, one), nil, origin{via: none, single: asked == 1}, map[int]bool{})
		most.either(each)
	}
	c.below(most, float64(asked), 1)
	c.key = max(c.key, most.key)
}

// named are the fields of Query that give one record of each type that _entities may give, with what is selected of it there.
func (b *bounding) named(f *gathered) []*gathered {
	var fields []*gathered
	for _, typ := range b.schema.GetPossibleTypes(b.schema.Types[f.Definition.Type.Name()]) {
		for _, definition := range b.schema.Query.Fields {
			if definition.Type.Name() != typ.Name {
				continue
			}
			routes := b.routes["Query."+definition.Name]
			byAnother := func(r route) bool { return r.sub == "" && b.lookUp(typ, []int{r.pattern}) == none }
			if len(routes) > 0 && !slices.ContainsFunc(routes, byAnother) {
				field := &ast.Field{Name: definition.Name, Alias: definition.Name, Definition: definition, ObjectDefinition: b.schema.Query}
				fields = append(fields, &gathered{Field: field, sets: f.sets})
			}
		}
	}
	return fields
}

// typesNamed are the types that representations in the document name; nil where a variable may name others.
func typesNamed(representations ast.ChildValueList) map[string]bool {
	named := map[string]bool{}
	for _, r := range representations {
		typ := r.Value.Children.ForName("__typename")
		if typ == nil || typ.Kind != ast.StringValue {
			return nil
		}
		named[typ.Raw] = true
	}
	return named
}

// mutation adds a mutation and its payload.
func (b *bounding) mutation(c *cost, f *gathered) {
	for i, w := range b.writes {
		if w.Mutation == f.Name {
			bound := b.bounds.Change(w)
			items := demand{each: 100 * float64(bound.Items.Requests), units: bound.Items.ReadUnits}
			c.read(slices.IndexFunc(b.patterns, func(p dynamo.AccessPattern) bool { return p.ID == bound.ItemsPattern }), items)
			c.read(len(b.patterns)+i, demand{each: 100*float64(bound.Requests) - items.each, units: bound.ReadUnits - items.units})
		}
	}
	if len(f.sets) > 0 {
		c.below(b.selection(b.schema.Types[f.Definition.Type.Name()], f.sets, origin{via: none, single: true}), 1, 1)
	}
}
