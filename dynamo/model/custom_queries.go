package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// CustomQuery is a query by the value of a custom field, which a schema extension declares. It is a list,
// which reads edges, or a look-up, which reads a claim.
type CustomQuery struct {
	// Name is the name of the field of Query.
	Name string
	// RecordType is the name of the type of the records, such as Order.
	RecordType string
	// Field is the custom field.
	Field *commerce.CustomField
	// Entity is the edge or claim.
	Entity *Entity
	// List reads pages of a list. It is a *ListPattern with values of the record type.
	List any
	// Claim reads the ID of the record with a value. It is nil for a list.
	Claim *LookupPattern[string, string]
	// AccessPattern is the access pattern in List or Claim. ByID is the one that reads a record after a claim.
	AccessPattern, ByID *AccessPattern
}

// customType describes how the records of a type can be listed and looked up by custom fields.
type customType struct {
	entity *Entity
	byID   *AccessPattern
	// sort is the sort key of the lists.
	sort KeyTemplate
	list func(number int, what string, e Entity) (any, *AccessPattern)
	// writtenWith is an entity. Each mutation that writes its records also writes the edges of all lists.
	writtenWith *Entity
	// setIn are the write patterns of the mutations that set custom fields. countedIn are write patterns of
	// mutations that change a number which edges contain.
	setIn, countedIn []*WritePattern
}

func customList[V any](direction string, decode func(*Codec, Reader) (V, error)) func(int, string, Entity) (any, *AccessPattern) {
	return func(number int, what string, e Entity) (any, *AccessPattern) {
		p := indexPattern(number, what, e, direction, decode)
		return p, &p.AccessPattern
	}
}

// customTypes returns the types whose records can be listed and looked up by custom fields. Line items
// cannot: an order with many of them would need too many writes for one transaction.
func customTypes() map[string]customType {
	return map[string]customType{
		"Customer": {&EntityCustomer, &CustomerByID.AccessPattern, "{foldedName}#{customerId}", customList(Ascending, (*Codec).DecodeCustomer), &EntityCustomerName,
			[]*WritePattern{&WriteCreateCustomer, &WriteUpdateCustomer, &WriteEraseCustomer}, nil},
		"Employee": {&EntityEmployee, &EmployeeByID.AccessPattern, "{foldedName}#{employeeId}", customList(Ascending, withoutCodec(DecodeEmployee)), &EntityEmployeeName,
			[]*WritePattern{&WriteHireEmployee, &WriteUpdateEmployee}, nil},
		"Order": {&EntityOrder, &OrderByID.AccessPattern, "ORDER#{orderId}", customList(Descending, (*Codec).DecodeOrder), &EntityOrder,
			[]*WritePattern{&WritePlaceOrder, &WriteSetCustomFields, &WriteEraseCustomer}, nil},
		"Product": {&EntityProduct, &ProductBySKU.AccessPattern, "{foldedName}#{sku}", customList(Ascending, (*Codec).DecodeProduct), &EntityProductName,
			[]*WritePattern{&WriteCreateProduct, &WriteUpdateProduct}, nil},
		"Warehouse": {&EntityWarehouse, &WarehouseByID.AccessPattern, "{foldedName}#{warehouseId}", customList(Ascending, withoutCodec(DecodeWarehouse)), nil,
			[]*WritePattern{&WriteCreateWarehouse, &WriteUpdateWarehouse}, []*WritePattern{&WriteSetInventoryLevel, &WriteAdjustInventory, &WriteTransferInventory}},
	}
}

// CanQuery reports whether records of a type, such as Order, can be listed and looked up by custom fields.
func CanQuery(recordType string) bool { return customTypes()[recordType].entity != nil }

// customQueries contains the queries by the declared custom fields.
var customQueries []CustomQuery

// CustomQueries returns the queries by the declared custom fields. Do not modify them.
func CustomQueries() []CustomQuery { return customQueries }

