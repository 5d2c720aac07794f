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

// Audited is what an audit found in a table.
type Audited struct {
	// Problems are what is wrong, none where the table is consistent.
	Problems []string
	// Records are all records by partition and sort key.
	Records map[Key]Record
	// Orders are the ids of all orders.
	Orders []string
	// Answers are the memories of idempotency keys, by partition key.
	Answers map[string]Record
}

// Key is a record's primary key.
type Key struct{ PK, SK string }

// Record is a record's attributes.
type Record map[string]types.AttributeValue

// Text is a string attribute; empty where there is none.
func (r Record) Text(name string) string {
	if s, ok := r[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// Has reports whether the record has an attribute.
func (r Record) Has(name string) bool { return r[name] != nil }

// Number is a number attribute; nil where there is none.
func (r Record) Number(name string) *big.Rat {
	if n, ok := r[name].(*types.AttributeValueMemberN); ok {
		if v, ok := new(big.Rat).SetString(n.Value); ok {
			return v
		}
	}
	return nil
}

// Int is a whole number attribute; -1 where there is none.
func (r Record) Int(name string) int {
	if v := r.Number(name); v != nil && v.IsInt() {
		return int(v.Num().Int64())
	}
	return -1
}

// Map is a map attribute; nil where there is none.
func (r Record) Map(name string) Record {
	if m, ok := r[name].(*types.AttributeValueMemberM); ok {
		return m.Value
	}
	return nil
}

// TB is what an audit needs of a test; tests of package rapid have it, too.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Clean fails t where the table is not consistent, and gives what the audit found. The product's
// own check has to find nothing either, and to come to an end.
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
		t.Errorf("check: %+v, %v, want nothing found, unsettled or foreign", summary, err)
	}
	return a
}

