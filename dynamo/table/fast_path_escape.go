package table

import "strconv"

// decodeUnicodeEscape decodes the escape sequence \uXXXX at the beginning of text.
func decodeUnicodeEscape(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
