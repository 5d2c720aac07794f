package attr

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// DynamoDB's limits for numbers. A number has at most 38 significant digits. Its absolute value is
// either 0 or between 1E-130 and 9.99…E+125.
const (
	maxDigits    = 38
	maxMagnitude = 126
	minMagnitude = -129
	// maxExponent limits the exponents that readDecimal returns, so that calculations with them
	// cannot overflow.
	maxExponent = 1 << 30
)

// decimal is the number 0.digits × 10^magnitude. For 12.5, digits is "125" and magnitude is 2.
// digits has no zeros at its beginning or end. For the number zero, digits is empty.
type decimal struct {
	negative  bool
	digits    string
	magnitude int
	// If the number is 0, zeroMagnitude replaces magnitude, because DynamoDB also limits the
	// exponent of 0. For 0E125, zeroMagnitude is 126.
	zeroMagnitude int
}

// errNotANumber is returned for text that is not a number.
var errNotANumber = errors.New("not a number")

// readDecimal parses a number in decimal or scientific notation. It does not check DynamoDB's
// limits.
func readDecimal(text string) (decimal, error) {
	var d decimal
	s := text
	if s != "" && (s[0] == '-' || s[0] == '+') {
		d.negative, s = s[0] == '-', s[1:]
	}
	exponent := 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		long, err := strconv.ParseInt(s[i+1:], 10, 64)
		if err != nil {
			return d, errNotANumber
		}
		exponent = int(min(max(long, -maxExponent), maxExponent))
		s = s[:i]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return d, errNotANumber
	}
	d.digits, d.magnitude = digits, len(whole)+exponent
	if strings.Trim(digits, "0") == "" {
		// Keep the exponent, because DynamoDB limits it even if the number is 0.
		return decimal{zeroMagnitude: exponent - len(fraction) + 1}, nil
	}
	return d.trimmed(), nil
}

// trimmed returns the number without zeros at the beginning and end of its digits.
func (d decimal) trimmed() decimal {
	significant := strings.TrimLeft(d.digits, "0")
	d.magnitude -= len(d.digits) - len(significant)
	d.digits = strings.TrimRight(significant, "0")
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// DynamoDB's messages about numbers that exceed the limits.
const (
	overflowMessage  = "Number overflow. Attempting to store a number with magnitude larger than supported range"
	underflowMessage = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)

// checkLimits returns an error with DynamoDB's message if the number exceeds a limit.
func (d decimal) checkLimits() error {
	magnitude := d.magnitude
	if d.digits == "" {
		magnitude = d.zeroMagnitude
	}
	switch {
	case len(d.digits) > maxDigits:
		return errors.New("Attempting to store more than 38 significant digits in a Number")
	case magnitude >= maxExponent:
		return &ValueError{overflowMessage, underflowMessage} // in the older wording, an exponent this large is an underflow
	case magnitude > maxMagnitude:
		return errors.New(overflowMessage)
	case magnitude < minMagnitude:
		return errors.New(underflowMessage)
	}
	return nil
}

// canonicalNumber returns the canonical notation of a number: decimal, without an exponent and
// without unnecessary zeros. If the number is invalid, canonicalNumber returns an error with
// DynamoDB's message.
func canonicalNumber(text string) (string, error) {
	d, err := readDecimal(text)
	if err != nil {
		const message = "The parameter cannot be converted to a numeric value"
		if text == "" {
			return "", &ValueError{message + ": ", message}
		}
		return "", errors.New(message + ": " + text)
	}
	if err := d.checkLimits(); err != nil {
		return "", err
	}
	return d.String(), nil
}

// parseDecimal parses a number that must be in canonical notation.
func parseDecimal(text string) decimal {
	d, _ := readDecimal(text)
	return d
}

// String returns the canonical notation, which has no exponent.
func (d decimal) String() string {
	if d.digits == "" {
		return "0"
	}
	var b strings.Builder
	if d.negative {
		b.WriteByte('-')
	}
	switch n := len(d.digits); {
	case d.magnitude <= 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -d.magnitude))
		b.WriteString(d.digits)
	case d.magnitude >= n:
		b.WriteString(d.digits)
		b.WriteString(strings.Repeat("0", d.magnitude-n))
	default:
		b.WriteString(d.digits[:d.magnitude])
		b.WriteByte('.')
		b.WriteString(d.digits[d.magnitude:])
	}
	return b.String()
}

