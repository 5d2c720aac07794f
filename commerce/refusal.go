package commerce

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// RefusalCode is the kind of a user error.
type RefusalCode string

// Codes of user errors.
const (
	CodeNotFound             RefusalCode = "NOT_FOUND"
	CodeInvalid              RefusalCode = "INVALID"
	CodeVersionConflict      RefusalCode = "VERSION_CONFLICT"
	CodeInvalidTransition    RefusalCode = "INVALID_TRANSITION"
	CodeInsufficientStock    RefusalCode = "INSUFFICIENT_STOCK"
	CodeEmailTaken           RefusalCode = "EMAIL_TAKEN"
	CodeAlreadyExists        RefusalCode = "ALREADY_EXISTS"
	CodeIdempotencyKeyReused RefusalCode = "IDEMPOTENCY_KEY_REUSED"
	CodeTooManyLines         RefusalCode = "TOO_MANY_LINES"
	CodeAddressMissing       RefusalCode = "ADDRESS_MISSING"
	CodePriceChanged         RefusalCode = "PRICE_CHANGED"
)

// Refusal is a user error: the reason why the rules reject a change. Nothing was written. Its text
// is safe to show and suggests a correction.
type Refusal interface {
	error
	Code() RefusalCode
}

// Refusals are the user errors of one change. There is at least one.
type Refusals []Refusal

// Error joins the texts of the user errors.
func (r Refusals) Error() string {
	texts := make([]string, len(r))
	for i, userError := range r {
		texts[i] = userError.Error()
	}
	return strings.Join(texts, "; ")
}

// Reason holds the fields that all user errors have.
type Reason struct {
	code RefusalCode
	// Message is a sentence that names the problem and suggests a correction.
	Message string
	// Field is the path of the invalid value in the request, starting at "input". It is nil if no
	// single value is invalid.
	Field []string
}

// Error returns the message.
func (r Reason) Error() string { return r.Message }

// Code returns the kind of the user error.
func (r Reason) Code() RefusalCode { return r.code }

// because returns the Reason for the value at a path in the request's input.
func because(code RefusalCode, path []string, format string, args ...any) Reason {
	r := Reason{code: code, Message: fmt.Sprintf(format, args...)}
	if path != nil {
		r.Field = append([]string{"input"}, path...)
	}
	return r
}

// Path returns the path of a value in a request's input.
func Path(names ...string) []string { return names }

type (
	// NotFound reports that a record does not exist.
	NotFound struct{ Reason }
	// InvalidInput reports an invalid value.
	InvalidInput struct{ Reason }
	// VersionConflict reports that the record has changed since the caller read it.
	VersionConflict struct {
		Reason
		// CurrentVersion is the current version of the record, or 0 if it does not exist.
		CurrentVersion int
	}
	// InvalidTransition reports that the order cannot change to a status.
	InvalidTransition struct {
		Reason
		From, To Status
		// Allowed are the statuses that the order can change to.
		Allowed []Status
	}
	// InsufficientStock reports that the available quantity of a product is too small.
	InsufficientStock struct {
		Reason
		SKU SKU
		// Available is the available quantity.
		Available int
	}
	// EmailTaken reports that another customer has the email address.
	EmailTaken struct{ Reason }
	// AlreadyExists reports that a record with the ID exists.
	AlreadyExists struct{ Reason }
	// IdempotencyKeyReused reports that the idempotency key was used for a different request.
	IdempotencyKeyReused struct{ Reason }
	// TooManyLines reports that the order has more than MaxLines lines.
	TooManyLines struct {
		Reason
		Limit int
	}
	// AddressMissing reports that the order has no shipping address.
	AddressMissing struct{ Reason }
	// PriceChanged reports that the total differs from the expected total.
	PriceChanged struct {
		Reason
		CurrentTotal Money
		// Lines are the lines at current prices.
		Lines []QuotedLine
	}
)

// Unknown returns the user error for an ID that does not exist. kind is the kind of record, such as
// "customer".
func Unknown[ID ~string](kind string, id ID, path ...string) NotFound {
	return NotFound{because(CodeNotFound, path, "The %s %s does not exist: check the ID.", kind, id)}
}

