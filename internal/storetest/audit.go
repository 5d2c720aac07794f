package storetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/oklog/ulid/v2"
	"golang.org/x/text/unicode/norm"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Audited is the result of an audit.
type Audited struct {
	// Problems describe the inconsistencies. The list is empty if the table is consistent.
	Problems []string
	// Records are all records by primary key.
	Records map[Key]Record
	// Orders are the IDs of all orders, sorted.
	Orders []string
	// Answers are the idempotency records by partition key.
	Answers map[string]Record
}

// Key is the primary key of a record.
type Key struct{ PK, SK string }

// Record has the attributes of a record.
type Record map[string]types.AttributeValue

// Text returns a string attribute, or "" if it does not exist.
func (r Record) Text(name string) string {
	if s, ok := r[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// Has reports whether the attribute exists.
func (r Record) Has(name string) bool { return r[name] != nil }

// Number returns a number attribute, or nil if it does not exist.
func (r Record) Number(name string) *big.Rat {
	if n, ok := r[name].(*types.AttributeValueMemberN); ok {
		if v, ok := new(big.Rat).SetString(n.Value); ok {
			return v
		}
	}
	return nil
}

// Int returns an integer attribute, or -1 if it does not exist.
func (r Record) Int(name string) int {
	if v := r.Number(name); v != nil && v.IsInt() {
		return int(v.Num().Int64())
	}
	return -1
}

// Map returns a map attribute, or nil if it does not exist.
func (r Record) Map(name string) Record {
	if m, ok := r[name].(*types.AttributeValueMemberM); ok {
		return m.Value
	}
	return nil
}

// TB is the part of testing.TB that an audit needs. Tests of package rapid implement it, too.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Clean fails t if the table is inconsistent, and returns the result of the audit. The product's
// own `check` must complete and report nothing, too.
func Clean(t TB, db *dynamodb.Client, table string, shards int) *Audited {
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
	// The index of the test engines never lags.
	summary, err := store.CheckRecords(context.Background(), check.Options{Found: func(d check.Drift) { t.Errorf("check: %+v", d) }})
	if err != nil || summary.Left() > 0 || summary.Unsettled > 0 || summary.Foreign > 0 {
		t.Errorf("check: %+v, %v, want no drifts, no unsettled and no external records", summary, err)
	}
	return a
}

// Audit reads all records of a table and reports whether they are consistent. shards is the number
// of shards of the table.
//
// An audit is an independent implementation: it takes the keys of the records from the model and
// shares no other code with the writers. So an error of the writers cannot hide an inconsistency.
//
// It returns the SDK's errors.
func Audit(ctx context.Context, db *dynamodb.Client, table string, shards int) (*Audited, error) {
	a := &audit{Audited: Audited{Records: map[Key]Record{}, Answers: map[string]Record{}}, shards: shards, orders: map[string]*auditedOrder{}}
	if err := scan(ctx, db, table, nil, func(k Key, r Record) {
		if a.Records[k] != nil {
			a.problem(k, "exists twice in the table")
		}
		a.Records[k] = r
	}); err != nil {
		return nil, err
	}
	indexed := map[Key]Record{}
	if err := scan(ctx, db, table, aws.String("GSI1"), func(k Key, r Record) { indexed[k] = r }); err != nil {
		return nil, err
	}
	for k, r := range a.Records {
		a.sort(k, r)
		if r.Has("gsi1pk") != (indexed[k] != nil) {
			a.problem(k, "has index keys: %v, is in the index: %v", r.Has("gsi1pk"), indexed[k] != nil)
		} else if indexed[k] != nil {
			a.agree(k, "its entry in the index", r, indexed[k])
		}
	}
	for k := range indexed {
		if a.Records[k] == nil {
			a.problem(k, "is in the index, but not in the table")
		}
	}
	for k, r := range a.Records {
		a.record(k, r)
	}
	for id, o := range a.orders {
		a.order(id, o)
		if o.own != nil {
			a.Orders = append(a.Orders, id)
		}
	}
	a.counters()
	slices.Sort(a.Orders)
	slices.Sort(a.Problems)
	return &a.Audited, nil
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
			// The embedded store omits empty lists from its responses. The SDK then decodes the attribute as
			// another type.
			if _, ok := r["phoneNumbers"].(*types.AttributeValueMemberL); !ok && r.Has("phoneNumbers") {
				r["phoneNumbers"] = &types.AttributeValueMemberL{}
			}
			found(Key{r.Text("pk"), r.Text("sk")}, r)
		}
	}
	return nil
}

