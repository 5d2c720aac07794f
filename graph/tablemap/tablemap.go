// Package tablemap describes the table of a server as JSON: its records, item collections, access
// patterns, layout, load and prices. The page Table of GraphiQL draws it. Everything derives from
// the declarations in dynamo/model, the schema, the layout and the prices. Within the module, the
// package imports commerce, dynamo, dynamo/model, graph/bound, graph/operation and internal/price.
package tablemap

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/internal/price"
)

// Map describes a table.
type Map struct {
	Table          string          `json:"table"`
	Index          string          `json:"index"`
	Entities       []Entity        `json:"entities"`
	Collections    []Collection    `json:"collections"`
	References     []Reference     `json:"references"`
	AccessPatterns []AccessPattern `json:"accessPatterns"`
	WritePatterns  []WritePattern  `json:"writePatterns"`
	Layout         Layout          `json:"layout"`
	Derivations    []Derivation    `json:"derivations"`
	Load           Load            `json:"load"`
	Prices         Prices          `json:"prices"`
	// Proposal is what a schema extension would change. Without an extension, it is nil.
	Proposal *Proposal `json:"proposal"`
}

// Entity is a kind of record.
type Entity struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Kind is the kind of model.Entity, or edge for a copy with the same partition key. If the
	// records derive from others, Of is the entity of these.
	Kind         string      `json:"kind"`
	Of           string      `json:"of"`
	PK           string      `json:"pk"`
	SK           string      `json:"sk"`
	IndexPK      string      `json:"indexPK"`
	IndexSK      string      `json:"indexSK"`
	Sharded      bool        `json:"sharded"`
	IndexSharded bool        `json:"indexSharded"`
	Optional     bool        `json:"optional"`
	Attributes   []Attribute `json:"attributes"`
	// Custom reports whether the schema extension of the shop declares the records.
	Custom bool `json:"custom"`
}

// Attribute is an attribute of a record.
type Attribute struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
	// Max is the maximum number of bytes of a string or elements of a list, or 0.
	Max    int  `json:"max"`
	Custom bool `json:"custom"`
}

// Collection is a kind of item collection: the records with one partition key of the table or the
// index.
type Collection struct {
	Key     string `json:"key"`
	In      string `json:"in"`
	Sharded bool   `json:"sharded"`
	// Shards is the number of partition keys over which new records are spread.
	Shards   int      `json:"shards"`
	Entities []string `json:"entities"`
	// WriteUnitsPerOrder is the highest number of write units of an order on one of the keys. If
	// orders do not write to the collection, it is nil.
	WriteUnitsPerOrder *float64 `json:"writeUnitsPerOrder"`
	// Keys is not empty if the load differs between the values of the placeholder.
	Keys []KeyLoad `json:"keys"`
	// Read is nil if no query reads the records, or if the caller may not use it.
	Read *Read `json:"read"`
}

// KeyLoad is the load of an order on one partition key, without the shard.
type KeyLoad struct {
	Key                string  `json:"key"`
	WriteUnitsPerOrder float64 `json:"writeUnitsPerOrder"`
}

// Reference says in which collection the record is that an attribute names.
type Reference struct {
	Attribute  string `json:"attribute"`
	Collection string `json:"collection"`
}

// AccessPattern is a way to read the table.
type AccessPattern struct {
	ID          string   `json:"id"`
	Description string   `json:"description"`
	Fields      []string `json:"fields"`
	Operation   string   `json:"operation"`
	PerShard    bool     `json:"perShard"`
	Index       string   `json:"index"`
	PK          string   `json:"pk"`
	// SK ends with * if the sort keys only begin like this.
	SK         string   `json:"sk"`
	Descending bool     `json:"descending"`
	Entities   []string `json:"entities"`
	// IncludedIn is the ID of the pattern that reads the records of this one, too.
	IncludedIn string `json:"includedIn"`
	// Request is the request to DynamoDB for the first page of the default size.
	Request json.RawMessage `json:"request"`
}

