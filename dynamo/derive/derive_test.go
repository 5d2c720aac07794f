package derive_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

func TestMain(m *testing.M) {
	longtest.SetRapidChecks(8, 30) // each loads several tables
	os.Exit(dynamolocal.Main(m))
}

// shop is a table that random mutations change.
type shop struct {
	storetest.RawTable
	rt *rapid.T
	// contended sends its requests like Store, but first calls before once.
	contended *dynamo.Store
	before    *atomic.Pointer[func()]
	orders    []commerce.OrderID
	// fulfillments are those that mutations have created.
	fulfillments []*commerce.Fulfillment
	shards       int
	// sales reports whether the table has the sales by day, which new tables lack.
	sales bool
}

func newDataset(t *testing.T) commerce.Dataset {
	dataset := storetest.SmallDataset(t, 30)
	for i := range dataset.Products {
		p := &dataset.Products[i]
		p.Category = fmt.Sprintf("k%d", i%4)
		dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: p.SKU, WarehouseID: "w3", Quantity: i + 3, Version: 1})
	}
	dataset.Warehouses = append(dataset.Warehouses, commerce.Warehouse{ID: "w3", Name: "West", Version: 1})
	all := dataset.Orders[storetest.BigOrderNumber].Lines
	dataset.Orders = slices.DeleteFunc(dataset.Orders, func(o commerce.OrderWithItems) bool {
		return len(o.Status.Transitions()) != 2 && o.Status != commerce.Cancelled
	})
	for i := range dataset.Orders {
		dataset.Orders[i].Version = len(dataset.Orders[i].Events)
	}
	// The first order has more line items than its record can embed.
	if dataset.Orders[0].Lines = all; len(all) <= commerce.MaxEmbeddedItems {
		t.Fatalf("the order has %d line items", len(all))
	}
	for i := range all {
		all[i].Quantity = 1
	}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	return dataset
}

func newShop(t *testing.T, rt *rapid.T, db *dynamodb.Client, opts dynamo.Options) *shop {
	dataset := newDataset(t)
	s := &shop{RawTable: storetest.NewRawTable(t, db, dataset, opts), rt: rt, shards: opts.Shards, before: &atomic.Pointer[func()]{}}
	hooked := storetest.WithRequestHook(db, func(_ context.Context, in any) error {
		if _, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
			if f := s.before.Swap(nil); f != nil {
				(*f)()
			}
		}
		return nil
	})
	for _, o := range dataset.Orders {
		s.orders = append(s.orders, o.ID)
	}
	s.contended = storetest.StoreWithClient(t, s.Store, hooked, opts)
	return s
}

// addSales declares the sales by day as readable. A repair adds them up.
func (s *shop) addSales(t *testing.T) {
	storetest.MakeReadable(t, s.RawTable, model.EntityDailySales.Name)
	storetest.MakeReadable(t, s.RawTable, model.EntityLowStock.Name)
	s.sales = true
}

// follow lets a store follow the layout of the table.
func (s *shop) follow(store *dynamo.Store) *dynamo.Store {
	if err := store.Ping(context.Background()); err != nil {
		s.rt.Fatal(err)
	}
	return store
}

func (s *shop) sku() commerce.SKU {
	return commerce.SKU(fmt.Sprintf("p%02d", rapid.SampledFrom([]int{0, 1, 2, 29}).Draw(s.rt, "product")))
}

func (s *shop) category() string {
	return rapid.SampledFrom([]string{"k0", "k1", "new"}).Draw(s.rt, "category")
}