// Refuse returns the user error for an invalid value. The text completes a sentence that begins
// with the path of the value, like the text of an InvalidError.
func Refuse(path []string, format string, args ...any) InvalidInput {
	return InvalidInput{because(CodeInvalid, path, "%s %s.", strings.Join(path, "."), fmt.Sprintf(format, args...))}
}

// Conflict returns the user error for a record whose version is not the expected one. kind is the
// kind of record.
func Conflict(kind string, expected, current int) VersionConflict {
	return VersionConflict{because(CodeVersionConflict, Path("expectedVersion"), "The %s has version %d, not %d: read it again and decide whether to repeat the change.", kind, current, expected), current}
}

// NoTransition returns the user error for a status that the order cannot change to.
func NoTransition(from, to Status) InvalidTransition {
	allowed := from.Transitions()
	hint := "this status is final"
	if len(allowed) > 0 {
		names := make([]string, len(allowed))
		for i, s := range allowed {
			names[i] = s.String()
		}
		hint = "the order can become " + strings.Join(names, " or ")
	}
	return InvalidTransition{because(CodeInvalidTransition, Path("orderId"), "The order is %s and cannot become %s: %s.", from, to, hint), from, to, allowed}
}

// TooFew returns the user error for a quantity that exceeds the available quantity. scope completes
// the message: " in warehouse w", or empty for the available stock of the product.
func TooFew(path []string, sku SKU, requested, available int, scope string) InsufficientStock {
	available = max(0, available)
	return InsufficientStock{because(CodeInsufficientStock, path, "Product %s: %d requested, but only %d available%s.", sku, requested, available, scope), sku, available}
}

// Taken returns the user error for an email address of another customer.
func Taken() EmailTaken {
	return EmailTaken{because(CodeEmailTaken, Path("email"), "Another customer has this email address: use a different one.")}
}

// Exists returns the user error for an ID that is already in use. kind is the kind of record.
func Exists[ID ~string](kind string, id ID, path ...string) AlreadyExists {
	return AlreadyExists{because(CodeAlreadyExists, path, "The %s %s already exists: use a different ID.", kind, id)}
}

// KeyReused returns the user error for an idempotency key of a different request.
func KeyReused() IdempotencyKeyReused {
	return IdempotencyKeyReused{because(CodeIdempotencyKeyReused, Path("idempotencyKey"), "This idempotency key was used for a different request in the last 24 hours: use a new key for each request.")}
}

// TooLong returns the user error for an order with too many lines.
func TooLong(path []string, lines, limit int) TooManyLines {
	return tooManyLines(path, strconv.Itoa(lines), limit)
}

// FarTooLong returns the user error for an order whose lines were not counted. lines is a lower
// bound of their number.
func FarTooLong(path []string, lines, limit int) TooManyLines {
	return tooManyLines(path, fmt.Sprintf("more than %d", lines), limit)
}

func tooManyLines(path []string, lines string, limit int) TooManyLines {
	return TooManyLines{because(CodeTooManyLines, path, "The order has %s lines, but at most %d are allowed: split it into several orders.", lines, limit), limit}
}

// NoAddress returns the user error for shipping an order without a shipping address.
func NoAddress() AddressMissing {
	return AddressMissing{because(CodeAddressMissing, Path("orderId"), "The order has no shipping address: set one with updateShippingAddress, or ship with withoutAddress: true.")}
}

// NoSuchTotal returns the user error for an order whose total differs from the expected total.
func NoSuchTotal(expected, current Money, lines []QuotedLine) PriceChanged {
	return PriceChanged{because(CodePriceChanged, Path("expectedTotal"), "The total is now %s %s, not %s %s: to accept it, place the order again with the new expectedTotal.",
		current.Decimal(), current.Currency, expected.Decimal(), expected.Currency), current, lines}
}

// IsRefusal reports whether an error is or wraps a user error.
func IsRefusal(err error) bool { return RefusalsOf(err) != nil }

// RefusalsOf returns the user errors that an error is or wraps, and nil for any other error.
func RefusalsOf(err error) Refusals {
	if list, ok := errors.AsType[Refusals](err); ok {
		return list
	}
	if userError, ok := errors.AsType[Refusal](err); ok {
		return Refusals{userError}
	}
	return nil
}
