// Package sampledata contains the sample data for the embedded in-memory store. It also reads
// datasets from JSON files, and generates large datasets.
package sampledata

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
)

//go:embed sample-data.json
var sample []byte

// Sample returns the sample data. It returns the same errors as Read.
func Sample() (commerce.Dataset, error) { return Read(bytes.NewReader(sample)) }

// file is the JSON representation of a dataset. Most fields have the same names as in package
// commerce. Amounts are strings, because JSON libraries may convert numbers to floats.
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
		ID           string                `json:"id"`
		CustomerID   string                `json:"customerId"`
		Status       string                `json:"status"`
		Currency     string                `json:"currency"`
		PlacedAt     time.Time             `json:"placedAt"`
		CustomFields commerce.CustomValues `json:"customFields"`
		Items        []struct {
			SKU          string                `json:"sku"`
			Name         string                `json:"name"`
			Quantity     int                   `json:"quantity"`
			UnitPrice    string                `json:"unitPrice"`
			CustomFields commerce.CustomValues `json:"customFields"`
		} `json:"items"`
	} `json:"orders"`
}

// Read reads a dataset in JSON. All records get the version 1. Each order gets one event of type
// imported. If the dataset is invalid, Read returns an error.
func Read(r io.Reader) (commerce.Dataset, error) {
	var f file
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return commerce.Dataset{}, fmt.Errorf("read dataset: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return commerce.Dataset{}, fmt.Errorf("read dataset: remove the data after the JSON object")
	}
	dataset, err := f.dataset()
	if err == nil {
		err = derive.Complete(&dataset)
	}
	if err != nil {
		return commerce.Dataset{}, fmt.Errorf("read dataset: %w", err)
	}
	return dataset, nil
}

// validator checks values of a dataset. It keeps the first error, with the location of the value.
type validator struct{ err error }

func (p *validator) recordError(location string, err error) {
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("%s: %w", location, err)
	}
}

func parseID[ID ~string](p *validator, location string, s ID) ID {
	v, err := commerce.ParseID[ID](string(s))
	p.recordError(location, err)
	return v
}

// parseOptionalID checks an ID, which may be empty.
func parseOptionalID[ID ~string](p *validator, location string, s ID) {
	if s != "" {
		parseID(p, location, s)
	}
}

func (p *validator) currency(location, currency string) commerce.Currency {
	c, err := commerce.ParseCurrency(currency)
	p.recordError(location+".currency", err)
	return c
}

func (p *validator) money(location, amount string, c commerce.Currency) commerce.Money {
	m, err := commerce.ParsePrice(amount, c)
	p.recordError(location+".unitPrice", err)
	return m
}

func (p *validator) text(location, s string) {
	_, err := commerce.ParseSearchText(s, 256)
	p.recordError(location, err)
}

// customFields checks the custom fields of a record. recordType is the name of the record's type, such
// as Order.
func (p *validator) customFields(location, recordType string, v commerce.CustomValues) commerce.CustomValues {
	return v.Validate(recordType, func(path []string, problem string) {
		p.recordError(location+".customFields."+strings.Join(path, "."), commerce.NewInvalidError("%s", problem))
	})
}

func (f file) dataset() (commerce.Dataset, error) {
	var p validator
	var b commerce.Dataset
	for i, e := range f.Employees {
		location := fmt.Sprintf("employees[%d]", i)
		_, err := commerce.ParseDate(string(e.HireDate))
		p.recordError(location+".hireDate", err)
		parseID(&p, location+".id", e.ID)
		p.text(location+".name", e.Name)
		p.text(location+".jobTitle", e.JobTitle)
		parseOptionalID(&p, location+".warehouseId", e.WarehouseID)
		e.CustomFields, e.Version = p.customFields(location, "Employee", e.CustomFields), 1
		b.Employees = append(b.Employees, e)
	}
	for i, w := range f.Warehouses {
		location := fmt.Sprintf("warehouses[%d]", i)
		parseID(&p, location+".id", w.ID)
		p.text(location+".name", w.Name)
		w.CustomFields, w.Version = p.customFields(location, "Warehouse", w.CustomFields), 1
		b.Warehouses = append(b.Warehouses, w)
	}
	for i, product := range f.Products {
		location := fmt.Sprintf("products[%d]", i)
		parseID(&p, location+".sku", product.SKU)
		p.text(location+".name", product.Name)
		p.text(location+".category", product.Category)
		product.Product.UnitPrice = p.money(location, product.UnitPrice, p.currency(location, product.Currency))
		product.CustomFields, product.Version = p.customFields(location, "Product", product.CustomFields), 1
		b.Products = append(b.Products, product.Product)
		for _, warehouse := range slices.Sorted(maps.Keys(product.Inventory)) {
			b.Levels = append(b.Levels, commerce.InventoryLevel{
				SKU: product.SKU, WarehouseID: parseID(&p, location+".inventory", commerce.WarehouseID(warehouse)),
				Quantity: product.Inventory[warehouse], Version: 1,
			})
		}
	}
	for i, c := range f.Customers {
		location := fmt.Sprintf("customers[%d]", i)
		_, err := commerce.ParseEmail(c.Email)
		p.recordError(location+".email", err)
		if c.CreatedAt.IsZero() {
			p.recordError(location+".createdAt", commerce.NewInvalidError("is missing"))
		}
		parseID(&p, location+".id", c.ID)
		p.text(location+".name", c.Name)
		parseOptionalID(&p, location+".accountRepId", c.AccountRepID)
		c.CustomFields = p.customFields(location, "Customer", c.CustomFields)
		c.Customer.CreatedAt, c.UpdatedAt, c.Version = c.CreatedAt, c.CreatedAt, 1
		b.Customers = append(b.Customers, c.Customer)
	}
	f.addOrders(&p, &b)
	return b, p.err
}

func (f file) addOrders(p *validator, b *commerce.Dataset) {
	for i, o := range f.Orders {
		location := fmt.Sprintf("orders[%d]", i)
		orderID, err := commerce.ParseOrderID(o.ID)
		p.recordError(location+".id", err)
		status, err := commerce.ParseStatus(o.Status)
		p.recordError(location+".status", err)
		if placed, ok := orderID.Time(); ok && !placed.Equal(o.PlacedAt) {
			p.recordError(location+".placedAt", fmt.Errorf("is %s, but the order's ID contains the time %s", o.PlacedAt.Format(time.RFC3339Nano), placed.Format(time.RFC3339Nano)))
		}
		order := commerce.OrderWithItems{Order: commerce.Order{
			ID: orderID, CustomerID: parseID(p, location+".customerId", commerce.CustomerID(o.CustomerID)), Status: status,
			PlacedAt: o.PlacedAt, UpdatedAt: o.PlacedAt, Version: 1, CustomFields: p.customFields(location, "Order", o.CustomFields),
		}}
		currency := p.currency(location, o.Currency)
		for j, item := range o.Items {
			location := fmt.Sprintf("%s.items[%d]", location, j)
			p.text(location+".name", item.Name)
			order.Lines = append(order.Lines, commerce.LineItem{
				SKU: parseID(p, location+".sku", commerce.SKU(item.SKU)), Name: item.Name, Quantity: item.Quantity,
				UnitPrice: p.money(location, item.UnitPrice, currency), CustomFields: p.customFields(location, "OrderItem", item.CustomFields),
			})
		}
		order.Events = []commerce.Event{commerce.ImportedEvent(order.Order, "")}
		b.Orders = append(b.Orders, order)
	}
}