// mutation returns a random mutation. It can be executed several times.
func (s *shop) mutation() func(context.Context, *dynamo.Store) error {
	staff := change.Caller{ID: "sam", Name: "sam"}
	sku, quantity := s.sku(), rapid.IntRange(0, 6).Draw(s.rt, "quantity")
	at := rapid.IntRange(0, 2*len(s.orders)).Draw(s.rt, "order")
	order := func() commerce.OrderID { return s.orders[min(at, len(s.orders)-1)] } // often the newest
	level := commerce.InventoryLevelChange{SKU: sku, WarehouseID: rapid.SampledFrom([]commerce.WarehouseID{"w1", "w2"}).Draw(s.rt, "warehouse"), Quantity: new(quantity * 3)}
	if s.sales {
		level.ReorderPoint = new(rapid.IntRange(0, 9).Draw(s.rt, "reorder point"))
	}
	status := rapid.SampledFrom([]commerce.Status{commerce.Confirmed, commerce.Shipped, commerce.Delivered, commerce.Cancelled}).Draw(s.rt, "status")
	placed := commerce.OrderRequest{CustomerID: rapid.SampledFrom([]commerce.CustomerID{"c1", "c2"}).Draw(s.rt, "customer"), Lines: []commerce.OrderLine{{SKU: sku, Quantity: quantity + 1}}}
	if other := s.sku(); other != sku {
		placed.Lines = append(placed.Lines, commerce.OrderLine{SKU: other, Quantity: 1})
	}
	adjustments := rapid.SampledFrom([][]commerce.OrderAdjustment{nil, {
		{Kind: commerce.AdjustmentShipping, Label: "Post", Amount: storetest.USD("4.9")},
		{Kind: commerce.AdjustmentDiscount, Label: "Sale", Amount: storetest.USD("-0.25"), Line: sku},
		{Kind: commerce.AdjustmentTax, Label: "VAT", Amount: storetest.USD("3"), Included: true},
	}, {{Kind: commerce.AdjustmentDiscount, Label: "Voucher", Amount: storetest.USD("-20")}}}).Draw(s.rt, "adjustments")
	placed.Adjustments = adjustments
	category, email := s.category(), rapid.SampledFrom([]string{"a@example.com", "b@example.com", "ann@example.com"}).Draw(s.rt, "email")
	place := func(ctx context.Context, store *dynamo.Store) error {
		o, err := store.PlaceOrder(ctx, staff, placed)
		if err == nil {
			s.orders = append(s.orders, o.ID)
		}
		return err
	}
	changeStatus := func(ctx context.Context, store *dynamo.Store) error {
		id := order()
		c := commerce.OrderStatusChange{OrderID: id, To: status, WithoutAddress: status == commerce.Shipped}
		if status == commerce.Shipped {
			c.WarehouseID = "w3"
			if _, err := store.ChangeOrderStatus(ctx, staff, commerce.OrderStatusChange{OrderID: id, To: commerce.Confirmed}); err != nil && !commerce.IsUserError(err) {
				return err
			}
		}
		_, err := store.ChangeOrderStatus(ctx, staff, c)
		return err
	}
	paid := commerce.PaymentRecord{Kind: rapid.SampledFrom([]commerce.PaymentKind{
		commerce.PaymentAuthorization, commerce.PaymentCapture, commerce.PaymentCapture, commerce.PaymentVoid, commerce.PaymentRefund, commerce.PaymentChargeback,
	}).Draw(s.rt, "kind"), Amount: storetest.USD(fmt.Sprintf("%d.50", quantity)), Provider: "stripe", Reference: fmt.Sprint(rapid.IntRange(0, 20).Draw(s.rt, "reference"))}
	pay := func(ctx context.Context, store *dynamo.Store) error {
		paid.OrderID = order()
		_, err := store.RecordPayment(ctx, staff, paid)
		return err
	}
	sendBack := func(ctx context.Context, store *dynamo.Store) error {
		id := order()
		back, err := store.RequestReturn(ctx, staff, commerce.ReturnRequest{OrderID: id, Lines: []commerce.ReturnLine{{SKU: sku, Quantity: quantity + 1, Reason: "broken"}}})
		if err == nil {
			_, err = store.DecideReturn(ctx, staff, commerce.ReturnDecision{OrderID: id, ReturnID: back.ID, To: commerce.ReturnApproved})
		}
		if err == nil {
			_, err = store.ReceiveReturn(ctx, staff, commerce.ReturnReceipt{OrderID: id, ReturnID: back.ID, WarehouseID: "w2", Lines: []commerce.RestockedLine{{SKU: sku, Restocked: 1}}})
		}
		if err == nil {
			refund := commerce.PaymentRecord{OrderID: id, Kind: commerce.PaymentRefund, Amount: storetest.USD("0.5"), Provider: "stripe", Reference: string(back.ID), ReturnID: back.ID}
			_, err = store.RecordPayment(ctx, staff, refund)
		}
		return err
	}
	parcel := commerce.FulfillmentRequest{WarehouseID: rapid.SampledFrom([]commerce.WarehouseID{"w1", "w3"}).Draw(s.rt, "from"), WithoutAddress: true, TrackingNumber: "1Z"}
	if quantity > 0 {
		parcel.Lines = []commerce.FulfillmentLine{{SKU: sku, Quantity: 1 + quantity/4}}
	}
	changed, to := rapid.IntRange(0, 5).Draw(s.rt, "fulfillment"), rapid.SampledFrom([]commerce.FulfillmentStatus{commerce.FulfillmentDelivered, commerce.FulfillmentCancelled}).Draw(s.rt, "to")
	fulfil := func(ctx context.Context, store *dynamo.Store) error {
		parcel.OrderID = order()
		if _, err := store.ChangeOrderStatus(ctx, staff, commerce.OrderStatusChange{OrderID: parcel.OrderID, To: commerce.Confirmed}); err != nil && !commerce.IsUserError(err) {
			return err
		}
		f, err := store.CreateFulfillment(ctx, staff, parcel)
		if err == nil {
			s.fulfillments = append(s.fulfillments, f)
		}
		return err
	}
	changeFulfillment := func(ctx context.Context, store *dynamo.Store) error {
		if len(s.fulfillments) == 0 {
			return nil
		}
		f := s.fulfillments[max(0, len(s.fulfillments)-1-changed)]
		_, err := store.ChangeFulfillmentStatus(ctx, staff, commerce.FulfillmentStatusChange{OrderID: f.OrderID, FulfillmentID: f.ID, To: to})
		return err
	}
	return rapid.SampledFrom([]func(context.Context, *dynamo.Store) error{
		place, place, place, changeStatus, changeStatus, changeStatus, pay, pay, pay, sendBack, sendBack, fulfil, fulfil, fulfil, changeFulfillment, changeFulfillment,
		func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.SetOrderItem(ctx, staff, commerce.OrderItemChange{OrderID: order(), SKU: sku, Quantity: quantity})
			return err
		},
		func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.SetAdjustments(ctx, staff, commerce.AdjustmentsChange{OrderID: order(), Adjustments: adjustments})
			return err
		},
		func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.SetInventoryLevel(ctx, staff, level)
			return err
		},
		func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.AdjustInventory(ctx, staff, commerce.InventoryAdjustment{SKU: sku, WarehouseID: level.WarehouseID, Delta: quantity - 4})
			return err
		},
		func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.TransferInventory(ctx, staff, commerce.InventoryTransfer{SKU: sku, FromWarehouseID: level.WarehouseID, ToWarehouseID: "w1", Quantity: 1 + quantity})
			return err
		},
		func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.UpdateProduct(ctx, staff, commerce.ProductChange{SKU: sku, Category: &category})
			return err
		},
		func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.CreateProduct(ctx, staff, commerce.Product{SKU: sku + "x", Name: "New", Category: category, UnitPrice: storetest.USD("0")})
			return err
		},
		func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.CreateCustomer(ctx, staff, commerce.Customer{Name: "New", Email: email, AccountRepID: "e1"})
			return err
		},
		func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.UpdateCustomer(ctx, staff, commerce.CustomerChange{ID: placed.CustomerID, Email: &email})
			return err
		},
		func(ctx context.Context, store *dynamo.Store) error {
			_, err := store.AssignAccountRep(ctx, staff, commerce.AccountRepChange{CustomerID: placed.CustomerID, EmployeeID: commerce.EmployeeID(fmt.Sprintf("e%d", 1+quantity%2))})
			return err
		},
	}).Draw(s.rt, "mutation")
}

