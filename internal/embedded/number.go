package embedded

import (
	"math/big"
	"strings"
)

// The limits of a DynamoDB number: significant digits, and digits before the point.
const (
	maxDigits    = 38
	maxMagnitude = 126
)

// sum returns a + b or a - b in DynamoDB's format: exact, in plain digits, without redundant zeros.
// It returns an error if a or b is not a number, or if DynamoDB cannot store the exact result.
func sum(a, b string, minus bool) (string, error) {
	x, err := parseNumber(a)
	if err != nil {
		return "", err
	}
	y, err := parseNumber(b)
	if err != nil {
		return "", err
	}
	if minus {
		y.Neg(y)
	}
	x.Add(x, y)
	places, _ := x.FloatPrec() // decimal numbers have an exact decimal sum
	text := x.FloatString(places)
	digits := strings.TrimPrefix(text, "-")
	whole, _, _ := strings.Cut(digits, ".")
	if len(whole) > maxMagnitude {
		return "", refused("Number overflow. Attempting to store a number with magnitude larger than supported range")
	}
	if len(strings.Trim(strings.Replace(digits, ".", "", 1), "0")) > maxDigits {
		return "", refused("DynamoDB only supports precision up to %d digits", maxDigits)
	}
	return text, nil
}

// parseNumber parses a DynamoDB number. It rejects exponents that make additions slow.
func parseNumber(text string) (*big.Rat, error) {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if strings.Trim(text, "0123456789.+-eE") == "" && len(exponent) <= len("-130") {
		if x, ok := new(big.Rat).SetString(text); ok {
			return x, nil
		}
	}
	return nil, refused("The parameter cannot be converted to a numeric value: %.50q", text)
}
