// Package accept reads the header fields with which clients say what they accept: lists of elements
// with weights, as Accept and Accept-Encoding are
// (https://www.rfc-editor.org/rfc/rfc9110#section-12.4).
package accept

import (
	"strconv"
	"strings"
)

// List splits the values of a header at their commas, and leaves out what is empty. Quoted commas
// are not looked for: none of the elements that are read here can have one.
func List(values []string) []string {
	var elements []string
	for element := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if element = strings.TrimSpace(element); element != "" {
			elements = append(elements, element)
		}
	}
	return elements
}

// Weight reads the q parameter of an element, whose parameters follow its first semicolon. A
// missing one means 1; one that is no number counts as 0, a refusal.
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