// baseValues decodes the base records.
func (s *shop) baseValues() (all []any) {
	codec := model.Codec{Currency: "USD"}
	orders, items := map[commerce.OrderID]*commerce.Order{}, map[commerce.OrderID][]commerce.LineItem{}
	for _, rec := range s.All() {
		r := model.Reader{Record: rec}
		var err error
		var base any
		switch model.EntityOf(model.KeyOf(rec)).Name {
		case model.EntityOrder.Name:
			var o *commerce.Order
			if o, err = codec.DecodeOrder(r); err == nil {
				orders[o.ID] = o
			}
		case model.EntityOrderItem.Name:
			var item *commerce.LineItem
			if item, err = codec.DecodeOrderItem(r); err == nil {
				items[item.OrderID] = append(items[item.OrderID], *item)
			}
		case model.EntityPayment.Name:
			base, err = codec.DecodePayment(r)
		case model.EntityFulfillment.Name:
			base, err = codec.DecodeFulfillment(r)
		case model.EntityProduct.Name:
			base, err = codec.DecodeProduct(r)
		case model.EntityInventoryLevel.Name:
			base, err = model.DecodeInventoryLevel(r)
		}
		if err != nil {
			s.rt.Fatal(err)
		}
		if base != nil {
			all = append(all, base)
		}
	}
	for id, o := range orders {
		o.Items = items[id]
		all = append(all, o)
	}
	return all
}