// WritePattern is the transaction of a mutation.
type WritePattern struct {
	ID          string   `json:"id"`
	Description string   `json:"description"`
	Fields      []string `json:"fields"`
	// Entities are the records that every transaction writes or checks, and OptionalEntities those
	// that only some transactions write.
	Entities         []string `json:"entities"`
	OptionalEntities []string `json:"optionalEntities"`
}

// Layout is the number of shards over time.
type Layout struct {
	Shards    int   `json:"shards"`
	MaxShards int   `json:"maxShards"`
	Eras      []Era `json:"eras"`
}

// Era is a period with one number of shards. From is empty for the first era.
type Era struct {
	From     string `json:"from"`
	Shards   int    `json:"shards"`
	TimeZone string `json:"timeZone"`
}

// Derivation is a list or number that a table can lack. Progress is from 0 to 1.
type Derivation struct {
	Name     string  `json:"name"`
	Entity   string  `json:"entity"`
	State    string  `json:"state"`
	Progress float64 `json:"progress"`
}

// Load contains the numbers of docs/capacity.md.
type Load struct {
	WriteUnitsPerPartition int `json:"writeUnitsPerPartition"`
	ReadUnitsPerPartition  int `json:"readUnitsPerPartition"`
	// WriteUnitsPerOrder are the write units of an order on all keys together.
	WriteUnitsPerOrder float64 `json:"writeUnitsPerOrder"`
}

// Prices are the prices of DynamoDB.
type Prices struct {
	Region                 string      `json:"region"`
	ReadDollarsPerMillion  json.Number `json:"readDollarsPerMillion"`
	WriteDollarsPerMillion json.Number `json:"writeDollarsPerMillion"`
}

// Source is what a Map describes.
type Source struct {
	// Served is the schema of the server, by which clients read items.
	Served
	// Proposed contains the schema and the declarations to describe.
	Proposed Served
	Store    *dynamo.Store
	Layout   model.Layout
	Prices   price.Prices
}

// Describe returns the Map of a table. It sends no requests to DynamoDB.
func Describe(s Source) Map {
	d, statuses, era := s.Proposed.Declarations, s.Store.Derivations(), s.Layout.At(s.Store.Now())
	m := Map{
		Table: s.Store.TableName(), Index: model.IndexName, Entities: entitiesOf(d), References: referencesOf(d),
		Layout: Layout{Shards: era.Shards, MaxShards: model.MaxShards},
		Load:   Load{WriteUnitsPerPartition: model.PartitionWriteUnits, ReadUnitsPerPartition: model.PartitionReadUnits},
		Prices: Prices{s.Prices.Region, s.Prices.PerMillion(price.Units{Read: 1}), s.Prices.PerMillion(price.Units{Write: 1})},
	}
	load := d.OrderLoad(statuses)
	m.Load.WriteUnitsPerOrder = total(load)
	m.Collections = collectionsOf(d, load, era)
	for i := range m.Collections {
		m.Collections[i].Read = s.readOf(m.Collections[i])
	}
	fields := bound.FieldsOfPatterns(s.Proposed.Schema, d.AccessPatterns)
	for _, p := range d.AccessPatterns {
		described := AccessPattern{
			ID: p.ID, Description: p.Description, Fields: orEmpty(fields[p.ID]), PerShard: p.Operation == model.QueryPerShard, Index: p.Index, PK: string(p.PK), SK: string(p.SK),
			Descending: p.Direction == model.Descending, Entities: names(d.EntitiesOf(p)), IncludedIn: p.IncludedIn, Request: s.Store.DescribeRequest(&p, operation.DefaultPageSize),
		}
		described.Operation, _, _ = strings.Cut(p.Operation, " ")
		if p.Direction != "" {
			described.SK += "*"
		}
		m.AccessPatterns = append(m.AccessPatterns, described)
	}
	for _, p := range d.WritePatterns {
		m.WritePatterns = append(m.WritePatterns, WritePattern{
			ID: p.ID, Description: "the transaction of " + p.Mutation, Fields: []string{"Mutation." + p.Mutation},
			Entities: written(p.Writes, p.WritesPerLine), OptionalEntities: written(p.OptionalWrites, p.OptionalWritesPerLine),
		})
	}
	for _, era := range s.Layout {
		described := Era{Shards: era.Shards, TimeZone: cmp.Or(era.TimeZone, "UTC")}
		if !era.From.IsZero() {
			described.From = era.From.Format(time.RFC3339)
		}
		m.Layout.Eras = append(m.Layout.Eras, described)
	}
	for _, derivation := range d.Derivations() {
		status, ok := statuses[derivation.Name]
		if !ok {
			status.State = model.Absent
		}
		m.Derivations = append(m.Derivations, Derivation{derivation.Name, derivation.Entity.Name, string(status.State), status.Progress()})
	}
	return m
}