// DeclareCustomFields declares the custom fields of all records of the process
// (commerce.DeclareCustomFields), with the edges, claims and access patterns of the queries by them. It
// returns a function that restores the previous declarations.
func DeclareCustomFields(fields map[string][]commerce.CustomField) (restore func()) {
	previous, queries := commerce.DeclareCustomFields(fields), customQueries
	declared := DeclarationsWith(fields)
	customQueries = declared.queries
	restoreEntities := replaceEntities(declared.Entities)
	return func() {
		restoreEntities()
		commerce.DeclareCustomFields(previous)
		customQueries = queries
	}
}

// QueriesOf returns the queries by custom fields. The keys of the map are the names of the record types.
func QueriesOf(fields map[string][]commerce.CustomField) (queries []CustomQuery) {
	for _, recordType := range slices.Sorted(maps.Keys(fields)) {
		of := customTypes()[recordType]
		for i := range fields[recordType] {
			f := &fields[recordType][i]
			number := LastPattern + 1 + len(queries)
			q := CustomQuery{RecordType: recordType, Field: f, ByID: of.byID}
			switch {
			case f.ListQuery != "":
				q.Name, q.Entity = f.ListQuery, customEdge(of, f)
				q.List, q.AccessPattern = of.list(number, fmt.Sprintf("%ss by the custom field %s", of.entity.Description, f.Name), *q.Entity)
			case f.LookupQuery != "":
				q.Name, q.Entity = f.LookupQuery, customClaim(of, f)
				q.Claim = ClaimPattern(number, fmt.Sprintf("%s by the custom field %s; another access pattern then reads the record", of.entity.Description, f.Name), q.Entity)
				q.AccessPattern = &q.Claim.AccessPattern
			default:
				continue
			}
			queries = append(queries, q)
		}
	}
	return queries
}

// CustomEdgePrefix is the beginning of the sort keys of the edges of custom fields. They come after all
// other records in an item collection.
const CustomEdgePrefix = "WITH_FIELD_"

// customEdge returns the edge of a list by a custom field.
func customEdge(of customType, f *commerce.CustomField) *Entity {
	name := of.entity.Name + "List." + f.Name
	return &Entity{
		Name: name, Description: fmt.Sprintf("%s with its %s (edge)", of.entity.Description, f.Name), Kind: Copy, Of: of.entity, Added: true, keyField: f,
		PK: of.entity.PK, SK: KeyTemplate(CustomEdgePrefix + f.Name), IndexPK: KeyTemplate("LIST#" + name + "#{" + f.Name + "}"), IndexSK: of.sort, Sharded: true,
		Omitted: omittedByEdges(of.entity),
	}
}

// omittedByEdges returns the attributes that edges of an entity omit, because they change often.
func omittedByEdges(e *Entity) []string {
	switch e {
	case &EntityCustomer:
		return EntityCustomerName.Omitted
	case &EntityProduct:
		return stockAttributes
	}
	return nil
}

// uniquePrefix is the beginning of the partition keys of the claims of custom fields.
const uniquePrefix = "UNIQUE#"

// customClaim returns the claim of a unique custom field.
func customClaim(of customType, f *commerce.CustomField) *Entity {
	name := of.entity.Name + "Claim." + f.Name
	return &Entity{
		Name: name, Description: fmt.Sprintf("claim of the %s of one %s", f.Name, of.entity.Description), Kind: Claim, Of: of.entity, Added: true, keyField: f,
		PK: KeyTemplate(uniquePrefix + name + "#{" + f.Name + "}"), SK: metadataSK,
	}
}

