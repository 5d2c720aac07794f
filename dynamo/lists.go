package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// ListRequest selects a list and one of its pages. It is comparable, so it can be a map key.
type ListRequest struct {
	// PartitionValue is the variable part of the list's partition key, such as a customer's ID. It is
	// empty if the partition key is constant.
	PartitionValue string
	// Statuses limits a list of orders to orders with these statuses. The empty set selects all
	// orders.
	Statuses StatusSet
	// Range limits the list to a range of positions. The zero value selects the whole list.
	Range Range
	// If Pattern is not nil, it replaces the default access pattern of the list. Both patterns must
	// return the same kind of record.
	Pattern *model.AccessPattern
	Page    PageRequest
}

// Range is a range of positions in a list. A position is a sort key without the prefix that all
// sort keys of the list share.
type Range struct {
	// From is inclusive, and To is exclusive. If From or To is empty, the range has no limit at that
	// end.
	From, To string
	// Empty reports whether the range contains no position at all. From and To are then ignored.
	Empty bool
}

// PlacedOrdersRange returns the range of the orders that were placed in a time range. The result is
// a range of order IDs, which sort by time because they are ULIDs.
func PlacedOrdersRange(r commerce.TimeRange) Range {
	var part Range
	var ok bool
	if !r.From.IsZero() {
		if part.From, ok = commerce.MinULIDAt(r.From); !ok {
			return Range{Empty: true}
		}
	}
	if !r.To.IsZero() {
		// If no ULID can represent r.To, the range has no end.
		part.To, _ = commerce.MinULIDAt(r.To)
	}
	return part
}

// NamePrefixRange returns the range of the names that begin with prefix. It ignores case.
func NamePrefixRange(prefix string) Range {
	if prefix = commerce.FoldName(prefix); prefix == "" {
		return Range{Empty: true}
	}
	part := model.PrefixRange(prefix)
	return Range{From: part.From, To: part.To}
}

// EmailPrefixRange returns the range of the email addresses that begin with prefix. It ignores case.
func EmailPrefixRange(prefix string) Range {
	prefix, err := commerce.EmailKeyPrefix(prefix)
	if err != nil {
		return Range{Empty: true}
	}
	part := model.PrefixRange(prefix)
	return Range{From: part.From, To: part.To}
}

// HireDateRange returns the range of the employees who were hired in a date range.
func HireDateRange(r commerce.DateRange) Range { return Range{From: string(r.From), To: string(r.To)} }

// SpendingMonthsRange returns the range of a customer's spending records for a date range. Each
// record covers one month. The result includes every month that has at least one day in r.
func SpendingMonthsRange(r commerce.DateRange) Range {
	var part Range
	if r.From != "" && r.From == r.To {
		return Range{Empty: true}
	}
	if r.From != "" {
		part.From = r.From.Month()
	}
	if r.To != "" {
		part.To = r.To.DayBefore().Month() + "$" // in the keys, '#' follows the month, and '$' sorts after '#'
	}
	return part
}

// QuantityRange returns the range of the inventory levels with less than the given quantity.
func QuantityRange(below int) Range {
	if below <= 0 {
		return Range{Empty: true}
	}
	return Range{To: model.SortableNumber(strconv.Itoa(below))}
}

// SalesRange returns the range of the records with the sales of the days in a range, which must have both
// ends.
func SalesRange(currency commerce.Currency, r commerce.DateRange) Range {
	return Range{From: string(currency) + "#" + string(r.From), To: string(currency) + "#" + string(r.To), Empty: r.From == r.To}
}

// StatusSet is a set of order statuses. The empty set means all statuses.
type StatusSet uint8

// NewStatusSet returns a set of statuses.
func NewStatusSet(statuses ...commerce.Status) StatusSet {
	var s StatusSet
	for _, status := range statuses {
		s |= 1 << status
	}
	return s
}

// statuses returns the statuses of the set in lifecycle order. For the empty set, it returns all
// statuses.
func (s StatusSet) statuses() []commerce.Status {
	return slices.DeleteFunc(commerce.Statuses(), func(status commerce.Status) bool { return s != 0 && s&(1<<status) == 0 })
}

