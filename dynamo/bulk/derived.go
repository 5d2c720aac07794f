package bulk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// loadTotals computes the numbers that change because of a load: the order counts by status and of
// account reps, the product counts of categories, and other numbers to which only orders contribute.
// Until all records have been written, the table contains no such number that could be wrong. A
// loadTotals is safe for concurrent use.
type loadTotals struct {
	Transfers
	mu sync.Mutex
	// empty points to true if the table had no orders before the load. It is nil until begin has read
	// the table.
	empty *bool
	// countsOrders reports whether the load contains orders. byStatus contains the order counts by
	// status before the load. It is nil if the table had no complete counts.
	countsOrders bool
	byStatus     counters
	// orders adds up what the loaded orders contribute, and subtracts what the orders contributed that
	// they replace. The first prepared totals belong to records that prepare has prepared.
	orders   derive.Totals
	prepared int
	// earlier contains an entry for each taken number of a loaded record, and for each taken number to
	// which a loaded or replaced order contributes.
	earlier map[takenNumber]*earlierNumber
	// reps contains an entry for each loaded employee, and for each account rep of a loaded or replaced
	// order. The value is true if the table has a count of the rep's earlier orders.
	reps map[commerce.EmployeeID]bool
	// categoryOf maps the SKU of each loaded product to its category. changed contains the categories of
	// these products, before and after the load.
	categoryOf map[commerce.SKU]string
	changed    map[string]bool
}

// isTaken reports whether a load removes the numbers of a sum before it writes records, and writes
// them after it. The target's records can lack such numbers, and only orders contribute to them.
func isTaken(s *derive.Sum) bool {
	return s.Optional && !s.Local && s.Revision != "" && !slices.ContainsFunc(s.Bases(), func(e *model.Entity) bool { return e != &model.EntityOrder })
}

// takenNumber identifies a number that a load removes and writes again.
type takenNumber struct {
	*derive.Sum
	attribute string
	derive.Target
}

// earlierNumber is a taken number before the load.
type earlierNumber struct {
	// counted is false if orders contributed to the number, but the table lacked it.
	counted bool
	number  int
	// revision is the value of the sum's Revision, which increases with every change of the numbers. The
	// number is written only if the table still has the same value.
	revision types.AttributeValue
}

func (t Transfers) newLoadTotals() *loadTotals {
	l := &loadTotals{
		Transfers: t, orders: derive.Totals{Only: []*model.Entity{&model.EntityOrderCounts, &model.EntityRepOrders}},
		earlier: map[takenNumber]*earlierNumber{}, reps: map[commerce.EmployeeID]bool{},
		categoryOf: map[commerce.SKU]string{}, changed: map[string]bool{},
	}
	for _, s := range derive.Sums() {
		if isTaken(&s) {
			l.orders.Only = append(l.orders.Only, s.Target)
		}
	}
	return l
}

// add adds the orders and products of a dataset, and removes the taken numbers from its records. It
// must be called before the records are written, because it reads the records that the load replaces.
//
// Errors are wrapped by table.WrapError.
func (l *loadTotals) add(ctx context.Context, dataset commerce.Dataset, records []model.Record) error {
	if err := l.begin(ctx, len(dataset.Orders) > 0); err != nil {
		return err
	}
	replaced, err := l.replacedOrders(ctx, dataset.Orders)
	if err != nil {
		return err
	}
	products, err := l.replacedProducts(ctx, dataset.Products)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders.Layout = l.table.Layout.Get()
	for i, o := range dataset.Orders {
		o.Items = o.Lines
		l.orders.Add(&o.Order)
		if replaced != nil {
			l.orders.Subtract(&replaced[i])
		}
	}
	for i, p := range dataset.Products {
		l.categoryOf[p.SKU], l.changed[p.Category] = p.Category, true
		if previous, err := l.table.DecodeProduct(products[i]); err == nil && previous.Category != "" {
			l.changed[previous.Category] = true
		}
	}
	return l.prepare(ctx, dataset.Employees, records)
}

