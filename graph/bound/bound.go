// Package bound computes the maximum load of a GraphQL operation on DynamoDB without executing the
// operation. Within the module, it imports commerce, dynamo, dynamo/markdown, dynamo/model and
// graph/operation.
package bound

import (
	"math"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// Bound is the maximum load of an operation, or of one subscription event, on DynamoDB. It is valid
// only if Ordergraph wrote all records.
type Bound struct {
	// These numbers have the same meaning as in the explain output (extensions.explain).
	Requests   int     `json:"requests"`
	RoundTrips int     `json:"roundTrips"`
	ReadUnits  float64 `json:"readUnits"`
	WriteUnits float64 `json:"writeUnits"`
	// Patterns contains first the access patterns that the operation can use, and then its write
	// patterns. Both are in the order of package model.
	Patterns []PatternBound `json:"patterns"`
}

// PatternBound is the maximum load that an operation causes through one access pattern or write
// pattern.
type PatternBound struct {
	AccessPattern string  `json:"accessPattern"`
	Requests      int     `json:"requests"`
	ReadUnits     float64 `json:"readUnits"`
}

// Unbounded is the maximum of Requests, RoundTrips and ReadUnits in a Bound. If the operation is
// too large to compute these numbers, all of them are Unbounded.
const Unbounded = math.MaxInt32

// Compute computes the bound of a valid operation for the most expensive possible records. table
// contains the number of shards and the maximum record sizes.
func Compute(schema *ast.Schema, operation *operation.Prepared, table dynamo.CostBounds) Bound {
	if operation.TooLarge {
		return Bound{Requests: Unbounded, RoundTrips: Unbounded, ReadUnits: Unbounded}
	}
	b := newCalculator(schema, operation.Definition.Operation, table)
	switch operation.Definition.Operation {
	case ast.Query:
		b.findCollectionReads(operation.Root)
		return b.toBound(b.selectionCost(operation.Root, recordOrigin{lookup: noPattern, single: true}))
	case ast.Mutation:
		c, units := newCost(b), 0.0
		for i := range operation.Root.Fields {
			units += b.addMutation(&c, &operation.Root.Fields[i])
		}
		bound := b.toBound(c)
		bound.WriteUnits = units
		// Each request of a mutation may wait for the previous request, and the reads for the payload
		// wait for the write. In the worst case, all requests run one after the other.
		bound.RoundTrips = bound.Requests
		return bound
	default:
		return b.eventBound(operation.Root)
	}
}

// eventBound returns the bound of one event of a subscription. It excludes the reads at the start
// of the subscription, because their number depends on the number of missed events.
func (b *calculator) eventBound(root *operation.SelectionSet) Bound {
	c := newCost(b)
	for i := range root.Fields {
		update := root.Fields[i].Set
		b.findCollectionReads(update)
		c.addChildren(b.selectionCost(update, recordOrigin{lookup: noPattern, single: true}), 1, 1)
	}
	bound := b.toBound(c)
	// If the event does not contain the order, the plan must read the order before other records. In
	// the worst case, all requests run one after the other.
	bound.RoundTrips = bound.Requests
	return bound
}

// calculator computes a bound.
type calculator struct {
	schema   *ast.Schema
	bounds   dynamo.CostBounds
	patterns []model.AccessPattern
	writes   []model.WritePattern
	// routes maps each field to the possible ways to read it. The keys have the form Type.field. A
	// field without routes needs no request.
	routes map[string][]readRoute
	// consistent is true if the operation uses strongly consistent reads. Reads of an index are always
	// eventually consistent.
	consistent bool
	// collectionFields contains fields in the form Type.field. One Query of an item collection may
	// read such a field together with its parent record. collectionTypes contains the types of these
	// parent records.
	collectionFields, collectionTypes map[string]bool
	selectionCosts                    map[selectionKey]cost
}

// selectionKey is the key of a computed cost in calculator.selectionCosts.
type selectionKey struct {
	set  *operation.SelectionSet
	from recordOrigin
}

func newCalculator(schema *ast.Schema, operation ast.Operation, table dynamo.CostBounds) *calculator {
	patterns := table.Declarations.AccessPatterns
	return &calculator{
		schema: schema, bounds: table, patterns: patterns, writes: table.Declarations.WritePatterns,
		routes: schemaRoutes(schema, patterns), consistent: operation != ast.Query,
		collectionFields: map[string]bool{}, collectionTypes: map[string]bool{}, selectionCosts: map[selectionKey]cost{},
	}
}

// recordOrigin describes how the records of a selection set were read.
type recordOrigin struct {
	// lookup is the index of the access pattern that looked up the records by their own keys. If they
	// were read in another way, lookup is noPattern.
	lookup int
	// single is true if there is at most one record.
	single bool
	// fromEdge is true if the records may be edges, which omit some attributes.
	fromEdge bool
}

const noPattern = -1

// selectionCost returns the cost of reading the fields of a selection set for one record.
func (b *calculator) selectionCost(set *operation.SelectionSet, from recordOrigin) cost {
	key := selectionKey{set, from}
	if c, ok := b.selectionCosts[key]; ok {
		return c
	}
	c := newCost(b)
	b.addFields(&c, set, from)
	b.selectionCosts[key] = c
	return c
}

// childrenCost returns the cost of reading the selection below a field for one record. For an
// interface or union, it is the maximum over the possible types.
func (b *calculator) childrenCost(f *operation.Field, from recordOrigin) cost {
	if f.Set != nil {
		return b.selectionCost(f.Set, from)
	}
	c := newCost(b)
	for _, member := range f.Members {
		c.raiseToMaximum(b.selectionCost(member, from))
	}
	return c
}

func (b *calculator) addFields(c *cost, set *operation.SelectionSet, from recordOrigin) {
	// shared contains the access patterns of the lookups that were added so far. If two lookups in a
	// selection set use the same access pattern, they share requests.
	shared := map[int]bool{}
	for i := range set.Fields {
		f := &set.Fields[i]
		if f.Name == operation.EntitiesField && set.Type == b.schema.Query {
			b.addEntities(c, f)
			continue
		}
		alternatives := b.readAlternatives(set.Type, f)
		if len(alternatives) == 0 {
			if len(f.Selections) > 0 && f.Number != operation.IntrospectionField {
				part := b.childrenCost(f, from)
				c.addChildren(part, 1, 1)
				c.keyChain, c.recordChain = max(c.keyChain, part.keyChain), max(c.recordChain, part.recordChain)
			}
			continue
		}
		if size := f.MaxKeys(); size > 0 {
			b.addBatch(c, set.Type, f, alternatives, size)
			continue
		}
		if own := b.lookupPattern(set.Type, alternatives[0]); len(f.Selections) == 0 && own != noPattern && !slices.ContainsFunc(alternatives[0], func(p int) bool { return b.patterns[p].Direction != "" }) {
			// The record contains the field, or one lookup adds all fields that an edge lacks. Fields that
			// are spread over several records share the lookup of the other records.
			alternatives[0] = slices.DeleteFunc(slices.Clone(alternatives[0]), func(p int) bool {
				return p == own && !from.fromEdge || shared[p]
			})
			if len(alternatives[0]) == 0 {
				continue
			}
		}
		b.addField(c, set.Type, f, alternatives, set.Fields, from, shared)
	}
}

// addBatch adds the cost of a field that looks up records by a list of keys. size is the maximum
// number of keys.
func (b *calculator) addBatch(c *cost, typ *ast.Definition, f *operation.Field, alternatives [][]int, size int) {
	each := newCost(b)
	b.addField(&each, typ, f, alternatives, nil, recordOrigin{lookup: noPattern, single: size == 1}, map[int]bool{})
	c.addChildren(each, float64(size), 1)
	c.keyChain = max(c.keyChain, each.keyChain)
}

// findCollectionReads fills collectionFields and collectionTypes for the records that the fields of
// root return. For a query, root is the root selection. For a subscription, root is the selection
// of the update.
func (b *calculator) findCollectionReads(root *operation.SelectionSet) {
	var fields []*operation.Field
	for i := range root.Fields {
		f := &root.Fields[i]
		if fields = append(fields, f); f.Name == operation.EntitiesField {
			fields = append(fields, b.entityLookupFields(f)...)
		}
	}
	for _, f := range fields {
		for _, r := range b.routes[root.Type.Name+"."+f.Name] {
			if may, _ := selectsSubfield(f, r.sub); r.sub != "" && may {
				typ := f.Definition.Type.Name()
				b.collectionFields[typ+"."+r.sub], b.collectionTypes[typ] = true, true
			}
		}
	}
}

// addField adds the cost of a field that reads records. alternatives are the possible ways to read
// the field (readAlternatives).
func (b *calculator) addField(c *cost, typ *ast.Definition, f *operation.Field, alternatives [][]int, siblings []operation.Field, from recordOrigin, shared map[int]bool) {
	rounds := b.addReads(c, typ, f, alternatives, siblings, from, shared)
	first := b.patterns[alternatives[0][0]]
	child, records, groups := newCost(b), 1.0, 1.0
	chainLength := rounds
	typeOfField := b.schema.Types[f.Definition.Type.Name()]
	switch {
	case operation.ReturnsPage(f.Field):
		for _, set := range f.Records {
			part := b.selectionCost(set, recordOrigin{lookup: noPattern, fromEdge: b.readsEdges(alternatives)})
			child.addChildren(part, 1, 1)
			child.keyChain, child.recordChain = max(child.keyChain, part.keyChain), max(child.recordChain, part.recordChain)
		}
		chainLength += max(child.keyChain, child.recordChain)
		records = float64(f.PageSize(nil))
		// The lists of several parent records can become available at different times. Lookups of their
		// records then cannot share requests. groups is the number of different times.
		switch {
		case from.single:
		case b.collectionFields[typ.Name+"."+f.Name]:
			groups = 3 // with the parents, after a Query, or after a second Query
		case first.EmbeddedInParent:
			groups = 2 // with the parents or after a Query
		}
	case len(f.Selections) > 0:
		child = b.childrenCost(f, recordOrigin{lookup: b.lookupPattern(typeOfField, alternatives[0]), single: from.single})
		if first.Direction != "" {
			chainLength += max(child.keyChain, child.recordChain) // all reads below the record wait for the Query that reads it
		} else {
			// The key of the record is known before the record is read. Reads that need only this key run in
			// the same round trip as the read of the record.
			chainLength = max(rounds, rounds-1+child.keyChain, rounds+child.recordChain)
		}
		if !from.single && b.collectionTypes[typeOfField.Name] {
			groups = 2
		}
	}
	c.addChildren(child, records, groups)
	if b.readableByKey(typ, f, alternatives) {
		c.keyChain = max(c.keyChain, chainLength)
	} else {
		c.recordChain = max(c.recordChain, chainLength)
	}
}

// addReads adds the requests that read a field, and returns the number of round trips. If there are
// several alternatives, only the most expensive one counts for c.total.
func (b *calculator) addReads(c *cost, typ *ast.Definition, f *operation.Field, alternatives [][]int, siblings []operation.Field, from recordOrigin, shared map[int]bool) int {
	maximum, rounds := requestLoad{}, 0
	for _, patterns := range alternatives {
		all, longest := requestLoad{}, 0
		for _, pattern := range patterns {
			if pattern == from.lookup {
				continue // this access pattern has already read the record
			}
			d, trips := b.patternCost(typ, f, pattern, siblings, len(patterns) == 1, shared)
			c.patterns[pattern].add(d, 1, 1)
			all.add(d, 1, 1)
			longest += trips
		}
		maximum = requestLoad{math.Max(maximum.perRecord, all.perRecord), math.Max(maximum.perGroup, all.perGroup), math.Max(maximum.readUnits, all.readUnits)}
		rounds = max(rounds, longest)
	}
	c.total.add(maximum, 1, 1)
	return rounds
}

// readsEdges reports whether the records of a list may be edges that omit some attributes.
func (b *calculator) readsEdges(alternatives [][]int) bool {
	return slices.ContainsFunc(slices.Concat(alternatives...), func(pattern int) bool {
		return slices.ContainsFunc(b.patterns[pattern].Entities(), func(e *model.Entity) bool { return len(e.Omitted) > 0 })
	})
}

// patternCost returns the cost of reading a field with one access pattern, and the number of
// sequential round trips.
func (b *calculator) patternCost(typ *ast.Definition, f *operation.Field, pattern int, siblings []operation.Field, onlyPattern bool, shared map[int]bool) (requestLoad, int) {
	p := b.patterns[pattern]
	var bound dynamo.ReadCostBound
	switch {
	case p.Direction == "" && operation.ReturnsPage(f.Field): // a list of keys, whose records are then read together
		size := float64(f.PageSize(nil))
		return requestLoad{perRecord: 100, readUnits: size * b.bounds.MaxLookupUnits(p, b.consistent)}, 1
	case p.Direction == "": // a lookup by key
		d := requestLoad{perRecord: float64(max(1, p.MaxLength)), perGroup: dynamo.MaxBatchGetKeys - 1, readUnits: b.bounds.MaxLookupUnits(p, b.consistent)}
		if onlyPattern && shared[pattern] {
			d.perGroup = 0
		}
		shared[pattern] = shared[pattern] || onlyPattern || p.MaxLength > 1
		return d, 1
	case operation.ReturnsPage(f.Field):
		bound = b.bounds.ListBound(p, dynamo.PageRequest{Limit: f.PageSize(nil), DetectMore: f.PageInfo.HasNextPage || f.PageInfo.HasPreviousPage}, b.mergedStatuses(p, f), b.consistent)
		if p.EmbeddedInParent && slices.ContainsFunc(siblings, func(other operation.Field) bool {
			return !operation.ReturnsPage(other.Field) && b.patternCanRead(typ, &other, pattern)
		}) {
			// The operation also selects the number of records in the list. To count them, one Query may
			// read the whole list instead of the page.
			bound.ReadUnits = math.Max(bound.ReadUnits, b.bounds.CountBound(p, b.consistent).ReadUnits)
		}
	case len(f.Selections) > 0 && p.MaxLength == 0:
		bound = b.bounds.CollectionBound(p, b.consistent)
	default:
		if p.EmbeddedInParent && slices.ContainsFunc(siblings, func(other operation.Field) bool {
			return operation.ReturnsPage(other.Field) && b.patternCanRead(typ, &other, pattern)
		}) {
			return requestLoad{}, 1 // the Query for the page also returns the count
		}
		bound = b.bounds.CountBound(p, b.consistent)
	}
	return requestLoad{perRecord: 100 * float64(bound.Requests), readUnits: bound.ReadUnits}, bound.RoundTrips
}

// addMutation adds the cost of a mutation and of reading its payload. It returns the maximum write
// units of the mutation.
func (b *calculator) addMutation(c *cost, f *operation.Field) (writeUnits float64) {
	for i, w := range b.writes {
		if w.Mutation == f.Name {
			bound := b.bounds.MutationBound(w)
			writeUnits = bound.WriteUnits
			items := requestLoad{perRecord: 100 * float64(bound.Items.Requests), readUnits: bound.Items.ReadUnits}
			c.addRead(slices.IndexFunc(b.patterns, func(p model.AccessPattern) bool { return p.ID == bound.ItemsPattern }), items)
			c.addRead(len(b.patterns)+i, requestLoad{perRecord: 100*float64(bound.Requests) - items.perRecord, readUnits: bound.ReadUnits - items.readUnits})
		}
	}
	if len(f.Selections) > 0 {
		c.addChildren(b.childrenCost(f, recordOrigin{lookup: noPattern, single: true}), 1, 1)
	}
	return writeUnits
}
