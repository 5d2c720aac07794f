package bulk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Conversion is the result of Convert.
type Conversion struct {
	Dataset commerce.Dataset
	// Lines is the number of lines, including blank lines. NewOrderIDs is the number of orders with a
	// new ID, because their previous IDs are not ULIDs.
	Lines, NewOrderIDs int
	// Unreadable counts the lines that cannot be converted. BadLines contains the first 20 of them.
	Unreadable int
	BadLines   []BadLine
	// Unmapped describes what the mapping does not contain.
	Unmapped []*Unmapped
}

// Unmapped counts similar records or attributes that the mapping does not contain.
type Unmapped struct {
	// What is the first part of the keys of records, such as "CART# ITEM#", or the name of an attribute
	// and of its entity.
	What  string
	Count int
	// Example is the key of the first record.
	Example string
}

// maxUnmapped is the maximum number of elements in Conversion.Unmapped.
const maxUnmapped = 50

// converter is the state of Convert.
type converter struct {
	Conversion
	Transfers
	mapping *Mapping
	// indexes maps the previous ID of each order to its index in orders, which is also its index in the
	// dataset.
	indexes map[commerce.OrderID]int
	orders  []convertedOrder
	// items contains all line items, because an item may precede its order.
	items []convertedItem
}

// convertedOrder describes the record of a converted order in the other table.
type convertedOrder struct {
	line int
	id   commerce.OrderID
	// total is nil if the record had no total.
	total *commerce.Money
}

type convertedItem struct {
	line int
	commerce.LineItem
}

// Convert reads lines in the format of Export, whose records have the form that a mapping describes,
// and returns them as a dataset. If some lines cannot be converted, the dataset is incomplete.
//
// Errors: the errors of r; commerce.InvalidError for records that contradict each other; the context's
// error.
func (t Transfers) Convert(ctx context.Context, r io.Reader, m *Mapping) (Conversion, error) {
	c := converter{Transfers: t, mapping: m, indexes: map[commerce.OrderID]int{}}
	if err := c.convertLines(ctx, r); err != nil || c.Unreadable > 0 {
		return c.Conversion, err
	}
	c.addItems()
	c.Dataset.CompleteEachOrder(c.rejectOrder)
	for i, o := range c.Dataset.Orders {
		if stored := c.orders[i].total; stored != nil && stored.Amount.Cmp(o.Total.Amount) != 0 && c.Unreadable == 0 {
			c.rejectOrder(i, fmt.Errorf("the total is %s, but the line items add up to %s: correct them, or add the total to \"ignore\"", stored.Decimal(), o.Total.Decimal()))
		}
	}
	if c.Unreadable > 0 {
		return c.Conversion, nil
	}
	return c.Conversion, derive.Complete(&c.Dataset)
}