// begin reads whether the table has orders. For the first dataset with orders, it also reads the order
// counts by status, and marks them as incomplete.
func (l *loadTotals) begin(ctx context.Context, hasOrders bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.empty == nil {
		counts, kept, err := l.readCounts(ctx)
		empty := counts.areZero()
		if err == nil && !kept {
			empty, err = l.hasNoOrders(ctx)
		}
		if err != nil {
			return err
		}
		l.empty = &empty
	}
	if l.countsOrders || !hasOrders {
		return nil
	}
	if err := l.interruptSales(ctx); err != nil {
		return err
	}
	counts, err := l.statusCounts(ctx)
	if err == nil && counts != nil {
		err = l.putAll(ctx, l.orderCountRecords(l.firstCounters(), false))
	}
	l.countsOrders, l.byStatus = err == nil, counts
	return err
}

// interruptSales makes the sales by day unreadable if the table has them, because the loaded orders do not
// change them. `ordergraph table apply dailySales` then adds them up again.
//
// Errors: the errors of table.Table.UpdateLayout.
func (t Transfers) interruptSales(ctx context.Context) error {
	name := model.EntityDailySales.Name
	if state := t.table.Layout.Derivations().Of(name).State; state != model.Readable && state != model.Backfilled {
		return nil
	}
	return t.table.UpdateLayout(ctx, func(l *model.StoredLayout) error {
		if state := l.Derivations.Of(name).State; state != model.Readable && state != model.Backfilled {
			return nil
		}
		l.Derivations[name] = model.DerivationStatus{State: model.Written, Since: t.table.Now().UTC().Truncate(time.Millisecond), Segments: 1}
		return nil
	})
}

// replacedOrders returns the stored orders with the IDs of loaded orders. If an order's record is
// malformed, it returns only the status, the account rep and the products. If the table had no orders
// before the load, it reads nothing and returns nil.
func (l *loadTotals) replacedOrders(ctx context.Context, orders []commerce.OrderWithItems) ([]commerce.Order, error) {
	if *l.empty || len(orders) == 0 {
		return nil, nil
	}
	b := l.table.KeyBuilder()
	var keys []model.Keys
	for _, o := range orders {
		keys = append(keys, model.OrderByID.Key(b, o.ID), model.KeysOfCustomerOrder(b, model.CustomerOrderKey{Customer: o.CustomerID, Order: o.ID}))
		for _, line := range o.Lines {
			keys = append(keys, model.KeysOfOrderItem(b, model.OrderItemKey{Order: o.ID, SKU: line.SKU}))
		}
	}
	found, err := l.table.Consistent().GetMany(ctx, &model.OrderByID.AccessPattern, keys)
	if err != nil {
		return nil, err
	}
	replaced := make([]commerce.Order, len(orders))
	for i, o := range orders {
		before := partialOrder(found[1].Attributes())
		if stored, err := l.table.DecodeOrder(found[0]); err == nil {
			stored.AccountRepID, stored.Items = before.AccountRepID, nil
			before = *stored
		}
		before.ID = o.ID
		before.Status, _ = commerce.ParseStatus(found[0].Text("status")) // other software can have stored another text
		found = found[2:]
		for range o.Lines {
			before.Items = append(before.Items, partialOrder(found[0].Attributes()).Items...)
			found = found[1:]
		}
		replaced[i] = before
	}
	return replaced, nil
}

// partialOrder returns what the record of a line item or the customer's copy of an order says about
// the order's products and account rep. It reads only keys, so it also reads malformed records.
func partialOrder(rec model.Record) (o commerce.Order) {
	k := model.KeyOf(rec)
	switch e := model.EntityOf(k); {
	case e == nil:
	case e.Name == model.EntityOrderItem.Name:
		o.Items = []commerce.LineItem{{SKU: commerce.SKU(model.FirstPlaceholderValue(e.SK, k.SK))}}
	case e.Name == model.EntityCustomerOrder.Name:
		o.AccountRepID = commerce.EmployeeID(model.FirstPlaceholderValue(e.IndexPK, model.TextOf(rec, model.AttrIndexPK)))
	}
	return o
}