// ReadPage returns one page of a list. An empty list is not an error. The page leaves out records
// that cannot be decoded (see Page.Malformed), and records of other software that are not in the
// list, although their keys begin like the list's keys. If the list contains only keys, the page
// leaves out records that do not exist or are no longer in the list.
//
// Errors: commerce.InvalidError (a value is not valid in a key), table.ClockError (for AP60),
// table.ErrUnavailable, table.ErrNoTable and table.ErrAccessDenied.
func ReadPage[V any](ctx context.Context, s *Store, p *model.ListPattern[V], r ListRequest) (Page[V], error) {
	if r.Page.Limit < 1 {
		return Page[V]{}, fmt.Errorf("read %s: page limit %d is less than 1", p.ID, r.Page.Limit)
	}
	if r.Range.Empty {
		return Page[V]{}, nil
	}
	if err := s.table.CheckLayout(ctx); err != nil {
		return Page[V]{}, err
	}
	l, err := s.newListQuery(&p.AccessPattern, r)
	if err != nil {
		return Page[V]{}, err
	}
	if err := s.table.Layout.Derivations().CheckListReadable(l.pattern); err != nil {
		return Page[V]{}, err
	}
	rows, err := s.readRows(ctx, l)
	if err == nil && l.pattern.PK == model.EntityOrderEvent.IndexPK {
		err = s.table.ClockErr() // with a clock that is ahead, events can still appear before the end of the page
	}
	if err != nil {
		return Page[V]{}, err
	}
	if err := s.keepListed(ctx, l, rows); err != nil {
		return Page[V]{}, err
	}
	items := make([]V, len(rows))
	positions := make([]string, len(rows))
	var leftOut []error
	for i, row := range rows {
		positions[i] = row.position
		err = errNotInList
		if !row.record.Absent() {
			items[i], err = p.Decode(&s.table.Codec, row.record)
		}
		switch {
		case errors.Is(err, model.ErrCorrupt), errors.Is(err, errNotInList):
			if leftOut == nil {
				leftOut = make([]error, len(rows))
			}
			leftOut[i] = err
		case err != nil:
			return Page[V]{}, err
		}
	}
	page := newPage(l.page, items, positions)
	if leftOut == nil {
		return page, nil
	}
	leftOut = leftOut[:len(page.Items)]
	if r.Page.FromEnd {
		slices.Reverse(leftOut)
	}
	return page.without(leftOut), nil
}