func entitiesOf(d model.Declarations) (all []Entity) {
	for _, e := range d.Entities {
		described := Entity{
			Name: e.Name, Description: e.Description, Kind: e.Kind.String(), PK: string(e.PK), SK: string(e.SK), IndexPK: string(e.IndexPK), IndexSK: string(e.IndexSK),
			Sharded: e.IsSharded(false), IndexSharded: e.IndexPK != "" && e.IsSharded(true), Optional: e.Optional, Attributes: []Attribute{}, Custom: e.IsCustom(),
		}
		if e.IsEdge() {
			described.Kind = "edge"
		}
		if e.Of != nil {
			described.Of = e.Of.Name
		}
		attributes, custom := d.AttributesOf(e)
		for i, a := range attributes {
			described.Attributes = append(described.Attributes, Attribute{a.Name, a.Type, a.Required, a.MaxLength, custom[i]})
		}
		all = append(all, described)
	}
	return all
}

// collectionsOf returns the item collections: first in the table, then in the index.
func collectionsOf(d model.Declarations, load []model.KeyLoad, era model.Era) (all []Collection) {
	for _, in := range []string{"table", "index"} {
		index := in == "index"
		for _, e := range d.Entities {
			key := e.PK
			if index {
				key = e.IndexPK
			}
			if key == "" {
				continue
			}
			at := slices.IndexFunc(all, func(c Collection) bool { return c.In == in && c.Key == string(key) })
			if at < 0 {
				at, all = len(all), append(all, Collection{Key: string(key), In: in, Sharded: e.IsSharded(index), Shards: e.ShardsIn(era, index), Keys: []KeyLoad{}})
			}
			all[at].Entities = append(all[at].Entities, e.Name)
		}
	}
	for _, l := range load {
		at := slices.IndexFunc(all, func(c Collection) bool { return c.Key == string(l.Template) && (c.In == "index") == l.Index })
		if c := &all[at]; c.WriteUnitsPerOrder == nil || *c.WriteUnitsPerOrder < l.WriteUnits {
			c.WriteUnitsPerOrder = &l.WriteUnits
		}
		if l.Key != string(l.Template) {
			all[at].Keys = append(all[at].Keys, KeyLoad{l.Key, l.WriteUnits})
		}
	}
	return all
}

// referencesOf returns the attributes that contain the ID of another record. Such an attribute is
// in the key of a record that other records follow, or Entity.Renamed gives it another name in a
// key.
func referencesOf(d model.Declarations) (all []Reference) {
	add := func(attribute string, e *model.Entity) {
		if r := (Reference{attribute, string(e.PK)}); !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for _, e := range d.Entities {
		names := e.PK.Placeholders()
		if e.Kind != model.Base || len(names) != 1 || len(e.SK.Placeholders()) > 0 {
			continue
		}
		for _, other := range d.Entities {
			attributes, _ := d.AttributesOf(other)
			for _, a := range attributes {
				if a.Name == names[0] || other.Renamed[names[0]] == a.Name {
					add(a.Name, e)
				}
			}
		}
	}
	return all
}

func names(entities []*model.Entity) []string {
	all := make([]string, len(entities))
	for i, e := range entities {
		all[i] = e.Name
	}
	return all
}

// written returns the names of written entities, each once.
func written(groups ...[]model.Entity) []string {
	all := []string{}
	for _, e := range slices.Concat(groups...) {
		if !slices.Contains(all, e.Name) {
			all = append(all, e.Name)
		}
	}
	return all
}

func orEmpty(texts []string) []string { return append([]string{}, texts...) }
