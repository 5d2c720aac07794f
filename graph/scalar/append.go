package scalar

import (
	"strconv"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// Each Append function appends the JSON form of a scalar to b. The output is the same as the output
// of the scalar's Marshal function.

// AppendID appends an ID.
func AppendID(b []byte, s string) []byte { return AppendString(b, s) }

// AppendDate appends a Date.
func AppendDate(b []byte, d commerce.Date) []byte { return AppendString(b, string(d)) }

// AppendDateTime appends a DateTime.
func AppendDateTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, dateTimeLayout)
	return append(b, '"')
}

// AppendInt appends an Int.
func AppendInt(b []byte, i int) []byte { return strconv.AppendInt(b, int64(i), 10) }

// AppendInt32 appends an Int from an int32.
func AppendInt32(b []byte, i int32) []byte { return strconv.AppendInt(b, int64(i), 10) }

// AppendBoolean appends a Boolean.
func AppendBoolean(b []byte, v bool) []byte { return strconv.AppendBool(b, v) }

// AppendText appends a JSON string. The parameter text is a function that appends the content
// without quotes. The content must not contain characters that JSON requires to be escaped.
func AppendText(b []byte, text func([]byte) []byte) []byte {
	b = append(b, '"')
	b = text(b)
	return append(b, '"')
}

// AppendString appends a JSON string. The output is the same as gqlgen's: only the characters that
// JSON requires to be escaped are escaped, and invalid UTF-8 is copied unchanged.
func AppendString(b []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '\\' && c != '"' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '\t':
			b = append(b, `\t`...)
		case '\r':
			b = append(b, `\r`...)
		case '\n':
			b = append(b, `\n`...)
		case '\\', '"':
			b = append(b, '\\', c)
		default:
			b = append(b, `\u00`...)
			b = append(b, digits[c>>4], digits[c&0xf])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