// withCustomFields adds the edges and claims of custom fields to write patterns.
func withCustomFields(patterns []WritePattern, queries []CustomQuery) []WritePattern {
	for _, q := range queries {
		of := customTypes()[q.RecordType]
		for i := range patterns {
			p := &patterns[i]
			isIn := func(in *WritePattern) bool { return in.ID == p.ID }
			set := slices.ContainsFunc(of.setIn, isIn)
			switch {
			case q.Entity.Kind == Claim && set: // it writes a claim of the new value, and deletes the previous claim
				p.OptionalWrites = append(slices.Clip(p.OptionalWrites), *q.Entity, *q.Entity)
			case q.Entity.Kind == Copy && (set || slices.ContainsFunc(of.countedIn, isIn) || of.writtenWith != nil && slices.ContainsFunc(p.Writes, func(e Entity) bool { return e.Name == of.writtenWith.Name })):
				p.OptionalWrites = append(slices.Clip(p.OptionalWrites), *q.Entity)
			}
		}
	}
	return patterns
}

// AccessPatterns returns every access pattern, by number.
func AccessPatterns() []AccessPattern { return withCustomQueries(builtInPatterns(), customQueries) }

func withCustomQueries(patterns []AccessPattern, queries []CustomQuery) []AccessPattern {
	for _, q := range queries {
		patterns = append(patterns, *q.AccessPattern)
	}
	return patterns
}

// WritePatterns returns every write pattern, by number.
func WritePatterns() []WritePattern { return withCustomFields(builtInWritePatterns(), customQueries) }

// customKeyValue returns the value of a custom field in the keys of a record with the given attributes. A
// stored value that does not match the declaration is used as it is, because servers with another
// declaration may have written it, and the edge or claim must follow it. If there is no value that keys can
// contain, the result is "".
func customKeyValue(f *commerce.CustomField, attributes Record) string {
	values := commerce.StoredCustomValues(storedRecord(attributes), commerce.RecordPosition{})
	value, err := f.Value(values)
	if err != nil {
		value = values.Get(f.Name)
	}
	if key := f.KeyText(value); len(key) <= maxCustomKey {
		return key
	}
	return ""
}

// maxCustomKey is the maximum length of a value in a key. It allows each value that Ordergraph writes, and
// less than DynamoDB's limit of 2,048 bytes for a partition key.
const maxCustomKey = 1024

// IsUndeclaredQueryRecord reports whether the primary key k belongs to an edge or claim of a custom field
// that no schema extension declares.
func IsUndeclaredQueryRecord(k Keys) bool {
	if EntityOf(k) != nil {
		return false
	}
	if rest, ok := strings.CutPrefix(k.PK, uniquePrefix); ok {
		name, _, _ := strings.Cut(rest, "#")
		return k.SK == string(metadataSK) && customDerivation(name) != nil
	}
	for _, of := range customTypes() {
		if of.entity.PK.Matches(k.PK) && strings.HasPrefix(k.SK, CustomEdgePrefix) {
			return true
		}
	}
	return false
}

// IsUnlisted reports whether r is an edge of a custom field without a value by which this process lists it.
// Then r was listed under another default value.
func IsUnlisted(r Record) bool {
	e := EntityOf(KeyOf(r))
	return e != nil && e.IsEdge() && e.keyField != nil && !e.hasIndexValues(r)
}

// ClaimedValue returns the value in the primary key of a claim for messages.
func (e *Entity) ClaimedValue(k Keys) string {
	value := FirstPlaceholderValue(e.PK, k.PK)
	if e.keyField != nil {
		value = commerce.TextOfKey(value)
	}
	return value
}

// customDerivation returns the edge or claim with a name such as orderList.channel, although no custom
// field declares it. If the name has another form, it returns nil.
func customDerivation(name string) *Entity {
	for _, of := range customTypes() {
		rest, ok := strings.CutPrefix(name, of.entity.Name)
		if !ok {
			continue
		}
		if field, ok := strings.CutPrefix(rest, "List."); ok && field != "" {
			return customEdge(of, &commerce.CustomField{Name: field})
		}
		if field, ok := strings.CutPrefix(rest, "Claim."); ok && field != "" {
			return customClaim(of, &commerce.CustomField{Name: field})
		}
	}
	return nil
}
