package dynamo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// readPage reads a page of a list and decodes it.
func readPage[V any](ctx context.Context, s *Store, l listing, decode func(reader) (V, error)) (Slice[V], error) {
	if l.page.Limit < 1 {
		return Slice[V]{}, fmt.Errorf("read %s: a page of %d records", l.pattern.ID, l.page.Limit)
	}
	rows, err := s.read(ctx, l)
	if err != nil {
		return Slice[V]{}, err
	}
	items := make([]V, len(rows))
	positions := make([]string, len(rows))
	for i, r := range rows {
		if items[i], err = decode(r.record); err != nil {
			return Slice[V]{}, err
		}
		positions[i] = r.position
	}
	return slice(l.page, items, positions), nil
}

// partition is the listing of a pattern that reads one partition.
func (s *Store) partition(p *AccessPattern, page Page, values ...string) (listing, error) {
	pk, err := p.PK.Key(values...)
	return listing{pattern: p, levels: [][]string{{pk}}, prefix: string(p.SK), page: page}, err
}

// sharded is the listing of a pattern that reads all shards of its partition key.
func (s *Store) sharded(p *AccessPattern, page Page) listing {
	return listing{pattern: p, levels: [][]string{s.appendShards(nil, string(p.PK))}, prefix: string(p.SK), page: page}
}

// appendShards appends the partitions over which a partition key is spread.
func (s *Store) appendShards(partitions []string, key string) []string {
	for shard := range s.Shards {
		partitions = append(partitions, key+shardSuffix(shard, s.Shards))
	}
	return partitions
}

// listOf reads a page of a list in one partition.
func listOf[V any](ctx context.Context, s *Store, p *AccessPattern, page Page, decode func(reader) (V, error), values ...string) (Slice[V], error) {
	l, err := s.partition(p, page, values...)
	if err != nil {
		return Slice[V]{}, err
	}
	return readPage(ctx, s, l, decode)
}

// placedBounds are the positions of orders that were placed in a time: ids of orders sort by time.
func placedBounds(r commerce.TimeRange) (bounds, bool) {
	var b bounds
	var ok bool
	if !r.From.IsZero() {
		if b.from, ok = commerce.FirstULID(r.From); !ok {
			return b, false
		}
	}
	if !r.To.IsZero() {
		// Behind the last ULID there is no end to set.
		b.to, _ = commerce.FirstULID(r.To)
	}
	return b, true
}

// placedIn is the part of a list of orders that was placed in a time, read under the pattern for
// ranges.
func (l listing) placedIn(r commerce.TimeRange, pattern *AccessPattern) (listing, bool) {
	if r == (commerce.TimeRange{}) {
		return l, true
	}
	l.pattern = pattern
	var possible bool
	l.bounds, possible = placedBounds(r)
	return l, possible
}

// CustomerOrders lists a customer's orders, the newest first (AP2); those of a time only, where
// placed is not empty (AP23).
//
// Errors of all lists: commerce.InvalidError for a value that can be in no key, ErrCorrupt,
// ErrUnavailable, ErrNoTable, ErrAccessDenied. A list that is empty is no error.
func (s *Store) CustomerOrders(ctx context.Context, id commerce.CustomerID, placed commerce.TimeRange, page Page) (Slice[*commerce.Order], error) {
	l, err := s.partition(&patternCustomerOrders, page, string(id))
	if err != nil {
		return Slice[*commerce.Order]{}, err
	}
	l, possible := l.placedIn(placed, &patternCustomerOrdersPlaced)
	if !possible {
		return Slice[*commerce.Order]{}, nil
	}
	return readPage(ctx, s, l, s.decodeOrder)
}

// OrdersByStatus lists the orders that are in a status now, the newest first (AP3); those of a time
// only, where placed is not empty (AP8).
func (s *Store) OrdersByStatus(ctx context.Context, status commerce.Status, placed commerce.TimeRange, page Page) (Slice[*commerce.Order], error) {
	return s.ordersIn(ctx, &patternOrdersByStatus, &patternOrdersPlaced, []commerce.Status{status}, placed, page)
}

// Orders lists orders over all customers, the newest first: all (AP7), those of a time (AP8), or
// those in some statuses (AP24). No statuses means all of them. The statuses are read in lifecycle
// order, so that an order that moves on while it is listed is not missed.
func (s *Store) Orders(ctx context.Context, statuses []commerce.Status, placed commerce.TimeRange, page Page) (Slice[*commerce.Order], error) {
	if len(statuses) == 0 {
		return s.ordersIn(ctx, &patternOrders, &patternOrdersPlaced, commerce.Statuses(), placed, page)
	}
	chosen := slices.Compact(slices.Sorted(slices.Values(statuses)))
	return s.ordersIn(ctx, &patternOrdersChosen, &patternOrdersChosen, chosen, placed, page)
}