// keepListed removes the records of rows that are not in the list. If the list contains only keys,
// it then replaces them by the records with these keys, which need a further request.
func (s *Store) keepListed(ctx context.Context, l listQuery, rows []row) error {
	for i := range rows {
		if !l.pattern.Matches(rows[i].record) {
			rows[i].record = model.Reader{}
		}
	}
	if l.pattern.Records == nil {
		return nil
	}
	e, page := l.pattern.Entities()[0], rows[:min(len(rows), l.page.Limit)] // a further row only shows that the list continues
	var keys []model.Keys
	var edges []*model.Reader
	for i := range page {
		if edge := &page[i].record; !edge.Absent() {
			keys, edges = append(keys, e.Of.KeyFromValues(e.KeyValues(edge.Key()))), append(edges, edge)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	records, err := s.table.GetMany(ctx, l.pattern.Records, keys)
	for i, r := range records {
		if !e.Lists(edges[i].Key(), r) {
			r = model.Reader{}
		}
		*edges[i] = r
	}
	return err
}

// newListQuery determines which partitions and which range of sort keys must be read for a list
// request.
func (s *Store) newListQuery(p *model.AccessPattern, r ListRequest) (listQuery, error) {
	if r.Pattern != nil {
		p = r.Pattern
	}
	l := listQuery{pattern: p, prefix: string(p.SK), page: r.Page, bounds: model.Range{From: r.Range.From, To: r.Range.To}}
	if p.PK == model.EntityOrder.IndexPK {
		return l, s.addStatusPartitions(&l, r.Statuses)
	}
	if p.PK == model.EntityOrderEvent.IndexPK {
		return l, s.addChangePartitions(&l)
	}
	var values []string
	if strings.Contains(string(p.PK), "{") {
		values = []string{r.PartitionValue}
	}
	key, err := p.PK.Build(values...)
	if err != nil {
		return listQuery{}, err
	}
	if l.groups = s.segments(&l, key); p.MaxLength > 0 { // these are counter records, and each partition has this number of them
		l.page.Limit *= len(l.groups[0].Partitions)
	}
	return l, nil
}

// addStatusPartitions adds the partitions of the orders with the given statuses. Earlier statuses
// are read first, so that an order whose status changes during the read is not missed.
func (s *Store) addStatusPartitions(l *listQuery, statuses StatusSet) error {
	for _, group := range commerce.GroupStatusesByLifecycle(statuses.statuses()) {
		var keys []string
		for _, status := range group {
			key, err := l.pattern.PK.Build(status.String())
			if err != nil {
				return err
			}
			keys = append(keys, key)
		}
		l.groups = append(l.groups, s.segments(l, keys...)...)
	}
	return nil
}

// addChangePartitions adds the partitions of all events, and the range of the events that the table
// lists completely.
func (s *Store) addChangePartitions(l *listQuery) error {
	bounds, err := s.history().ChangesRange(commerce.EventID(l.page.After))
	if err != nil {
		return err
	}
	var keys []string
	for _, to := range model.ChangedStatuses() {
		keys = append(keys, l.pattern.PK.Prefix()+to)
	}
	l.bounds, l.groups = bounds, s.segments(l, keys...)
	return nil
}

// segments returns the segments of a sharded list in the order in which the page is read. A page
// that is full after the first segments reads no others. keys are the list's partition keys without
// a shard number.
func (s *Store) segments(l *listQuery, keys ...string) []model.Segment {
	segments := s.table.Layout.Get().Segments(l.pattern, keys...)
	if !l.forward() {
		slices.Reverse(segments)
	}
	return segments
}

// collectionLimit is the maximum number of records that readCollection returns. It is large enough
// for an order with commerce.MaxLines line items and many events, and for a product in 100
// warehouses.
const collectionLimit = 200

// OrderPartition is the item collection of an order: the order, its line items and its events.
type OrderPartition struct {
	Order *commerce.Order
	// Items are sorted by SKU, and Events by time.
	Items  []*commerce.LineItem
	Events []*commerce.Event
	// Complete reports whether Items and Events are complete. If Complete is false, the caller must
	// read the lists of line items and events separately.
	Complete bool
}

// ReadOrderPartition reads an order, its line items and its events with one Query (access pattern
// AP25).
//
// It returns commerce.ErrNotFound if the order does not exist. It also returns the errors of
// ReadPage.
func (s *Store) ReadOrderPartition(ctx context.Context, id commerce.OrderID) (*OrderPartition, error) {
	collection, beforePayments := &OrderPartition{}, model.Range{To: model.EntityPayment.SK.Prefix()}
	complete, err := s.readCollection(ctx, model.OrderCollection, string(id), beforePayments, func(sk string, r model.Reader) (readable bool, err error) {
		switch {
		case sk == string(model.EntityOrder.SK):
			collection.Order, err = s.table.DecodeOrder(r)
			return true, err
		case strings.HasPrefix(sk, model.EntityOrderItem.SK.Prefix()):
			collection.Items, err = appendDecoded(collection.Items, r, s.table.DecodeOrderItem)
		case strings.HasPrefix(sk, model.EntityOrderEvent.SK.Prefix()):
			collection.Events, err = appendDecoded(collection.Events, r, model.DecodeEvent)
		}
		return err == nil, nil
	})
	if err != nil {
		return nil, err
	}
	if collection.Complete = complete; collection.Order == nil {
		return nil, commerce.ErrNotFound
	}
	return collection, nil
}

// ProductPartition is the item collection of a product: the product and its inventory levels.
type ProductPartition struct {
	Product *commerce.Product
	// Levels are the inventory levels, sorted by warehouse ID.
	Levels []*commerce.InventoryLevel
	// Complete reports whether Levels is complete. If Complete is false, the caller must read the list
	// of inventory levels separately.
	Complete bool
}

// ReadProductPartition reads a product and its inventory levels with one Query (access pattern
// AP13).
//
// It returns commerce.ErrNotFound if the product does not exist. It also returns the errors of
// ReadPage.
func (s *Store) ReadProductPartition(ctx context.Context, sku commerce.SKU) (*ProductPartition, error) {
	collection := &ProductPartition{}
	beforeEdges := model.Range{To: string(model.EntityProductCategoryName.SK)}
	complete, err := s.readCollection(ctx, &model.ProductInventory.AccessPattern, string(sku), beforeEdges, func(sk string, r model.Reader) (readable bool, err error) {
		switch {
		case sk == string(model.EntityProduct.SK):
			collection.Product, err = s.table.DecodeProduct(r)
			return true, err
		case strings.HasPrefix(sk, model.EntityInventoryLevel.SK.Prefix()):
			collection.Levels, err = appendDecoded(collection.Levels, r, model.DecodeInventoryLevel)
		}
		return err == nil, nil
	})
	if err != nil {
		return nil, err
	}
	if collection.Complete = complete; collection.Product == nil {
		return nil, commerce.ErrNotFound
	}
	return collection, nil
}

func appendDecoded[V any](to []V, r model.Reader, decode func(model.Reader) (V, error)) ([]V, error) {
	v, err := decode(r)
	return append(to, v), err
}

// readCollection calls visit for up to collectionLimit records of an item collection. If there are
// more records, or if visit cannot decode a record, complete is false.
func (s *Store) readCollection(ctx context.Context, p *model.AccessPattern, id string, part model.Range, visit func(sk string, r model.Reader) (readable bool, err error)) (complete bool, err error) {
	pk, err := p.PK.Build(id)
	if err != nil {
		return false, err
	}
	records, more, err := s.table.Query(ctx, p, pk, "", part, collectionLimit, true)
	if err != nil {
		return false, err
	}
	complete = !more
	for _, r := range records {
		readable, err := visit(r.Text(model.AttrSK), r)
		if err != nil {
			return false, err
		}
		complete = complete && readable
	}
	return complete, nil
}

// CountCustomerOrders counts a customer's orders with Queries (access pattern AP2). Use it only if
// the customer's record contains no order count.
//
// Errors: table.ErrTooManyOrders and the errors of ReadPage.
func (s *Store) CountCustomerOrders(ctx context.Context, id commerce.CustomerID) (int, error) {
	p := &model.CustomerOrders.AccessPattern
	partition, err := p.PK.Build(string(id))
	if err != nil {
		return 0, err
	}
	return s.table.Count(ctx, p, partition, string(p.SK))
}