func (l *loadTotals) replacedProducts(ctx context.Context, products []commerce.Product) ([]model.Reader, error) {
	b := l.table.KeyBuilder()
	keys := make([]model.Keys, len(products))
	for i, p := range products {
		keys[i] = model.ProductBySKU.Key(b, p.SKU)
	}
	if len(keys) == 0 || b.Err != nil {
		return nil, b.Err
	}
	return l.table.Consistent().GetMany(ctx, &model.ProductBySKU.AccessPattern, keys)
}

// prepare removes the taken numbers that the load changes, and marks the order counts of account reps
// as incomplete. So an interrupted load leaves no wrong numbers.
func (l *loadTotals) prepare(ctx context.Context, reps []commerce.Employee, records []model.Record) error {
	taken := map[takenNumber]*earlierNumber{}
	for _, d := range l.orders.Deltas[l.prepared:] {
		if d.Entity == &model.EntityRepOrders {
			reps = append(slices.Clip(reps), commerce.Employee{ID: commerce.EmployeeID(d.Value(0))})
		}
		for _, a := range d.Amounts {
			if isTaken(a.Sum) {
				taken[takenNumber{a.Sum, a.Attribute, d.Target}] = nil
			}
		}
	}
	l.prepared = len(l.orders.Deltas)
	loaded := takeNumbers(records)
	for _, n := range loaded {
		taken[n] = nil
	}
	maps.DeleteFunc(taken, func(n takenNumber, _ *earlierNumber) bool { return l.earlier[n] != nil })
	numbers := slices.Collect(maps.Keys(taken))
	earlier := make([]*earlierNumber, len(numbers))
	err := table.Parallel(ctx, len(numbers), table.MaxParallel, func(ctx context.Context, i int) (err error) {
		earlier[i], err = l.takeNumber(ctx, numbers[i])
		return err
	})
	if err != nil {
		return err
	}
	for i, n := range numbers {
		l.earlier[n] = earlier[i]
	}
	for _, n := range loaded {
		l.earlier[n].revision = nil // the load replaces the record, and the new record has no revision
	}
	for _, rep := range reps {
		if err := l.takeRepCount(ctx, rep.ID); err != nil {
			return err
		}
	}
	return nil
}

// takeNumbers removes the taken numbers from records, and returns them.
func takeNumbers(records []model.Record) (taken []takenNumber) {
	sums := derive.Sums()
	for i := range sums {
		if s := &sums[i]; isTaken(s) {
			for _, r := range records {
				k := model.KeyOf(r)
				values, ok := s.Target.PK.Values(k.PK)
				if !ok || string(s.Target.SK) != k.SK {
					continue
				}
				for _, a := range s.Attributes {
					delete(r, a)
					taken = append(taken, takenNumber{s, a, derive.TargetOf(s.Target, values...)})
				}
			}
		}
	}
	return taken
}

// takeNumber removes a number from the table.
func (l *loadTotals) takeNumber(ctx context.Context, n takenNumber) (*earlierNumber, error) {
	was, err := l.updateIf(ctx, n.Key(l.table.KeyBuilder()), table.AttributeExists(n.attribute), func(e *table.Expression) string {
		return e.UpdateRecord(model.Record{n.attribute: nil}, nil)
	})
	if err != nil {
		return nil, err
	}
	at := model.Reader{Record: was}
	earlier := &earlierNumber{counted: table.RecordHasNumber(was, n.attribute), number: at.Number(n.attribute), revision: was[n.Revision]}
	if was[n.attribute] == nil {
		// If no orders contribute to the number, it starts at 0.
		earlier.counted, err = l.hasNoListedOrders(ctx, n.List, n.Value(0))
	}
	return earlier, err
}

