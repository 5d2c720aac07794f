package model

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// ReencodeErased is like Reencode. It returns the records before and after the personal data is erased.
//
// Errors: ErrCorrupt.
func (codec *Codec) ReencodeErased(e *Entity, r Record) (before, after []Record, err error) {
	v, err := codec.decode(e, Reader{Record: r})
	if err != nil {
		return nil, nil, err
	}
	encode := func() []Record {
		records := codec.KeyBuilder().encodeWithCopies(e, e.codec.encode(v))
		records[0][AttrPK], records[0][AttrSK] = r[AttrPK], r[AttrSK]
		return records
	}
	before = encode()
	e.codec.erase(v)
	return before, encode(), nil
}

// HasPersonal reports whether the entity's records contain personal data of a customer.
func (e *Entity) HasPersonal() bool {
	return slices.ContainsFunc(AttributesOf(e), func(a Attribute) bool { return a.Personal })
}

// IsPersonal reports whether an attribute of the entity's records contains personal data of a customer.
func IsPersonal(e *Entity, name string) bool {
	return slices.ContainsFunc(AttributesOf(e), func(a Attribute) bool { return a.Personal && a.Name == name })
}

// EncodeWithoutPersonal is like EncodeAttributes, but omits the personal data of a customer.
func EncodeWithoutPersonal(v any) Record {
	r := EntityOfValue(v).codec.encodeErased(v)
	delete(r, AttrErased)
	return r
}

// KeyOfResult returns the primary key of the record with the given attributes.
func (b *KeyBuilder) KeyOfResult(e *Entity, attributes Record) Keys {
	return b.keysOf(e, attributes).Primary()
}

// CopyPersonal copies the personal data in a record of the entity e to attributes that lack it.
func CopyPersonal(e *Entity, to, from Record) {
	for _, a := range AttributesOf(e) {
		if v := from[a.Name]; v != nil && (a.Personal || a.Name == AttrErased) {
			to[a.Name] = v
		}
	}
	if lines, ok := to["lines"].(*types.AttributeValueMemberL); ok && e == &EntityReturn && TextOf(to, "status") != string(commerce.ReturnReceived) {
		to["lines"] = notRestocked(lines)
	}
	have, want := linesOf(from), linesOf(to)
	for sku, line := range want {
		for _, f := range commerce.CustomFieldsOf("OrderItem") {
			if v := have[sku][f.Name]; v != nil {
				line[f.Name] = v
			}
		}
	}
}

// notRestocked returns the lines of a return as they were before it was received.
func notRestocked(lines *types.AttributeValueMemberL) types.AttributeValue {
	earlier := &types.AttributeValueMemberL{}
	for _, line := range lines.Value {
		if m, ok := line.(*types.AttributeValueMemberM); ok {
			attributes := maps.Clone(m.Value)
			delete(attributes, "restocked")
			line = &types.AttributeValueMemberM{Value: attributes}
		}
		earlier.Value = append(earlier.Value, line)
	}
	return earlier
}

// linesOf returns the line items that an order's record embeds, by SKU.
func linesOf(r Record) map[string]Record {
	lines := map[string]Record{}
	list, _ := r["items"].(*types.AttributeValueMemberL)
	for i := 0; list != nil && i < len(list.Value); i++ {
		if line, ok := list.Value[i].(*types.AttributeValueMemberM); ok {
			lines[TextOf(line.Value, "productId")] = line.Value
		}
	}
	return lines
}