func (s *Store) ordersIn(ctx context.Context, always, ranged *AccessPattern, statuses []commerce.Status, placed commerce.TimeRange, page Page) (Slice[*commerce.Order], error) {
	l, err := s.inStatuses(always, page, statuses)
	if err != nil {
		return Slice[*commerce.Order]{}, err
	}
	l, possible := l.placedIn(placed, ranged)
	if !possible {
		return Slice[*commerce.Order]{}, nil
	}
	return readPage(ctx, s, l, s.decodeOrder)
}

// inStatuses is the listing of the orders in some statuses, which are read in lifecycle order.
func (s *Store) inStatuses(p *AccessPattern, page Page, statuses []commerce.Status) (listing, error) {
	l := listing{pattern: p, prefix: string(p.SK), page: page}
	for _, level := range commerce.Levels(statuses) {
		var partitions []string
		for _, status := range level {
			key, err := p.PK.Key(status.String())
			if err != nil {
				return listing{}, err
			}
			partitions = s.appendShards(partitions, key)
		}
		l.levels = append(l.levels, partitions)
	}
	return l, nil
}

// EmployeeOrders lists the orders of an account rep's customers, the newest first (AP22).
func (s *Store) EmployeeOrders(ctx context.Context, id commerce.EmployeeID, page Page) (Slice[*commerce.Order], error) {
	return listOf(ctx, s, &patternEmployeeOrders, page, s.decodeOrder, string(id))
}

// OrderItems lists the items of an order, by SKU (AP4).
func (s *Store) OrderItems(ctx context.Context, id commerce.OrderID, page Page) (Slice[*commerce.LineItem], error) {
	return listOf(ctx, s, &patternOrderItems, page, s.decodeOrderItem, string(id))
}

// ProductOrderItems lists the items of orders that contain a product, the newest order first
// (AP11).
func (s *Store) ProductOrderItems(ctx context.Context, sku commerce.SKU, page Page) (Slice[*commerce.LineItem], error) {
	return listOf(ctx, s, &patternProductOrderItems, page, s.decodeOrderItem, string(sku))
}

// Timeline lists what happened to an order, the oldest event first (AP27).
func (s *Store) Timeline(ctx context.Context, id commerce.OrderID, page Page) (Slice[*commerce.Event], error) {
	return listOf(ctx, s, &patternTimeline, page, decodeEvent, string(id))
}

// Customers lists all customers in the order they joined (AP9).
func (s *Store) Customers(ctx context.Context, page Page) (Slice[*commerce.Customer], error) {
	return readPage(ctx, s, s.sharded(&patternCustomers, page), s.decodeCustomer)
}

// EmployeeCustomers lists the customers of an account rep, by id (AP21). They have no OrderCount.
func (s *Store) EmployeeCustomers(ctx context.Context, id commerce.EmployeeID, page Page) (Slice[*commerce.Customer], error) {
	return listOf(ctx, s, &patternEmployeeCustomers, page, s.decodeCustomer, string(id))
}

// Products lists the products of a category, by SKU (AP12).
func (s *Store) Products(ctx context.Context, category string, page Page) (Slice[*commerce.Product], error) {
	return listOf(ctx, s, &patternProducts, page, s.decodeProduct, category)
}

// ProductInventory lists the stock of a product warehouse by warehouse, by warehouse id (AP13).
func (s *Store) ProductInventory(ctx context.Context, sku commerce.SKU, page Page) (Slice[*commerce.InventoryLevel], error) {
	return listOf(ctx, s, &patternProductInventory, page, decodeInventoryLevel, string(sku))
}

// WarehouseInventory lists what lies in a warehouse, by SKU (AP28).
func (s *Store) WarehouseInventory(ctx context.Context, id commerce.WarehouseID, page Page) (Slice[*commerce.InventoryLevel], error) {
	return listOf(ctx, s, &patternWarehouseInventory, page, decodeInventoryLevel, string(id))
}

// Warehouses lists all warehouses, by id (AP31).
func (s *Store) Warehouses(ctx context.Context, page Page) (Slice[*commerce.Warehouse], error) {
	return listOf(ctx, s, &patternWarehouses, page, decodeWarehouse)
}

// Employees lists employees in the order they were hired (AP18); those hired on some days only,
// where hired is not empty.
func (s *Store) Employees(ctx context.Context, hired commerce.DateRange, page Page) (Slice[*commerce.Employee], error) {
	l := s.sharded(&patternEmployees, page)
	l.bounds = bounds{from: string(hired.From), to: string(hired.To)}
	return readPage(ctx, s, l, decodeEmployee)
}