// sign returns -1 for a negative number, 0 for zero, and 1 for a positive number.
func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// compare returns a negative number if d is less than e, 0 if they are equal, and a positive number
// if d is greater.
func (d decimal) compare(e decimal) int {
	if s, t := d.sign(), e.sign(); s != t {
		return s - t
	}
	order := 0
	if d.magnitude != e.magnitude {
		order = 1
		if d.magnitude < e.magnitude {
			order = -1
		}
	} else {
		order = strings.Compare(d.digits, e.digits)
	}
	return order * d.sign()
}

// size returns the size of the number in bytes, as DynamoDB calculates it. Each number has one
// byte, and a minus sign adds another one. Every two significant digits add one byte. This is
// rounded up separately before and after the decimal point.
func (d decimal) size() int {
	whole := min(max(d.magnitude, 0), len(d.digits))
	n := 1 + (whole+1)/2 + (len(d.digits)-whole+1)/2
	if d.negative {
		n++
	}
	return n
}

// Add returns a + b, or a - b if subtract is true. If the result exceeds a limit, Add returns an
// error with DynamoDB's message.
func Add(a, b Value, subtract bool) (Value, error) {
	d, e := parseDecimal(a.Text), parseDecimal(b.Text)
	scale := max(len(d.digits)-d.magnitude, len(e.digits)-e.magnitude, 0) // the number of digits after the decimal point
	x, y := d.scaled(scale), e.scaled(scale)
	if subtract {
		y.Neg(y)
	}
	x.Add(x, y)
	sum := decimal{negative: x.Sign() < 0, digits: x.Abs(x).String()}
	sum.magnitude = len(sum.digits) - scale
	sum = sum.trimmed()
	return NewNumber(sum.String()), sum.checkLimits()
}

// scaled returns the number multiplied by 10^scale. The product must be an integer.
func (d decimal) scaled(scale int) *big.Int {
	n := new(big.Int)
	if d.digits == "" {
		return n
	}
	n.SetString(d.digits+strings.Repeat("0", scale+d.magnitude-len(d.digits)), 10)
	if d.negative {
		n.Neg(n)
	}
	return n
}

// appendSortableBytes appends an encoding of the number to b. Encoded numbers sort in numerical
// order.
func (d decimal) appendSortableBytes(b []byte) []byte {
	start := len(b) + 1
	b = append(b, byte(1+d.sign()))
	if d.digits == "" {
		return b
	}
	magnitude := d.magnitude + 1000
	b = append(b, byte(magnitude>>8), byte(magnitude))
	b = append(append(b, d.digits...), 0)
	if d.negative {
		for i := start; i < len(b); i++ {
			b[i] = ^b[i]
		}
	}
	return b
}

// AppendSortableBytes appends an encoding of a String, Number or Binary to b. If values have the
// same type, their encodings sort like the values, and no encoding is a prefix of another encoding.
func (v Value) AppendSortableBytes(b []byte) []byte {
	if v.Kind == Number {
		return parseDecimal(v.Text).appendSortableBytes(b)
	}
	return append(AppendSortablePrefix(b, v.Text), 0, 0)
}

// AppendSortablePrefix appends the encoding of prefix to b, without the two zero bytes that end a
// complete encoding. If a string begins with prefix, the encoding of the string begins with the
// appended bytes.
func AppendSortablePrefix(b []byte, prefix string) []byte {
	for i := range len(prefix) {
		if b = append(b, prefix[i]); prefix[i] == 0 {
			b = append(b, 0xFF)
		}
	}
	return b
}
