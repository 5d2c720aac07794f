// Package sampledata reads order books from JSON files, holds the one that the embedded store
// starts with, and generates large ones.
package sampledata

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
)

//go:embed sample-data.json
var sample []byte

// Sample returns the order book that the embedded store starts with.
//
// Errors: those of Read.
func Sample() (commerce.Book, error) { return Read(bytes.NewReader(sample)) }

// The form of the file. Records have the fields of their types in commerce. Amounts are strings, so
// that no JSON library makes floats of them.
type file struct {
	Source     string               `json:"source"`
	Employees  []commerce.Employee  `json:"employees"`
	Warehouses []commerce.Warehouse `json:"warehouses"`
	Products   []struct {
		commerce.Product
		UnitPrice string         `json:"unitPrice"`
		Currency  string         `json:"currency"`
		Inventory map[string]int `json:"inventory"`
	} `json:"products"`
	Customers []struct {
		commerce.Customer
		CreatedAt time.Time `json:"createdAt"`
	} `json:"customers"`
	Orders []struct {
		ID         string    `json:"id"`
		CustomerID string    `json:"customerId"`
		Status     string    `json:"status"`
		Currency   string    `json:"currency"`
		PlacedAt   time.Time `json:"placedAt"`
		Items      []struct {
			SKU       string `json:"sku"`
			Name      string `json:"name"`
			Quantity  int    `json:"quantity"`
			UnitPrice string `json:"unitPrice"`
		} `json:"items"`
	} `json:"orders"`
}

// Read reads a book. Everything in it has version 1, and every order one event, which says that it
// was imported.
//
// Errors: one that names the place, for JSON of another form, ids and amounts of the wrong form, an
// order whose id tells another time than placedAt, and whatever commerce.Book.Settle refuses.
func Read(r io.Reader) (commerce.Book, error) {
	var f file
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return commerce.Book{}, fmt.Errorf("read order book: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return commerce.Book{}, fmt.Errorf("read order book: something stands behind its end")
	}
	book, err := f.book()
	if err == nil {
		err = book.Settle()
	}
	if err != nil {
		return commerce.Book{}, fmt.Errorf("read order book: %w", err)
	}
	return book, nil
}

// place keeps the first error of many conversions, with the place where it happened.
type place struct{ err error }

func (p *place) note(where string, err error) {
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("%s: %w", where, err)
	}
}

func id[ID ~string](p *place, where string, s ID) ID {
	v, err := commerce.ParseID[ID](string(s))
	p.note(where, err)
	return v
}

// reference is an ID that a record may lack.
func reference[ID ~string](p *place, where string, s ID) {
	if s != "" {
		id(p, where, s)
	}
}

func (p *place) currency(where, currency string) commerce.Currency {
	c, err := commerce.ParseCurrency(currency)
	p.note(where+".currency", err)
	return c
}

func (p *place) money(where, amount string, c commerce.Currency) commerce.Money {
	m, err := commerce.ParseMoney(amount, c)
	p.note(where+".unitPrice", err)
	return m
}

func (p *place) text(where, s string) {
	_, err := commerce.ParseText(s, 256)
	p.note(where, err)
}

func (f file) book() (commerce.Book, error) {
	var p place
	var b commerce.Book
	for i, e := range f.Employees {
		at := fmt.Sprintf("employees[%d]", i)
		_, err := commerce.ParseDate(string(e.HireDate))
		p.note(at+".hireDate", err)
		id(&p, at+".id", e.ID)
		p.text(at+".name", e.Name)
		p.text(at+".jobTitle", e.JobTitle)
		reference(&p, at+".warehouseId", e.WarehouseID)
		e.Version = 1
		b.Employees = append(b.Employees, e)
	}
	for i, w := range f.Warehouses {
		at := fmt.Sprintf("warehouses[%d]", i)
		id(&p, at+".id", w.ID)
		p.text(at+".name", w.Name)
		w.Version = 1
		b.Warehouses = append(b.Warehouses, w)
	}
	for i, product := range f.Products {
		at := fmt.Sprintf("products[%d]", i)
		id(&p, at+".sku", product.SKU)
		p.text(at+".name", product.Name)
		p.text(at+".category", product.Category)
		product.Product.UnitPrice = p.money(at, product.UnitPrice, p.currency(at, product.Currency))
		product.Version = 1
		b.Products = append(b.Products, product.Product)
		for _, warehouse := range slices.Sorted(maps.Keys(product.Inventory)) {
			b.Levels = append(b.Levels, commerce.InventoryLevel{
				SKU: product.SKU, WarehouseID: id(&p, at+".inventory", commerce.WarehouseID(warehouse)),
				Quantity: product.Inventory[warehouse], Version: 1,
			})
		}
	}
	for i, c := range f.Customers {
		at := fmt.Sprintf("customers[%d]", i)
		_, err := commerce.ParseEmail(c.Email)
		p.note(at+".email", err)
		if c.CreatedAt.IsZero() {
			p.note(at+".createdAt", commerce.Invalid("is missing"))
		}
		id(&p, at+".id", c.ID)
		p.text(at+".name", c.Name)
		reference(&p, at+".accountRepId", c.AccountRepID)
		c.Customer.CreatedAt, c.UpdatedAt, c.Version = c.CreatedAt, c.CreatedAt, 1
		b.Customers = append(b.Customers, c.Customer)
	}
	f.orders(&p, &b)
	return b, p.err
}

func (f file) orders(p *place, b *commerce.Book) {
	for i, o := range f.Orders {
		at := fmt.Sprintf("orders[%d]", i)
		orderID, err := commerce.ParseOrderID(o.ID)
		p.note(at+".id", err)
		status, err := commerce.ParseStatus(o.Status)
		p.note(at+".status", err)
		if placed, ok := orderID.Time(); ok && !placed.Equal(o.PlacedAt) {
			p.note(at+".placedAt", fmt.Errorf("is %s, but the order's id says %s", o.PlacedAt.Format(time.RFC3339Nano), placed.Format(time.RFC3339Nano)))
		}
		order := commerce.OrderWithItems{Order: commerce.Order{
			ID: orderID, CustomerID: id(p, at+".customerId", commerce.CustomerID(o.CustomerID)), Status: status,
			PlacedAt: o.PlacedAt, UpdatedAt: o.PlacedAt, Version: 1,
		}}
		currency := p.currency(at, o.Currency)
		for j, item := range o.Items {
			at := fmt.Sprintf("%s.items[%d]", at, j)
			p.text(at+".name", item.Name)
			order.Lines = append(order.Lines, commerce.LineItem{
				SKU: id(p, at+".sku", commerce.SKU(item.SKU)), Name: item.Name, Quantity: item.Quantity,
				UnitPrice: p.money(at, item.UnitPrice, currency),
			})
		}
		order.Events = []commerce.Event{{
			ID: importEventID(orderID), OrderID: orderID, Type: commerce.EventImported, To: status,
			At: o.PlacedAt, Actor: "import",
		}}
		b.Orders = append(b.Orders, order)
	}
}

// importEventID is the same each time that the same order is read, so that loading a file twice
// equals once. It has the order's time.
func importEventID(order commerce.OrderID) commerce.EventID {
	event, _ := ulid.ParseStrict(string(order))
	hash := sha256.Sum256([]byte("imported " + order))
	copy(event[6:], hash[:])
	return commerce.EventID(event.String())
}
