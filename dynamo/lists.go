package dynamo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// ListRequest is a page of a list. It is comparable.
type ListRequest struct {
	// Of is the value in the list's partition key, such as a customer's ID; empty where the key is
	// constant.
	Of string
	// Statuses are the statuses of a list of orders by status; the empty set is all of them.
	Statuses StatusSet
	// Range limits the list; the zero value does not.
	Range Range
	// Pattern is the access pattern to read records of the same kind by, such as the one for ranges.
	// nil is the list's own.
	Pattern *model.AccessPattern
	Page    Page
}

// Range is a part of a list: the positions from From to before To, each empty for the list's end.
type Range struct {
	From, To string
	// None reports that nothing can be in the range.
	None bool
}

// PlacedIn is the part of a list of orders that was placed in a time: IDs of orders sort by time.
func PlacedIn(r commerce.TimeRange) Range {
	var part Range
	var ok bool
	if !r.From.IsZero() {
		if part.From, ok = commerce.FirstULID(r.From); !ok {
			return Range{None: true}
		}
	}
	if !r.To.IsZero() {
		// Behind the last ULID there is no end to set.
		part.To, _ = commerce.FirstULID(r.To)
	}
	return part
}

// NamedLike is the part of a list by name that has the names with a beginning, whatever its case.
func NamedLike(prefix string) Range {
	if prefix = commerce.FoldName(prefix); prefix == "" {
		return Range{None: true}
	}
	part := model.BeginningWith(prefix)
	return Range{From: part.From, To: part.To}
}

// HiredOn is the part of a list of employees that was hired on some days.
func HiredOn(r commerce.DateRange) Range { return Range{From: string(r.From), To: string(r.To)} }

// MonthsOf is the part of a customer's spending of the months that some days are in.
func MonthsOf(r commerce.DateRange) Range {
	var part Range
	if r.From != "" && r.From == r.To {
		return Range{None: true}
	}
	if r.From != "" {
		part.From = r.From.Month()
	}
	if r.To != "" {
		part.To = r.To.DayBefore().Month() + "$" // behind '#'
	}
	return part
}

// StatusSet is a set of statuses; the empty one stands for all of them.
type StatusSet uint8

// Statuses returns the set of some statuses.
func Statuses(of ...commerce.Status) StatusSet {
	var s StatusSet
	for _, status := range of {
		s |= 1 << status
	}
	return s
}

// list returns the statuses of the set, in ascending order.
func (s StatusSet) list() []commerce.Status {
	return slices.DeleteFunc(commerce.Statuses(), func(status commerce.Status) bool { return s != 0 && s&(1<<status) == 0 })
}

// ReadPage returns a page of a list.
//
// Errors: commerce.InvalidError for a value that can be in no key, ErrCorrupt, ErrUnavailable,
// ErrNoTable, ErrAccessDenied. A list that is empty is no error.
func ReadPage[V any](ctx context.Context, s *Store, p *model.List[V], r ListRequest) (Slice[V], error) {
	if r.Page.Limit < 1 {
		return Slice[V]{}, fmt.Errorf("read %s: a page of %d records", p.ID, r.Page.Limit)
	}
	if r.Range.None {
		return Slice[V]{}, nil
	}
	l, err := s.listing(&p.AccessPattern, r)
	if err != nil {
		return Slice[V]{}, err
	}
	rows, err := s.read(ctx, l)
	if err != nil {
		return Slice[V]{}, err
	}
	items := make([]V, len(rows))
	positions := make([]string, len(rows))
	for i, row := range rows {
		if items[i], err = p.Decode(&s.table.Codec, row.record); err != nil {
			return Slice[V]{}, err
		}
		positions[i] = row.position
	}
	return slice(r.Page, items, positions), nil
}

// listing returns the partitions of a list. Orders by status are read in lifecycle order, so that
// an order that moves on while the list is read is not missed.
func (s *Store) listing(p *model.AccessPattern, r ListRequest) (listing, error) {
	if r.Pattern != nil {
		p = r.Pattern
	}
	l := listing{pattern: p, prefix: string(p.SK), page: r.Page, bounds: model.Range{From: r.Range.From, To: r.Range.To}}
	if p.PK == model.EntityOrder.IndexPK {
		return l, s.addStatuses(&l, r.Statuses)
	}
	var values []string
	if strings.Contains(string(p.PK), "{") {
		values = []string{r.Of}
	}
	key, err := p.PK.Key(values...)
	if err != nil {
		return listing{}, err
	}
	if p.Operation == model.PerShard {
		l.levels = [][]string{s.appendShards(nil, key)}
	} else {
		l.levels = [][]string{{key}}
	}
	return l, nil
}

