// Package setting declares settings. A setting is one row in a table, and a limit is a field of a
// struct. Reading, defaults, error messages, help and documentation derive from the declaration.
// The package imports only the standard library.
package setting

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one setting: its name, the Go variable that holds it, and its documentation.
type Setting struct {
	// Name is the name of the environment variable.
	Name string
	// Value has the Go variable, the default and the parser.
	Value
	// Meaning describes the setting in Markdown.
	Meaning string
	// Exceeded describes in Markdown the response to a client that exceeds a limit. It is empty for a
	// setting that is not a limit.
	Exceeded string
}

// Section is a table of settings with a title.
type Section struct {
	Title    string
	Settings []Setting
}

// Read parses text and sets the variable, or sets the default if text is empty. The error names the
// setting and the accepted values.
func (s Setting) Read(text string) error {
	if text = cmp.Or(text, s.Default); text == "" {
		return nil
	}
	if err := s.parse(text); err != nil {
		return fmt.Errorf("%s %w", s.Name, err)
	}
	return nil
}

// Value is a Go variable that holds a setting, its default and its parser.
type Value struct {
	// Default is the text that is read instead of an empty one. If Default is empty, the variable
	// keeps its value.
	Default string
	parse   func(text string) error
}

// Parsed returns a Value that parse accepts. The error message for every other text consists of the
// setting's name, the text, "set it to" and accepted.
func Parsed[T any](to *T, preset, accepted string, parse func(text string) (v T, ok bool)) Value {
	return Value{
		Default: preset,
		parse: func(text string) error {
			v, ok := parse(text)
			if !ok {
				return fmt.Errorf("is %q: set it to %s", text, accepted)
			}
			*to = v
			return nil
		},
	}
}

// Limit returns a Value that is a number of at least 1.
func Limit(to *int, preset string) Value { return Number(to, preset, 1, math.MaxInt32) }

// Number returns a Value that is a number from least to most, both included.
func Number(to *int, preset string, least, most int) Value {
	return Parsed(to, preset, fmt.Sprintf("a number from %d to %d", least, most), func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil && n >= least && n <= most
	})
}

// Timeout returns a Value that is a duration above zero.
func Timeout(to *time.Duration, preset string) Value {
	return Parsed(to, preset, "a duration such as 10s or 1m30s", func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d > 0
	})
}

// Leeway returns a Value that is a duration from zero to most, both included.
func Leeway(to *time.Duration, preset, most time.Duration) Value {
	return Parsed(to, preset.String(), fmt.Sprintf("a duration from 0s to %s, such as 30s", most), func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d >= 0 && d <= most
	})
}

// Switch returns a Value that is on or off.
func Switch(to *bool, preset string) Value {
	return Parsed(to, preset, "on or off", func(text string) (bool, bool) { return text == "on", text == "on" || text == "off" })
}

// Choice returns a Value that is one of several words.
func Choice(to *string, preset string, words ...string) Value {
	return Matching(to, preset, strings.Join(words, " or "), func(text string) bool { return slices.Contains(words, text) })
}

// Text returns a Value that is any text.
func Text(to *string, preset string) Value {
	return Matching(to, preset, "", func(string) bool { return true })
}

// Matching returns a Value that is a text that matches accepts.
func Matching(to *string, preset, accepted string, matches func(text string) bool) Value {
	return Parsed(to, preset, accepted, func(text string) (string, bool) { return text, matches(text) })
}

// List returns a Value that is a list of items, separated by commas. The function matches must
// accept each item.
func List(to *[]string, accepted string, matches func(item string) bool) Value {
	return Value{parse: func(text string) error {
		for item := range strings.SplitSeq(text, ",") {
			item = strings.TrimSpace(item)
			switch {
			case item == "":
			case !matches(item):
				return fmt.Errorf("has %q: set it to %s", item, accepted)
			default:
				*to = append(*to, item)
			}
		}
		return nil
	}}
}

// Secret returns a Value that is a secret of at least that number of characters. Error messages do
// not contain the secret.
func Secret(to *[]byte, least int) Value {
	return Value{parse: func(text string) error {
		if len(text) < least {
			return fmt.Errorf("has %d characters: set it to at least %d, for example with `openssl rand -hex 32`", len(text), least)
		}
		*to = []byte(text)
		return nil
	}}
}
