package model

import (
	"iter"
	"maps"
	"slices"
)

// Edges returns the kinds of edges of an entity.
func (e *Entity) Edges() []*Entity { return edges[e.Name] }

// EdgesWith returns the kinds of edges that repeat at least one of these attributes of the entity.
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

// edges maps the name of an entity to its kinds of edges.
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

// KeyValues returns the values in the primary key of a record of this entity, by placeholder.
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

// KeyWith returns the primary key with these values, or empty keys if a key cannot contain a value.
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

// ListedBy returns the attributes in the index keys that are not also in the primary key. A record
// that lacks one of them has no such edge.
func (e *Entity) ListedBy() []string {
	var names []string
	for _, name := range slices.Concat(e.IndexPK.Names(), e.IndexSK.Names()) {
		if name = e.AttributeFor(name); !RepeatsKey(e, name) {
			names = append(names, name)
		}
	}
	return names
}

// Without returns the attributes of a record that its edge repeats: all except Lacks.
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

// withEdges returns the record of an entity with these attributes, and its edges.
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

// withEdges returns the pattern with the edges of an entity added. If there are no numbers, the
// pattern writes all attributes of the entity's records. Otherwise it changes only these numbers.
// Then it writes only the edges that repeat one of them, and also reads the records.
func (p WritePattern) withEdges(entity *Entity, numbers ...string) WritePattern {
	sameEntity := func(e Entity) bool { return e.Name == entity.Name }
	written := entity.Edges()
	if len(numbers) > 0 {
		reads := &p.Reads
		if slices.ContainsFunc(p.Each, sameEntity) {
			reads = &p.ReadsEach
		}
		if written = entity.EdgesWith(slices.Values(numbers)); len(written) > 0 && !slices.ContainsFunc(*reads, sameEntity) {
			*reads = append(*reads, *entity)
		}
	}
	for _, edge := range written {
		switch {
		case slices.ContainsFunc(p.Each, sameEntity) && edge.isOptional():
			p.MaybeEach = append(p.MaybeEach, *edge)
		case slices.ContainsFunc(p.Each, sameEntity):
			p.Each = append(p.Each, *edge)
		case edge.isOptional():
			p.Maybe = append(p.Maybe, *edge)
		default:
			p.Writes = append(p.Writes, *edge)
		}
	}
	return p
}

// isOptional reports whether some records have no such edge.
func (e *Entity) isOptional() bool {
	return slices.ContainsFunc(AttributesOf(e.EdgeOf), func(a Attribute) bool {
		return a.Optional && slices.Contains(e.ListedBy(), a.Name)
	})
}
