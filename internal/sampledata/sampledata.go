// Package sampledata reads datasets from JSON files, contains the sample data of the embedded
// store, and generates large datasets.
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

// Sample returns the sample data of the embedded store. It returns the errors of Read.
func Sample() (commerce.Book, error) { return Read(bytes.NewReader(sample)) }

// file is the JSON form of a dataset. Records have the fields of their types in commerce. Amounts
// are strings, so that JSON libraries do not convert them to floats.
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

// Read reads a dataset. All records have version 1, and every order has one event of type imported.
//
// It returns an error that names the location of invalid JSON, of invalid IDs and amounts, and of
// an order whose ID has another time than placedAt. It returns the errors of commerce.Book.Settle.
func Read(r io.Reader) (commerce.Book, error) {
	var f file
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return commerce.Book{}, fmt.Errorf("read dataset: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return commerce.Book{}, fmt.Errorf("read dataset: unexpected data after the end")
	}
	dataset, err := f.book()
	if err == nil {
		err = dataset.Settle()
	}
	if err != nil {
		return commerce.Book{}, fmt.Errorf("read dataset: %w", err)
	}
	return dataset, nil
}

// place collects the results of validations and keeps the first error with its location.
type place struct{ err error }

func (p *place) note(location string, err error) {
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("%s: %w", location, err)
	}
}

func id[ID ~string](p *place, location string, s ID) ID {
	v, err := commerce.ParseID[ID](string(s))
	p.note(location, err)
	return v
}

// reference validates an ID that may be empty.
func reference[ID ~string](p *place, location string, s ID) {
	if s != "" {
		id(p, location, s)
	}
}

func (p *place) currency(location, currency string) commerce.Currency {
	c, err := commerce.ParseCurrency(currency)
	p.note(location+".currency", err)
	return c
}

func (p *place) money(location, amount string, c commerce.Currency) commerce.Money {
	m, err := commerce.ParseMoney(amount, c)
	p.note(location+".unitPrice", err)
	return m
}

func (p *place) text(location, s string) {
	_, err := commerce.ParseText(s, 256)
	p.note(location, err)
}

func (f file) book() (commerce.Book, error) {
	var p place
	var b commerce.Book
	for i, e := range f.Employees {
		location := fmt.Sprintf("employees[%d]", i)
		_, err := commerce.ParseDate(string(e.HireDate))
		p.note(location+".hireDate", err)
		id(&p, location+".id", e.ID)
		p.text(location+".name", e.Name)
		p.text(location+".jobTitle", e.JobTitle)
		reference(&p, location+".warehouseId", e.WarehouseID)
		e.Version = 1
		b.Employees = append(b.Employees, e)
	}
	for i, w := range f.Warehouses {
		location := fmt.Sprintf("warehouses[%d]", i)
		id(&p, location+".id", w.ID)
		p.text(location+".name", w.Name)
		w.Version = 1
		b.Warehouses = append(b.Warehouses, w)
	}
	for i, product := range f.Products {
		location := fmt.Sprintf("products[%d]", i)
		id(&p, location+".sku", product.SKU)
		p.text(location+".name", product.Name)
		p.text(location+".category", product.Category)
		product.Product.UnitPrice = p.money(location, product.UnitPrice, p.currency(location, product.Currency))
		product.Version = 1
		b.Products = append(b.Products, product.Product)
		for _, warehouse := range slices.Sorted(maps.Keys(product.Inventory)) {
			b.Levels = append(b.Levels, commerce.InventoryLevel{
				SKU: product.SKU, WarehouseID: id(&p, location+".inventory", commerce.WarehouseID(warehouse)),
				Quantity: product.Inventory[warehouse], Version: 1,
			})
		}
	}
	for i, c := range f.Customers {
		location := fmt.Sprintf("customers[%d]", i)
		_, err := commerce.ParseEmail(c.Email)
		p.note(location+".email", err)
		if c.CreatedAt.IsZero() {
			p.note(location+".createdAt", commerce.Invalid("is missing"))
		}
		id(&p, location+".id", c.ID)
		p.text(location+".name", c.Name)
		reference(&p, location+".accountRepId", c.AccountRepID)
		c.Customer.CreatedAt, c.UpdatedAt, c.Version = c.CreatedAt, c.CreatedAt, 1
		b.Customers = append(b.Customers, c.Customer)
	}
	f.orders(&p, &b)
	return b, p.err
}

func (f file) orders(p *place, b *commerce.Book) {
	for i, o := range f.Orders {
		location := fmt.Sprintf("orders[%d]", i)
		orderID, err := commerce.ParseOrderID(o.ID)
		p.note(location+".id", err)
		status, err := commerce.ParseStatus(o.Status)
		p.note(location+".status", err)
		if placed, ok := orderID.Time(); ok && !placed.Equal(o.PlacedAt) {
			p.note(location+".placedAt", fmt.Errorf("is %s, but the order's ID has the time %s", o.PlacedAt.Format(time.RFC3339Nano), placed.Format(time.RFC3339Nano)))
		}
		order := commerce.OrderWithItems{Order: commerce.Order{
			ID: orderID, CustomerID: id(p, location+".customerId", commerce.CustomerID(o.CustomerID)), Status: status,
			PlacedAt: o.PlacedAt, UpdatedAt: o.PlacedAt, Version: 1,
		}}
		currency := p.currency(location, o.Currency)
		for j, item := range o.Items {
			location := fmt.Sprintf("%s.items[%d]", location, j)
			p.text(location+".name", item.Name)
			order.Lines = append(order.Lines, commerce.LineItem{
				SKU: id(p, location+".sku", commerce.SKU(item.SKU)), Name: item.Name, Quantity: item.Quantity,
				UnitPrice: p.money(location, item.UnitPrice, currency),
			})
		}
		order.Events = []commerce.Event{{
			ID: importEventID(orderID), OrderID: orderID, Type: commerce.EventImported, To: status,
			At: o.PlacedAt, Actor: "import",
		}}
		b.Orders = append(b.Orders, order)
	}
}

// importEventID returns the ID of an order's imported event. It is derived from the order's ID, so
// that loading a file twice equals loading it once. It has the order's time.
func importEventID(order commerce.OrderID) commerce.EventID {
	event, _ := ulid.ParseStrict(string(order))
	hash := sha256.Sum256([]byte("imported " + order))
	copy(event[6:], hash[:])
	return commerce.EventID(event.String())
}
