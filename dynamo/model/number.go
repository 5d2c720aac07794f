package model

import (
	"strconv"
	"strings"
)

// number is a number of DynamoDB's as what it is worth, however it is spelled: 5, 5.0 and 0.5E1 are
// the same. Two of the same worth are equal. A decimal of the domain would not do: DynamoDB's have
// up to 38 digits.
type number struct {
	negative bool
	// digits are the significant ones, without zeros at either end; empty for zero.
	digits string
	// exponent is the power of ten of the last digit.
	exponent int
}

// DynamoDB's limits for numbers:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
const (
	maxDigits    = 38
	minMagnitude = -130
	maxMagnitude = 125
)

// parseNumber takes a number apart; it is false for what DynamoDB takes for none.
func parseNumber(text string) (number, bool) {
	var n number
	rest := text
	switch {
	case strings.HasPrefix(rest, "-"):
		n.negative, rest = true, rest[1:]
	case strings.HasPrefix(rest, "+"):
		rest = rest[1:]
	}
	mantissa := rest
	if e := strings.IndexAny(rest, "eE"); e >= 0 {
		mantissa = rest[:e]
		// A number so far out that its exponent does not fit would be out of the limits anyway, or
		// a strange zero.
		exponent, err := strconv.ParseInt(rest[e+1:], 10, 32)
		if err != nil {
			return number{}, false
		}
		n.exponent = int(exponent)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	n.digits = whole + fraction
	if n.digits == "" || strings.Trim(n.digits, "0123456789") != "" {
		return number{}, false
	}
	n.exponent -= len(fraction)
	n.digits = strings.TrimLeft(n.digits, "0")
	significant := strings.TrimRight(n.digits, "0")
	n.exponent += len(n.digits) - len(significant)
	n.digits = significant
	if n.digits == "" {
		return number{}, true
	}
	magnitude := n.exponent + len(n.digits) - 1
	if len(n.digits) > maxDigits || magnitude < minMagnitude || magnitude > maxMagnitude {
		return number{}, false
	}
	return n, true
}
