package model

import "github.com/ordergraph/ordergraph/commerce"

// Codec reads and writes the records of a table.
type Codec struct {
	// Currency is the currency of records that name none.
	Currency commerce.Currency
	// Shards is the number of partition keys that each busy list is spread over.
	Shards int
}

// KeyBuilder returns a builder of keys of the table.
func (codec *Codec) KeyBuilder() *KeyBuilder { return &KeyBuilder{Shards: codec.Shards} }
