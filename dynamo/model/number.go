package model

import (
	"strconv"
	"strings"
)

// Number is a parsed DynamoDB number. Numbers with the same value, such as 5 and 0.5E1, are equal.
type Number struct {
	negative bool
	// digits are the significant digits, without leading and trailing zeros. They are empty for zero.
	digits string
	// exponent is the power of ten of the last significant digit.
	exponent int
}

// DynamoDB's limits for numbers:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
const (
	maxDigits    = 38
	minMagnitude = -130
	maxMagnitude = 125
)

// ParseNumber parses a DynamoDB number. It returns false for text that DynamoDB rejects.
func ParseNumber(text string) (Number, bool) {
	var n Number
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
		// A number whose exponent exceeds 32 bits exceeds DynamoDB's limits, unless the number is zero.
		// ParseNumber rejects a zero such as 0E9999999999, too.
		exponent, err := strconv.ParseInt(rest[e+1:], 10, 32)
		if err != nil {
			return Number{}, false
		}
		n.exponent = int(exponent)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	n.digits = whole + fraction
	if n.digits == "" || strings.Trim(n.digits, "0123456789") != "" {
		return Number{}, false
	}
	n.exponent -= len(fraction)
	n.digits = strings.TrimLeft(n.digits, "0")
	significant := strings.TrimRight(n.digits, "0")
	n.exponent += len(n.digits) - len(significant)
	n.digits = significant
	if n.digits == "" {
		return Number{}, true
	}
	magnitude := n.exponent + len(n.digits) - 1
	if len(n.digits) > maxDigits || magnitude < minMagnitude || magnitude > maxMagnitude {
		return Number{}, false
	}
	return n, true
}

// SortableNumber converts a number to text for use in keys. The texts sort in numerical order.
//
// The result has 19 digits before the decimal point. For a negative number, each digit is
// subtracted from 9 and '~' is appended. text must not have an exponent or trailing zeros.
func SortableNumber(text string) string {
	text, negative := strings.CutPrefix(text, "-")
	whole, _, _ := strings.Cut(text, ".")
	text = strings.Repeat("0", max(0, len("9223372036854775807")-len(whole))) + text
	if !negative {
		return text
	}
	return "-" + strings.Map(func(digit rune) rune {
		if digit == '.' {
			return digit
		}
		return '0' + '9' - digit
	}, text) + "~"
}
