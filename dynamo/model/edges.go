package model

import (
	"iter"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// Edges returns all edges of an entity.
func (e *Entity) Edges() []*Entity { return edges[e.Name] }

// EdgesCopying returns the edges that contain at least one of the named attributes. The attributes
// are in no keys.
func (e *Entity) EdgesCopying(names iter.Seq[string]) []*Entity {
	var found []*Entity
	for _, edge := range e.Edges() {
		for name := range names {
			if !edge.KeysOnly && !slices.Contains(edge.Omitted, name) {
				found = append(found, edge)
				break
			}
		}
	}
	return found
}

// allEntities contains all entities. edges and claims contain those that follow an entity, by its name.
// They are built only once, because bulk operations use them for every record. Only DeclareEntities
// replaces them.
var allEntities, edges, claims = indexEntities(builtInEntities())

func indexEntities(all []*Entity) (_ []*Entity, edges, claims map[string][]*Entity) {
	edges, claims = map[string][]*Entity{}, map[string][]*Entity{}
	for _, e := range all {
		switch {
		case e.IsEdge():
			edges[e.Of.Name] = append(edges[e.Of.Name], e)
		case e.Kind == Claim:
			claims[e.Of.Name] = append(claims[e.Of.Name], e)
		}
	}
	return all, edges, claims
}

// Entities returns every kind of record of the table. Do not modify it.
func Entities() []*Entity { return allEntities }

// DeclareEntities declares further edges and claims of the existing entities, such as claims of a shop's
// own fields. Like all declarations of records, they apply to the whole process, so call DeclareEntities
// only before the process uses records. It returns a function that restores the previous declarations,
// for tests.
func DeclareEntities(more ...*Entity) (restore func()) {
	return replaceEntities(slices.Concat(allEntities, more))
}

func replaceEntities(by []*Entity) (restore func()) {
	all, itsEdges, itsClaims := allEntities, edges, claims
	allEntities, edges, claims = indexEntities(by)
	return func() { allEntities, edges, claims = all, itsEdges, itsClaims }
}

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
// e is an edge, a record that lacks one of these attributes has no such copy. For edges of the
// elements of a list, this is the list.
func (e *Entity) IndexAttributes() []string {
	if e.Each != "" {
		return []string{e.Each}
	}
	var names []string
	for _, name := range slices.Concat(e.IndexPK.Placeholders(), e.IndexSK.Placeholders()) {
		if name = e.AttributeForPlaceholder(name); !IsInPrimaryKey(e, name) {
			names = append(names, name)
		}
	}
	return names
}

// CopiedAttributes returns the attributes that the edge e copies from a record: all but e.Omitted,
// or only those in its keys.
func (e *Entity) CopiedAttributes(attributes Record) Record {
	if e.KeysOnly {
		copied := Record{}
		for _, name := range e.keyPlaceholders() {
			if value := e.placeholderValue(name, attributes); value != "" {
				copied[e.AttributeForPlaceholder(name)] = Str(value)
			}
		}
		return copied
	}
	if len(e.Omitted) == 0 {
		return attributes
	}
	kept := maps.Clone(attributes)
	for _, name := range e.Omitted {
		delete(kept, name)
	}
	return kept
}

// Claims returns all claims of an entity.
func (e *Entity) Claims() []*Entity { return claims[e.Name] }

// ClaimedAttribute returns the name of the attribute whose value the claim e reserves.
func (e *Entity) ClaimedAttribute() string {
	return e.AttributeForPlaceholder(e.PK.Placeholders()[0])
}

// ClaimantAttributes returns the names of the attributes that identify the claimant, such as customerId. They
// are those in its primary key. The claimant is the record that has the value.
func (e *Entity) ClaimantAttributes() []string { return e.Of.primaryKeyAttributes() }

// primaryKeyAttributes returns the names of the attributes in the primary key.
func (e *Entity) primaryKeyAttributes() []string {
	names := e.SK.appendPlaceholders(e.PK.Placeholders())
	for i, name := range names {
		names[i] = e.AttributeForPlaceholder(name)
	}
	return names
}

// keyPlaceholders returns the placeholders in all keys, each once.
func (e *Entity) keyPlaceholders() []string {
	names := e.IndexSK.appendPlaceholders(e.IndexPK.appendPlaceholders(e.SK.appendPlaceholders(e.PK.Placeholders())))
	for i := len(names) - 1; i > 0; i-- {
		if slices.Contains(names[:i], names[i]) {
			names = slices.Delete(names, i, i+1)
		}
	}
	return names
}

// element returns the placeholder that represents the element of a list in the keys of an edge.
func (e *Entity) element() string {
	names := e.SK.Placeholders()
	return names[len(names)-1]
}

// elements returns an edge for each element of a list in a record with the given attributes.
func (b *KeyBuilder) elements(e *Entity, attributes Record) []Record {
	if attributes[e.Each] == nil {
		return nil
	}
	list := Reader{Record: attributes}
	var edges []Record
	for _, element := range list.Texts(e.Each) {
		edge := e.CopiedAttributes(attributes)
		edge[e.element()] = Str(element)
		edges = append(edges, b.record(e, edge))
	}
	return edges
}

// Element returns the element of a list that the edge with the primary key k represents.
func (e *Entity) Element(k Keys) string { return e.KeyValues(k)[e.element()] }

// Lists reports whether the record r still has the KeysOnly edge of the entity e with the primary
// key k.
func (e *Entity) Lists(k Keys, r Reader) bool {
	if e.Each != "" {
		return slices.ContainsFunc(r.Texts(e.Each), func(text string) bool { return commerce.NormalizeName(text) == e.Element(k) })
	}
	attributes := Record{}
	for _, name := range append(e.keyPlaceholders(), "status") {
		if text := r.Text(name); text != "" {
			attributes[name] = Str(text)
		}
	}
	return e.hasIndexValues(attributes)
}

// ClaimantAttribute returns the first of the ClaimantAttributes.
func (e *Entity) ClaimantAttribute() string { return e.ClaimantAttributes()[0] }

// ClaimantKey returns the key of the record that the claim e names. If the claim contains no valid ID, it
// returns an empty key.
func (e *Entity) ClaimantKey(claim Record) Keys {
	values := map[string]string{}
	for _, name := range e.Of.SK.appendPlaceholders(e.Of.PK.Placeholders()) {
		values[name] = TextOf(claim, e.Of.AttributeForPlaceholder(name))
	}
	return e.Of.KeyFromValues(values)
}

// ClaimRecord returns the claim e for the value in a record with the given attributes. If there is no such
// value, or if it cannot be normalized, it returns nil.
func (b *KeyBuilder) ClaimRecord(e *Entity, attributes Record) Record {
	if e.placeholderValue(e.PK.Placeholders()[0], attributes) == "" || e.claimsUnreadableNumber(attributes) {
		return nil
	}
	r := b.keysOf(e, attributes).Attributes()
	for _, name := range e.ClaimantAttributes() {
		r[name] = attributes[name]
	}
	return b.Identify(e, r)
}

// claimsUnreadableNumber reports whether the claimed attribute is a number, although it must be a string.
func (e *Entity) claimsUnreadableNumber(attributes Record) bool {
	name := e.ClaimedAttribute()
	if _, ok := attributes[name].(*types.AttributeValueMemberN); !ok {
		return false
	}
	return slices.ContainsFunc(AttributesOf(e.Of), func(a Attribute) bool { return a.Name == name && a.Type == "S" })
}

// ClaimedKey returns the primary key of the claim that ClaimRecord returns. If there is none, or if its
// key is invalid, it returns an empty key.
func (e *Entity) ClaimedKey(attributes Record) Keys {
	b := &KeyBuilder{}
	if claim := b.ClaimRecord(e, attributes); claim != nil && b.Err == nil {
		return KeyOf(claim)
	}
	return Keys{}
}

// keyOnly is the value of a record that contains only attributes in keys. For a claim, these are
// the ones in the primary key of the claimant, and the claimed value is only in the key of the
// claim.
type keyOnly struct{ values [2]string }

// valueCodec returns the codec of an entity's records. It returns nil for idempotency records.
func (e *Entity) valueCodec() recordCodec {
	switch {
	case e.Kind == Claim:
		return keyOnlyCodec(e.ClaimantAttributes())
	case e.KeysOnly:
		return keyOnlyCodec(e.keyPlaceholders())
	}
	return e.BaseEntity().codec
}

// keyOnlyCodec returns the codec of records that contain only the named attributes.
func keyOnlyCodec(names []string) recordCodec {
	return codecFor[keyOnly](func(a *attributeVisitor, v *keyOnly) {
		for i, name := range names {
			textAttribute(a, name, &v.values[i], commerce.MaxIDLength)
		}
	})
}

// encodeWithCopies returns the record of an entity with the given attributes, its copies and its claims.
// It omits the derivations that mutations do not write.
func (b *KeyBuilder) encodeWithCopies(e *Entity, attributes Record) []Record {
	return b.encodeWithCopiesIn(allEntities, e, attributes)
}

// encodeWithCopiesIn is encodeWithCopies with the copies and claims among the given entities.
func (b *KeyBuilder) encodeWithCopiesIn(all []*Entity, e *Entity, attributes Record) []Record {
	for _, name := range e.AddedNumbers {
		if !b.Derivations.WritesNumber(e, name) {
			delete(attributes, name)
		}
	}
	records := []Record{b.record(e, attributes)}
	for _, c := range all {
		switch {
		case c.Kind != Copy || c.Of != e || !b.Derivations.Writes(c.Name):
		case c.Each != "":
			records = append(records, b.elements(c, attributes)...)
		case c.Optional || c.hasIndexValues(attributes):
			records = append(records, b.record(c, c.CopiedAttributes(attributes)))
		}
	}
	for _, c := range all {
		if c.Kind != Claim || c.Of != e || !b.Derivations.Writes(c.Name) {
			continue
		}
		if claim := b.ClaimRecord(c, attributes); claim != nil {
			records = append(records, claim)
		}
	}
	return records
}

// hasIndexValues reports whether a record contains all values in its index keys.
func (e *Entity) hasIndexValues(attributes Record) bool {
	lacks := func(name string) bool { return e.placeholderValue(name, attributes) == "" }
	return !slices.ContainsFunc(slices.Concat(e.IndexPK.Placeholders(), e.IndexSK.Placeholders()), lacks)
}

// withEdges adds the writes of an entity's edges to a write pattern, or sets LowStock. The parameter
// numbers contains the names of the attributes that the mutation changes. If numbers is empty, the
// mutation may change all attributes, except those in the keys of KeysOnly edges.
func (p WritePattern) withEdges(entity *Entity, numbers ...string) WritePattern {
	sameEntity := func(e Entity) bool { return e.Name == entity.Name }
	if entity == &EntityInventoryLevel {
		p.LowStock = true
		return p
	}
	written := slices.DeleteFunc(slices.Clone(entity.Edges()), func(edge *Entity) bool { return edge.KeysOnly })
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

// without removes an edge that only other orders have than those that the mutation can change.
func (p WritePattern) without(edge *Entity) WritePattern {
	p.OptionalWrites = slices.DeleteFunc(slices.Clone(p.OptionalWrites), func(e Entity) bool { return e.Name == edge.Name })
	return p
}

// isOptional reports whether only some records have the edge e. This is the case if the edge's
// index keys contain an optional attribute.
func (e *Entity) isOptional() bool {
	return slices.ContainsFunc(AttributesOf(e.Of), func(a Attribute) bool {
		return a.Optional && slices.Contains(e.IndexAttributes(), a.Name)
	})
}
