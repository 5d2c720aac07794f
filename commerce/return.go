package commerce

import (
	"slices"
	"strconv"
	"time"
)

// ReturnStatus is the status of a return, in lower case, such as "requested".
type ReturnStatus string

// Statuses of returns. Rejected and received returns no longer change.
const (
	ReturnRequested ReturnStatus = "requested"
	ReturnApproved  ReturnStatus = "approved"
	ReturnRejected  ReturnStatus = "rejected"
	ReturnReceived  ReturnStatus = "received"
)

// ParseReturnStatus validates s and returns it as the status of a return.
//
// It returns an InvalidError if s is not a status of a return.
func ParseReturnStatus(s string) (ReturnStatus, error) {
	switch r := ReturnStatus(s); r {
	case ReturnRequested, ReturnApproved, ReturnRejected, ReturnReceived:
		return r, nil
	}
	return "", NewInvalidError("is %q, which is not a status of a return", s)
}

// Limits of returns.
const (
	// MaxReturns is the maximum number of returns of an order.
	MaxReturns = 20
	// MaxReturnLines is the maximum number of line items of a return. With more of them, the transaction that
	// puts the pieces back into stock would be too large.
	MaxReturnLines = 40
	// MaxReturnReason is the maximum size in bytes of the reason why pieces are sent back, or why a return is
	// rejected.
	MaxReturnReason = 200
)

// Return is a part of a shipped order that the customer sends back.
type Return struct {
	ID      ReturnID
	OrderID OrderID
	Status  ReturnStatus
	Lines   []ReturnLine
	// Amount is what the customer paid for the pieces: their unit prices times their quantities.
	Amount Money
	// Refunded is the sum of the refunds for the return.
	Refunded Money
	// RejectionReason is empty unless the return was rejected.
	RejectionReason string
	// WarehouseID is the ID of the warehouse that received the return. Before that, it is empty.
	WarehouseID          WarehouseID
	CreatedAt, UpdatedAt time.Time
	// Actor is the name of the principal that requested the return.
	Actor string
}

// ReturnLine is one line of a return: pieces of one product.
type ReturnLine struct {
	SKU      SKU
	Quantity int
	// Reason is why the customer sends the pieces back.
	Reason string
	// Restocked is the number of pieces that were put back into stock. It is nil until the return is received.
	Restocked *int
}

// ReturnedPieces returns how many pieces of a product were received in returns.
func ReturnedPieces(returns []*Return, sku SKU) (pieces int) {
	for _, r := range returns {
		if r.Status == ReturnReceived {
			pieces += r.pieces(sku)
		}
	}
	return pieces
}

// pieces returns the number of pieces of a product in the return.
func (r Return) pieces(sku SKU) (pieces int) {
	for _, line := range r.Lines {
		if line.SKU == sku {
			pieces += line.Quantity
		}
	}
	return pieces
}

// RequestReturn returns a return of pieces of the order. o.Items must contain all line items, and returns all
// returns of the order.
//
// Errors: InvalidTransition if the order was not shipped, UserErrors (InvalidInput) if the order has fewer
// pieces that are not in another return, or too many returns, and ErrMalformed.
func (o Order) RequestReturn(cmd ReturnRequest, returns []*Return) (Return, error) {
	if o.Status != Shipped && o.Status != Delivered {
		return Return{}, NewEarlyReturn(o.Status)
	}
	if o.Erased {
		return Return{}, NewInvalidInput(FieldPath("orderId"), "is an order whose customer was erased, so it gets no further returns")
	}
	if len(returns) >= MaxReturns {
		return Return{}, NewInvalidInput(FieldPath("orderId"), "names an order with %d returns: an order can have no more", len(returns))
	}
	var problems UserErrors
	for i, line := range cmd.Lines {
		left := 0
		for _, item := range o.Items {
			if item.SKU == line.SKU {
				left += item.Quantity
			}
		}
		for _, r := range returns {
			if r.Status != ReturnRejected {
				left -= r.pieces(line.SKU)
			}
		}
		if line.Quantity > left {
			problems = append(problems, NewInvalidInput(FieldPath("lines", strconv.Itoa(i), "quantity"), "is %d, but only %s of %s can be returned", line.Quantity, countPieces(max(0, left)), line.SKU))
		}
	}
	if len(problems) > 0 {
		return Return{}, problems
	}
	r := Return{OrderID: o.ID, Status: ReturnRequested, Lines: cmd.Lines, Refunded: Money{Currency: o.Total.Currency}}
	var err error
	r.Amount, err = o.PaidFor(r)
	return r, err
}

