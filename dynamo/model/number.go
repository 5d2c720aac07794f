package model

import (
	"strconv"
	"strings"
)

// Number is a parsed DynamoDB number. Two Numbers with the same value are equal, even if their
// notation differed, as in 5 and 0.5E1.
type Number struct {
	negative bool
	// digits are the significant digits, without leading and trailing zeros. Zero has no digits.
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

// ParseNumber parses a DynamoDB number. If DynamoDB rejects the text, ParseNumber returns false.
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
		// An exponent of more than 32 bits exceeds DynamoDB's limits, unless the number is zero. For
		// simplicity, ParseNumber also rejects such a zero.
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

// SortableNumber converts a number to a string. The strings sort in the same order as the numbers.
// The parameter text must have no exponent, and no trailing zeros after the decimal point.
func SortableNumber(text string) string {
	text, negative := strings.CutPrefix(text, "-")
	whole, _, _ := strings.Cut(text, ".")
	// Pad the part before the decimal point to 19 digits, the length of the maximum int64.
	text = strings.Repeat("0", max(0, len("9223372036854775807")-len(whole))) + text
	if !negative {
		return text
	}
	// If two numbers are negative, the number with the larger absolute value must sort first. So
	// subtract each digit from 9. The final '~' sorts after the decimal point, so -1.5 sorts before
	// -1.
	return "-" + strings.Map(func(digit rune) rune {
		if digit == '.' {
			return digit
		}
		return '0' + '9' - digit
	}, text) + "~"
}
