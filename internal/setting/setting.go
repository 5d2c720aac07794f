// Package setting declares settings. A setting is one row in a table, a limit is a field of a
// struct; reading, defaults, error messages, help and documentation derive from it. The package
// imports only the standard library.
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

// Setting is one row: a setting's name, the Go variable that holds it, and its documentation.
type Setting struct {
	// Name is the name of the environment variable.
	Name string
	// Value has the Go variable, the default and the accepted texts.
	Value
	// Meaning describes the setting in Markdown.
	Meaning string
	// Exceeded says in Markdown what a client gets beyond a limit. It is empty for settings that
	// are not limits.
	Exceeded string
}

// Section is a table of settings with a title.
type Section struct {
	Title    string
	Settings []Setting
}

// Read sets the variable to what text says, or to its default if text is empty.
//
// Errors: one that names the setting and says what to change.
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
	// Default is what an empty text stands for. It is empty if the variable then stays as it is.
	Default string
	parse   func(text string) error
}

// Parsed is a value that parse reports as good. The name of the setting, "set it to" and accepted
// make up the error message for all others.
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

// Limit is a number of at least 1.
func Limit(to *int, preset string) Value { return Number(to, preset, 1, math.MaxInt32) }

// Number is a number within bounds, both included.
func Number(to *int, preset string, least, most int) Value {
	return Parsed(to, preset, fmt.Sprintf("a number from %d to %d", least, most), func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil && n >= least && n <= most
	})
}

// Timeout is a duration above zero.
func Timeout(to *time.Duration, preset string) Value {
	return Parsed(to, preset, "a duration such as 10s or 1m30s", func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d > 0
	})
}

// Leeway is a duration from zero to a bound, which is included.
func Leeway(to *time.Duration, preset, most time.Duration) Value {
	return Parsed(to, preset.String(), fmt.Sprintf("a duration from 0s to %s, such as 30s", most), func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d >= 0 && d <= most
	})
}

// Switch is on or off.
func Switch(to *bool, preset string) Value {
	return Parsed(to, preset, "on or off", func(text string) (bool, bool) { return text == "on", text == "on" || text == "off" })
}

// Choice is one of several words.
func Choice(to *string, preset string, words ...string) Value {
	return Matching(to, preset, strings.Join(words, " or "), func(text string) bool { return slices.Contains(words, text) })
}

// Text is any text.
func Text(to *string, preset string) Value {
	return Matching(to, preset, "", func(string) bool { return true })
}

// Matching is a text that matches reports as good.
func Matching(to *string, preset, accepted string, matches func(text string) bool) Value {
	return Parsed(to, preset, accepted, func(text string) (string, bool) { return text, matches(text) })
}

// List is a list of items that are separated by commas and that matches reports as good.
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

// Secret is a secret of at least so many characters. Error messages do not show it.
func Secret(to *[]byte, least int) Value {
	return Value{parse: func(text string) error {
		if len(text) < least {
			return fmt.Errorf("has %d characters: give it at least %d, such as `openssl rand -hex 32` makes", len(text), least)
		}
		*to = []byte(text)
		return nil
	}}
}