type audit struct {
	Audited
	shards int
	orders map[string]*auditedOrder
}

// auditedOrder has all records of an order.
type auditedOrder struct {
	own, copied Record
	copyKey     Key
	items       map[string]Record
	events      map[string]Record
}

func (a *audit) problem(k Key, format string, args ...any) {
	a.Problems = append(a.Problems, k.PK+" "+k.SK+": "+fmt.Sprintf(format, args...))
}

func (a *audit) expect(k Key, subject string, want, got any) {
	if fmt.Sprint(want) != fmt.Sprint(got) {
		a.problem(k, "%s is %v, want %v", subject, got, want)
	}
}

// keyNames are the attributes in which copies of a record may differ.
var keyNames = []string{"pk", "sk", "gsi1pk", "gsi1sk", "entity"}

// agree compares all attributes of two records, except the attributes in except.
func (a *audit) agree(k Key, otherName string, one, other Record, except ...string) {
	for name, v := range one {
		if !slices.Contains(except, name) && !Equal(v, other[name]) {
			a.problem(k, "%s is %s, in %s it is %s", name, Show(v), otherName, Show(other[name]))
		}
	}
	for name, v := range other {
		if !slices.Contains(except, name) && one[name] == nil {
			a.problem(k, "has no %s, in %s it is %s", name, otherName, Show(v))
		}
	}
}

