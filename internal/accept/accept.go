// Package accept parses lists of weighted elements, as in the header fields Accept and
// Accept-Encoding (https://www.rfc-editor.org/rfc/rfc9110#section-12.4). It imports only the
// standard library.
package accept

import (
	"strconv"
	"strings"
)

// List splits the values of a header field at their commas and drops empty elements. It does not
// recognise quoted commas: no element that the server reads can contain one.
func List(values []string) []string {
	var elements []string
	for element := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if element = strings.TrimSpace(element); element != "" {
			elements = append(elements, element)
		}
	}
	return elements
}

// Weight returns the q parameter of an element. The argument is the part of the element after its
// first semicolon. A missing q means 1. A malformed q counts as 0, which refuses the element.
func Weight(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0
			}
			return q
		}
	}
	return 1
}
