// Package input has the input objects of mutations and makes commands of them. Of the module it
// imports commerce and graph/operation.
package input

import (
	"context"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// Checks collects what is wrong with an input, so that a caller can mend it in one go.
type Checks struct {
	// currency is that of amounts which name none.
	currency commerce.Currency
	refusals commerce.Refusals
}

func (c *Checks) refuse(r commerce.Refusal) {
	if len(c.refusals) < operation.MaxUserErrors {
		c.refusals = append(c.refusals, r)
	}
}

// NewChecks returns checks of an input whose amounts without a currency are in this one.
func NewChecks(currency commerce.Currency) *Checks { return &Checks{currency: currency} }

// IdempotencyKey reads an idempotency key, which may be left out.
func (c *Checks) IdempotencyKey(key *string) string {
	return given(c, func(s string) (string, error) {
		return commerce.ParseListedName(s, commerce.MaxIdempotencyKey)
	}, key, "idempotencyKey")
}

// Err is what was collected, nil where nothing was.
func (c *Checks) Err() error {
	if len(c.refusals) == 0 {
		return nil
	}
	return c.refusals
}

// check brings the value at path into its form, and notes where it has none.
func check[V, T any](c *Checks, parse func(V) (T, error), v V, path ...string) T {
	parsed, err := parse(v)
	if err != nil {
		c.refuse(commerce.Refuse(path, "%s", err))
	}
	return parsed
}

// given is check for a value that may be left out or null, and is then the zero value.
func given[V, T any](c *Checks, parse func(V) (T, error), v *V, path ...string) T {
	if v == nil {
		var none T
		return none
	}
	return check(c, parse, *v, path...)
}

// changed is given for a value whose absence means that it stays as it is.
func changed[V, T any](c *Checks, parse func(V) (T, error), v *V, path ...string) *T {
	if v == nil {
		return nil
	}
	parsed := check(c, parse, *v, path...)
	return &parsed
}

// changedList is changed for a list.
func changedList[V, T any](c *Checks, parse func(*Checks, []V) []T, v []V) *[]T {
	if v == nil {
		return nil
	}
	parsed := parse(c, v)
	return &parsed
}

// omittable is changed for a value that null takes away: then it is the zero value.
func omittable[V, T any](c *Checks, parse func(V) (T, error), v graphql.Omittable[*V], path ...string) *T {
	if !v.IsSet() {
		return nil
	}
	parsed := given(c, parse, v.Value(), path...)
	return &parsed
}

func name(s string) (string, error) { return commerce.ParseName(s, commerce.MaxName) }

// A rule checks the values of fields. A generated Command uses the most specific one: that of the
// command and the field (productChangeUnitPrice), of the record and the field (employeeName), or of
// the field (email). A string without a rule is a name.

// listedName is a name that employees or products are listed by.
func listedName(s string) (string, error) { return commerce.ParseListedName(s, commerce.MaxName) }

func employeeName(s string) (string, error) { return listedName(s) }

func jobTitle(s string) (string, error) { return listedName(s) }

func category(s string) (string, error) { return listedName(s) }

func email(s string) (string, error) {
	_, err := commerce.ParseEmail(s)
	return s, err
}

func note(s string) (string, error) { return optional(s, commerce.MaxNote) }

func optionalName(s string) (string, error) { return optional(s, commerce.MaxName) }

// optional is a name that may be empty.
func optional(s string, most int) (string, error) {
	if s == "" {
		return "", nil
	}
	return commerce.ParseName(s, most)
}

func quantity(n int32) (int, error) { return commerce.ParseQuantity(int(n)) }

func inventoryLevelQuantity(n int32) (int, error) { return commerce.ParseLevel(int(n)) }

func delta(n int32) (int, error) { return commerce.ParseDelta(int(n)) }

func phoneNumbers(c *Checks, numbers []string) []string {
	if len(numbers) > commerce.MaxPhoneNumbers {
		c.refuse(commerce.Refuse(commerce.Path("phoneNumbers"), "has %d numbers: give at most %d", len(numbers), commerce.MaxPhoneNumbers))
		return nil
	}
	for i, number := range numbers {
		check(c, func(s string) (string, error) { return commerce.ParseName(s, commerce.MaxPhoneNumber) }, number, "phoneNumbers", strconv.Itoa(i))
	}
	return numbers
}

func shippingAddress(c *Checks, in *AddressInput) commerce.Address {
	const at = "shippingAddress"
	return commerce.Address{
		Recipient:   check(c, name, in.Recipient, at, "recipient"),
		Line1:       check(c, name, in.Line1, at, "line1"),
		Line2:       given(c, optionalName, in.Line2, at, "line2"),
		City:        check(c, name, in.City, at, "city"),
		Region:      given(c, optionalName, in.Region, at, "region"),
		PostalCode:  given(c, optionalName, in.PostalCode, at, "postalCode"),
		CountryCode: check(c, commerce.ParseCountry, in.CountryCode, at, "countryCode"),
	}
}

// unitPrice reads a price; without a currency it is in the shop's.
func unitPrice(c *Checks, in *MoneyInput) commerce.Money {
	return money(c, commerce.ParsePrice, in, "unitPrice")
}

// expectedTotal reads the total that an order must have. Prices of other software may have more
// digits than those that callers can set, and so may a total.
func expectedTotal(c *Checks, in *MoneyInput) *commerce.Money {
	if in == nil {
		return nil
	}
	total := money(c, commerce.ParseMoney, in, "expectedTotal")
	return &total
}

// money reads the amount of a field; without a currency it is in the shop's.
func money(c *Checks, parse func(string, commerce.Currency) (commerce.Money, error), in *MoneyInput, field string) commerce.Money {
	currency := c.currency
	if in.CurrencyCode != nil {
		currency = check(c, currencyCode, *in.CurrencyCode, field, "currencyCode")
	}
	return check(c, func(amount string) (commerce.Money, error) { return parse(amount, currency) }, in.Amount, field, "amount")
}

func currencyCode(s commerce.Currency) (commerce.Currency, error) {
	return commerce.ParseCurrency(string(s))
}

// productChangeUnitPrice reads what a product is to cost; without a currency it stays in the
// product's, which is not known here.
func productChangeUnitPrice(c *Checks, in *MoneyInput) *commerce.Price {
	if in == nil {
		return nil
	}
	p := commerce.Price{Amount: in.Amount, Currency: given(c, currencyCode, in.CurrencyCode, "unitPrice", "currencyCode")}
	if p.Currency != "" {
		unitPrice(c, in)
	}
	return &p
}

// expectedVersion is the version that a record must have.
func expectedVersion(_ *Checks, v *int32) *int {
	if v == nil {
		return nil
	}
	n := int(*v)
	return &n
}

// Command checks the input and makes a commerce.AccountRepChange of it.
func (in AssignAccountRepInput) Command(c *Checks) commerce.AccountRepChange {
	if !in.EmployeeID.IsSet() {
		// A variable that somebody forgot must not take the rep away.
		c.refuse(commerce.Refuse(commerce.Path("employeeId"), "is missing: give an id, or null for nobody"))
	}
	return commerce.AccountRepChange{
		CustomerID:      check(c, commerce.ParseID[commerce.CustomerID], in.CustomerID, "customerId"),
		EmployeeID:      given(c, commerce.ParseID[commerce.EmployeeID], in.EmployeeID.Value(), "employeeId"),
		ExpectedVersion: expectedVersion(c, in.ExpectedVersion),
	}
}

// Command checks the input and makes a commerce.NewOrder of it.
func (in PlaceOrderInput) Command(c *Checks) commerce.NewOrder {
	order := commerce.NewOrder{
		CustomerID:    check(c, commerce.ParseID[commerce.CustomerID], in.CustomerID, "customerId"),
		Lines:         orderLines(c, in.Items),
		ExpectedTotal: expectedTotal(c, in.ExpectedTotal),
	}
	if in.ShippingAddress != nil {
		a := shippingAddress(c, in.ShippingAddress)
		order.ShippingAddress = &a
	}
	return order
}

// Lines checks the input and returns the lines that it has. Their products are at most
// commerce.MaxLines.
//
// Errors: commerce.Refusals of InvalidInput and TooManyLines.
func (in QuoteInput) Lines() ([]commerce.OrderLine, error) {
	c := NewChecks("")
	lines := orderLines(c, in.Items)
	if err := c.Err(); err != nil {
		return nil, err
	}
	if _, err := commerce.Merged(lines); err != nil {
		return nil, err
	}
	return lines, nil
}

// Quote returns the quote of the lines, or of none where the input is wrong. price quotes lines.
func (in QuoteInput) Quote(ctx context.Context, price func(context.Context, []commerce.OrderLine) (*commerce.Quote, error)) (*commerce.Quote, error) {
	lines, err := in.Lines()
	if err != nil {
		return new(commerce.RefusedQuote(commerce.RefusalsOf(err))), nil
	}
	return price(ctx, lines)
}

func orderLines(c *Checks, items []*OrderLineInput) []commerce.OrderLine {
	if len(items) > maxLinesGiven {
		c.refuse(commerce.TooLong(commerce.Path("items"), len(items), commerce.MaxLines))
		return nil
	}
	lines := make([]commerce.OrderLine, len(items))
	for i, item := range items {
		lines[i] = orderLine(c, item, strconv.Itoa(i))
	}
	return lines
}

func orderLine(c *Checks, in *OrderLineInput, at string) commerce.OrderLine {
	return commerce.OrderLine{
		SKU:      check(c, commerce.ParseID[commerce.SKU], in.Sku, "items", at, "sku"),
		Quantity: check(c, quantity, in.Quantity, "items", at, "quantity"),
	}
}

// maxLinesGiven is how many lines are looked at one by one: more cannot be an order, however many
// are of one product.
const maxLinesGiven = 10 * commerce.MaxLines

func move(c *Checks, to commerce.Status, id string, remark *string, expected *int32) commerce.OrderMove {
	return commerce.OrderMove{
		OrderID:         check(c, commerce.ParseOrderID, id, "orderId"),
		To:              to,
		Note:            given(c, note, remark, "note"),
		ExpectedVersion: expectedVersion(c, expected),
	}
}

// Command checks the input and makes a commerce.OrderMove of it.
func (in ConfirmOrderInput) Command(c *Checks) commerce.OrderMove {
	return move(c, commerce.Confirmed, in.OrderID, in.Note, in.ExpectedVersion)
}

// Command checks the input and makes a commerce.OrderMove of it.
func (in DeliverOrderInput) Command(c *Checks) commerce.OrderMove {
	return move(c, commerce.Delivered, in.OrderID, in.Note, in.ExpectedVersion)
}

// Command checks the input and makes a commerce.OrderMove of it.
func (in CancelOrderInput) Command(c *Checks) commerce.OrderMove {
	return move(c, commerce.Cancelled, in.OrderID, in.Note, in.ExpectedVersion)
}

// Command checks the input and makes a commerce.OrderMove of it.
func (in ShipOrderInput) Command(c *Checks) commerce.OrderMove {
	m := move(c, commerce.Shipped, in.OrderID, in.Note, in.ExpectedVersion)
	m.WarehouseID = check(c, commerce.ParseID[commerce.WarehouseID], in.WarehouseID, "warehouseId")
	m.TrackingNumber = given(c, optionalName, in.TrackingNumber, "trackingNumber")
	m.WithoutAddress = in.WithoutAddress
	m.Carrier = given(c, optionalName, in.Carrier, "carrier")
	return m
}

// Command checks the input and makes a commerce.OrderItemChange of it.
func (in RemoveOrderItemInput) Command(c *Checks) commerce.OrderItemChange {
	return commerce.OrderItemChange{
		OrderID:         check(c, commerce.ParseOrderID, in.OrderID, "orderId"),
		SKU:             check(c, commerce.ParseID[commerce.SKU], in.Sku, "sku"),
		ExpectedVersion: expectedVersion(c, in.ExpectedVersion),
	}
}