// Equal reports whether two values are equal. Numbers are compared by value.
func Equal(a, b types.AttributeValue) bool {
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
		return ok && slices.EqualFunc(one.Value, other.Value, Equal)
	}
	if one, ok := a.(*types.AttributeValueMemberM); ok {
		other, ok := b.(*types.AttributeValueMemberM)
		if !ok || len(one.Value) != len(other.Value) {
			return false
		}
		for name, v := range one.Value {
			if !Equal(v, other.Value[name]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// sort adds a record of an order to the records of the same order.
func (a *audit) sort(k Key, r Record) {
	orderOf := func(id string) *auditedOrder {
		if a.orders[id] == nil {
			a.orders[id] = &auditedOrder{items: map[string]Record{}, events: map[string]Record{}}
		}
		return a.orders[id]
	}
	id, ofOrder := strings.CutPrefix(k.PK, "ORDER#")
	rest, inCustomer := strings.CutPrefix(k.SK, "ORDER#")
	switch {
	case ofOrder && k.SK == "#METADATA":
		orderOf(id).own = r
	case ofOrder && strings.HasPrefix(k.SK, "ITEM#"):
		orderOf(id).items[strings.TrimPrefix(k.SK, "ITEM#")] = r
	case ofOrder && strings.HasPrefix(k.SK, "EVENT#"):
		orderOf(id).events[strings.TrimPrefix(k.SK, "EVENT#")] = r
	case inCustomer && strings.HasPrefix(k.PK, "CUSTOMER#"):
		o := orderOf(rest)
		if o.copied != nil {
			a.problem(k, "is the second copy of the order; the first is in %s", o.copyKey.PK)
		}
		o.copied, o.copyKey = r, k
	}
}

// sharded returns an index partition key with the shard of an ID.
func (a *audit) sharded(key, id string) string {
	if a.shards <= 1 {
		return key
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return fmt.Sprintf("%s#%d", key, h.Sum32()%uint32(a.shards))
}

// keys verifies a record's entity name. It also verifies that the keys agree with the attributes,
// by the key templates in docs/data-model.md.
func (a *audit) keys(k Key, e *model.Entity, r Record) {
	a.expect(k, "entity", e.Name, r.Text("entity"))
	indexPK, indexSK := filled(e, e.IndexPK, r), filled(e, e.IndexSK, r)
	switch {
	case e.Optional && r.Text(e.AttributeFor(e.IndexPK.Names()[0])) == "":
		indexPK, indexSK = "", ""
	case e.Sharded:
		id, _ := e.PK.Values(k.PK)
		indexPK = a.sharded(indexPK, id[0])
	}
	a.expect(k, "gsi1pk", indexPK, r.Text("gsi1pk"))
	a.expect(k, "gsi1sk", indexSK, r.Text("gsi1sk"))
	for name, id := range e.KeyValues(model.Keys{PK: k.PK, SK: k.SK}) {
		if !slices.Contains([]string{"email", "principal", "idempotencyKey"}, name) {
			a.expect(k, name, id, r.Text(e.AttributeFor(name)))
		}
	}
}

// filled returns a key template with the values of a record's attributes.
func filled(e *model.Entity, t model.Template, r Record) string {
	text := string(t)
	for _, name := range t.Names() {
		value := r.Text(e.AttributeFor(name))
		if r.Number(e.AttributeFor(name)) != nil { // numbers in keys are never negative
			value = fmt.Sprintf("%019d", r.Int(e.AttributeFor(name)))
		}
		if name == "foldedName" {
			value = strings.NewReplacer(" ", "-", "!", "-", `"`, "-", "#", "-").Replace(norm.NFC.String(strings.ToLower(value)))
		}
		text = strings.Replace(text, "{"+name+"}", value, 1)
	}
	return text
}

// edges verifies that a record has exactly the edges that its attributes require.
func (a *audit) edges(k Key, e *model.Entity, r Record) {
	values := e.KeyValues(model.Keys{PK: k.PK, SK: k.SK})
	for _, edge := range e.Edges() {
		edgeKey := edge.KeyWith(values)
		if i := slices.IndexFunc(edge.ListedBy(), func(name string) bool { return !r.Has(name) }); i < 0 {
			a.refer(k, edgeKey.PK, edgeKey.SK)
		} else if a.Records[Key{edgeKey.PK, edgeKey.SK}] != nil {
			a.problem(k, "has no attribute %s, but has the edge %s", edge.ListedBy()[i], edgeKey.SK)
		}
	}
}

// edge verifies that the attributes of an edge equal the attributes of its record.
func (a *audit) edge(k Key, e *model.Entity, r Record) {
	recordKey := e.EdgeOf.KeyWith(e.KeyValues(model.Keys{PK: k.PK, SK: k.SK}))
	if record := a.refer(k, recordKey.PK, recordKey.SK); record != nil {
		a.agree(k, "the "+e.EdgeOf.What, r, record, slices.Concat(e.Lacks, keyNames)...)
	}
}

// refer returns another record. If the record does not exist, refer adds a problem and returns nil.
func (a *audit) refer(k Key, pk, sk string) Record {
	r := a.Records[Key{pk, sk}]
	if r == nil {
		a.problem(k, "refers to %s %s, which does not exist", pk, sk)
	}
	return r
}

const metadata = "#METADATA"

// record verifies a record that does not belong to an order.
func (a *audit) record(k Key, r Record) {
	for name, v := range r {
		if n, ok := v.(*types.AttributeValueMemberN); ok && strings.HasPrefix(n.Value, "-") {
			a.problem(k, "%s is negative: %s", name, n.Value)
		}
	}
	e := model.EntityOf(model.Keys{PK: k.PK, SK: k.SK})
	if e == nil {
		a.problem(k, "does not match any entity of the model")
		return
	}
	a.keys(k, e, r)
	a.edges(k, e, r)
	if e.EdgeOf != nil {
		a.edge(k, e, r)
		return
	}
	switch e.Name {
	case "customer":
		a.customer(k, r)
	case "lastEvent":
		a.lastEvent(k, r)
	case "emailClaim":
		if c := a.refer(k, "CUSTOMER#"+r.Text("customerId"), metadata); c != nil {
			a.expect(k, "the customer's email", strings.TrimPrefix(k.PK, "EMAIL#"), strings.ToLower(c.Text("email")))
		}
	case "inventoryLevel":
		a.refer(k, "PRODUCT#"+r.Text("sku"), metadata)
		a.refer(k, "WAREHOUSE#"+r.Text("warehouseId"), metadata)
	case "employee":
		if w := r.Text("warehouseId"); w != "" {
			a.refer(k, "WAREHOUSE#"+w, metadata)
		}
	case "idempotency":
		a.Answers[k.PK] = r
		if r.Map("result") == nil || r.Text("requestHash") == "" || r.Int("expiresAt") < 0 {
			a.problem(k, "lacks result, requestHash or expiresAt")
		}
		if order := r.Map("result").Text("orderId"); order != "" {
			a.refer(k, "ORDER#"+order, metadata)
		}
	}
}

func (a *audit) customer(k Key, r Record) {
	if claim := a.refer(k, "EMAIL#"+strings.ToLower(r.Text("email")), metadata); claim != nil {
		a.expect(k, "the customer of the email claim", r.Text("customerId"), claim.Text("customerId"))
	}
	if rep := r.Text("accountRepId"); rep != "" {
		a.refer(k, "EMPLOYEE#"+rep, metadata)
	}
}

// lastEvent verifies that a customer's last event is the event with the highest ID of all the
// customer's orders.
func (a *audit) lastEvent(k Key, r Record) {
	id := r.Text("customerId")
	if e := a.refer(k, "ORDER#"+r.Text("orderId"), "EVENT#"+r.Text("eventId")); e != nil {
		a.agree(k, "the timeline", r, e, append([]string{"customerId"}, keyNames...)...)
	}
	if o := a.refer(k, "ORDER#"+r.Text("orderId"), metadata); o != nil {
		a.expect(k, "the customer of the order", id, o.Text("customerId"))
	}
	for orderID, o := range a.orders {
		for eventID := range o.events {
			if o.own.Text("customerId") == id && eventID > r.Text("eventId") {
				a.problem(k, "is %s, but order %s has event %s", r.Text("eventId"), orderID, eventID)
			}
		}
	}
}

// maxEmbedded is the maximum number of line items that are embedded in the records of an order.
const maxEmbedded = 25

// order verifies all records of an order.
func (a *audit) order(id string, o *auditedOrder) {
	k := Key{"ORDER#" + id, metadata}
	if o.own == nil {
		a.problem(k, "is missing, but other records exist: customer's copy: %v, items: %d, events: %d", o.copied != nil, len(o.items), len(o.events))
		return
	}
	customer := "CUSTOMER#" + o.own.Text("customerId")
	a.refer(k, customer, metadata)
	if o.copied == nil {
		a.problem(k, "has no customer's copy")
	} else {
		a.expect(k, "the customer's copy", Key{customer, "ORDER#" + id}, o.copyKey)
		a.agree(k, "the customer's copy", o.own, o.copied, keyNames...)
		if rep := o.own.Text("accountRepId"); rep != "" {
			a.refer(k, "EMPLOYEE#"+rep, metadata)
		}
	}
	a.items(k, o)
	a.events(k, id, o)
}

func (a *audit) items(k Key, o *auditedOrder) {
	total := new(big.Rat)
	for sku, item := range o.items {
		itemKey := Key{k.PK, "ITEM#" + sku}
		a.expect(itemKey, "customerId and currency", o.own.Text("customerId")+" "+o.own.Text("currency"), item.Text("customerId")+" "+item.Text("currency"))
		a.refer(itemKey, "PRODUCT#"+sku, metadata)
		if item.Int("qty") < 1 || item.Number("price") == nil {
			a.problem(itemKey, "has a quantity of %s and a price of %s", Show(item["qty"]), Show(item["price"]))
			continue
		}
		total.Add(total, new(big.Rat).Mul(item.Number("qty"), item.Number("price")))
	}
	if len(o.items) == 0 {
		a.problem(k, "has no items")
	}
	a.expect(k, "itemCount", len(o.items), o.own.Int("itemCount"))
	if got := o.own.Number("total"); got == nil || got.Cmp(total) != 0 {
		a.problem(k, "total is %s, its items add up to %s", Show(o.own["total"]), total.FloatString(4))
	}
	embedded, isEmbedded := o.own["items"].(*types.AttributeValueMemberL)
	a.expect(k, "whether it embeds its items", len(o.items) <= maxEmbedded, isEmbedded)
	if !isEmbedded {
		return
	}
	a.expect(k, "the number of embedded items", len(o.items), len(embedded.Value))
	for _, e := range embedded.Value {
		m, ok := e.(*types.AttributeValueMemberM)
		if !ok {
			a.problem(k, "embeds an item that is not a map: %s", Show(e))
			continue
		}
		embeddedItem := Record(m.Value)
		itemRecord := o.items[embeddedItem.Text("productId")]
		if itemRecord == nil {
			a.problem(k, "embeds item %s, which has no record", embeddedItem.Text("productId"))
			continue
		}
		a.agree(k, "the item's record", embeddedItem, itemRecord, append([]string{"orderId", "customerId", "currency"}, keyNames...)...)
	}
}

// moves are the events that change the status of an order, with the allowed statuses before.
var moves = map[string][]string{
	"confirmed": {"pending"}, "shipped": {"confirmed"}, "delivered": {"shipped"}, "cancelled": {"pending", "confirmed"},
}

// stays are the events that do not change the status, with the statuses that allow them.
var stays = map[string][]string{
	"item_set": {"pending"}, "item_removed": {"pending"}, "shipping_address_changed": {"pending", "confirmed"},
}

func (a *audit) events(k Key, id string, o *auditedOrder) {
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
		at := momentOf(eventID)
		a.expect(eventKey, "createdAt", at, e.Text("createdAt"))
		if at <= last {
			a.problem(eventKey, "is not later than the event before it, at %s", last)
		}
		last = at
		eventType := e.Text("type")
		switch {
		case i == 0 && (eventType == "placed" || eventType == "imported"):
			a.expect(eventKey, "from", "", e.Text("from"))
			status = e.Text("to")
			if eventType == "placed" {
				a.expect(eventKey, "to", "pending", status)
			}
			a.expect(eventKey, "the order's createdAt", at, o.own.Text("createdAt"))
		case moves[eventType] != nil:
			a.expect(eventKey, "from", status, e.Text("from"))
			a.expect(eventKey, "to", eventType, e.Text("to"))
			if !slices.Contains(moves[eventType], status) {
				a.problem(eventKey, "changes the status to %s, which %s does not allow", eventType, status)
			}
			status = eventType
		case stays[eventType] != nil:
			if !slices.Contains(stays[eventType], status) {
				a.problem(eventKey, "has type %s, which the status %s does not allow", eventType, status)
			}
		default:
			a.problem(eventKey, "has type %q, which is not allowed at position %d", eventType, i)
		}
	}
	if len(ids) == 0 {
		a.problem(k, "has no events")
		return
	}
	a.expect(k, "status", status, o.own.Text("status"))
	a.expect(k, "createdAt", momentOf(id), o.own.Text("createdAt"))
	if placed {
		// Every change adds one event.
		a.expect(k, "version", len(ids), o.own.Int("version"))
		a.expect(k, "updatedAt", last, o.own.Text("updatedAt"))
	}
}

// momentOf returns the time in a ULID, in the format of the table.
func momentOf(id string) string {
	u, err := ulid.ParseStrict(id)
	if err != nil {
		return fmt.Sprintf("no time: %q is not a ULID", id)
	}
	return time.UnixMilli(int64(u.Time())).UTC().Format("2006-01-02T15:04:05.000Z")
}

// spending compares the stored spending of customers with the cost of their orders.
func (a *audit) spending(spent map[Key]*big.Rat) {
	isComplete := func(k Key) bool {
		v, ok := a.Records[Key{k.PK, metadata}]["spendingComplete"].(*types.AttributeValueMemberBOOL)
		return ok && v.Value
	}
	for k, want := range spent {
		if isComplete(k) && a.Records[k] == nil {
			a.problem(k, "is missing, but the orders cost %s", want.FloatString(2))
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
			a.problem(k, "spent is %v, but the orders cost %s", got, want.FloatString(2))
		}
	}
}

var orderStatuses = []string{"pending", "confirmed", "shipped", "delivered", "cancelled"}

// counters verifies the counters, which summarize several records.
func (a *audit) counters() {
	levels, reserved, orders, categories := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	statuses, counts, incomplete, complete := map[string]int{}, map[string]int{}, []Key{}, 0
	sold, ofRep, keptByRep := map[string]int{}, map[string]int{}, map[string]int{}
	for k, r := range a.Records {
		if strings.HasPrefix(k.PK, "PRODUCT#") && k.SK == metadata {
			categories["CATEGORY#"+r.Text("category")]++
		}
		if k.PK == "ORDER_COUNTS" {
			if v, ok := r["complete"].(*types.AttributeValueMemberBOOL); ok && v.Value {
				complete++
			} else {
				incomplete = append(incomplete, k)
			}
			for _, status := range orderStatuses {
				counts[status] += r.Int(status)
			}
		}
		if strings.HasPrefix(k.SK, "ORDERS#") {
			keptByRep[k.PK] += r.Int("orders")
		}
		if strings.HasPrefix(k.PK, "PRODUCT#") && strings.HasPrefix(k.SK, "WAREHOUSE#") {
			levels[k.PK] += r.Int("quantity")
		}
	}
	spent := map[Key]*big.Rat{}
	for _, o := range a.orders {
		if o.own == nil {
			continue
		}
		if o.own.Text("status") != "cancelled" {
			k := Key{"CUSTOMER#" + o.own.Text("customerId"), "SPENDING#" + o.own.Text("createdAt")[:len("2026-04")] + "#" + o.own.Text("currency")}
			if spent[k] == nil {
				spent[k] = new(big.Rat)
			}
			spent[k].Add(spent[k], o.own.Number("total"))
		}
		orders["CUSTOMER#"+o.own.Text("customerId")]++
		ofRep["EMPLOYEE#"+o.own.Text("accountRepId")]++
		for sku := range o.items {
			sold["PRODUCT#"+sku]++
		}
		statuses[o.own.Text("status")]++
		if s := o.own.Text("status"); s != "pending" && s != "confirmed" {
			continue
		}
		for sku, item := range o.items {
			reserved["PRODUCT#"+sku] += item.Int("qty")
		}
	}
	a.spending(spent)
	if complete > 0 { // otherwise the table does not count its orders
		for _, k := range incomplete {
			a.problem(k, "is not complete")
		}
		for _, status := range orderStatuses {
			a.expect(Key{"ORDER_COUNTS", "all"}, status, statuses[status], counts[status])
		}
	}
	for sk := range categories {
		a.refer(Key{"CATEGORIES", sk}, "CATEGORIES", sk)
	}
	for k, r := range a.Records {
		switch {
		case k.SK == "ORDERS#0":
			if v, ok := r["complete"].(*types.AttributeValueMemberBOOL); ok && v.Value {
				a.expect(k, "the number of the rep's orders", ofRep[k.PK], keptByRep[k.PK])
			}
		case k.PK == "CATEGORIES":
			a.expect(k, "productCount", categories[k.SK], r.Int("productCount"))
		case k.SK != metadata:
		case strings.HasPrefix(k.PK, "PRODUCT#"):
			a.expect(k, "totalInventory", levels[k.PK], r.Int("totalInventory"))
			a.expect(k, "available", levels[k.PK]-reserved[k.PK], r.Int("available"))
			if r.Has("orderCount") { // else nobody has counted the orders
				a.expect(k, "orderCount", sold[k.PK], r.Int("orderCount"))
			}
		case strings.HasPrefix(k.PK, "CUSTOMER#"):
			a.expect(k, "orderCount", orders[k.PK], r.Int("orderCount"))
		}
	}
}
