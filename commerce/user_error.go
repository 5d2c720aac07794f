package commerce

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrorCode is the kind of a user error.
type ErrorCode string

// Codes of user errors.
const (
	CodeNotFound             ErrorCode = "NOT_FOUND"
	CodeInvalid              ErrorCode = "INVALID"
	CodeVersionConflict      ErrorCode = "VERSION_CONFLICT"
	CodeInvalidTransition    ErrorCode = "INVALID_TRANSITION"
	CodeInsufficientStock    ErrorCode = "INSUFFICIENT_STOCK"
	CodeEmailTaken           ErrorCode = "EMAIL_TAKEN"
	CodeAlreadyExists        ErrorCode = "ALREADY_EXISTS"
	CodeIdempotencyKeyReused ErrorCode = "IDEMPOTENCY_KEY_REUSED"
	CodeTooManyLines         ErrorCode = "TOO_MANY_LINES"
	CodeAddressMissing       ErrorCode = "ADDRESS_MISSING"
	CodePriceChanged         ErrorCode = "PRICE_CHANGED"
	CodeReservationLimit     ErrorCode = "RESERVATION_LIMIT"
)

// UserError is the reason why a business rule rejects a change. A rejected change writes nothing.
// The server shows the text of the error to clients, so the text suggests a correction.
type UserError interface {
	error
	Code() ErrorCode
}

// UserErrors contains the user errors of one rejected change. It contains at least one error.
type UserErrors []UserError

// Error returns the texts of all user errors, separated by semicolons.
func (r UserErrors) Error() string {
	texts := make([]string, len(r))
	for i, userError := range r {
		texts[i] = userError.Error()
	}
	return strings.Join(texts, "; ")
}

// ErrorDetails holds the fields that all user errors have.
type ErrorDetails struct {
	code ErrorCode
	// Message is a sentence that names the problem and suggests a correction.
	Message string
	// Field is the path of the invalid value in the request, such as "input", "items", "0", "sku". It
	// is nil if the error does not concern a single value.
	Field []string
}

// Error returns the message.
func (r ErrorDetails) Error() string { return r.Message }

// Code returns the kind of the user error.
func (r ErrorDetails) Code() ErrorCode { return r.code }

// newErrorDetails returns the details of a user error. path is the path of the invalid value in the
// request's input.
func newErrorDetails(code ErrorCode, path []string, format string, args ...any) ErrorDetails {
	r := ErrorDetails{code: code, Message: fmt.Sprintf(format, args...)}
	if path != nil {
		r.Field = append([]string{"input"}, path...)
	}
	return r
}

// FieldPath returns its arguments as a slice, for use as the path of a value in a request's input.
func FieldPath(names ...string) []string { return names }

type (
	// NotFound reports that a record does not exist.
	NotFound struct{ ErrorDetails }
	// InvalidInput reports an invalid value.
	InvalidInput struct{ ErrorDetails }
	// VersionConflict reports that a record has changed since the caller read it.
	VersionConflict struct {
		ErrorDetails
		// CurrentVersion is the current version of the record, or 0 if the record does not exist.
		CurrentVersion int
	}
	// InvalidTransition reports that an order cannot change to the requested status, or that its
	// status does not allow an edit.
	InvalidTransition struct {
		ErrorDetails
		// From is the status of the order. To is the requested status, or From for an edit.
		From, To Status
		// Allowed contains the statuses to which the order can change.
		Allowed []Status
	}
	// InsufficientStock reports that fewer units of a product are available than the caller requested.
	InsufficientStock struct {
		ErrorDetails
		SKU SKU
		// Available is the number of units that are available.
		Available int
	}
	// EmailTaken reports that another customer already has the requested email address.
	EmailTaken struct{ ErrorDetails }
	// AlreadyExists reports that a record with the requested ID or unique value already exists.
	AlreadyExists struct{ ErrorDetails }
	// IdempotencyKeyReused reports that the caller has already used the idempotency key for a
	// different request.
	IdempotencyKeyReused struct{ ErrorDetails }
	// TooManyLines reports that an order has more than MaxLines line items.
	TooManyLines struct {
		ErrorDetails
		Limit int
	}
	// AddressMissing reports that an order cannot be shipped because it has no shipping address.
	AddressMissing struct{ ErrorDetails }
	// ReservationLimit reports that a customer would have too many open orders or reserved units.
	ReservationLimit struct {
		ErrorDetails
		Limit int
	}
	// PriceChanged reports that the current total of an order differs from the total that the caller
	// expected.
	PriceChanged struct {
		ErrorDetails
		CurrentTotal Money
		// Lines are the line items of the order at current prices.
		Lines []QuotedLine
	}
)

// NewNotFound returns the user error for an ID that does not exist. kind is the kind of record that
// the ID belongs to, such as "customer".
func NewNotFound[ID ~string](kind string, id ID, path ...string) NotFound {
	return NotFound{newErrorDetails(CodeNotFound, path, "The %s %s does not exist: check the ID.", kind, id)}
}

