package commerce

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// RefusalCode is what kind of thing the rules refuse.
type RefusalCode string

// The kinds of refusals.
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

// Refusal is why the rules refuse a change. Nothing was written. It is safe to show: its text says
// what to change.
type Refusal interface {
	error
	Code() RefusalCode
}

// Refusals are all that is wrong with one change, at least one.
type Refusals []Refusal

// Error joins the refusals' texts.
func (r Refusals) Error() string {
	texts := make([]string, len(r))
	for i, one := range r {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "; ")
}

// Reason is what all refusals have.
type Reason struct {
	code RefusalCode
	// Message is a sentence that says what to change.
	Message string
	// Field is the path of the value that is wrong in the request, from "input" on; nil where it is
	// no single one.
	Field []string
}

// Error returns the message.
func (r Reason) Error() string { return r.Message }

// Code returns the kind of refusal.
func (r Reason) Code() RefusalCode { return r.code }

// because makes a Reason about the value at that path in the request's input.
func because(code RefusalCode, path []string, format string, args ...any) Reason {
	r := Reason{code: code, Message: fmt.Sprintf(format, args...)}
	if path != nil {
		r.Field = append([]string{"input"}, path...)
	}
	return r
}

// Path is the path of a value in a request's input.
func Path(names ...string) []string { return names }

type (
	// NotFound says that what the request names does not exist.
	NotFound struct{ Reason }
	// InvalidInput says that a value cannot be taken, or not in this situation.
	InvalidInput struct{ Reason }
	// VersionConflict says that the record has changed since the caller read it.
	VersionConflict struct {
		Reason
		// CurrentVersion is the record's version now, 0 where there is no record.
		CurrentVersion int
	}
	// InvalidTransition says that the order cannot move to that status from where it is.
	InvalidTransition struct {
		Reason
		From, To Status
		// Allowed are the statuses that it can move to.
		Allowed []Status
	}
	// InsufficientStock says that there are not as many pieces.
	InsufficientStock struct {
		Reason
		SKU SKU
		// Available is how many pieces can be had.
		Available int
	}
	// EmailTaken says that another customer has this e-mail address.
	EmailTaken struct{ Reason }
	// AlreadyExists says that there is a record with this id.
	AlreadyExists struct{ Reason }
	// IdempotencyKeyReused says that the key came with another request before.
	IdempotencyKeyReused struct{ Reason }
	// TooManyLines says that the order has more than MaxLines lines.
	TooManyLines struct {
		Reason
		Limit int
	}
	// AddressMissing says that the order has no shipping address.
	AddressMissing struct{ Reason }
	// PriceChanged says that the total is not the one that the caller expects.
	PriceChanged struct {
		Reason
		CurrentTotal Money
		// Lines are the lines at today's prices.
		Lines []QuotedLine
	}
)

// Unknown refuses an id that nothing has. what is the kind of record: "customer".
func Unknown[ID ~string](what string, id ID, path ...string) NotFound {
	return NotFound{because(CodeNotFound, path, "There is no %s %s.", what, id)}
}

// Refuse refuses a value; what is wrong completes a sentence that begins with the value's name, as
// an InvalidError's does.
func Refuse(path []string, format string, args ...any) InvalidInput {
	return InvalidInput{because(CodeInvalid, path, "%s %s.", strings.Join(path, "."), fmt.Sprintf(format, args...))}
}

// Conflict refuses a change of a record that has another version than the caller expects.
func Conflict(what string, expected, current int) VersionConflict {
	return VersionConflict{because(CodeVersionConflict, Path("expectedVersion"), "The %s has version %d, not %d: look at it as it is now, and decide again.", what, current, expected), current}
}

// NoTransition refuses to move an order.
func NoTransition(from, to Status) InvalidTransition {
	allowed := from.Transitions()
	hint := "nothing can follow"
	if len(allowed) > 0 {
		names := make([]string, len(allowed))
		for i, s := range allowed {
			names[i] = s.String()
		}
		hint = "it can become " + strings.Join(names, " or ")
	}
	return InvalidTransition{because(CodeInvalidTransition, Path("orderId"), "The order is %s and cannot become %s: %s.", from, to, hint), from, to, allowed}
}

// TooFew refuses to take more pieces than there are. where is empty for the stock that can be sold,
// else " in warehouse w".
func TooFew(path []string, sku SKU, wanted, available int, where string) InsufficientStock {
	available = max(0, available)
	return InsufficientStock{because(CodeInsufficientStock, path, "Pieces of product %s: %d wanted, %d available%s.", sku, wanted, available, where), sku, available}
}

// Taken refuses an e-mail address that another customer has.
func Taken() EmailTaken {
	return EmailTaken{because(CodeEmailTaken, Path("email"), "Another customer has this e-mail address.")}
}

// Exists refuses to make a record with an id that is in use.
func Exists[ID ~string](what string, id ID, path ...string) AlreadyExists {
	return AlreadyExists{because(CodeAlreadyExists, path, "There is a %s %s already.", what, id)}
}

// KeyReused refuses an idempotency key that came with another request.
func KeyReused() IdempotencyKeyReused {
	return IdempotencyKeyReused{because(CodeIdempotencyKeyReused, Path("idempotencyKey"), "This key came with another request in the last 24 hours: take a new key for each new request.")}
}

// TooLong refuses an order of too many lines.
func TooLong(path []string, lines, limit int) TooManyLines {
	return tooManyLines(path, strconv.Itoa(lines), limit)
}

// FarTooLong refuses an order of so many lines that nobody counts them: more than that many.
func FarTooLong(path []string, lines, limit int) TooManyLines {
	return tooManyLines(path, fmt.Sprintf("more than %d", lines), limit)
}

func tooManyLines(path []string, lines string, limit int) TooManyLines {
	return TooManyLines{because(CodeTooManyLines, path, "The order has %s lines, and can have at most %d. Split it into several orders.", lines, limit), limit}
}

// NoAddress refuses to ship an order that has no shipping address.
func NoAddress() AddressMissing {
	return AddressMissing{because(CodeAddressMissing, Path("orderId"), "The order has no shipping address. Set it with updateShippingAddress, or ship with withoutAddress: true.")}
}

// NoSuchTotal refuses an order whose total is not the expected one.
func NoSuchTotal(expected, current Money, lines []QuotedLine) PriceChanged {
	return PriceChanged{because(CodePriceChanged, Path("expectedTotal"), "The total is now %s %s, not %s %s. To accept it, place the order again with the new total.",
		current.Decimal(), current.Currency, expected.Decimal(), expected.Currency), current, lines}
}

// IsRefusal reports whether an error is a refusal, or several.
func IsRefusal(err error) bool { return RefusalsOf(err) != nil }

// RefusalsOf returns the refusals that an error is made of; nil for any other error.
func RefusalsOf(err error) Refusals {
	if several, ok := errors.AsType[Refusals](err); ok {
		return several
	}
	if one, ok := errors.AsType[Refusal](err); ok {
		return Refusals{one}
	}
	return nil
}