// convertLines converts the records of all lines. Its line items are not in the dataset yet.
func (c *converter) convertLines(ctx context.Context, r io.Reader) error {
	in := importer{rawLines: make(chan rawLine)}
	go in.read(ctx, r)
	for {
		text, err := in.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		c.Lines++
		if bad, ok := errors.AsType[*LineError](err); ok {
			bad.Line = c.Lines
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		rec, err := fromJSON(text)
		if err == nil {
			err = c.convert(rec)
		}
		c.reject(c.Lines, err)
	}
}

func (c *converter) rejectOrder(i int, problem error) {
	c.reject(c.orders[i].line, fmt.Errorf("order %s: %w", c.orders[i].id, problem))
}

// reject records that a line cannot be converted. If err is nil, it does nothing.
func (c *converter) reject(line int, err error) {
	if err == nil {
		return
	}
	if c.Unreadable++; len(c.BadLines) < maxReportedLines {
		c.BadLines = append(c.BadLines, BadLine{Line: line, Problem: err.Error()})
	}
}

// convert adds a record to the dataset. The errors name the record.
func (c *converter) convert(rec model.Record) error {
	k := model.Keys{PK: model.TextOf(rec, c.mapping.PK), SK: model.TextOf(rec, c.mapping.SK)}
	if k.PK == "" || k.SK == "" {
		return fmt.Errorf("the record has no strings %q and %q, which are the keys in the mapping", c.mapping.PK, c.mapping.SK)
	}
	e, values := c.mapping.match(k)
	if e == nil {
		c.countUnmapped("records "+keyKind(k.PK)+" "+keyKind(k.SK), k)
		return nil
	}
	converted, read := c.mapping.attributesOf(e, rec, values)
	for name := range rec {
		if name != c.mapping.PK && name != c.mapping.SK && !slices.Contains(read, name) && !slices.Contains(c.mapping.Ignore, name) {
			c.countUnmapped(fmt.Sprintf("attribute %q of %s", name, e.entity.Name), k)
		}
	}
	converted[model.AttrPK], converted[model.AttrSK] = model.Str(k.PK), model.Str(k.SK) // for the messages of errors
	err := c.add(e.entity, converted)
	if err != nil && !errors.Is(err, model.ErrCorrupt) {
		err = fmt.Errorf("record %s: %w", k.Text(), err)
	}
	return err
}

// keyKind returns the part of a key that does not depend on the record, for a key such as CUST#c1 or
// METADATA.
func keyKind(key string) string {
	kind, _, found := strings.Cut(key, "#")
	if found {
		kind += "#..."
	}
	return kind
}

func (c *converter) countUnmapped(what string, k model.Keys) {
	i := slices.IndexFunc(c.Unmapped, func(u *Unmapped) bool { return u.What == what })
	if i < 0 && len(c.Unmapped) == maxUnmapped {
		i = maxUnmapped - 1
		c.Unmapped[i].What = "other records and attributes"
	} else if i < 0 {
		i = len(c.Unmapped)
		c.Unmapped = append(c.Unmapped, &Unmapped{What: what, Example: k.Text()})
	}
	c.Unmapped[i].Count++
}

// add decodes a converted record and adds its value to the dataset.
func (c *converter) add(e *model.Entity, rec model.Record) error {
	rec[model.AttrVersion] = model.Num(1)
	hasTotal := rec["total"] != nil
	if e == &model.EntityOrder && !hasTotal {
		rec["total"] = model.Num(0) // the total is computed from the line items
	}
	if e == &model.EntityOrderItem && rec["name"] == nil {
		rec["name"] = model.Str("") // the name is copied from the product
	}
	v, err := c.table.DecodeValid(e, rec)
	if err != nil {
		return err
	}
	for _, name := range keyAttributes(e) {
		_, err := commerce.ParseID[string](model.TextOf(rec, name))
		if err != nil && name != "orderId" { // an order can get a new ID
			return commerce.ErrorWithArgument(name, err)
		}
	}
	b, d := c.table.KeyBuilder(), &c.Dataset
	switch v := v.(type) {
	case *commerce.Order:
		return c.addOrder(v, hasTotal)
	case *commerce.LineItem:
		c.items = append(c.items, convertedItem{c.Lines, *v})
		return nil
	case *commerce.Customer:
		d.Customers = append(d.Customers, *v)
		model.CustomerRecords(b, *v) // reports an invalid email address, too
	case *commerce.Product:
		d.Products = append(d.Products, *v)
	case *commerce.InventoryLevel:
		d.Levels = append(d.Levels, *v)
	case *commerce.Warehouse:
		d.Warehouses = append(d.Warehouses, *v)
	case *commerce.Employee:
		d.Employees = append(d.Employees, *v)
	}
	model.EncodeWithEdges(b, v) // reports values that are not valid in keys
	return b.Err
}

// addOrder adds an order to the dataset, with an event of the type EventImported. If its ID is not a
// ULID, the order gets a ULID that depends only on the time of placement and the previous ID. The
// event's note then contains the previous ID.
func (c *converter) addOrder(o *commerce.Order, hasTotal bool) error {
	source := convertedOrder{line: c.Lines, id: o.ID}
	if hasTotal {
		source.total = new(o.Total)
	}
	if i, ok := c.indexes[o.ID]; ok {
		return fmt.Errorf("line %d contains the same order", c.orders[i].line)
	}
	note := ""
	id, err := commerce.ParseOrderID(string(o.ID))
	if err != nil {
		note = fmt.Sprintf("The order's ID was %s.", o.ID)
		if id, err = commerce.OrderIDFrom(o.PlacedAt, string(o.ID)); err != nil {
			return err
		}
		c.NewOrderIDs++
	}
	c.indexes[o.ID] = len(c.orders)
	c.orders = append(c.orders, source)
	o.ID = id
	o.PlacedAt, _ = id.Time()
	c.Dataset.Orders = append(c.Dataset.Orders, commerce.OrderWithItems{Order: *o, Events: []commerce.Event{commerce.ImportedEvent(*o, note)}})
	return nil
}

// addItems adds the line items to their orders.
func (c *converter) addItems() {
	names := map[commerce.SKU]string{}
	for _, p := range c.Dataset.Products {
		names[p.SKU] = p.Name
	}
	for _, item := range c.items {
		i, ok := c.indexes[item.OrderID]
		if !ok {
			c.reject(item.line, fmt.Errorf("line item %s: its order %s is missing", item.SKU, item.OrderID))
			continue
		}
		item.Name = cmp.Or(item.Name, names[item.SKU])
		order := &c.Dataset.Orders[i]
		order.Lines = append(order.Lines, item.LineItem)
	}
	c.items = nil
}
