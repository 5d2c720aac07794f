package model

import (
	"iter"
	"maps"
	"slices"
)

// Edges returns all edges of an entity.
func (e *Entity) Edges() []*Entity { return edges[e.Name] }

// EdgesCopying returns the edges that contain at least one of the named attributes.
func (e *Entity) EdgesCopying(names iter.Seq[string]) []*Entity {
	var found []*Entity
	for _, edge := range e.Edges() {
		for name := range names {
			if !slices.Contains(edge.Omitted, name) {
				found = append(found, edge)
				break
			}
		}
	}
	return found
}

var edges = func() map[string][]*Entity {
	found := map[string][]*Entity{}
	for _, e := range allEntities {
		if e.IsEdge() {
			found[e.Of.Name] = append(found[e.Of.Name], e)
		}
	}
	return found
}()

// IsEdge reports whether e is an edge: a copy with the same partition key, but other index keys.
func (e *Entity) IsEdge() bool { return e.Kind == Copy && e.PK == e.Of.PK }

// BaseEntity returns the entity whose records e copies, or e if it is not a Copy.
func (e *Entity) BaseEntity() *Entity {
	if e.Kind == Copy {
		return e.Of
	}
	return e
}

// KeyValues returns the values of the placeholders in a primary key, by the placeholders' names.
func (e *Entity) KeyValues(k Keys) map[string]string {
	values := map[string]string{}
	for t, key := range map[KeyTemplate]string{e.PK: k.PK, e.SK: k.SK} {
		found, ok := t.Values(key)
		for i, name := range t.Placeholders() {
			if ok {
				values[name] = found[i]
			}
		}
	}
	return values
}

// KeyFromValues is the inverse of KeyValues. If a value is not valid, it returns empty keys.
func (e *Entity) KeyFromValues(values map[string]string) Keys {
	b := &KeyBuilder{}
	key := func(t KeyTemplate) string {
		names := t.Placeholders()
		for i, name := range names {
			names[i] = values[name]
		}
		return b.Build(t, names...)
	}
	k := Keys{PK: key(e.PK), SK: key(e.SK)}
	if b.Err != nil {
		return Keys{}
	}
	return k
}

// IndexAttributes returns the attributes in the index keys of e that are not in its primary key. If
// e is an edge, a record that lacks one of these attributes has no such copy.
func (e *Entity) IndexAttributes() []string {
	var names []string
	for _, name := range slices.Concat(e.IndexPK.Placeholders(), e.IndexSK.Placeholders()) {
		if name = e.AttributeForPlaceholder(name); !IsInPrimaryKey(e, name) {
			names = append(names, name)
		}
	}
	return names
}

// CopiedAttributes returns the attributes that the edge e copies from a record: all but e.Omitted.
func (e *Entity) CopiedAttributes(attributes Record) Record {
	if len(e.Omitted) == 0 {
		return attributes
	}
	kept := maps.Clone(attributes)
	for _, name := range e.Omitted {
		delete(kept, name)
	}
	return kept
}

// encodeWithCopies returns the record of an entity with the given attributes, and its copies. It omits
// the derivations that mutations do not write.
func (b *KeyBuilder) encodeWithCopies(e *Entity, attributes Record) []Record {
	for _, name := range e.AddedNumbers {
		if !b.Derivations.WritesNumber(e, name) {
			delete(attributes, name)
		}
	}
	records := []Record{b.record(e, attributes)}
	for _, c := range allEntities {
		if c.Kind != Copy || c.Of != e || !b.Derivations.Writes(c.Name) {
			continue
		}
		lacks := func(name string) bool { return c.placeholderValue(name, attributes) == "" }
		if c.Optional || !slices.ContainsFunc(slices.Concat(c.IndexPK.Placeholders(), c.IndexSK.Placeholders()), lacks) {
			records = append(records, b.record(c, c.CopiedAttributes(attributes)))
		}
	}
	return records
}

// withEdges adds the writes of an entity's edges to a write pattern. The parameter numbers contains
// the names of the attributes that the mutation changes. If numbers is empty, the mutation may
// change all attributes.
func (p WritePattern) withEdges(entity *Entity, numbers ...string) WritePattern {
	sameEntity := func(e Entity) bool { return e.Name == entity.Name }
	written := entity.Edges()
	if len(numbers) > 0 {
		// The mutation writes only the edges that contain one of the numbers. To do so, it reads the
		// record first.
		reads := &p.Reads
		if slices.ContainsFunc(p.WritesPerLine, sameEntity) {
			reads = &p.ReadsPerLine
		}
		if written = entity.EdgesCopying(slices.Values(numbers)); len(written) > 0 && !slices.ContainsFunc(*reads, sameEntity) {
			*reads = append(*reads, *entity)
		}
	}
	for _, edge := range written {
		switch {
		case slices.ContainsFunc(p.WritesPerLine, sameEntity) && edge.isOptional():
			p.OptionalWritesPerLine = append(p.OptionalWritesPerLine, *edge)
		case slices.ContainsFunc(p.WritesPerLine, sameEntity):
			p.WritesPerLine = append(p.WritesPerLine, *edge)
		case edge.isOptional():
			p.OptionalWrites = append(p.OptionalWrites, *edge)
		default:
			p.Writes = append(p.Writes, *edge)
		}
	}
	return p
}

// isOptional reports whether only some records have the edge e. This is the case if the edge's
// index keys contain an optional attribute.
func (e *Entity) isOptional() bool {
	return slices.ContainsFunc(AttributesOf(e.Of), func(a Attribute) bool {
		return a.Optional && slices.Contains(e.IndexAttributes(), a.Name)
	})
}