// Audit reads a whole table with so many shards, and works out from nothing whether it is
// consistent. It has the keys of the records from their declaration, and shares no other code with
// what writes them: what it finds wrong is wrong, whatever that code thinks.
//
// Errors: those of the SDK.
func Audit(ctx context.Context, db *dynamodb.Client, table string, shards int) (*Audited, error) {
	a := &audit{Audited: Audited{Records: map[Key]Record{}, Answers: map[string]Record{}}, shards: shards, orders: map[string]*auditedOrder{}}
	if err := scan(ctx, db, table, nil, func(k Key, r Record) {
		if a.Records[k] != nil {
			a.problem(k, "stands in the table twice")
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
			a.problem(k, "has index keys: %v, stands in the index: %v", r.Has("gsi1pk"), indexed[k] != nil)
		} else if indexed[k] != nil {
			a.agree(k, "its entry in the index", r, indexed[k])
		}
	}
	for k := range indexed {
		if a.Records[k] == nil {
			a.problem(k, "stands in the index, not in the table")
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
			// The embedded store's answers leave out that an empty list is one, and the SDK makes
			// something else of that.
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

// auditedOrder is everything that the table holds of an order.
type auditedOrder struct {
	own, copied Record
	copyKey     Key
	items       map[string]Record
	events      map[string]Record
}

func (a *audit) problem(k Key, format string, args ...any) {
	a.Problems = append(a.Problems, k.PK+" "+k.SK+": "+fmt.Sprintf(format, args...))
}

func (a *audit) expect(k Key, what string, want, have any) {
	if fmt.Sprint(want) != fmt.Sprint(have) {
		a.problem(k, "%s is %v, want %v", what, have, want)
	}
}

// keyNames are the attributes in which copies of a record may differ.
var keyNames = []string{"pk", "sk", "gsi1pk", "gsi1sk", "entity"}

// agree compares two records attribute by attribute, but for those of except.
func (a *audit) agree(k Key, with string, one, other Record, except ...string) {
	for name, v := range one {
		if !slices.Contains(except, name) && !Equal(v, other[name]) {
			a.problem(k, "%s is %s, in %s it is %s", name, Show(v), with, Show(other[name]))
		}
	}
	for name, v := range other {
		if !slices.Contains(except, name) && one[name] == nil {
			a.problem(k, "has no %s, in %s it is %s", name, with, Show(v))
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

// sort puts the records of orders together.
func (a *audit) sort(k Key, r Record) {
	of := func(id string) *auditedOrder {
		if a.orders[id] == nil {
			a.orders[id] = &auditedOrder{items: map[string]Record{}, events: map[string]Record{}}
		}
		return a.orders[id]
	}
	id, ofOrder := strings.CutPrefix(k.PK, "ORDER#")
	rest, inCustomer := strings.CutPrefix(k.SK, "ORDER#")
	switch {
	case ofOrder && k.SK == "#METADATA":
		of(id).own = r
	case ofOrder && strings.HasPrefix(k.SK, "ITEM#"):
		of(id).items[strings.TrimPrefix(k.SK, "ITEM#")] = r
	case ofOrder && strings.HasPrefix(k.SK, "EVENT#"):
		of(id).events[strings.TrimPrefix(k.SK, "EVENT#")] = r
	case inCustomer && strings.HasPrefix(k.PK, "CUSTOMER#"):
		o := of(rest)
		if o.copied != nil {
			a.problem(k, "is the second copy of the order, beside %s", o.copyKey.PK)
		}
		o.copied, o.copyKey = r, k
	}
}

// sharded is a partition key of the index with the shard of an id.
func (a *audit) sharded(key, id string) string {
	if a.shards <= 1 {
		return key
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return fmt.Sprintf("%s#%d", key, h.Sum32()%uint32(a.shards))
}

// keys checks a record's kind, and that its keys are made of what its attributes say, by the
// templates in docs/data-model.md.
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

// filled is a template with the attributes of a record in its braces.
func filled(e *model.Entity, t model.Template, r Record) string {
	text := string(t)
	for _, name := range t.Names() {
		value := r.Text(e.AttributeFor(name))
		if r.Number(e.AttributeFor(name)) != nil { // no number in a key that is audited is below zero
			value = fmt.Sprintf("%019d", r.Int(e.AttributeFor(name)))
		}
		if name == "foldedName" {
			value = strings.NewReplacer(" ", "-", "!", "-", `"`, "-", "#", "-").Replace(norm.NFC.String(strings.ToLower(value)))
		}
		text = strings.Replace(text, "{"+name+"}", value, 1)
	}
	return text
}

// edges checks that a record has the edges that its attributes ask for, and no others.
func (a *audit) edges(k Key, e *model.Entity, r Record) {
	values := e.KeyValues(model.Keys{PK: k.PK, SK: k.SK})
	for _, edge := range e.Edges() {
		at := edge.KeyWith(values)
		if i := slices.IndexFunc(edge.ListedBy(), func(name string) bool { return !r.Has(name) }); i < 0 {
			a.refer(k, at.PK, at.SK)
		} else if a.Records[Key{at.PK, at.SK}] != nil {
			a.problem(k, "has no %s, but the edge %s", edge.ListedBy()[i], at.SK)
		}
	}
}

// edge checks that an edge says what its record says.
func (a *audit) edge(k Key, e *model.Entity, r Record) {
	at := e.EdgeOf.KeyWith(e.KeyValues(model.Keys{PK: k.PK, SK: k.SK}))
	if own := a.refer(k, at.PK, at.SK); own != nil {
		a.agree(k, "the "+e.EdgeOf.What, r, own, slices.Concat(e.Lacks, keyNames)...)
	}
}

// refer checks that another record exists, and gives it.
func (a *audit) refer(k Key, pk, sk string) Record {
	r := a.Records[Key{pk, sk}]
	if r == nil {
		a.problem(k, "refers to %s %s, which is not there", pk, sk)
	}
	return r
}

const metadata = "#METADATA"

// record checks a record that is none of an order's.
func (a *audit) record(k Key, r Record) {
	for name, v := range r {
		if n, ok := v.(*types.AttributeValueMemberN); ok && strings.HasPrefix(n.Value, "-") {
			a.problem(k, "%s is negative: %s", name, n.Value)
		}
	}
	e := model.EntityOf(model.Keys{PK: k.PK, SK: k.SK})
	if e == nil {
		a.problem(k, "is no record that the design knows")
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
			a.expect(k, "the customer's address", strings.TrimPrefix(k.PK, "EMAIL#"), strings.ToLower(c.Text("email")))
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
			a.problem(k, "is not whole")
		}
		if order := r.Map("result").Text("orderId"); order != "" {
			a.refer(k, "ORDER#"+order, metadata)
		}
	}
}

func (a *audit) customer(k Key, r Record) {
	if claim := a.refer(k, "EMAIL#"+strings.ToLower(r.Text("email")), metadata); claim != nil {
		a.expect(k, "who claims the address", r.Text("customerId"), claim.Text("customerId"))
	}
	if rep := r.Text("accountRepId"); rep != "" {
		a.refer(k, "EMPLOYEE#"+rep, metadata)
	}
}

// lastEvent checks that a customer's last event is the one with the highest id in the timelines of
// the customer's orders.
func (a *audit) lastEvent(k Key, r Record) {
	id := r.Text("customerId")
	if e := a.refer(k, "ORDER#"+r.Text("orderId"), "EVENT#"+r.Text("eventId")); e != nil {
		a.agree(k, "the timeline", r, e, append([]string{"customerId"}, keyNames...)...)
	}
	if o := a.refer(k, "ORDER#"+r.Text("orderId"), metadata); o != nil {
		a.expect(k, "whose order it is", id, o.Text("customerId"))
	}
	for orderID, o := range a.orders {
		for eventID := range o.events {
			if o.own.Text("customerId") == id && eventID > r.Text("eventId") {
				a.problem(k, "is %s, and order %s has event %s", r.Text("eventId"), orderID, eventID)
			}
		}
	}
}

// maxEmbedded is how many items the records of an order carry themselves.
const maxEmbedded = 25

// order checks all records of an order.
func (a *audit) order(id string, o *auditedOrder) {
	k := Key{"ORDER#" + id, metadata}
	if o.own == nil {
		a.problem(k, "is missing, but there are: a customer's copy: %v, items: %d, events: %d", o.copied != nil, len(o.items), len(o.events))
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
		ik := Key{k.PK, "ITEM#" + sku}
		a.expect(ik, "customerId and currency", o.own.Text("customerId")+" "+o.own.Text("currency"), item.Text("customerId")+" "+item.Text("currency"))
		a.refer(ik, "PRODUCT#"+sku, metadata)
		if item.Int("qty") < 1 || item.Number("price") == nil {
			a.problem(ik, "has a quantity of %s and a price of %s", Show(item["qty"]), Show(item["price"]))
			continue
		}
		total.Add(total, new(big.Rat).Mul(item.Number("qty"), item.Number("price")))
	}
	if len(o.items) == 0 {
		a.problem(k, "has no items")
	}
	a.expect(k, "itemCount", len(o.items), o.own.Int("itemCount"))
	if have := o.own.Number("total"); have == nil || have.Cmp(total) != 0 {
		a.problem(k, "total is %s, its items add up to %s", Show(o.own["total"]), total.FloatString(4))
	}
	embedded, embeds := o.own["items"].(*types.AttributeValueMemberL)
	a.expect(k, "whether it carries its items", len(o.items) <= maxEmbedded, embeds)
	if !embeds {
		return
	}
	a.expect(k, "how many items it carries", len(o.items), len(embedded.Value))
	for _, e := range embedded.Value {
		m, ok := e.(*types.AttributeValueMemberM)
		if !ok {
			a.problem(k, "carries an item that is %s", Show(e))
			continue
		}
		line := Record(m.Value)
		own := o.items[line.Text("productId")]
		if own == nil {
			a.problem(k, "carries item %s, which has no record", line.Text("productId"))
			continue
		}
		a.agree(k, "the item's record", line, own, append([]string{"orderId", "customerId", "currency"}, keyNames...)...)
	}
}

// moves are the statuses that events lead to, and from where.
var moves = map[string][]string{
	"confirmed": {"pending"}, "shipped": {"confirmed"}, "delivered": {"shipped"}, "cancelled": {"pending", "confirmed"},
}

// stays are the statuses in which events can happen that change none.
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
		ek := Key{k.PK, "EVENT#" + eventID}
		at := momentOf(eventID)
		a.expect(ek, "createdAt", at, e.Text("createdAt"))
		if at <= last {
			a.problem(ek, "is not later than the event before, of %s", last)
		}
		last = at
		kind := e.Text("type")
		switch {
		case i == 0 && (kind == "placed" || kind == "imported"):
			a.expect(ek, "from", "", e.Text("from"))
			status = e.Text("to")
			if kind == "placed" {
				a.expect(ek, "to", "pending", status)
			}
			a.expect(ek, "when the order was placed", at, o.own.Text("createdAt"))
		case moves[kind] != nil:
			a.expect(ek, "from", status, e.Text("from"))
			a.expect(ek, "to", kind, e.Text("to"))
			if !slices.Contains(moves[kind], status) {
				a.problem(ek, "moves an order to %s that is %s", kind, status)
			}
			status = kind
		case stays[kind] != nil:
			if !slices.Contains(stays[kind], status) {
				a.problem(ek, "is %s of an order that is %s", kind, status)
			}
		default:
			a.problem(ek, "is %q as event %d", kind, i)
		}
	}
	if len(ids) == 0 {
		a.problem(k, "has no events")
		return
	}
	a.expect(k, "status", status, o.own.Text("status"))
	a.expect(k, "createdAt", momentOf(id), o.own.Text("createdAt"))
	if placed {
		// Every change leaves one event.
		a.expect(k, "version", len(ids), o.own.Int("version"))
		a.expect(k, "updatedAt", last, o.own.Text("updatedAt"))
	}
}

// momentOf is the time in a ULID, as the table spells times.
func momentOf(id string) string {
	u, err := ulid.ParseStrict(id)
	if err != nil {
		return fmt.Sprintf("no time, as %q is no ULID", id)
	}
	return time.UnixMilli(int64(u.Time())).UTC().Format("2006-01-02T15:04:05.000Z")
}

// spending compares what customers have spent with what their orders cost.
func (a *audit) spending(spent map[Key]*big.Rat) {
	added := func(k Key) bool {
		v, ok := a.Records[Key{k.PK, metadata}]["spendingComplete"].(*types.AttributeValueMemberBOOL)
		return ok && v.Value
	}
	for k, want := range spent {
		if added(k) && a.Records[k] == nil {
			a.problem(k, "is missing: the orders cost %s", want.FloatString(2))
		}
	}
	for k, r := range a.Records {
		if !strings.HasPrefix(k.SK, "SPENDING#") || !added(k) {
			continue
		}
		want := spent[k]
		if want == nil {
			want = new(big.Rat)
		}
		if have := r.Number("spent"); have == nil || have.Cmp(want) != 0 {
			a.problem(k, "spent is %v, the orders cost %s", have, want.FloatString(2))
		}
	}
}

var orderStatuses = []string{"pending", "confirmed", "shipped", "delivered", "cancelled"}

// counters checks what is counted over several records.
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
	if complete > 0 { // else the table does not count its orders
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