// takeRepCount marks the order count of an account rep as incomplete. If it is called again, it does
// nothing.
func (l *loadTotals) takeRepCount(ctx context.Context, id commerce.EmployeeID) error {
	if _, taken := l.reps[id]; taken {
		return nil
	}
	first := l.table.KeyBuilder().IdentifyingKey(&model.EntityRepOrders, string(id), model.FirstRepCountPart)
	was, err := l.updateIf(ctx, first, table.CompareAttribute(model.AttrComplete, "=", model.Bool(true)), func(e *table.Expression) string {
		return e.UpdateRecord(nil, model.Record{model.AttrComplete: model.Bool(false)})
	})
	if err != nil {
		return err
	}
	counted := (&model.Reader{Record: was}).Flag(model.AttrComplete)
	if !counted {
		p := &model.EmployeeOrderCount.AccessPattern
		parts, _, err := l.table.Consistent().QueryUpTo(ctx, p, first.PK, string(p.SK), model.Range{}, model.RepOrderCountParts, true)
		if err != nil {
			return err
		}
		if len(parts) == 0 {
			// If the rep has no orders, the count starts at 0.
			if counted, err = l.hasNoListedOrders(ctx, &model.EmployeeOrders.AccessPattern, string(id)); err != nil {
				return err
			}
		}
	}
	l.reps[id] = counted
	return nil
}

// hasNoListedOrders reports whether the index lists no orders for a record, such as a product or an
// account rep. The parameter named of is the record's ID. If p is nil, hasNoListedOrders reports
// whether the table had no orders before the load.
func (l *loadTotals) hasNoListedOrders(ctx context.Context, p *model.AccessPattern, of string) (bool, error) {
	if *l.empty || p == nil {
		return *l.empty, nil
	}
	partition, err := p.PK.Build(of)
	if err != nil {
		return false, err
	}
	for _, key := range l.table.Layout.Get().Partitions(p, partition) {
		found, _, err := l.table.Query(ctx, p, key, string(p.SK), model.Range{}, 1, true)
		if err != nil || len(found) > 0 {
			return false, err
		}
	}
	return true, nil
}

// updateIf changes the record with the key k if the record satisfies a condition, the parameter
// when. In any case, updateIf returns the previous record, or nil if the record did not exist.
//
// Errors are wrapped by table.WrapError.
func (t Transfers) updateIf(ctx context.Context, k model.Keys, when table.Condition, change func(*table.Expression) string) (model.Record, error) {
	var e table.Expression
	text, condition := change(&e), when(&e)
	out, err := t.table.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.table.Name, Key: k.Primary().Attributes(), UpdateExpression: &text, ConditionExpression: &condition,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValues: types.ReturnValueAllOld, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, t.table.BulkOptions)
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return failed.Item, nil
	}
	if err != nil {
		return nil, table.WrapError("UpdateItem", fmt.Sprintf("%s %s", k.PK, k.SK), err)
	}
	return out.Attributes, nil
}

// write writes the numbers after all records have been loaded. It returns the number of records of
// their own that it has written for them.
//
// Errors are wrapped by table.WrapError.
func (l *loadTotals) write(ctx context.Context) (written int, err error) {
	more, reps := map[takenNumber]int{}, map[commerce.EmployeeID][]derive.Delta{}
	for _, d := range l.orders.Deltas {
		switch d.Entity {
		case &model.EntityOrderCounts:
			l.byStatus.add(d)
		case &model.EntityRepOrders:
			id := commerce.EmployeeID(d.Value(0))
			reps[id] = append(reps[id], d)
		}
		for _, a := range d.Amounts {
			more[takenNumber{a.Sum, a.Attribute, d.Target}] = a.Int()
		}
	}
	if l.byStatus != nil {
		records := l.orderCountRecords(l.byStatus, true)
		if err := l.putAll(ctx, records); err != nil {
			return 0, err
		}
		written += len(records)
	}
	categories, err := l.writeCategories(ctx)
	if written += categories; err != nil {
		return written, err
	}
	numbers := slices.Collect(maps.Keys(l.earlier))
	err = table.Parallel(ctx, len(numbers), table.MaxParallel, func(ctx context.Context, i int) error {
		n := numbers[i]
		earlier := l.earlier[n]
		if !earlier.counted {
			return nil
		}
		// If a server has changed the number during the load, it would be wrong and is not written.
		stands := model.Record{}
		if earlier.revision != nil {
			stands[n.Revision] = earlier.revision
		}
		_, err := l.updateIf(ctx, n.Key(l.table.KeyBuilder()), table.AttributesUnchanged(stands, n.Revision, n.attribute), func(e *table.Expression) string {
			return e.UpdateRecord(nil, model.Record{n.attribute: model.Num(earlier.number + more[n])})
		})
		return err
	})
	if err != nil {
		return written, err
	}
	for _, id := range slices.Sorted(maps.Keys(l.reps)) {
		n, err := l.writeRepCounts(ctx, id, reps[id])
		if written += n; err != nil {
			return written, err
		}
	}
	return written, l.orders.Err()
}

