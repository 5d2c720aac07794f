package commerce

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// FulfillmentStatus is the status of a fulfillment, in lower case, such as "shipped".
type FulfillmentStatus string

// Statuses of fulfillments.
const (
	FulfillmentShipped   FulfillmentStatus = "shipped"
	FulfillmentDelivered FulfillmentStatus = "delivered"
	// FulfillmentCancelled means that the pieces are in the stock of the warehouse again.
	FulfillmentCancelled FulfillmentStatus = "cancelled"
)

// ParseFulfillmentStatus validates s and returns it as a status of a fulfillment.
//
// It returns an InvalidError if s is not such a status.
func ParseFulfillmentStatus(s string) (FulfillmentStatus, error) {
	switch status := FulfillmentStatus(s); status {
	case FulfillmentShipped, FulfillmentDelivered, FulfillmentCancelled:
		return status, nil
	}
	return "", NewInvalidError("is %q, which is not a status of a fulfillment", s)
}

// MaxTrackingURL is the maximum size in bytes of the URL where a parcel is tracked.
const MaxTrackingURL = 1000

// FulfillmentLine is a number of pieces of a product.
type FulfillmentLine struct {
	SKU      SKU
	Quantity int
}

// Fulfillment is a parcel with pieces of an order, which one warehouse has shipped.
type Fulfillment struct {
	ID      FulfillmentID
	OrderID OrderID
	// Lines are sorted by SKU, with one line for each product.
	Lines       []FulfillmentLine
	WarehouseID WarehouseID
	// Each of these texts can be empty.
	Carrier, TrackingNumber, TrackingURL string
	Status                               FulfillmentStatus
	CreatedAt, UpdatedAt                 time.Time
	// Actor is the name of the principal that created the fulfillment.
	Actor string
}

// Pieces returns the number of pieces.
func (f Fulfillment) Pieces() (n int) {
	for _, line := range f.Lines {
		n += line.Quantity
	}
	return n
}

// WithStatus returns a copy of the fulfillment with another status.
//
// It returns InvalidInput unless the fulfillment is under way.
func (f Fulfillment) WithStatus(to FulfillmentStatus) (Fulfillment, error) {
	if f.Status != FulfillmentShipped {
		return Fulfillment{}, NewInvalidInput(FieldPath("fulfillmentId"), "names a fulfillment that is %s, so it cannot become %s", enumNames(f.Status), enumNames(to))
	}
	f.Status = to
	return f, nil
}

// FulfillmentTotals adds up the fulfillments of an order that are not cancelled.
type FulfillmentTotals struct {
	// Count is the number of fulfillments, and Undelivered is the number of those that are under way.
	Count, Undelivered int
	// Shipped contains the shipped pieces of each product, sorted by SKU.
	Shipped []FulfillmentLine
}

// FulfillmentState is how much of an order has been shipped.
type FulfillmentState string

// States of fulfillment.
const (
	StateUnfulfilled        FulfillmentState = "unfulfilled"
	StatePartiallyFulfilled FulfillmentState = "partially_fulfilled"
	StateFulfilled          FulfillmentState = "fulfilled"
)

// FulfillmentState returns how much of the order has been shipped.
func (o Order) FulfillmentState() FulfillmentState {
	switch {
	case o.Status == Shipped || o.Status == Delivered:
		return StateFulfilled
	case o.Fulfilled != nil:
		return StatePartiallyFulfilled
	}
	return StateUnfulfilled
}

// ShippedIn returns the number of pieces of the line item that have been shipped. o is the order with the
// line item, or nil.
func (i LineItem) ShippedIn(o *Order) int {
	switch {
	case o == nil:
		return 0
	case o.Fulfilled != nil:
		return o.shipped(i.SKU)
	case o.Status == Shipped || o.Status == Delivered:
		return i.Quantity
	}
	return 0
}

// ShippedLines returns the pieces of each product in the order's fulfillments.
func (o Order) ShippedLines() []FulfillmentLine {
	if o.Fulfilled == nil {
		return nil
	}
	return o.Fulfilled.Shipped
}

// shipped returns the number of pieces of a product in the order's fulfillments.
func (o Order) shipped(sku SKU) int {
	for _, line := range o.ShippedLines() {
		if line.SKU == sku {
			return line.Quantity
		}
	}
	return 0
}

// WithFulfillment returns the lines of a new fulfillment, and a copy of the order with its status after
// the fulfillment: SHIPPED if no piece is open any more. pieces are the ordered pieces of each product. It
// does not change o.Fulfilled.
//
// Errors: InvalidTransition, AddressMissing, NotFound, InvalidInput.
func (o Order) WithFulfillment(c FulfillmentRequest, pieces []FulfillmentLine) (Order, []FulfillmentLine, error) {
	if o.Status != Confirmed {
		return Order{}, nil, NewInvalidTransition(o.Status, Shipped)
	}
	shipped, err := o.withStatus(OrderStatusChange{To: Shipped, WithoutAddress: c.WithoutAddress}, false)
	if err != nil {
		return Order{}, nil, err
	}
	open, left := map[SKU]int{}, 0
	for _, piece := range pieces {
		open[piece.SKU] = piece.Quantity - o.shipped(piece.SKU)
		left += open[piece.SKU]
	}
	taken := map[SKU]int{}
	for i, line := range c.Lines {
		n, ordered := open[line.SKU]
		if !ordered {
			return Order{}, nil, NotFound{newErrorDetails(CodeNotFound, FieldPath("lines", strconv.Itoa(i), "sku"), "Product %s is not in the order.", line.SKU)}
		}
		if taken[line.SKU] += line.Quantity; taken[line.SKU] > n {
			return Order{}, nil, NewInvalidInput(FieldPath("lines", strconv.Itoa(i), "quantity"), "is too high: only %s of product %s can still be shipped", countPieces(n), line.SKU)
		}
	}
	if c.Lines == nil {
		taken = open
	}
	var lines []FulfillmentLine
	for sku, n := range taken {
		if n > 0 {
			lines = append(lines, FulfillmentLine{sku, n})
			left -= n
		}
	}
	slices.SortFunc(lines, func(a, b FulfillmentLine) int { return cmp.Compare(a.SKU, b.SKU) })
	if left <= 0 {
		o = shipped
	}
	return o, lines, nil
}