// everything selects all derived numbers.
func everything(derive.Sum, model.Keys) bool { return true }

// compare compares the stored derived numbers with those that the base values contribute. selected
// reports whether the number in the record with this key is compared.
func (s *shop) compare(selected func(derive.Sum, model.Keys) bool) {
	totals := derive.Totals{Layout: model.OneEra(s.shards)}
	for _, base := range s.baseValues() {
		totals.Add(base)
	}
	if err := totals.Err(); err != nil {
		s.rt.Fatal(err)
	}
	type number struct {
		key       model.Keys
		attribute string
	}
	derived := map[number]string{}
	for _, d := range totals.Deltas {
		b := &model.KeyBuilder{}
		for _, a := range d.Amounts {
			if k := model.KeyOf(d.Record(b)); selected(*a.Sum, k) && (s.sales || !d.Entity.OnRequest) {
				derived[number{k, a.Attribute}] = a.Value.Trim(0).String()
			}
		}
	}
	for _, rec := range s.All() {
		k := model.KeyOf(rec).Primary()
		for _, sum := range derive.Sums() {
			if model.EntityOf(k).Name != sum.Target.Name || !selected(sum, k) {
				continue
			}
			for _, attribute := range sum.Attributes {
				want, stored := cmp.Or(derived[number{k, attribute}], "0"), "0"
				delete(derived, number{k, attribute})
				if v := storetest.Record(rec).Number(attribute); v != nil {
					stored = storetest.CanonicalNumber(rec[attribute])
					if sum.Floor && v.Sign() < 0 {
						s.rt.Errorf("%s of %s is %s, but its minimum is 0", attribute, k.Text(), stored)
					}
				}
				if stored != storetest.CanonicalNumber(storetest.Num(want)) {
					s.rt.Errorf("%s of %s is %s, but its base records contribute %s", attribute, k.Text(), stored, want)
				}
			}
		}
	}
	for n, want := range derived {
		if want != "0" {
			s.rt.Errorf("%s of %s is missing, but its base records contribute %s", n.attribute, n.key.Text(), want)
		}
	}
}

// compareRevisions requires that each change of a number has increased its revision. Otherwise, a check
// could not notice a number that has changed and changed back.
func (s *shop) compareRevisions(before, after map[string]storetest.Item) {
	for key, was := range before {
		is, exists := after[key]
		if !exists {
			continue
		}
		for _, sum := range derive.Sums() {
			if sum.Revision == "" || model.EntityOf(model.KeyOf(is)).Name != sum.Target.Name {
				continue
			}
			for _, attribute := range sum.Attributes {
				changed := storetest.CanonicalNumber(was[attribute]) != storetest.CanonicalNumber(is[attribute])
				if old, now := storetest.Record(was).Int(sum.Revision), storetest.Record(is).Int(sum.Revision); changed && now <= old {
					s.rt.Errorf("%s of %s changed, but %s was %d and is %d", attribute, key, sum.Revision, old, now)
				}
			}
		}
	}
}

// problemsOf describes the declared sums that cannot be kept.
func problemsOf(sums []derive.Sum, entities []*model.Entity) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, e := range entities {
		if e.Kind == model.Sum && !slices.ContainsFunc(sums, func(s derive.Sum) bool { return s.Target == e }) {
			add("entity %s has the kind Sum, but no sum has this target", e.Name)
		}
		for _, sum := range sums {
			if e.BaseEntity() != sum.Target {
				continue
			}
			for _, template := range []model.KeyTemplate{e.PK, e.SK, e.IndexPK, e.IndexSK} {
				for _, name := range template.Placeholders() {
					if slices.Contains(sum.Attributes, e.AttributeForPlaceholder(name)) {
						add("the key %s of entity %s contains the derived number %s: a mutation that changes the number does not change the key", template, e.Name, name)
					}
				}
			}
		}
	}
	for _, sum := range sums {
		first := sums[slices.IndexFunc(sums, func(s derive.Sum) bool { return s.Target == sum.Target })]
		if first.Optional != sum.Optional || first.Revision != sum.Revision {
			add("%s and %s are in the same record, so Optional and Revision must be the same", first.Attributes, sum.Attributes)
		}
		local := len(sum.Bases()) > 0
		for _, base := range sum.Bases() {
			local = local && slices.ContainsFunc(model.Entities(), func(e *model.Entity) bool { return e.BaseEntity() == base && e.PK == sum.Target.PK })
		}
		if sum.Local != local {
			add("Local of %s is %v, but must be %v", sum.Attributes, sum.Local, local)
		}
		if sum.Revision != "" && !model.IsRevision(sum.Revision) {
			add("the revision %s of %s is no revision: let its name end in Revision", sum.Revision, sum.Attributes)
		}
		for _, e := range sum.Bases() {
			if e.Kind != model.Base {
				add("records of entity %s contribute to %s, but they derive from other records", e.Name, sum.Attributes)
			}
		}
	}
	return problems
}

