package storetest

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/oklog/ulid/v2"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// AuditResult is the result of an audit.
type AuditResult struct {
	// Problems describes each inconsistency. It is empty if the table is consistent.
	Problems []string
	// Records contains all records of the table.
	Records map[Key]Record
	// Orders contains the IDs of all orders, sorted.
	Orders []string
	// IdempotencyRecords contains the idempotency records. The map key is a record's partition key.
	IdempotencyRecords map[string]Record
}

// Key is the primary key of a record.
type Key struct{ PK, SK string }

// Record has the attributes of a record.
type Record map[string]types.AttributeValue

// Text returns the value of a string attribute. It returns "" if there is no such attribute.
func (r Record) Text(name string) string {
	if s, ok := r[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// Has reports whether the attribute exists.
func (r Record) Has(name string) bool { return r[name] != nil }

// Number returns the value of a number attribute. It returns nil if there is no such attribute.
func (r Record) Number(name string) *big.Rat {
	if n, ok := r[name].(*types.AttributeValueMemberN); ok {
		if v, ok := new(big.Rat).SetString(n.Value); ok {
			return v
		}
	}
	return nil
}

// Int returns the value of an integer attribute. It returns -1 if there is no such attribute.
func (r Record) Int(name string) int {
	if v := r.Number(name); v != nil && v.IsInt() {
		return int(v.Num().Int64())
	}
	return -1
}

// Texts returns the values of a list of strings. It returns nil if there is no such attribute.
func (r Record) Texts(name string) (texts []string) {
	list, _ := r[name].(*types.AttributeValueMemberL)
	for i := 0; list != nil && i < len(list.Value); i++ {
		texts = append(texts, Record{name: list.Value[i]}.Text(name))
	}
	return texts
}

// Map returns the value of a map attribute. It returns nil if there is no such attribute.
func (r Record) Map(name string) Record {
	if m, ok := r[name].(*types.AttributeValueMemberM); ok {
		return m.Value
	}
	return nil
}

// TB contains the methods of testing.TB that an audit calls. The type rapid.T also has these
// methods, so property tests can run an audit.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// AssertConsistent calls Audit and fails t if the table is inconsistent. It also runs
// Store.CheckRecords, which must report no inconsistency. It returns the result of the audit.
func AssertConsistent(t TB, db *dynamodb.Client, table string, shards int) *AuditResult {
	t.Helper()
	a, err := Audit(context.Background(), db, table, shards)
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	const shown = 20
	for i, p := range a.Problems {
		if i == shown {
			t.Errorf("audit: and %d more", len(a.Problems)-shown)
			break
		}
		t.Errorf("audit: %s", p)
	}
	store, err := dynamo.New(db, dynamo.Options{Table: table, Shards: shards})
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	if err := store.CheckTable(context.Background()); err != nil {
		t.Fatalf("check: %v", err)
	}
	summary, err := store.CheckRecords(context.Background(), check.Options{OnInconsistency: func(d check.Inconsistency) { t.Errorf("check: %+v", d) }})
	if err != nil || summary.UnrepairedCount() > 0 || summary.Unverified > 0 || summary.External > 0 {
		t.Errorf("check: summary %+v, error %v, want no inconsistencies, no unverified records and no unknown records", summary, err)
	}
	return a
}

// Audit verifies that all records of a table are consistent. Except for package model, it uses no
// code that also writes records, so that it detects bugs in that code. If a request fails, Audit
// returns the error.
func Audit(ctx context.Context, db *dynamodb.Client, table string, shards int) (*AuditResult, error) {
	a, err := readRecords(ctx, db, table, shards)
	if err != nil {
		return nil, err
	}
	indexed := map[Key]Record{}
	if err := scan(ctx, db, table, aws.String("GSI1"), func(k Key, r Record) { indexed[k] = r }); err != nil {
		return nil, err
	}
	for k, r := range a.Records {
		if r.Has("gsi1pk") != (indexed[k] != nil) {
			a.addProblem(k, "the table and the index differ: index keys in the record: %v, record in the index: %v", r.Has("gsi1pk"), indexed[k] != nil)
		} else if indexed[k] != nil {
			a.compareRecords(k, "its entry in the index", r, indexed[k])
		}
	}
	for k := range indexed {
		if a.Records[k] == nil {
			a.addProblem(k, "the record is in the index, but not in the table")
		}
	}
	for k, r := range a.Records {
		a.checkRecord(k, r)
	}
	for id, o := range a.orders {
		a.checkOrder(id, o)
		if o.record != nil {
			a.Orders = append(a.Orders, id)
		}
	}
	a.checkCounters()
	slices.Sort(a.Orders)
	slices.Sort(a.Problems)
	return &a.AuditResult, nil
}

// AuditCounters recounts all stored counts and sums of a table from the raw records: order counts,
// spending, stock and product counts. It returns the problems that it finds, or the error of a
// failed request.
func AuditCounters(ctx context.Context, db *dynamodb.Client, table string, shards int) ([]string, error) {
	a, err := readRecords(ctx, db, table, shards)
	if err != nil {
		return nil, err
	}
	a.checkCounters()
	slices.Sort(a.Problems)
	return a.Problems, nil
}

// readRecords reads all records of a table, and collects the records of each order.
func readRecords(ctx context.Context, db *dynamodb.Client, table string, shards int) (*audit, error) {
	a := &audit{AuditResult: AuditResult{Records: map[Key]Record{}, IdempotencyRecords: map[string]Record{}}, shards: shards, orders: map[string]*auditedOrder{}}
	if err := scan(ctx, db, table, nil, func(k Key, r Record) {
		if a.Records[k] != nil {
			a.addProblem(k, "the record exists twice in the table")
		}
		a.Records[k] = r
		a.collectOrder(k, r)
	}); err != nil {
		return nil, err
	}
	return a, nil
}

func scan(ctx context.Context, db *dynamodb.Client, table string, index *string, found func(Key, Record)) error {
	in := &dynamodb.ScanInput{TableName: &table, IndexName: index}
	if index == nil {
		in.ConsistentRead = aws.Bool(true)
	}
	pages := dynamodb.NewScanPaginator(db, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			r := Record(item)
			found(Key{r.Text("pk"), r.Text("sk")}, r)
		}
	}
	return nil
}

type audit struct {
	AuditResult
	shards int
	orders map[string]*auditedOrder
}

// auditedOrder contains all records of an order.
type auditedOrder struct {
	record, customerCopy Record
	copyKey              Key
	items                map[string]Record
	events               map[string]Record
	payments             []Record
	returns              map[string]Record
	fulfillments         []Record
}

func (a *audit) addProblem(k Key, format string, args ...any) {
	a.Problems = append(a.Problems, k.PK+" "+k.SK+": "+fmt.Sprintf(format, args...))
}

func (a *audit) expectEqual(k Key, subject string, want, got any) {
	if fmt.Sprint(want) != fmt.Sprint(got) {
		a.addProblem(k, "%s is %v, want %v", subject, got, want)
	}
}

// uncopiedAttributes lists the attributes that may differ between a record and its copies.
var uncopiedAttributes = []string{"pk", "sk", "gsi1pk", "gsi1sk", "entity"}

// compareRecords adds a problem for each attribute that differs between two records. It ignores the
// attributes that the parameter except lists. The problem texts call the second record otherName.
func (a *audit) compareRecords(k Key, otherName string, one, other Record, except ...string) {
	for name, v := range one {
		if !slices.Contains(except, name) && !EqualValues(v, other[name]) {
			a.addProblem(k, "%s is %s, but in %s it is %s", name, FormatValue(v), otherName, FormatValue(other[name]))
		}
	}
	for name, v := range other {
		if !slices.Contains(except, name) && one[name] == nil {
			a.addProblem(k, "has no %s, but in %s it is %s", name, otherName, FormatValue(v))
		}
	}
}

// EqualValues reports whether two attribute values are equal. Numbers are equal if they have the
// same value, even in different notations.
func EqualValues(a, b types.AttributeValue) bool {
	if one, ok := a.(*types.AttributeValueMemberN); ok {
		other, ok := b.(*types.AttributeValueMemberN)
		if !ok {
			return false
		}
		x, okX := new(big.Rat).SetString(one.Value)
		y, okY := new(big.Rat).SetString(other.Value)
		return okX && okY && x.Cmp(y) == 0
	}
	if one, ok := a.(*types.AttributeValueMemberL); ok {
		other, ok := b.(*types.AttributeValueMemberL)
		return ok && slices.EqualFunc(one.Value, other.Value, EqualValues)
	}
	if one, ok := a.(*types.AttributeValueMemberM); ok {
		other, ok := b.(*types.AttributeValueMemberM)
		if !ok || len(one.Value) != len(other.Value) {
			return false
		}
		for name, v := range one.Value {
			if !EqualValues(v, other.Value[name]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// collectOrder adds a record to the auditedOrder of its order. It ignores records that do not
// belong to an order.
func (a *audit) collectOrder(k Key, r Record) {
	orderOf := func(id string) *auditedOrder {
		if a.orders[id] == nil {
			a.orders[id] = &auditedOrder{items: map[string]Record{}, events: map[string]Record{}, returns: map[string]Record{}}
		}
		return a.orders[id]
	}
	id, ofOrder := strings.CutPrefix(k.PK, "ORDER#")
	rest, inCustomer := strings.CutPrefix(k.SK, "ORDER#")
	switch {
	case ofOrder && k.SK == "#METADATA":
		orderOf(id).record = r
	case ofOrder && strings.HasPrefix(k.SK, "ITEM#"):
		orderOf(id).items[strings.TrimPrefix(k.SK, "ITEM#")] = r
	case ofOrder && strings.HasPrefix(k.SK, "EVENT#"):
		orderOf(id).events[strings.TrimPrefix(k.SK, "EVENT#")] = r
	case ofOrder && strings.HasPrefix(k.SK, "PAYMENT#"):
		o := orderOf(id)
		o.payments = append(o.payments, r)
	case ofOrder && strings.HasPrefix(k.SK, "RETURN#"):
		orderOf(id).returns[strings.TrimPrefix(k.SK, "RETURN#")] = r
	case ofOrder && strings.HasPrefix(k.SK, "SHIPMENT#"):
		o := orderOf(id)
		o.fulfillments = append(o.fulfillments, r)
	case inCustomer && strings.HasPrefix(k.PK, "CUSTOMER#"):
		o := orderOf(rest)
		if o.customerCopy != nil {
			a.addProblem(k, "the order has two copies: this record, and a record in the partition %s", o.copyKey.PK)
		}
		o.customerCopy, o.copyKey = r, k
	}
}

// shardedKey returns a record's partition key in the index. If the table has several shards,
// shardedKey appends a shard number to the parameter key. A hash of the record's ID determines the
// number.
func (a *audit) shardedKey(key, id, sortKey string) string {
	shards := a.shardsAt(key, sortKey)
	if shards <= 1 {
		return key
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return fmt.Sprintf("%s#%d", key, h.Sum32()%uint32(shards))
}

// shardsAt returns the number of shards for a record. For orders, events and customers, this is the
// number at the time when they were created.
func (a *audit) shardsAt(key, sortKey string) int {
	ofProduct, first := strings.HasPrefix(key, "PRODUCT#"), true // the list of a product's orders
	layout := a.Records[Key{"LAYOUT", "#METADATA"}]
	if layout == nil && ofProduct {
		return 1
	}
	if layout == nil {
		return a.shards
	}
	created := ""
	if id, err := ulid.ParseStrict(strings.TrimPrefix(strings.TrimPrefix(sortKey, "ORDER#"), "EVENT#")); err == nil {
		created = id.Timestamp().UTC().Format("2006-01-02T15:04:05.000Z")
	} else if key == "CUSTOMER" {
		created, _, _ = strings.Cut(sortKey, "#")
	}
	shards := 0
	for _, era := range layout["eras"].(*types.AttributeValueMemberL).Value {
		text := era.(*types.AttributeValueMemberS).Value
		from, number, later := strings.Cut(text, " ")
		if !later {
			from, number = "", text
		}
		if from <= created {
			if shards, _ = strconv.Atoi(number); ofProduct && first {
				shards = 1
			} else if ofProduct {
				shards = min(shards, 8)
			}
		}
		first = false
	}
	return shards
}

// checkKeys verifies that the keys of a record match its attributes and its entity. See
// docs/data-model.md for the keys of each entity.
func (a *audit) checkKeys(k Key, e *model.Entity, r Record) {
	a.expectEqual(k, "entity", e.Name, r.Text("entity"))
	indexPK, indexSK := fillTemplate(e, e.IndexPK, r), fillTemplate(e, e.IndexSK, r)
	switch {
	case e.IndexFeature != "" && r.Text("gsi1pk") == "": // the record may be older than the feature
		indexPK, indexSK = "", ""
	case e.Optional && e.IndexFeature == "" && r.Text(e.AttributeForPlaceholder(e.IndexPK.Placeholders()[0])) == "":
		indexPK, indexSK = "", ""
	case e.Sharded && e.IndexPK == "":
		_, shard, _ := strings.Cut(k.PK, "#")
		a.expectEqual(k, "shard", shard, r.Text("shard"))
	case e.Sharded:
		id, _ := e.PK.Values(k.PK)
		indexPK = a.shardedKey(indexPK, id[0], indexSK)
	}
	a.expectEqual(k, "gsi1pk", indexPK, r.Text("gsi1pk"))
	a.expectEqual(k, "gsi1sk", indexSK, r.Text("gsi1sk"))
	for name, id := range e.KeyValues(model.Keys{PK: k.PK, SK: k.SK}) {
		if e.Kind != model.Claim && !slices.Contains([]string{"principal", "idempotencyKey"}, name) {
			a.expectEqual(k, name, id, r.Text(e.AttributeForPlaceholder(name)))
		}
	}
}

// fillTemplate replaces the placeholders of a key template with attribute values of a record.
func fillTemplate(e *model.Entity, t model.KeyTemplate, r Record) string {
	text := string(t)
	for _, name := range t.Placeholders() {
		value := r.Text(e.AttributeForPlaceholder(name))
		if custom := customField(e, name); custom != nil {
			value = customValue(custom, r)
		} else if r.Number(e.AttributeForPlaceholder(name)) != nil { // numbers in keys are never negative
			value = fmt.Sprintf("%019d", r.Int(e.AttributeForPlaceholder(name)))
		}
		if name == "to" {
			value = cmp.Or(value, "none")
		}
		if name == "lowQuantity" {
			value = fmt.Sprintf("%019d", r.Int("quantity"))
		}
		if name == "emailKey" {
			value = norm.NFC.String(strings.ToLower(norm.NFC.String(value)))
		}
		if name == "foldedName" {
			value = strings.NewReplacer(" ", "-", "!", "-", `"`, "-", "#", "-").Replace(norm.NFC.String(cases.Fold().String(value)))
		}
		text = strings.Replace(text, "{"+name+"}", value, 1)
	}
	return text
}

// customField returns the custom field in the keys of an entity. If name is the name of another
// attribute, it returns nil.
func customField(e *model.Entity, name string) *commerce.CustomField {
	for _, q := range model.CustomQueries() {
		if q.Entity.Name == e.Name && q.Field.Name == name {
			return q.Field
		}
	}
	return nil
}

// customValue returns the value of a custom field in keys. If the record has no value, it returns "".
func customValue(f *commerce.CustomField, r Record) string {
	value := f.Default
	switch v := r[f.Name].(type) {
	case *types.AttributeValueMemberS:
		value = strings.NewReplacer("%", "%25", "#", "%23").Replace(v.Value)
	case *types.AttributeValueMemberN:
		value = v.Value
	case *types.AttributeValueMemberBOOL:
		value = v.Value
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// hasKeyAttribute reports whether a record has a value for an attribute in the keys of an entity.
func hasKeyAttribute(e *model.Entity, name string, r Record) bool {
	if f := customField(e, name); f != nil {
		return customValue(f, r) != ""
	}
	if name == "reorderPoint" { // the list contains only levels below it
		return r.Has(name) && r.Int("quantity") < r.Int(name)
	}
	return r.Has(name)
}

// checkEdges verifies that a record has exactly the edges that its attributes require. An edge is a
// copy of the record in an additional list.
func (a *audit) checkEdges(k Key, e *model.Entity, r Record) {
	values := e.KeyValues(model.Keys{PK: k.PK, SK: k.SK})
	for _, edge := range e.Edges() {
		if edge.Each != "" {
			for _, element := range r.Texts(edge.Each) {
				a.requireRecord(k, k.PK, edge.SK.Prefix()+element)
			}
			continue
		}
		edgeKey := edge.KeyFromValues(values)
		// An order that was confirmed while the table had no list of waiting orders can be in a later list.
		if edge == &model.EntityOrderWaiting && r.Text("status") == "confirmed" && !r.Has("waitingSince") {
			continue
		}
		if i := slices.IndexFunc(edge.IndexAttributes(), func(name string) bool { return !hasKeyAttribute(edge, name, r) }); i < 0 {
			a.requireRecord(k, edgeKey.PK, edgeKey.SK)
		} else if a.Records[Key{edgeKey.PK, edgeKey.SK}] != nil {
			a.addProblem(k, "the record has no attribute %[1]s, so it must have no copy with the sort key %[2]s", edge.IndexAttributes()[i], edgeKey.SK)
		}
	}
}

// checkEdge verifies that an edge has the same attributes as its record. An edge is a copy of a
// record in an additional list.
func (a *audit) checkEdge(k Key, e *model.Entity, r Record) {
	recordKey := e.Of.KeyFromValues(e.KeyValues(model.Keys{PK: k.PK, SK: k.SK}))
	record := a.requireRecord(k, recordKey.PK, recordKey.SK)
	switch {
	case record == nil:
	case e.KeysOnly:
		if element := strings.TrimPrefix(k.SK, e.SK.Prefix()); e.Each != "" && !slices.Contains(record.Texts(e.Each), element) {
			a.addProblem(k, "the %s of %s do not contain %q", e.Each, e.Of.Description, element)
		}
		for name := range r {
			if !slices.Contains(slices.Concat(uncopiedAttributes, e.PK.Placeholders(), e.SK.Placeholders(), e.IndexSK.Placeholders()), name) {
				a.addProblem(k, "the attribute %s is not in the keys", name)
			}
		}
	default:
		a.compareRecords(k, "the "+e.Of.Description, r, record, slices.Concat(e.Omitted, uncopiedAttributes)...)
	}
}

// checkClaims verifies that a claim reserves each value of a record that no other record may have.
func (a *audit) checkClaims(k Key, e *model.Entity, r Record) {
	for _, claim := range e.Claims() {
		if !hasKeyAttribute(claim, claim.ClaimedAttribute(), r) {
			continue
		}
		if stored := a.requireRecord(k, fillTemplate(claim, claim.PK, r), metadataSortKey); stored != nil {
			for _, id := range claim.ClaimantAttributes() {
				a.expectEqual(k, "the "+id+" of the record that reserves the "+claim.ClaimedAttribute(), r.Text(id), stored.Text(id))
			}
		}
	}
}

// requireRecord returns the record with the keys pk and sk. If it does not exist, requireRecord
// returns nil and adds a problem: the record with the key k refers to a missing record.
func (a *audit) requireRecord(k Key, pk, sk string) Record {
	r := a.Records[Key{pk, sk}]
	if r == nil {
		a.addProblem(k, "the record refers to %s %s, which does not exist", pk, sk)
	}
	return r
}

// isDeleted reports whether the customer with a partition key was deleted.
func (a *audit) isDeleted(customer string) bool { return a.Records[Key{customer, "DELETED"}] != nil }

const metadataSortKey = "#METADATA"

// checkRecord verifies that a record is valid. The copies of the record in additional lists (edges)
// and all records to which the record refers must exist. checkOrder later verifies all records of
// an order together.
func (a *audit) checkRecord(k Key, r Record) {
	for name, v := range r {
		// An order can be counted in one stock bucket, and the count decreases in another.
		spread := name == "orderCount" && (r.Has("stockBuckets") || strings.HasPrefix(k.PK, "STOCK#"))
		if n, ok := v.(*types.AttributeValueMemberN); ok && strings.HasPrefix(n.Value, "-") && !spread {
			a.addProblem(k, "%s is negative: %s", name, n.Value)
		}
	}
	e := model.EntityOf(model.Keys{PK: k.PK, SK: k.SK})
	if e == nil {
		a.addProblem(k, "the key matches no entity of the model")
		return
	}
	a.checkKeys(k, e, r)
	a.checkEdges(k, e, r)
	a.checkClaims(k, e, r)
	if e.IsEdge() {
		a.checkEdge(k, e, r)
		return
	}
	if e.Kind == model.Claim {
		of := e.ClaimantKey(model.Record(r))
		if claimant := a.requireRecord(k, of.PK, of.SK); claimant != nil {
			a.expectEqual(k, "the key", fillTemplate(e, e.PK, claimant), k.PK)
		}
	}
	switch e.Name {
	case "customer":
		a.checkCustomer(k, r)
	case "lastEvent":
		a.checkLastEvent(k, r)
	case "stockBucket":
		if p := a.requireRecord(k, "PRODUCT#"+r.Text("sku"), metadataSortKey); p != nil {
			a.expectEqual(k, "productVersion", p.Int("version"), r.Int("productVersion"))
			if n, _ := strconv.Atoi(r.Text("bucket")); n < 1 || n >= p.Int("stockBuckets") {
				a.addProblem(k, "the product has %d stock buckets", p.Int("stockBuckets"))
			}
		}
	case "product":
		for n := 1; n < r.Int("stockBuckets"); n++ {
			a.requireRecord(k, fmt.Sprintf("STOCK#%s#%d", r.Text("sku"), n), metadataSortKey)
		}
	case "inventoryLevel":
		a.requireRecord(k, "PRODUCT#"+r.Text("sku"), metadataSortKey)
		a.requireRecord(k, "WAREHOUSE#"+r.Text("warehouseId"), metadataSortKey)
	case "employee":
		if w := r.Text("warehouseId"); w != "" {
			a.requireRecord(k, "WAREHOUSE#"+w, metadataSortKey)
		}
	case "idempotency":
		a.IdempotencyRecords[k.PK] = r
		if r.Map("result") == nil || r.Text("requestHash") == "" || r.Int("expiresAt") < 0 {
			a.addProblem(k, "the record lacks result, requestHash or expiresAt")
		}
		if order := r.Map("result").Text("orderId"); order != "" {
			a.requireRecord(k, "ORDER#"+order, metadataSortKey)
		}
	}
}

// isGuest reports whether a partition contains the orders of a guest. They have no customer record, and no sums.
func isGuest(partition string) bool { return strings.HasPrefix(partition, "CUSTOMER#guest:") }

func (a *audit) checkCustomer(k Key, r Record) {
	if rep := r.Text("accountRepId"); rep != "" {
		a.requireRecord(k, "EMPLOYEE#"+rep, metadataSortKey)
	}
}

// checkLastEvent verifies the record that stores a customer's last event. No order of the customer
// may have an event with a higher ID.
func (a *audit) checkLastEvent(k Key, r Record) {
	id := r.Text("customerId")
	if e := a.requireRecord(k, "ORDER#"+r.Text("orderId"), "EVENT#"+r.Text("eventId")); e != nil {
		a.compareRecords(k, "the timeline", r, e, append([]string{"customerId", "openOrders", "reservedUnits", "reservationsCounted"}, uncopiedAttributes...)...)
	}
	if !isGuest(k.PK) {
		a.checkReservation(k, id, r)
	}
	if o := a.requireRecord(k, "ORDER#"+r.Text("orderId"), metadataSortKey); o != nil && !isGuest(k.PK) { // the order may have been claimed
		a.expectEqual(k, "the customer of the order", id, o.Text("customerId"))
	}
	for orderID, o := range a.orders {
		for eventID := range o.events {
			if o.record.Text("customerId") == id && eventID > r.Text("eventId") {
				a.addProblem(k, "the last event is %s, but order %s has the newer event %s", r.Text("eventId"), orderID, eventID)
			}
		}
	}
}

// checkReservation verifies that the sums in the record of a customer's last event are the customer's
// open orders and the units in them. If the record does not state that all orders are counted, the
// sums can be lower.
func (a *audit) checkReservation(k Key, customer string, r Record) {
	orders, units := 0, 0
	for _, o := range a.orders {
		if status := o.record.Text("status"); o.record.Text("customerId") == customer && (status == "pending" || status == "confirmed") {
			orders++
			for _, n := range o.openPieces() {
				units += n
			}
		}
	}
	stored := func(name string) int {
		if r.Has(name) {
			return r.Int(name)
		}
		return 0
	}
	haveOrders, haveUnits := stored("openOrders"), stored("reservedUnits")
	counted, _ := r["reservationsCounted"].(*types.AttributeValueMemberBOOL)
	if haveOrders > orders || haveUnits > units || counted != nil && counted.Value && (haveOrders < orders || haveUnits < units) {
		a.addProblem(k, "counts %d open orders and %d reserved units, but the customer has %d and %d", haveOrders, haveUnits, orders, units)
	}
}

// maxEmbeddedItems is the maximum number of line items that an order record embeds.
const maxEmbeddedItems = 25

// checkOrder verifies that all records of an order are consistent with each other.
func (a *audit) checkOrder(id string, o *auditedOrder) {
	k := Key{"ORDER#" + id, metadataSortKey}
	if o.record == nil {
		a.addProblem(k, "the order record is missing, but other records of the order exist: copy in the customer's partition: %v, items: %d, events: %d", o.customerCopy != nil, len(o.items), len(o.events))
		return
	}
	customer := "CUSTOMER#" + o.record.Text("customerId")
	if !a.isDeleted(customer) && !isGuest(customer) {
		a.requireRecord(k, customer, metadataSortKey)
	}
	if o.customerCopy == nil {
		a.addProblem(k, "has no customer's copy")
	} else {
		a.expectEqual(k, "the customer's copy", Key{customer, "ORDER#" + id}, o.copyKey)
		a.compareRecords(k, "the customer's copy", o.record, o.customerCopy, uncopiedAttributes...)
		if rep := o.record.Text("accountRepId"); rep != "" {
			a.requireRecord(k, "EMPLOYEE#"+rep, metadataSortKey)
		}
	}
	if status := o.record.Text("status"); o.record.Has("waitingSince") && status != "confirmed" {
		a.addProblem(k, "the order waits to be shipped, but is %s", status)
	}
	a.checkItems(k, o)
	a.checkEvents(k, id, o)
	a.checkPayments(k, o)
	a.checkReturns(k, o)
	a.checkFulfillments(k, o)
	a.checkCancelledItems(k, o)
}

// checkReturns verifies the amounts of an order's returns, and that they contain no more pieces than the order.
func (a *audit) checkReturns(k Key, o *auditedOrder) {
	pieces, refunded := map[string]int{}, map[string]*big.Rat{}
	for id, r := range o.returns {
		refunded[id] = new(big.Rat)
		amount := new(big.Rat)
		lines, _ := r["lines"].(*types.AttributeValueMemberL)
		for _, v := range lines.Value {
			line := Record(v.(*types.AttributeValueMemberM).Value)
			sku := line.Text("productId")
			item := o.items[sku]
			amount.Add(amount, new(big.Rat).Mul(item.Number("price"), line.Number("qty")))
			if r.Text("status") != "rejected" {
				if pieces[sku] += line.Int("qty"); pieces[sku] > item.Int("qty") {
					a.addProblem(k, "%d pieces of %s are in returns, but the order has %d", pieces[sku], sku, item.Int("qty"))
				}
			}
		}
		if amount.Cmp(r.Number("amount")) != 0 {
			a.addProblem(k, "the amount of the return %s is %s, but its pieces cost %s", id, FormatValue(r["amount"]), amount.FloatString(2))
		}
	}
	for _, p := range o.payments {
		if id := p.Text("returnId"); id != "" {
			refunded[id].Add(refunded[id], p.Number("amount"))
		}
	}
	for id, want := range refunded {
		got := o.returns[id].Number("refunded")
		if got == nil {
			got = new(big.Rat)
		}
		if got.Cmp(want) != 0 || want.Cmp(o.returns[id].Number("amount")) > 0 {
			a.addProblem(k, "%s is refunded for the return %s, but the refunds add up to %s and its pieces cost %s", got.FloatString(2), id, want.FloatString(2), FormatValue(o.returns[id]["amount"]))
		}
	}
}

// linesOf adds up the pieces in a list of lines, by product.
func linesOf(v types.AttributeValue, pieces map[string]int) {
	list, _ := v.(*types.AttributeValueMemberL)
	if list == nil {
		return
	}
	for _, e := range list.Value {
		line := Record(e.(*types.AttributeValueMemberM).Value)
		pieces[line.Text("sku")] += line.Int("qty")
	}
}

// openPieces returns the number of ordered pieces of each product that are not shipped yet.
func (o *auditedOrder) openPieces() map[string]int {
	open, shipped := map[string]int{}, map[string]int{}
	for sku, item := range o.items {
		open[sku] = item.Int("qty")
	}
	for _, f := range o.fulfillments {
		if f.Text("status") != "cancelled" {
			linesOf(f["lines"], shipped)
		}
	}
	for sku, n := range shipped {
		open[sku] -= n
	}
	return open
}

// checkFulfillments verifies the sums of an order's fulfillments, that no more pieces were shipped than
// ordered, and that the status of the order follows from them.
func (a *audit) checkFulfillments(k Key, o *auditedOrder) {
	count, undelivered, shipped := 0, 0, map[string]int{}
	for _, f := range o.fulfillments {
		status := f.Text("status")
		if status == "cancelled" {
			continue
		}
		count++
		if status == "shipped" {
			undelivered++
		}
		linesOf(f["lines"], shipped)
	}
	stored := map[string]int{}
	linesOf(o.record["shippedLines"], stored)
	a.expectEqual(k, "the shipped pieces", shipped, stored)
	for name, want := range map[string]int{"fulfillments": count, "undelivered": undelivered} {
		got := 0
		if o.record.Has(name) {
			got = o.record.Int(name)
		}
		a.expectEqual(k, name, want, got)
	}
	if a.expectEqual(k, "whether the record has the number of fulfillments", count > 0, o.record.Has("fulfillments")); count == 0 {
		return
	}
	open := 0
	for sku, n := range o.openPieces() {
		if open += n; n < 0 {
			a.addProblem(k, "%d pieces of product %s were shipped too much", -n, sku)
		}
	}
	want := "confirmed"
	switch {
	case open == 0 && undelivered == 0:
		want = "delivered"
	case open == 0:
		want = "shipped"
	}
	a.expectEqual(k, "the status of an order with fulfillments", want, o.record.Text("status"))
}

// checkCancelledItems verifies that the events of the order contain the cancelled pieces of each line item.
func (a *audit) checkCancelledItems(k Key, o *auditedOrder) {
	want, stored := map[string]int{}, map[string]int{}
	for _, e := range o.events {
		if e.Text("type") != "items_cancelled" {
			continue
		}
		for line := range strings.SplitSeq(e.Text("note"), ", ") {
			sku, number, _ := strings.Cut(line, ": ")
			n, err := strconv.Atoi(number)
			if err != nil {
				a.addProblem(k, "the note %q does not name the cancelled pieces", e.Text("note"))
			}
			want[sku] += n
		}
	}
	for sku, item := range o.items {
		if item.Has("cancelled") {
			stored[sku] = item.Int("cancelled")
		}
	}
	a.expectEqual(k, "the cancelled pieces", want, stored)
}

// checkPayments verifies the sums of an order's payments, and that no more was refunded than captured.
func (a *audit) checkPayments(k Key, o *auditedOrder) {
	sums := map[string]*big.Rat{"authorized": {}, "captured": {}, "refunded": {}}
	sumOf := map[string]string{"authorization": "authorized", "capture": "captured", "refund": "refunded", "chargeback": "refunded"}
	for _, p := range o.payments {
		a.expectEqual(k, "the currency of a payment", o.record.Text("currency"), p.Text("currency"))
		if kind := p.Text("kind"); kind == "void" {
			sums["authorized"].Sub(sums["authorized"], p.Number("amount"))
		} else {
			sums[sumOf[kind]].Add(sums[sumOf[kind]], p.Number("amount"))
		}
	}
	for name, want := range sums {
		if got := o.record.Number(name); (got != nil || len(o.payments) > 0) && (got == nil || got.Cmp(want) != 0) {
			a.addProblem(k, "%s is %s, but the payments add up to %s", name, FormatValue(o.record[name]), want.FloatString(2))
		}
	}
	if sums["refunded"].Cmp(sums["captured"]) > 0 {
		a.addProblem(k, "%s was refunded, but only %s was captured", sums["refunded"].FloatString(2), sums["captured"].FloatString(2))
	}
}

func (a *audit) checkItems(k Key, o *auditedOrder) {
	total := new(big.Rat)
	for sku, item := range o.items {
		itemKey := Key{k.PK, "ITEM#" + sku}
		a.expectEqual(itemKey, "customerId and currency", o.record.Text("customerId")+" "+o.record.Text("currency"), item.Text("customerId")+" "+item.Text("currency"))
		a.requireRecord(itemKey, "PRODUCT#"+sku, metadataSortKey)
		if item.Int("qty") < 1 && !item.Has("cancelled") || item.Number("price") == nil {
			a.addProblem(itemKey, "the item has an invalid quantity or price: %s and %s", FormatValue(item["qty"]), FormatValue(item["price"]))
			continue
		}
		total.Add(total, new(big.Rat).Mul(item.Number("qty"), item.Number("price")))
	}
	if len(o.items) == 0 {
		a.addProblem(k, "has no items")
	}
	a.expectEqual(k, "itemCount", len(o.items), o.record.Int("itemCount"))
	if adjustments, ok := o.record["adjustments"].(*types.AttributeValueMemberL); ok {
		for _, e := range adjustments.Value {
			m, _ := e.(*types.AttributeValueMemberM)
			if included, _ := m.Value["included"].(*types.AttributeValueMemberBOOL); !included.Value {
				total.Add(total, Record(m.Value).Number("amount"))
			}
		}
	}
	if got := o.record.Number("total"); got == nil || got.Cmp(total) != 0 || got.Sign() < 0 {
		a.addProblem(k, "the order's total is %s, but its items and adjustments add up to %s", FormatValue(o.record["total"]), total.FloatString(4))
	}
	embedded, isEmbedded := o.record["items"].(*types.AttributeValueMemberL)
	a.expectEqual(k, "whether it embeds its items", len(o.items) <= maxEmbeddedItems, isEmbedded)
	if !isEmbedded {
		return
	}
	a.expectEqual(k, "the number of embedded items", len(o.items), len(embedded.Value))
	for _, e := range embedded.Value {
		m, ok := e.(*types.AttributeValueMemberM)
		if !ok {
			a.addProblem(k, "the order embeds an item that is not a map: %s", FormatValue(e))
			continue
		}
		embeddedItem := Record(m.Value)
		itemRecord := o.items[embeddedItem.Text("productId")]
		if itemRecord == nil {
			a.addProblem(k, "the order embeds item %s, which has no record of its own", embeddedItem.Text("productId"))
			continue
		}
		a.compareRecords(k, "the item's record", embeddedItem, itemRecord, append([]string{"orderId", "customerId", "currency"}, uncopiedAttributes...)...)
	}
}

// statusChanges maps each event type that changes an order's status to the statuses that the order
// may have before the event.
var statusChanges = map[string][]string{
	"confirmed": {"pending"}, "shipped": {"confirmed"}, "delivered": {"shipped"}, "cancelled": {"pending", "confirmed"},
}

// statusesAllowingEvent maps each event type that does not change an order's status to the statuses
// in which the event may happen.
var statusesAllowingEvent = map[string][]string{
	"item_set": {"pending"}, "items_cancelled": {"confirmed"}, "item_removed": {"pending"}, "shipping_address_changed": {"pending", "confirmed"},
	"adjustments_changed": {"pending", "confirmed"}, "billing_changed": {"pending", "confirmed"},
	"custom_fields_changed": {"pending", "confirmed", "shipped", "delivered", "cancelled"},
	"held":                  {"pending", "confirmed"},
	"released":              {"pending", "confirmed", "shipped", "delivered"},
	"tags_changed":          {"pending", "confirmed", "shipped", "delivered", "cancelled"},
	"note_added":            {"pending", "confirmed", "shipped", "delivered", "cancelled"},
	"payment_recorded":      {"pending", "confirmed", "shipped", "delivered", "cancelled"},
	"claimed":               {"pending", "confirmed", "shipped", "delivered", "cancelled"},
	"erased":                {"pending", "confirmed", "shipped", "delivered", "cancelled"},
	"return_requested":      {"shipped", "delivered"},
	"return_approved":       {"shipped", "delivered"},
	"return_rejected":       {"shipped", "delivered"},
	"return_received":       {"shipped", "delivered"},
	"fulfillment_created":   {"confirmed"},
	"tracking_updated":      {"pending", "confirmed", "shipped", "delivered", "cancelled"},
	"fulfillment_delivered": {"confirmed", "shipped"},
	"fulfillment_cancelled": {"confirmed"},
}

func (a *audit) checkEvents(k Key, id string, o *auditedOrder) {
	var ids []string
	for event := range o.events {
		ids = append(ids, event)
	}
	slices.Sort(ids)
	status, last := "", ""
	placed := len(ids) > 0 && o.events[ids[0]].Text("type") == "placed"
	for i, eventID := range ids {
		e := o.events[eventID]
		eventKey := Key{k.PK, "EVENT#" + eventID}
		at := ulidTime(eventID)
		a.expectEqual(eventKey, "createdAt", at, e.Text("createdAt"))
		if at <= last {
			a.addProblem(eventKey, "the event is not later than the previous event, which happened at %s", last)
		}
		last = at
		if e.Has("orderVersion") && placed {
			a.expectEqual(eventKey, "orderVersion", i+1, e.Int("orderVersion"))
		}
		eventType := e.Text("type")
		switch {
		case i == 0 && (eventType == "placed" || eventType == "imported"):
			a.expectEqual(eventKey, "from", "", e.Text("from"))
			status = e.Text("to")
			if eventType == "placed" {
				a.expectEqual(eventKey, "to", "pending", status)
			}
			a.expectEqual(eventKey, "the order's createdAt", at, o.record.Text("createdAt"))
		case statusChanges[eventType] != nil:
			a.expectEqual(eventKey, "from", status, e.Text("from"))
			a.expectEqual(eventKey, "to", eventType, e.Text("to"))
			if !slices.Contains(statusChanges[eventType], status) {
				a.addProblem(eventKey, "the event changes the status from %[2]s to %[1]s, which is not allowed", eventType, status)
			}
			status = eventType
		case statusesAllowingEvent[eventType] != nil:
			if !slices.Contains(statusesAllowingEvent[eventType], status) {
				a.addProblem(eventKey, "the event has type %s, which is not allowed if the status is %s", eventType, status)
			}
			if to := e.Text("to"); to != "" { // the event of a fulfillment can complete the order
				a.expectEqual(eventKey, "from", status, e.Text("from"))
				status = to
			}
		default:
			a.addProblem(eventKey, "the event has type %q, which is not allowed at position %d of the timeline", eventType, i)
		}
	}
	if len(ids) == 0 {
		a.addProblem(k, "has no events")
		return
	}
	a.expectEqual(k, "status", status, o.record.Text("status"))
	a.expectEqual(k, "createdAt", ulidTime(id), o.record.Text("createdAt"))
	if placed {
		// Every change of an order adds one event and increments the order's version.
		a.expectEqual(k, "version", len(ids), o.record.Int("version"))
		a.expectEqual(k, "updatedAt", last, o.record.Text("updatedAt"))
	}
}

// ulidTime returns the time in a ULID, in the format in which the table stores times.
func ulidTime(id string) string {
	u, err := ulid.ParseStrict(id)
	if err != nil {
		return fmt.Sprintf("no time: %q is not a ULID", id)
	}
	return time.UnixMilli(int64(u.Time())).UTC().Format("2006-01-02T15:04:05.000Z")
}

// checkSpending compares the stored monthly spending of customers with the totals of their orders.
// spent maps the key of each spending record to the spending that it should contain.
func (a *audit) checkSpending(spent map[Key]*big.Rat) {
	isComplete := func(k Key) bool {
		v, ok := a.Records[Key{k.PK, metadataSortKey}]["spendingComplete"].(*types.AttributeValueMemberBOOL)
		return ok && v.Value
	}
	for k, want := range spent {
		if isComplete(k) && a.Records[k] == nil {
			a.addProblem(k, "the spending record is missing, but the orders cost %s", want.FloatString(2))
		}
	}
	for k, r := range a.Records {
		if !strings.HasPrefix(k.SK, "SPENDING#") || !isComplete(k) {
			continue
		}
		want := spent[k]
		if want == nil {
			want = new(big.Rat)
		}
		if got := r.Number("spent"); got == nil || got.Cmp(want) != 0 {
			a.addProblem(k, "the stored spending is %v, but the orders cost %s", got, want.FloatString(2))
		}
	}
}

// checkSales compares the stored sales of each day with the totals of the orders, if the table has sales.
func (a *audit) checkSales(want map[string]*big.Rat) {
	stored := map[string]*big.Rat{}
	for k, r := range a.Records {
		if !strings.HasPrefix(k.SK, "DAY#") {
			continue
		}
		day := r.Text("currency") + "#" + r.Text("day")
		if stored[day] == nil {
			stored[day] = new(big.Rat)
		}
		if n := r.Number("spent"); n != nil {
			stored[day].Add(stored[day], n)
		}
	}
	for day := range want {
		if len(stored) > 0 && stored[day] == nil {
			a.addProblem(Key{"SALES", "DAY#" + day}, "the sales are missing, but the orders cost %s", want[day].FloatString(2))
		}
	}
	for day, got := range stored {
		if sum := cmp.Or(want[day], new(big.Rat)); got.Cmp(sum) != 0 {
			a.addProblem(Key{"SALES", "DAY#" + day}, "the stored sales are %s, but the orders cost %s", got.FloatString(2), sum.FloatString(2))
		}
	}
}

var orderStatuses = []string{"pending", "confirmed", "shipped", "delivered", "cancelled"}

// checkCounters verifies stored counts and sums, such as the number of a customer's orders.
func (a *audit) checkCounters() {
	levels, reserved, orders, categories, stocked := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	statuses, counts, incomplete, complete := map[string]int{}, map[string]int{}, []Key{}, 0
	first := map[string]bool{} // the partition keys of the counts that every table has
	for shard := range a.shardsAt("", "") {
		first["ORDER_COUNTS"+model.ShardSuffix(shard, a.shardsAt("", ""))] = true
	}
	sold, ofRep, keptByRep := map[string]int{}, map[string]int{}, map[string]int{}
	available, counted := map[string]int{}, map[string]int{} // in all stock buckets of a product
	for k, r := range a.Records {
		if product := "PRODUCT#" + r.Text("sku"); k.SK == metadataSortKey && (k.PK == product || strings.HasPrefix(k.PK, "STOCK#")) {
			available[product] += r.Int("available")
			if n := r.Number("orderCount"); n != nil {
				counted[product] += int(n.Num().Int64())
			}
		}
		if strings.HasPrefix(k.PK, "PRODUCT#") && k.SK == metadataSortKey {
			categories["CATEGORY#"+r.Text("category")]++
		}
		if k.PK == "ORDER_COUNTS" || strings.HasPrefix(k.PK, "ORDER_COUNTS#") {
			switch v, ok := r["complete"].(*types.AttributeValueMemberBOOL); {
			case ok && v.Value:
				complete++
			case first[k.PK]:
				incomplete = append(incomplete, k)
			}
			for _, status := range orderStatuses {
				counts[k.PK+" "+status] += max(0, r.Int(status)) // the first order with a status adds its attribute
			}
		}
		if strings.HasPrefix(k.SK, "ORDERS#") {
			keptByRep[k.PK] += r.Int("orders")
		}
		if strings.HasPrefix(k.PK, "PRODUCT#") && strings.HasPrefix(k.SK, "WAREHOUSE#") {
			levels[k.PK] += r.Int("quantity")
			stocked[k.SK]++
		}
	}
	spent, sales := map[Key]*big.Rat{}, map[string]*big.Rat{}
	for id, o := range a.orders {
		if o.record == nil {
			continue
		}
		if o.record.Text("status") != "cancelled" {
			k := Key{"CUSTOMER#" + o.record.Text("customerId"), "SPENDING#" + o.record.Text("createdAt")[:len("2026-04")] + "#" + o.record.Text("currency")}
			if spent[k] == nil && !isGuest(k.PK) {
				spent[k] = new(big.Rat)
			}
			if !isGuest(k.PK) {
				spent[k].Add(spent[k], o.record.Number("total"))
			}
			day := o.record.Text("currency") + "#" + o.record.Text("createdAt")[:len("2026-04-01")]
			if sales[day] == nil {
				sales[day] = new(big.Rat)
			}
			sales[day].Add(sales[day], o.record.Number("total"))
		}
		orders["CUSTOMER#"+o.record.Text("customerId")]++
		ofRep["EMPLOYEE#"+o.record.Text("accountRepId")]++
		for sku := range o.items {
			sold["PRODUCT#"+sku]++
		}
		statuses[a.shardedKey("ORDER_COUNTS", id, "ORDER#"+id)+" "+o.record.Text("status")]++
		if s := o.record.Text("status"); s != "pending" && s != "confirmed" {
			continue
		}
		for sku, n := range o.openPieces() {
			reserved["PRODUCT#"+sku] += n
		}
	}
	a.checkSpending(spent)
	a.checkSales(sales)
	if complete > 0 { // otherwise the table does not count its orders
		for _, k := range incomplete {
			a.addProblem(k, "the order count is not complete")
		}
		if want := model.OrderCountParts * len(first); complete != want {
			a.addProblem(Key{"ORDER_COUNTS", "all"}, "%d records with order counts are complete, want %d", complete, want)
		}
		for key := range statuses {
			counts[key] += 0
		}
		for key := range counts {
			a.expectEqual(Key{"ORDER_COUNTS", "all"}, key, statuses[key], counts[key])
		}
	}
	for sk := range categories {
		a.requireRecord(Key{"CATEGORIES", sk}, "CATEGORIES", sk)
	}
	for k, r := range a.Records {
		switch {
		case k.SK == "ORDERS#0":
			if v, ok := r["complete"].(*types.AttributeValueMemberBOOL); ok && v.Value {
				a.expectEqual(k, "the number of orders of the account rep", ofRep[k.PK], keptByRep[k.PK])
			}
		case k.PK == "CATEGORIES":
			a.expectEqual(k, "productCount", categories[k.SK], r.Int("productCount"))
		case k.SK != metadataSortKey:
		case strings.HasPrefix(k.PK, "PRODUCT#"):
			a.expectEqual(k, "totalInventory", levels[k.PK], r.Int("totalInventory"))
			a.expectEqual(k, "available", levels[k.PK]-reserved[k.PK], available[k.PK])
			if r.Has("orderCount") { // otherwise the orders have not been counted
				a.expectEqual(k, "orderCount", sold[k.PK], counted[k.PK])
			}
		case strings.HasPrefix(k.PK, "WAREHOUSE#") && r.Has("productCount"): // otherwise the products have not been counted
			a.expectEqual(k, "productCount", stocked[k.PK], r.Int("productCount"))
		case strings.HasPrefix(k.PK, "CUSTOMER#"):
			a.expectEqual(k, "orderCount", orders[k.PK], r.Int("orderCount"))
		}
	}
}
