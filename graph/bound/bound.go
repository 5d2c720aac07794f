// Package bound computes the maximum DynamoDB requests of an operation. Of the module it imports
// commerce, dynamo and graph/operation.
package bound

import (
	"math"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// Bound is the most that an operation can ask of DynamoDB, whatever its variables and the table
// hold, for records that this program wrote and as far as dynamo.Bounds says. A subscription's is
// that of each event.
type Bound struct {
	// Requests, RoundTrips, ReadUnits and WriteUnits are what the explain output counts.
	Requests   int     `json:"requests"`
	RoundTrips int     `json:"roundTrips"`
	ReadUnits  float64 `json:"readUnits"`
	WriteUnits float64 `json:"writeUnits"`
	// Patterns tell where they come from, by access pattern in the model's order, then by write
	// pattern. Where it depends on a variable which one of several patterns is read by, each of
	// them is there.
	Patterns []Pattern `json:"patterns"`
}

// Pattern is the part of one access pattern in a Bound.
type Pattern struct {
	AccessPattern string  `json:"accessPattern"`
	Requests      int     `json:"requests"`
	ReadUnits     float64 `json:"readUnits"`
}

// Unbounded is a bound that is as good as none.
const Unbounded = math.MaxInt32

// Of computes the bound of a valid operation on a table of these bounds.
//
// It goes through the operation as plan and the resolvers do, but for any record of a type instead
// of those that there are: what a field reads is what the access patterns say that serve it. A
// field that none serves reads nothing. What one record of a type costs does not depend on where it
// stands, so it is computed once for each selection.
func Of(schema *ast.Schema, operation *operation.Prepared, table dynamo.Bounds) Bound {
	if operation.TooLarge {
		return Bound{Requests: Unbounded, RoundTrips: Unbounded, ReadUnits: Unbounded}
	}
	b := newBounding(schema, operation.Definition.Operation, table)
	switch operation.Definition.Operation {
	case ast.Query:
		b.findWhole(operation.Root)
		return b.bound(b.selection(operation.Root, origin{via: none, single: true}))
	case ast.Mutation:
		c, units := newCost(b), 0.0
		for i := range operation.Root.Fields {
			units += b.mutation(&c, &operation.Root.Fields[i])
		}
		bound := b.bound(c)
		bound.WriteUnits = units
		// The requests of a change may wait for one another, and the payload waits for the change.
		bound.RoundTrips = bound.Requests
		return bound
	default:
		return b.each(operation.Root)
	}
}

// each is the bound of one event of a subscription: that of the update. What subscribing itself
// reads is the feed's, and grows with what has happened since the event that it goes on behind.
func (b *bounding) each(root *operation.SelectionSet) Bound {
	c := newCost(b)
	for i := range root.Fields {
		update := root.Fields[i].Set
		b.findWhole(update)
		c.below(b.selection(update, origin{via: none, single: true}), 1, 1)
	}
	bound := b.bound(c)
	// Whether the order came along decides what is planned, so any request may wait for any other.
	bound.RoundTrips = bound.Requests
	return bound
}

// bounding computes a bound.
type bounding struct {
	schema   *ast.Schema
	bounds   dynamo.Bounds
	patterns []model.AccessPattern
	writes   []model.WritePattern
	// routes are the ways in which fields are read, by Type.field.
	routes map[string][]route
	// consistent reports whether reads are consistent where they can be.
	consistent bool
	// whole are the fields, by Type.field, that the operation has come along with some record of
	// their type, and wholeTypes these types.
	whole, wholeTypes map[string]bool
	known             map[boundKey]cost
}

// boundKey identifies the cost of a selection set.
type boundKey struct {
	set  *operation.SelectionSet
	from origin
}

func newBounding(schema *ast.Schema, operation ast.Operation, table dynamo.Bounds) *bounding {
	patterns := model.AccessPatterns()
	return &bounding{
		schema: schema, bounds: table, patterns: patterns, writes: model.WritePatterns(),
		routes: schemaRoutes(schema, patterns), consistent: operation != ast.Query,
		whole: map[string]bool{}, wholeTypes: map[string]bool{}, known: map[boundKey]cost{},
	}
}

// origin is how records were come by.
type origin struct {
	// via is the look-up that gave them, none where another pattern did.
	via int
	// single reports whether there is one record at most.
	single bool
	// partial reports whether they may be edges that lack attributes of their records.
	partial bool
}

const none = -1

// selection returns the cost of a selection set for each record.
func (b *bounding) selection(set *operation.SelectionSet, from origin) cost {
	key := boundKey{set, from}
	if c, ok := b.known[key]; ok {
		return c
	}
	c := newCost(b)
	b.fields(&c, set, from)
	b.known[key] = c
	return c
}

// below returns the cost of what is selected below a field, for each of its records.
func (b *bounding) below(f *operation.Field, from origin) cost {
	if f.Set != nil {
		return b.selection(f.Set, from)
	}
	c := newCost(b)
	for _, member := range f.Members {
		c.either(b.selection(member, from))
	}
	return c
}

func (b *bounding) fields(c *cost, set *operation.SelectionSet, from origin) {
	// Look-ups of one kind that a selection makes go together.
	shared := map[int]bool{}
	for i := range set.Fields {
		f := &set.Fields[i]
		if f.Name == operation.EntitiesField && set.Type == b.schema.Query {
			b.entities(c, f)
			continue
		}
		ways := b.ways(set.Type, f)
		if len(ways) == 0 {
			if len(f.Selections) > 0 && f.Number != operation.IntrospectionField {
				part := b.below(f, from)
				c.below(part, 1, 1)
				c.key, c.record = max(c.key, part.key), max(c.record, part.record)
			}
			continue
		}
		if size := f.MaxKeys(); size > 0 {
			b.batch(c, set.Type, f, ways, size)
			continue
		}
		if own := b.lookUp(set.Type, ways[0]); len(f.Selections) == 0 && slices.Equal(ways[0], []int{own}) && (!from.partial || shared[own]) {
			continue // only an edge may lack it, and one record has all that the edge lacks
		}
		b.field(c, set.Type, f, ways, set.Fields, from, shared)
	}
}

// batch adds a field that looks up so many records by a list of keys.
func (b *bounding) batch(c *cost, typ *ast.Definition, f *operation.Field, ways [][]int, size int) {
	each := newCost(b)
	b.field(&each, typ, f, ways, nil, origin{via: none, single: size == 1}, map[int]bool{})
	c.below(each, float64(size), 1)
	c.key = max(c.key, each.key)
}

// findWhole notes which fields come along with records that the root, of Query or of an update,
// names.
func (b *bounding) findWhole(root *operation.SelectionSet) {
	var fields []*operation.Field
	for i := range root.Fields {
		f := &root.Fields[i]
		if fields = append(fields, f); f.Name == operation.EntitiesField {
			fields = append(fields, b.named(f)...)
		}
	}
	for _, f := range fields {
		for _, r := range b.routes[root.Type.Name+"."+f.Name] {
			if may, _ := selected(f, r.sub); r.sub != "" && may {
				typ := f.Definition.Type.Name()
				b.whole[typ+"."+r.sub], b.wholeTypes[typ] = true, true
			}
		}
	}
}

// field adds a field that reads.
func (b *bounding) field(c *cost, typ *ast.Definition, f *operation.Field, ways [][]int, beside []operation.Field, from origin, shared map[int]bool) {
	rounds := b.reading(c, typ, f, ways, beside, from, shared)
	first := b.patterns[ways[0][0]]
	child, records, groups := newCost(b), 1.0, 1.0
	chain := rounds
	of := b.schema.Types[f.Definition.Type.Name()]
	switch {
	case operation.IsPage(f.Field):
		for _, set := range f.Records {
			part := b.selection(set, origin{via: none, partial: b.partial(ways)})
			child.below(part, 1, 1)
			child.key, child.record = max(child.key, part.key), max(child.record, part.record)
		}
		chain += max(child.key, child.record)
		records = float64(f.PageSize(nil))
		// Some records carry the list, of the others it is read: what follows comes in two groups.
		// Lists that are too large to come with their records are a third.
		switch {
		case from.single:
		case b.whole[typ.Name+"."+f.Name]:
			groups = 3
		case first.Fallback:
			groups = 2
		}
	case len(f.Selections) > 0:
		child = b.below(f, origin{via: b.lookUp(of, ways[0]), single: from.single})
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

// reading adds the requests by which a field is read, and returns how many round trips they take
// one after another. They are the most of its alternatives; but for each pattern, what it takes
// where it is chosen.
func (b *bounding) reading(c *cost, typ *ast.Definition, f *operation.Field, ways [][]int, beside []operation.Field, from origin, shared map[int]bool) int {
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

// partial reports whether a list may have edges that lack attributes of their records.
func (b *bounding) partial(ways [][]int) bool {
	return slices.ContainsFunc(slices.Concat(ways...), func(pattern int) bool {
		return slices.ContainsFunc(b.patterns[pattern].Records(), func(e model.Entity) bool { return len(e.Lacks) > 0 })
	})
}

// step is what one pattern takes for a field, and how many round trips.
func (b *bounding) step(typ *ast.Definition, f *operation.Field, pattern int, beside []operation.Field, alone bool, shared map[int]bool) (demand, int) {
	p := b.patterns[pattern]
	var bound dynamo.ReadBound
	switch {
	case p.Direction == "": // a look-up
		a := demand{each: 1, group: dynamo.KeysPerRequest - 1, units: b.bounds.KeyUnits(p, b.consistent)}
		if alone && shared[pattern] {
			a.group = 0
		}
		shared[pattern] = shared[pattern] || alone
		return a, 1
	case operation.IsPage(f.Field):
		bound = b.bounds.Page(p, dynamo.Page{Limit: f.PageSize(nil), More: f.Beyond.Next || f.Beyond.Previous}, b.statuses(p, f), b.consistent)
		if p.Fallback && slices.ContainsFunc(beside, func(other operation.Field) bool {
			return !operation.IsPage(other.Field) && b.serves(typ, &other, pattern)
		}) {
			// The list may be read as a whole, as it is counted as well.
			bound.ReadUnits = math.Max(bound.ReadUnits, b.bounds.Count(p, b.consistent).ReadUnits)
		}
	case len(f.Selections) > 0 && p.Most == 0:
		bound = b.bounds.Collection(p, b.consistent)
	default:
		if p.Fallback && slices.ContainsFunc(beside, func(other operation.Field) bool {
			return operation.IsPage(other.Field) && b.serves(typ, &other, pattern)
		}) {
			return demand{}, 1 // one Query serves the count and the page
		}
		bound = b.bounds.Count(p, b.consistent)
	}
	return demand{each: 100 * float64(bound.Requests), units: bound.ReadUnits}, bound.RoundTrips
}

// mutation adds a mutation and its payload, and returns its write units.
func (b *bounding) mutation(c *cost, f *operation.Field) (writeUnits float64) {
	for i, w := range b.writes {
		if w.Mutation == f.Name {
			bound := b.bounds.Change(w)
			writeUnits = bound.WriteUnits
			items := demand{each: 100 * float64(bound.Items.Requests), units: bound.Items.ReadUnits}
			c.read(slices.IndexFunc(b.patterns, func(p model.AccessPattern) bool { return p.ID == bound.ItemsPattern }), items)
			c.read(len(b.patterns)+i, demand{each: 100*float64(bound.Requests) - items.each, units: bound.ReadUnits - items.units})
		}
	}
	if len(f.Selections) > 0 {
		c.below(b.below(f, origin{via: none, single: true}), 1, 1)
	}
	return writeUnits
}