func TestDeclaredSums(t *testing.T) {
	for _, problem := range problemsOf(derive.Sums(), model.Entities()) {
		t.Error(problem)
	}
	byOrders := model.EntityProduct
	byOrders.IndexPK, byOrders.IndexSK = "PRODUCTS", "{orderCount}#{sku}"
	counted := slices.Clone(derive.Sums())
	for i := range counted {
		if counted[i].Target == &model.EntityProduct {
			counted[i].Target = &byOrders
		}
	}
	mixed, local := slices.Clone(derive.Sums()), slices.Clone(derive.Sums())
	for i := range mixed {
		if mixed[i].Attributes[0] == model.AttrAvailable {
			mixed[i].Revision, local[i].Local = "", true
		}
	}
	for want, problems := range map[string][]string{
		"[orderCount] and [available] are in the same record":                         problemsOf(mixed, nil),
		"Local of [available] is true":                                                problemsOf(local, nil),
		"the revision changes of [orders] is no revision":                             problemsOf([]derive.Sum{{Target: &model.EntityWarehouse, Attributes: []string{"orders"}, Revision: "changes"}}, nil),
		"{orderCount}#{sku} of entity product contains the derived number orderCount": problemsOf(counted, []*model.Entity{&byOrders}),
		"entity category has the kind Sum":                                            problemsOf(nil, []*model.Entity{&model.EntityCategory}),
	} {
		if len(problems) != 1 || !strings.Contains(problems[0], want) {
			t.Errorf("the problems are %q, want %q", problems, want)
		}
	}
}

// After random mutations, also contending ones, each declared number is what its base records
// contribute. A new declaration needs no test of its own.
func TestStoredNumbersEqualDerivedNumbers(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		storetest.CheckProperty(t, func(rt *rapid.T) {
			s := newShop(t, rt, db, dynamo.Options{OrderExpiry: time.Hour})
			defer s.DeleteTable()
			s.addSales(t)
			s.repair() // count the open orders, and add up the sales
			s.follow(s.contended)
			s.compare(everything)
			execute := func(store *dynamo.Store, mutation func(context.Context, *dynamo.Store) error) {
				if err := mutation(t.Context(), store); err != nil && !commerce.IsUserError(err) {
					rt.Error(err)
				}
			}
			for range rapid.IntRange(1, 16).Draw(rt, "mutations") {
				mutation := s.mutation()
				contending := mutation // such as two orders for the same units
				if rapid.Bool().Draw(rt, "other") {
					contending = s.mutation()
				}
				if rapid.Bool().Draw(rt, "contended") {
					compete := func() { execute(s.Store, contending) }
					s.before.Store(&compete)
				}
				before := s.All()
				execute(s.contended, mutation)
				s.before.Store(nil)
				s.compareRevisions(before, s.All())
			}
			s.compare(everything)
			storetest.AssertConsistent(rt, db, s.Name, 1)
		})
	})
}

// vary changes a dataset at random. Some records are new, and no order loses a line item.
func vary(rt *rapid.T, dataset *commerce.Dataset) {
	draw := func(limit int, label string) int { return rapid.IntRange(0, limit-1).Draw(rt, label) }
	for i := range dataset.Products {
		dataset.Products[i].Category = rapid.SampledFrom([]string{"k0", "k1", "new"}).Draw(rt, "category")
	}
	for i := range dataset.Levels {
		dataset.Levels[i].Quantity = 1000 + draw(3, "stock")
	}
	for i := range dataset.Customers {
		dataset.Customers[i].AccountRepID = rapid.SampledFrom([]commerce.EmployeeID{"", "e1", "e2"}).Draw(rt, "rep")
	}
	added := dataset.Orders[draw(len(dataset.Orders), "copied order")]
	added.Lines, added.Events = slices.Clone(added.Lines), nil
	added.ID = commerce.OrderID(storetest.ULIDAt(added.PlacedAt, 100+draw(2, "added order")))
	if !slices.ContainsFunc(dataset.Orders, func(o commerce.OrderWithItems) bool { return o.ID == added.ID }) {
		dataset.Orders = append(dataset.Orders, added)
	}
	for i := range dataset.Orders {
		o := &dataset.Orders[i]
		o.Adjustments = []commerce.OrderAdjustment{{Kind: commerce.AdjustmentFee, Label: "Fee", Amount: storetest.USD(fmt.Sprint(draw(3, "fee")))}}
		o.Status = rapid.SampledFrom(commerce.Statuses()).Draw(rt, "status")
		for j := range o.Lines {
			o.Lines[j].Quantity = 1 + draw(3, "quantity")
		}
		line := o.Lines[0]
		if line.SKU = dataset.Products[draw(len(dataset.Products), "added item")].SKU; !slices.ContainsFunc(o.Lines, func(l commerce.LineItem) bool { return l.SKU == line.SKU }) {
			o.Lines = append(o.Lines, line)
		}
	}
	if err := derive.Complete(dataset); err != nil {
		rt.Fatal(err)
	}
}

