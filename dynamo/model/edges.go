package model

import (
	"iter"
	"maps"
	"slices"
)

// Edges returns the kinds of edges that the records of an entity have.
func (e *Entity) Edges() []*Entity { return edges[e.Name] }

// EdgesWith returns the kinds of edges whose records have one of these attributes of an entity's.
func (e *Entity) EdgesWith(names iter.Seq[string]) []*Entity {
	var found []*Entity
	for _, edge := range e.Edges() {
		for name := range names {
			if !slices.Contains(edge.Lacks, name) {
				found = append(found, edge)
				break
			}
		}
	}
	return found
}

// edges are the kinds of edges by the names of the entities whose records they list.
var edges = func() map[string][]*Entity {
	found := map[string][]*Entity{}
	for i := range allEntities {
		if e := &allEntities[i]; e.EdgeOf != nil {
			found[e.EdgeOf.Name] = append(found[e.EdgeOf.Name], e)
		}
	}
	return found
}()

// Root returns the entity whose records an edge lists, or e if e is not an edge.
func (e *Entity) Root() *Entity {
	if e.EdgeOf != nil {
		return e.EdgeOf
	}
	return e
}

// KeyValues returns the values in the primary key of a record of this entity, by name.
func (e *Entity) KeyValues(k Keys) map[string]string {
	values := map[string]string{}
	for t, key := range map[Template]string{e.PK: k.PK, e.SK: k.SK} {
		found, ok := t.Values(key)
		for i, name := range t.Names() {
			if ok {
				values[name] = found[i]
			}
		}
	}
	return values
}

// KeyWith returns the primary key with these values, or empty keys if a value is not allowed in a
// key.
func (e *Entity) KeyWith(values map[string]string) Keys {
	b := &KeyBuilder{}
	key := func(t Template) string {
		names := t.Names()
		for i, name := range names {
			names[i] = values[name]
		}
		return b.Key(t, names...)
	}
	k := Keys{PK: key(e.PK), SK: key(e.SK)}
	if b.Err != nil {
		return Keys{}
	}
	return k
}

// ListedBy returns the attributes by which an edge lists its record, without those that its primary
// key repeats. A record that lacks one of them has no such edge.
func (e *Entity) ListedBy() []string {
	var names []string
	for _, name := range slices.Concat(e.IndexPK.Names(), e.IndexSK.Names()) {
		if name = e.AttributeFor(name); !RepeatsKey(e, name) {
			names = append(names, name)
		}
	}
	return names
}

// Without returns the attributes of a record that its edge repeats: all but Lacks.
func (e *Entity) Without(attributes Record) Record {
	if len(e.Lacks) == 0 {
		return attributes
	}
	kept := maps.Clone(attributes)
	for _, name := range e.Lacks {
		delete(kept, name)
	}
	return kept
}

// withEdges returns the record of an entity that has these attributes, and its edges.
func (b *KeyBuilder) withEdges(e *Entity, attributes Record) []Record {
	records := []Record{b.record(e, attributes)}
	for _, edge := range e.Edges() {
		lacks := func(name string) bool { return edge.valueFor(name, attributes) == "" }
		if !slices.ContainsFunc(slices.Concat(edge.IndexPK.Names(), edge.IndexSK.Names()), lacks) {
			records = append(records, b.record(edge, edge.Without(attributes)))
		}
	}
	return records
}

// withEdges returns the pattern with the edges of an entity added. The pattern writes all
// attributes of the entity's records, or only adds to some numbers. Then only the edges that have
// such a number follow, and the records are read.
func (p WritePattern) withEdges(of *Entity, numbers ...string) WritePattern {
	is := func(e Entity) bool { return e.Name == of.Name }
	follow := of.Edges()
	if len(numbers) > 0 {
		reads := &p.Reads
		if slices.ContainsFunc(p.Each, is) {
			reads = &p.ReadsEach
		}
		if follow = of.EdgesWith(slices.Values(numbers)); len(follow) > 0 && !slices.ContainsFunc(*reads, is) {
			*reads = append(*reads, *of)
		}
	}
	for _, edge := range follow {
		switch {
		case slices.ContainsFunc(p.Each, is) && edge.isOptional():
			p.MaybeEach = append(p.MaybeEach, *edge)
		case slices.ContainsFunc(p.Each, is):
			p.Each = append(p.Each, *edge)
		case edge.isOptional():
			p.Maybe = append(p.Maybe, *edge)
		default:
			p.Writes = append(p.Writes, *edge)
		}
	}
	return p
}

// isOptional reports whether some records do not have this edge.
func (e *Entity) isOptional() bool {
	return slices.ContainsFunc(AttributesOf(e.EdgeOf), func(a Attribute) bool {
		return a.Optional && slices.Contains(e.ListedBy(), a.Name)
	})
}