// EmployeesByName lists the employees who bear a name, by id (AP17).
func (s *Store) EmployeesByName(ctx context.Context, name string, page Page) (Slice[*commerce.Employee], error) {
	return listOf(ctx, s, &patternEmployeesByName, page, decodeEmployee, name)
}

// EmployeesByJobTitle lists the employees who hold a job, by id (AP20).
func (s *Store) EmployeesByJobTitle(ctx context.Context, jobTitle string, page Page) (Slice[*commerce.Employee], error) {
	return listOf(ctx, s, &patternEmployeesByJobTitle, page, decodeEmployee, jobTitle)
}

// WarehouseEmployees lists the employees of a warehouse, by id (AP19).
func (s *Store) WarehouseEmployees(ctx context.Context, id commerce.WarehouseID, page Page) (Slice[*commerce.Employee], error) {
	return listOf(ctx, s, &patternWarehouseEmployees, page, decodeEmployee, string(id))
}

// collectionLimit is how many records of an item collection are read at once: an order with 45
// items and many events, or a product in a hundred warehouses.
const collectionLimit = 200

// WholeOrder is an order's item collection.
type WholeOrder struct {
	Order *commerce.Order
	// Items and Events are all of the order's, by SKU and by time, where Complete; else the
	// collection is too large to be read at once, or one of them cannot be read, and they have to
	// be listed.
	Items    []*commerce.LineItem
	Events   []*commerce.Event
	Complete bool
}

// WholeOrder reads an order with its items and events in one Query (AP25).
//
// Errors: commerce.ErrNotFound, and those of the lists.
func (s *Store) WholeOrder(ctx context.Context, id commerce.OrderID) (*WholeOrder, error) {
	whole := &WholeOrder{}
	readable := true
	complete, err := s.readCollection(ctx, &patternWholeOrder, string(id), func(sk string, r reader) (err error) {
		switch {
		case sk == string(entityOrder.SK):
			whole.Order, err = s.decodeOrder(r)
			return err
		case strings.HasPrefix(sk, entityOrderItem.SK.literal()):
			whole.Items, err = appendDecoded(whole.Items, r, s.decodeOrderItem)
		case strings.HasPrefix(sk, entityOrderEvent.SK.literal()):
			whole.Events, err = appendDecoded(whole.Events, r, decodeEvent)
		}
		readable = readable && err == nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	if whole.Order == nil {
		return nil, commerce.ErrNotFound
	}
	whole.Complete = complete && readable
	return whole, nil
}

// WholeProduct is a product's item collection.
type WholeProduct struct {
	Product *commerce.Product
	// Levels are all of the product's, by warehouse id, where Complete; else there are too many to
	// be read at once, or one of them cannot be read, and they have to be listed.
	Levels   []*commerce.InventoryLevel
	Complete bool
}

// WholeProduct reads a product with its inventory levels in one Query (AP13).
//
// Errors: commerce.ErrNotFound, and those of the lists.
func (s *Store) WholeProduct(ctx context.Context, sku commerce.SKU) (*WholeProduct, error) {
	whole := &WholeProduct{}
	readable := true
	complete, err := s.readCollection(ctx, &patternProductInventory, string(sku), func(sk string, r reader) (err error) {
		switch {
		case sk == string(entityProduct.SK):
			whole.Product, err = s.decodeProduct(r)
			return err
		case strings.HasPrefix(sk, entityInventoryLevel.SK.literal()):
			whole.Levels, err = appendDecoded(whole.Levels, r, decodeInventoryLevel)
		}
		readable = readable && err == nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	if whole.Product == nil {
		return nil, commerce.ErrNotFound
	}
	whole.Complete = complete && readable
	return whole, nil
}

func appendDecoded[V any](to []V, r reader, decode func(reader) (V, error)) ([]V, error) {
	v, err := decode(r)
	return append(to, v), err
}

// readCollection gives each record of an item collection to take, up to collectionLimit, and tells
// whether those were all.
func (s *Store) readCollection(ctx context.Context, p *AccessPattern, id string, take func(sk string, r reader) error) (bool, error) {
	pk, err := p.PK.Key(id)
	if err != nil {
		return false, err
	}
	records, more, err := s.query(ctx, p, pk, "", bounds{}, collectionLimit, true)
	if err != nil {
		return false, err
	}
	for _, r := range records {
		if err := take(r.text(attrSK), r); err != nil {
			return false, err
		}
	}
	return !more, nil
}

// OrderCount counts a customer's orders (AP2), for customers whose records keep no count.
//
// Errors: ErrTooManyToCount, and those of all lists.
func (s *Store) OrderCount(ctx context.Context, id commerce.CustomerID) (int, error) {
	p := &patternCustomerOrders
	partition, err := p.PK.Key(string(id))
	if err != nil {
		return 0, err
	}
	return s.count(ctx, p, partition, string(p.SK))
}