// load loads a dataset in one or several parts.
func (s *shop) load(dataset commerce.Dataset) {
	ctx := context.Background()
	if rapid.Bool().Draw(s.rt, "one part") {
		if _, err := s.Store.Load(ctx, dataset); err != nil {
			s.rt.Fatal(err)
		}
		return
	}
	orders := slices.Chunk(dataset.Orders, 2)
	dataset.Orders = nil
	parts := []commerce.Dataset{dataset}
	for some := range orders {
		parts = append(parts, commerce.Dataset{Orders: some})
	}
	if _, err := s.Store.LoadAll(ctx, slices.Values(parts), nil); err != nil {
		s.rt.Fatal(err)
	}
}

func (s *shop) repair() {
	if _, err := s.Store.CheckRecords(context.Background(), check.Options{Repair: true, IndexLag: check.NoIndexLag}); err != nil {
		s.rt.Fatal(err)
	}
}

// After random datasets have been loaded over each other, exported, and imported into an empty table
// and into a table with other records, each declared number is what its base records contribute.
func TestLoadedNumbersEqualDerivedNumbers(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		storetest.CheckProperty(t, func(rt *rapid.T) {
			s, dataset := newShop(t, rt, db, dynamo.Options{}), newDataset(t)
			defer s.DeleteTable()
			// Loading leaves the reservations to a repair.
			loaded := func(sum derive.Sum, _ model.Keys) bool { return sum.Target != &model.EntityLastEvent }
			for range rapid.IntRange(1, 3).Draw(rt, "loads") {
				vary(rt, &dataset)
				s.load(dataset)
				s.compare(loaded)
			}
			// Orders without the other records change only the counts that are not theirs to replace.
			for i := range dataset.Orders {
				dataset.Orders[i].Status = rapid.SampledFrom(commerce.Statuses()).Draw(rt, "status")
			}
			s.load(commerce.Dataset{Orders: dataset.Orders})
			s.compare(func(sum derive.Sum, _ model.Keys) bool {
				return sum.Target != &model.EntityLastEvent && sum.Target != &model.EntitySpending && sum.Attributes[0] != model.AttrAvailable
			})
			s.repair()
			s.compare(everything)
			exported := strings.Join(storetest.Export(t, s.Store, 1), "")

			empty := &shop{RawTable: storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{}), rt: rt}
			defer empty.DeleteTable()
			other := newShop(t, rt, db, dynamo.Options{})
			defer other.DeleteTable()
			others := newDataset(t)
			vary(rt, &others)
			other.load(others)
			for _, to := range []*shop{empty, other} {
				if _, err := to.Store.Import(t.Context(), strings.NewReader(exported), bulk.ImportOptions{Overwrite: true}); err != nil {
					rt.Fatal(err)
				}
			}
			empty.compare(everything)
			// An import into a table with other records removes each count of a product or an account rep that
			// it would make wrong. A repair corrects the other numbers.
			records := other.All()
			other.compare(func(sum derive.Sum, k model.Keys) bool {
				switch {
				case sum.Target == &model.EntityProduct && sum.Attributes[0] == model.AttrOrderCount:
					return records[k.Text()][model.AttrOrderCount] != nil
				case sum.Target == &model.EntityRepOrders:
					first := model.Reader{Record: records[model.Keys{PK: k.PK, SK: "ORDERS#" + model.FirstRepCountPart}.Text()]}
					return first.Flag(model.AttrComplete)
				}
				return false
			})
			other.repair()
			other.compare(everything)
		})
	})
}