// addStatuses adds the partitions of orders in some statuses, in lifecycle order.
func (s *Store) addStatuses(l *listing, statuses StatusSet) error {
	for _, level := range commerce.Levels(statuses.list()) {
		var partitions []string
		for _, status := range level {
			key, err := l.pattern.PK.Key(status.String())
			if err != nil {
				return err
			}
			partitions = s.appendShards(partitions, key)
		}
		l.levels = append(l.levels, partitions)
	}
	return nil
}

// appendShards appends the partitions over which a partition key is spread.
func (s *Store) appendShards(partitions []string, key string) []string {
	for shard := range s.table.Shards {
		partitions = append(partitions, key+model.ShardSuffix(shard, s.table.Shards))
	}
	return partitions
}

// collectionLimit is how many records of an item collection are read at once: an order with
// commerce.MaxLines items and many events, or a product in a hundred warehouses.
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
	complete, err := s.readCollection(ctx, model.OrderCollection, string(id), model.Range{}, func(sk string, r model.Reader) (readable bool, err error) {
		switch {
		case sk == string(model.EntityOrder.SK):
			whole.Order, err = s.table.DecodeOrder(r)
			return true, err
		case strings.HasPrefix(sk, model.EntityOrderItem.SK.Literal()):
			whole.Items, err = appendDecoded(whole.Items, r, s.table.DecodeOrderItem)
		case strings.HasPrefix(sk, model.EntityOrderEvent.SK.Literal()):
			whole.Events, err = appendDecoded(whole.Events, r, model.DecodeEvent)
		}
		return err == nil, nil
	})
	if err != nil {
		return nil, err
	}
	if whole.Complete = complete; whole.Order == nil {
		return nil, commerce.ErrNotFound
	}
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
	beforeEdges := model.Range{To: string(model.EntityProductCategoryName.SK)}
	complete, err := s.readCollection(ctx, &model.ProductInventory.AccessPattern, string(sku), beforeEdges, func(sk string, r model.Reader) (readable bool, err error) {
		switch {
		case sk == string(model.EntityProduct.SK):
			whole.Product, err = s.table.DecodeProduct(r)
			return true, err
		case strings.HasPrefix(sk, model.EntityInventoryLevel.SK.Literal()):
			whole.Levels, err = appendDecoded(whole.Levels, r, model.DecodeInventoryLevel)
		}
		return err == nil, nil
	})
	if err != nil {
		return nil, err
	}
	if whole.Complete = complete; whole.Product == nil {
		return nil, commerce.ErrNotFound
	}
	return whole, nil
}

func appendDecoded[V any](to []V, r model.Reader, decode func(model.Reader) (V, error)) ([]V, error) {
	v, err := decode(r)
	return append(to, v), err
}

// readCollection gives each record of a part of an item collection to take, up to collectionLimit,
// and reports whether those were all and take could read each of them.
func (s *Store) readCollection(ctx context.Context, p *model.AccessPattern, id string, part model.Range, take func(sk string, r model.Reader) (readable bool, err error)) (complete bool, err error) {
	pk, err := p.PK.Key(id)
	if err != nil {
		return false, err
	}
	records, more, err := s.table.Query(ctx, p, pk, "", part, collectionLimit, true)
	if err != nil {
		return false, err
	}
	complete = !more
	for _, r := range records {
		readable, err := take(r.Text(model.AttrSK), r)
		if err != nil {
			return false, err
		}
		complete = complete && readable
	}
	return complete, nil
}

// OrderCount counts a customer's orders (AP2), for customers whose records keep no count.
//
// Errors: ErrTooManyToCount, and those of all lists.
func (s *Store) OrderCount(ctx context.Context, id commerce.CustomerID) (int, error) {
	p := &model.CustomerOrders.AccessPattern
	partition, err := p.PK.Key(string(id))
	if err != nil {
		return 0, err
	}
	return s.table.Count(ctx, p, partition, string(p.SK))
}