// NewNoGuestOrder returns the user error for a customer whose email address no order of a guest has.
func NewNoGuestOrder(id CustomerID) NotFound {
	return NotFound{newErrorDetails(CodeNotFound, nil, "No order of a guest has the email address of customer %s.", id)}
}

// NewInvalidInput returns the user error for an invalid value. Its message is a sentence: the path
// of the value, followed by the formatted text.
func NewInvalidInput(path []string, format string, args ...any) InvalidInput {
	return InvalidInput{newErrorDetails(CodeInvalid, path, "%s %s.", strings.Join(path, "."), fmt.Sprintf(format, args...))}
}

// NewVersionConflict returns the user error for a record that does not have the expected version.
// kind is the kind of record, such as "customer".
func NewVersionConflict(kind string, expected, current int) VersionConflict {
	return VersionConflict{newErrorDetails(CodeVersionConflict, FieldPath("expectedVersion"), "The %s has version %d, not the expected version %d: read the record again and decide whether to repeat the change.", kind, current, expected), current}
}

// NewInvalidTransition returns the user error for an order that cannot change from its status to
// the requested status.
func NewInvalidTransition(from, to Status) InvalidTransition {
	allowed := from.Transitions()
	hint := "this status is final"
	if len(allowed) > 0 {
		hint = "the order can become " + enumNames(allowed...)
	}
	return InvalidTransition{newErrorDetails(CodeInvalidTransition, FieldPath("orderId"), "The order is %s and cannot become %s: %s.", enumNames(from), enumNames(to), hint), from, to, allowed}
}

// NewHeld returns the user error for an order that cannot change to the requested status while it
// is on hold.
func NewHeld(o Order, to Status) InvalidTransition {
	allowed := slices.DeleteFunc(o.AvailableTransitions(), func(s Status) bool { return s == to })
	return InvalidTransition{newErrorDetails(CodeInvalidTransition, FieldPath("orderId"), "The order is on hold and cannot become %s: the shop must release it first.", enumNames(to)), o.Status, to, allowed}
}

// NewHasFulfillments returns the user error for an order whose status changes only with its
// fulfillments.
func NewHasFulfillments(from, to Status) InvalidTransition {
	hint := "cancel them first with cancelFulfillment"
	switch to {
	case Shipped:
		hint = "ship the rest with createFulfillment"
	case Delivered:
		hint = "use deliverFulfillment for each of them"
	case Pending, Confirmed, Cancelled:
	}
	return InvalidTransition{newErrorDetails(CodeInvalidTransition, FieldPath("orderId"), "The order has fulfillments and cannot become %s like this: %s.", enumNames(to), hint), from, to, nil}
}

// NewLateEdit returns the user error for an edit that the status of the order no longer allows. part
// is the part of the order that cannot change, and editable contains the statuses in which it can.
func NewLateEdit(status Status, part string, editable ...Status) InvalidTransition {
	return InvalidTransition{newErrorDetails(CodeInvalidTransition, FieldPath("orderId"), "The order is %s, so its %s cannot change: only an order that is %s can be edited like this.", enumNames(status), part, enumNames(editable...)), status, status, status.Transitions()}
}

// NewEarlyReturn returns the user error for a return of an order with the given status, which was
// not shipped.
func NewEarlyReturn(status Status) InvalidTransition {
	return InvalidTransition{newErrorDetails(CodeInvalidTransition, FieldPath("orderId"), "The order is %s, so nothing can be returned: only pieces of an order that is %s can be returned.", enumNames(status), enumNames(Shipped, Delivered)), status, status, status.Transitions()}
}

// NewLateReturn returns the user error for a return that cannot change to the requested status.
// order is the status of the order.
func NewLateReturn(order Status, from, to ReturnStatus) InvalidTransition {
	return InvalidTransition{newErrorDetails(CodeInvalidTransition, FieldPath("returnId"), "The return is %s and cannot become %s: read its current status.", enumNames(from), enumNames(to)), order, order, order.Transitions()}
}

// NewInsufficientStock returns the user error for a quantity that exceeds the available quantity.
// The message ends with scope, which can be empty or a phrase such as " in warehouse w".
func NewInsufficientStock(path []string, sku SKU, requested, available int, scope string) InsufficientStock {
	available = max(0, available)
	return InsufficientStock{newErrorDetails(CodeInsufficientStock, path, "Product %s: the requested quantity is %d, but the available quantity is only %d%s.", sku, requested, available, scope), sku, available}
}

// NewEmailTaken returns the user error for an email address that another customer already has.
func NewEmailTaken() EmailTaken {
	return EmailTaken{newErrorDetails(CodeEmailTaken, FieldPath("email"), "Another customer has this email address: use a different one.")}
}

// NewAlreadyExists returns the user error for an ID that is already in use. kind is the kind of
// record, such as "customer".
func NewAlreadyExists[ID ~string](kind string, id ID, path ...string) AlreadyExists {
	return AlreadyExists{newErrorDetails(CodeAlreadyExists, path, "The %s %s already exists: use a different ID.", kind, id)}
}

// NewValueTaken returns the user error for a value that another record already has, although each
// record must have its own. kind is the kind of record, such as "order".
func NewValueTaken(kind, field, value string) AlreadyExists {
	return AlreadyExists{newErrorDetails(CodeAlreadyExists, FieldPath(field), "Another %s has the %s %s: use a different value.", kind, field, value)}
}

