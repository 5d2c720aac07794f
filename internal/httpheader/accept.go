package httpheader

import (
	"strconv"
	"strings"
)

// SplitElements splits the values of a header that lists alternatives, such as Accept, at each
// comma and drops empty elements. It ignores quotes, because no element that the server supports
// contains a quoted string. See https://www.rfc-editor.org/rfc/rfc9110#section-12.4.
func SplitElements(values []string) []string {
	var elements []string
	for element := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if element = strings.TrimSpace(element); element != "" {
			elements = append(elements, element)
		}
	}
	return elements
}

// Weight returns the weight of an element: the value of its parameter q, or 1 if q is missing.
// parameters is the text after the element's first semicolon.
func Weight(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			if err != nil {
				// The weight of a malformed q is 0, which means "not acceptable".
				return 0
			}
			return q
		}
	}
	return 1
}
