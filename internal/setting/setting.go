// Package setting declares settings. A setting is one row in a table; reading, defaults, error
// messages, help and documentation derive from the row. The package imports only the standard
// library.
package setting

import (
	"fmt"
	"math"
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

// Code formats an error code for Setting.Exceeded.
func Code(code string) string { return "`" + code + "`" }

// Read sets the variable to what text says, or to its default if text is empty.
//
// Errors: one that names the setting and says what to change.
func (s Setting) Read(text string) error {
	if text == "" {
		text = s.Default
	}
	if text == "" {
		return nil
	}
	if err := s.parse(text); err != nil {
		return fmt.Errorf("%s %w", s.Name, err)
	}
	return nil
}

// FillDefaults sets the variables that are zero to their defaults. It panics if a row has a default
// that the row does not accept.
func FillDefaults(settings []Setting) {
	for _, s := range settings {
		if s.isZero() {
			if err := s.Read(""); err != nil {
				panic(err)
			}
		}
	}
}

// Value is a Go variable that holds a setting, its default and its parser.
type Value struct {
	// Default is what an empty text stands for. It is empty if the variable then stays as it is.
	Default string
	parse   func(text string) error
	isZero  func() bool
}

// Parsed is a value that parse accepts. The error of parse continues a sentence that begins with
// the setting's name.
func Parsed[T comparable](to *T, preset string, parse func(text string) (T, error)) Value {
	return Value{
		Default: preset,
		parse: func(text string) error {
			v, err := parse(text)
			if err == nil {
				*to = v
			}
			return err
		},
		isZero: func() bool { var zero T; return *to == zero },
	}
}

// Limit is a number of at least 1.
func Limit(to *int, preset int) Value { return Number(to, strconv.Itoa(preset), 1, math.MaxInt32) }

// Number is a number within bounds, both included.
func Number(to *int, preset string, least, most int) Value {
	return Parsed(to, preset, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, invalid(text, fmt.Sprintf("a number from %d to %d", least, most))
		}
		return n, nil
	})
}

// Timeout is a duration above zero.
func Timeout(to *time.Duration, preset time.Duration) Value {
	return Parsed(to, preset.String(), func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, invalid(text, "a duration such as 10s or 1m30s")
		}
		return d, nil
	})
}

// Leeway is a duration from zero to a bound, which is included.
func Leeway(to *time.Duration, preset, most time.Duration) Value {
	return Parsed(to, preset.String(), func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || d > most {
			return 0, invalid(text, fmt.Sprintf("a duration from 0s to %s, such as %s", most, preset))
		}
		return d, nil
	})
}

// Switch is on or off.
func Switch(to *bool, preset string) Value {
	return Parsed(to, preset, func(text string) (bool, error) {
		if text != "on" && text != "off" {
			return false, invalid(text, "on or off")
		}
		return text == "on", nil
	})
}

// Choice is one of several words.
func Choice(to *string, preset string, words ...string) Value {
	return Parsed(to, preset, func(text string) (string, error) {
		for _, word := range words {
			if text == word {
				return text, nil
			}
		}
		return "", invalid(text, strings.Join(words, " or "))
	})
}

// Text is any text.
func Text(to *string, preset string) Value {
	return Parsed(to, preset, func(text string) (string, error) { return text, nil })
}

// List is a list of items that are separated by commas. The error of check continues a sentence
// that begins with the setting's name.
func List(to *[]string, check func(item string) error) Value {
	return Value{parse: func(text string) error {
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			if err := check(item); err != nil {
				return err
			}
			*to = append(*to, item)
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

func invalid(text, accepted string) error { return fmt.Errorf("is %q: set it to %s", text, accepted) }