// NewPaymentExists returns the user error for a provider's ID of a payment that was recorded with
// other values, or for another order.
func NewPaymentExists(provider, reference string) AlreadyExists {
	return AlreadyExists{newErrorDetails(CodeAlreadyExists, FieldPath("reference"), "Provider %s already has a payment %s with another order, kind or amount: check the values, or use the reference of the new payment.", provider, reference)}
}

// NewIdempotencyKeyReused returns the user error for an idempotency key that was used for a
// different request.
func NewIdempotencyKeyReused() IdempotencyKeyReused {
	return IdempotencyKeyReused{newErrorDetails(CodeIdempotencyKeyReused, FieldPath("idempotencyKey"), "This idempotency key was used for a different request in the last 24 hours: use a new key for each request.")}
}

// NewTooManyLines returns the user error for an order that has more line items than limit.
func NewTooManyLines(path []string, lines, limit int) TooManyLines {
	return tooManyLines(path, strconv.Itoa(lines), limit)
}

// NewTooManyLinesOver returns the user error for an order with an unknown number of line items. The
// number is greater than lines. An order can have at most limit line items.
func NewTooManyLinesOver(path []string, lines, limit int) TooManyLines {
	return tooManyLines(path, fmt.Sprintf("more than %d", lines), limit)
}

// NewTooManyParcelLines returns the user error for a parcel with more line items than one
// transaction can ship.
func NewTooManyParcelLines(path []string, lines, limit int) TooManyLines {
	return TooManyLines{newErrorDetails(CodeTooManyLines, path, "The parcel has %d line items, but only %d fit into one transaction: ship the others with createFulfillment as a further parcel.", lines, limit), limit}
}

func tooManyLines(path []string, lines string, limit int) TooManyLines {
	return TooManyLines{newErrorDetails(CodeTooManyLines, path, "The order has %s line items, but at most %d are allowed: split the order into several orders.", lines, limit), limit}
}

// NewAddressMissing returns the user error for shipping an order that has no shipping address.
func NewAddressMissing() AddressMissing {
	return AddressMissing{newErrorDetails(CodeAddressMissing, FieldPath("orderId"), "The order has no shipping address: set an address with updateShippingAddress, or ship the order with withoutAddress: true.")}
}

// NewReservationLimit returns the user error for a change after which a customer's open orders would
// exceed a limit. counted names what is limited, such as "reserved units".
func NewReservationLimit(path []string, counted string, would, limit int) ReservationLimit {
	return ReservationLimit{newErrorDetails(CodeReservationLimit, path, "The customer would have %d %s, and the limit is %d: cancel orders, wait until orders are shipped, or ask the shop to place the order.", would, counted, limit), limit}
}

// NewUnexpectedPrice returns the user error for units that are added to a line item without an
// expected total, although the price of the product has changed.
func NewUnexpectedPrice(sku SKU, price, total Money, lines []QuotedLine) PriceChanged {
	return PriceChanged{newErrorDetails(CodePriceChanged, FieldPath("expectedTotal"), "Product %s now costs %s %s, and this price would apply to all its units in the order: to accept it, send the change again with the new total %s %s as expectedTotal.",
		sku, price.Decimal(), price.Currency, total.Decimal(), total.Currency), total, lines}
}

// NewAddressIncomplete returns the user error for shipping an order whose stored address lacks a
// required field, or has a field that cannot be read.
func NewAddressIncomplete(field string) AddressMissing {
	problem := "has a value that cannot be read"
	if field != "" {
		problem = "has no " + field
	}
	return AddressMissing{newErrorDetails(CodeAddressMissing, FieldPath("orderId"), "The order's shipping address %s: set an address with updateShippingAddress, or ship the order with withoutAddress: true.", problem)}
}

// NewMalformedRecord returns the user error for a change that needs a malformed record.
func NewMalformedRecord() InvalidInput {
	return InvalidInput{newErrorDetails(CodeInvalid, nil, "A stored record that this change needs is malformed: run `ordergraph check`, repair the record that it names, and try again.")}
}

// NewPriceChanged returns the user error for an order whose total differs from the expected total.
func NewPriceChanged(expected, current Money, lines []QuotedLine) PriceChanged {
	return PriceChanged{newErrorDetails(CodePriceChanged, FieldPath("expectedTotal"), "The total is now %s %s, not %s %s: to accept the new total, send the mutation again with the new total as expectedTotal.",
		current.Decimal(), current.Currency, expected.Decimal(), expected.Currency), current, lines}
}

// IsUserError reports whether an error is or wraps a user error.
func IsUserError(err error) bool { return UserErrorsOf(err) != nil }

// UserErrorsOf returns the user errors that err is or wraps. It returns nil if there are none.
func UserErrorsOf(err error) UserErrors {
	if list, ok := errors.AsType[UserErrors](err); ok {
		return list
	}
	if userError, ok := errors.AsType[UserError](err); ok {
		return UserErrors{userError}
	}
	return nil
}