// PaidFor returns what the customer paid for the pieces of a return: their unit prices times their quantities.
// o.Items must contain all line items.
//
// It returns an error that wraps ErrMalformed if the amount has too many digits.
func (o Order) PaidFor(r Return) (Money, error) {
	sum := Money{Currency: o.Total.Currency}
	for _, line := range r.Lines {
		i := slices.IndexFunc(o.Items, func(i LineItem) bool { return i.SKU == line.SKU })
		if i < 0 {
			continue
		}
		item := o.Items[i]
		item.Quantity = line.Quantity
		subtotal, err := item.Subtotal()
		if err == nil {
			sum, err = sum.Plus(subtotal)
		}
		if err != nil {
			return Money{}, err
		}
	}
	return sum, nil
}

// DecideReturn returns a copy of the return r of the order, which is approved, or rejected for a reason.
//
// It returns InvalidTransition if the status of the return does not allow it. It returns InvalidInput if a
// return with a refund would be rejected, because its pieces could then be refunded again in another return.
func (o Order) DecideReturn(r Return, cmd ReturnDecision) (Return, error) {
	if r.Status != ReturnRequested && (r.Status != ReturnApproved || cmd.To == ReturnApproved) {
		return Return{}, NewLateReturn(o.Status, r.Status, cmd.To)
	}
	if cmd.To == ReturnRejected && r.Refunded.Amount.IsPos() {
		return Return{}, NewInvalidInput(FieldPath("returnId"), "names a return with refunds of %s %s, so it cannot be rejected: receive it instead", r.Refunded.Decimal(), r.Refunded.Currency)
	}
	r.Status, r.RejectionReason = cmd.To, cmd.Reason
	return r, nil
}

// ReceiveReturn returns a copy of the return r of the order, whose pieces were received.
//
// Errors: InvalidTransition if the return is not approved, or UserErrors (InvalidInput) if more pieces than the
// return contains should be put back into stock.
func (o Order) ReceiveReturn(r Return, cmd ReturnReceipt) (Return, error) {
	if r.Status != ReturnApproved {
		return Return{}, NewLateReturn(o.Status, r.Status, ReturnReceived)
	}
	var problems UserErrors
	r.Status, r.WarehouseID, r.Lines = ReturnReceived, cmd.WarehouseID, slices.Clone(r.Lines)
	for i := range r.Lines {
		r.Lines[i].Restocked = new(int)
	}
	for i, line := range cmd.Lines {
		path := FieldPath("lines", strconv.Itoa(i), "restocked")
		at := slices.IndexFunc(r.Lines, func(l ReturnLine) bool { return l.SKU == line.SKU })
		if at < 0 || line.Restocked > r.Lines[at].Quantity {
			problems = append(problems, NewInvalidInput(path, "is %d, but the return contains only %s of %s", line.Restocked, countPieces(r.pieces(line.SKU)), line.SKU))
			continue
		}
		*r.Lines[at].Restocked = line.Restocked
	}
	if len(problems) > 0 {
		return Return{}, problems
	}
	return r, nil
}

// WithRefund returns a copy of the return with a further refund.
//
// It returns InvalidInput if the return was rejected, or if the refunds would exceed what the customer paid
// for the pieces, unless overpaid is true.
func (r Return) WithRefund(amount Money, overpaid bool) (Return, error) {
	refunded, err := r.Refunded.Plus(amount)
	switch {
	case err != nil || !refunded.withinPriceDigits():
		return Return{}, NewInvalidInput(FieldPath("amount"), "leads to an amount of more than %d digits", MaxPriceDigits)
	case r.Status == ReturnRejected:
		return Return{}, NewInvalidInput(FieldPath("returnId"), "names a return that is %s", enumNames(r.Status))
	case refunded.Amount.Cmp(r.Amount.Amount) > 0 && !overpaid:
		return Return{}, NewInvalidInput(FieldPath("amount"), "raises the refunds for the return to %s %s, but only %s was paid for its pieces: refund at most the rest, or give a reason", refunded.Decimal(), refunded.Currency, r.Amount.Decimal())
	}
	r.Refunded = refunded
	return r, nil
}

// CheckReturn returns InvalidInput if a payment that is no refund names a return, or if there is a reason, but
// no return.
func (cmd PaymentRecord) CheckReturn() error {
	switch {
	case cmd.ReturnID != "" && cmd.Kind != PaymentRefund:
		return NewInvalidInput(FieldPath("returnId"), "is set, but the payment is no refund: only a refund can be for a return")
	case cmd.ReturnID == "" && cmd.Reason != "":
		return NewInvalidInput(FieldPath("reason"), "is set, but the refund is for no return: only a refund for a return can exceed what was paid for its pieces")
	}
	return nil
}