// writeRepCounts adds an account rep's loaded orders to the stored count, which a server may have
// increased during the load. It also marks the count as complete. If the count is unknown, it writes
// nothing.
func (l *loadTotals) writeRepCounts(ctx context.Context, id commerce.EmployeeID, more []derive.Delta) (int, error) {
	if !l.reps[id] {
		return 0, nil
	}
	numbers := map[string]model.Record{model.FirstRepCountPart: {model.AttrOrders: model.Num(0)}}
	for _, d := range more {
		if d.Int(model.AttrOrders) != 0 {
			numbers[d.Value(1)] = d.Numbers()
		}
	}
	var actions []types.TransactWriteItem
	for part, numbers := range numbers {
		var e table.Expression
		record := model.RepOrderCountRecord(l.table.KeyBuilder(), commerce.RepOrderCount{EmployeeID: id, Part: part, Complete: part == model.FirstRepCountPart})
		delete(record, model.AttrOrders)
		text := e.IncrementAndSet(numbers, record)
		actions = append(actions, types.TransactWriteItem{Update: &types.Update{
			TableName: &l.table.Name, Key: model.KeyOf(record).Attributes(), UpdateExpression: &text,
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		}})
	}
	if _, err := l.table.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions}, l.table.BulkOptions); err != nil {
		return 0, table.WrapError("TransactWriteItems", "to count the orders of "+string(id), err)
	}
	return len(actions), nil
}

// writeCategories writes the record of each changed category. If the category has no products, it
// deletes the record. It returns the number of records written.
func (l *loadTotals) writeCategories(ctx context.Context) (int, error) {
	products := derive.Totals{Only: []*model.Entity{&model.EntityCategory}}
	// The index may not contain the loaded products yet, so add them first.
	for sku, category := range l.categoryOf {
		products.Add(&commerce.Product{SKU: sku, Category: category})
	}
	for name := range l.changed {
		if err := l.addUnloadedProducts(ctx, name, &products); err != nil {
			return 0, err
		}
	}
	counts := map[string]int{}
	for _, d := range products.Deltas {
		counts[d.Value(0)] = d.Int(model.AttrProductCount)
	}
	var records []model.Record
	for _, name := range slices.Sorted(maps.Keys(l.changed)) {
		b := l.table.KeyBuilder()
		r := model.CategoryRecord(b, commerce.Category{Name: name, ProductCount: counts[name], Version: 1})
		if b.Err != nil {
			continue // other software may have written a category that is not valid in a key
		}
		if counts[name] > 0 {
			records = append(records, r)
			continue
		}
		if _, err := l.table.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &l.table.Name, Key: model.KeyOf(r).Attributes()}, l.table.BulkOptions); err != nil {
			return 0, table.WrapError("DeleteItem", r.KeyText(), err)
		}
	}
	return len(records), l.putAll(ctx, records)
}

// addUnloadedProducts adds the products that the table contains in a category, except the products
// that this load writes.
func (l *loadTotals) addUnloadedProducts(ctx context.Context, name string, to *derive.Totals) error {
	p := &model.Products.AccessPattern
	partition, err := p.PK.Build(name)
	if err != nil {
		return nil //nolint:nilerr // the category is not valid in a key, so the index has no list of its products
	}
	for left := (model.Range{}); ; {
		found, more, err := l.table.Query(ctx, p, partition, string(p.SK), left, writeBatchSize*table.MaxParallel, true)
		if err != nil {
			return err
		}
		sku := ""
		for _, r := range found {
			sku = model.FirstPlaceholderValue(p.SK+"{sku}", r.Text(model.AttrIndexSK))
			if _, loaded := l.categoryOf[commerce.SKU(sku)]; !loaded {
				to.Add(&commerce.Product{SKU: commerce.SKU(sku), Category: name})
			}
		}
		if !more || len(found) == 0 {
			return nil
		}
		left = left.Remaining(sku, true)
	}
}
