// Package setting declares the settings of a program. A limit is declared as a field of a struct,
// and any other setting as a Setting. The parser, the default, the help and the documentation of a
// setting all derive from its declaration. The package imports only the standard library.
package setting

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one setting: its name, the Go variable that holds it, and its documentation.
type Setting struct {
	// Name is the name of the environment variable.
	Name string
	// Value contains the Go variable, the default and the parser.
	Value
	// Meaning describes the setting in Markdown.
	Meaning string
	// Exceeded describes in Markdown the response to a client that exceeds a limit. It is empty for a
	// setting that is not a limit.
	Exceeded string
	// AliasOf is set if the setting is deprecated. It is the name of the setting to use instead.
	AliasOf string
	// EnvironmentOnly reports whether only the environment variable can set the setting. Flags and the
	// configuration file cannot set it, because a library reads the environment variable itself.
	EnvironmentOnly bool
	// FlagName is the name of the flag, if it does not follow from Name.
	FlagName string
}

// prefix is the prefix of environment variables that only this program reads.
const prefix = "ORDERGRAPH_"

// FileSuffix is a suffix of environment variables. Instead of a variable X with a secret, users can
// set the variable X_FILE to the path of a file that contains the secret.
const FileSuffix = "_FILE"

// Flag returns the name of the setting's flag, such as max-body. If the setting has no flag, Flag
// returns an empty string.
func (s Setting) Flag() string {
	switch name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s.Name, prefix)), "_", "-"); {
	case s.AliasOf != "", s.EnvironmentOnly:
		return ""
	case s.FlagName != "":
		return s.FlagName
	case s.Secret:
		// The flag contains a file path, because other users can read flags in the list of processes.
		return name + strings.ToLower(strings.ReplaceAll(FileSuffix, "_", "-"))
	default:
		return name
	}
}

// Variables returns the names of the environment variables that set the setting. A secret has two
// variables: Name, and Name with FileSuffix.
func (s Setting) Variables() []string {
	if s.Secret {
		return []string{s.Name, s.Name + FileSuffix}
	}
	return []string{s.Name}
}

// markdownLink matches a link in Markdown. Its first group is the text of the link.
var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// PlainMeaning returns Meaning without Markdown.
func (s Setting) PlainMeaning() string {
	return strings.ReplaceAll(markdownLink.ReplaceAllString(s.Meaning, "$1"), "`", "")
}

// Section is a table of settings with a title.
type Section struct {
	Title    string
	Settings []Setting
}

// Read parses text and sets the setting's Go variable. If text is empty, Read sets the default. An
// error names the setting and the accepted values.
func (s Setting) Read(text string) error {
	if err := s.Set(text); err != nil {
		return fmt.Errorf("%s %w", s.Name, err)
	}
	return nil
}

// Value contains a setting's Go variable, default and parser.
type Value struct {
	// Default is the text that Set parses if the argument of Set is empty. If Default is also empty,
	// the Go variable keeps its value.
	Default string
	// Secret reports whether the value is a secret, which must not be printed.
	Secret bool
	parse  func(text string) error
}

// Set parses text and sets the Go variable. If text is empty, Set parses Default. An error contains
// the accepted values, but not the name of the setting.
func (v Value) Set(text string) error {
	if text = cmp.Or(text, v.Default); text == "" {
		return nil
	}
	return v.parse(text)
}

// ParsedBy returns a Value with the given parser. The parameter accepted describes the valid texts
// for error messages. If it is `on or off`, an error is `is "x": set it to on or off`.
func ParsedBy[T any](target *T, defaultText, accepted string, parse func(text string) (v T, ok bool)) Value {
	return Value{
		Default: defaultText,
		parse: func(text string) error {
			v, ok := parse(text)
			if !ok {
				return fmt.Errorf("is %q: set it to %s", text, accepted)
			}
			*target = v
			return nil
		},
	}
}

// Limit returns a Value that is a whole number of at least 1.
func Limit(target *int, defaultText string) Value {
	return Number(target, defaultText, 1, math.MaxInt32)
}

// Number returns a Value that is a whole number from minimum to maximum, both included.
func Number(target *int, defaultText string, minimum, maximum int) Value {
	return ParsedBy(target, defaultText, fmt.Sprintf("a number from %d to %d", minimum, maximum), func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil && n >= minimum && n <= maximum
	})
}

// Timeout returns a Value that is a duration above zero.
func Timeout(target *time.Duration, defaultText string) Value {
	return ParsedBy(target, defaultText, "a duration such as 10s or 1m30s", func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d > 0
	})
}

// DurationUpTo returns a Value that is a duration from zero to maximum, both included.
func DurationUpTo(target *time.Duration, defaultValue, maximum time.Duration) Value {
	return ParsedBy(target, defaultValue.String(), fmt.Sprintf("a duration from 0s to %s, such as 30s", maximum), func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d >= 0 && d <= maximum
	})
}

// Switch returns a Value that is on or off.
func Switch(target *bool, defaultText string) Value {
	return ParsedBy(target, defaultText, "on or off", func(text string) (bool, bool) { return text == "on", text == "on" || text == "off" })
}

// Choice returns a Value that is one of several words.
func Choice(target *string, defaultText string, words ...string) Value {
	return TextMatching(target, defaultText, strings.Join(words, " or "), func(text string) bool { return slices.Contains(words, text) })
}

// Text returns a Value that is any text.
func Text(target *string, defaultText string) Value {
	return TextMatching(target, defaultText, "", func(string) bool { return true })
}

// TextMatching returns a Value that is a text. A text is valid if matches(text) is true. The
// parameter accepted describes the valid texts for error messages.
func TextMatching(target *string, defaultText, accepted string, matches func(text string) bool) Value {
	return ParsedBy(target, defaultText, accepted, func(text string) (string, bool) { return text, matches(text) })
}

// List returns a Value that is a list of items, separated by commas. An item is valid if
// matches(item) is true. The parameter accepted describes the valid items for error messages.
func List(target *[]string, accepted string, matches func(item string) bool) Value {
	return Value{parse: func(text string) error {
		for item := range strings.SplitSeq(text, ",") {
			item = strings.TrimSpace(item)
			switch {
			case item == "":
			case !matches(item):
				return fmt.Errorf("has %q: set it to %s", item, accepted)
			default:
				*target = append(*target, item)
			}
		}
		return nil
	}}
}

// Secret returns a Value that is a secret of at least minimum characters. Error messages do not
// contain the secret.
func Secret(target *[]byte, minimum int) Value {
	return Value{Secret: true, parse: func(text string) error {
		const advice = "set it to at least %d random characters, for example the output of `openssl rand -hex 32`"
		if len(text) < minimum {
			return fmt.Errorf("has %d characters: "+advice, len(text), minimum)
		}
		if CanBeGuessed(text) {
			return fmt.Errorf("can be guessed, because it has only %d different characters, without blanks and NUL characters: "+advice, distinctCharacters(text), minimum)
		}
		*target = []byte(text)
		return nil
	}}
}

// CanBeGuessed reports whether a secret has too few different characters.
func CanBeGuessed(secret string) bool { return distinctCharacters(secret) < minDistinct }

// ParsedSecret returns a Value that is a secret with the given parser. The errors of the parser
// complete a sentence that begins with the name of the setting. They must not contain the secret.
func ParsedSecret(parse func(text string) error) Value { return Value{Secret: true, parse: parse} }

// minDistinct is the minimum number of different characters in a secret. A file of NUL characters
// or blanks, as a failed write or a template may leave it, contains no such character.
const minDistinct = 5

// distinctCharacters returns how many different bytes the text contains, without white space and
// NUL.
func distinctCharacters(text string) int {
	seen := map[byte]bool{}
	for i := range len(text) {
		if strings.IndexByte(" \t\r\n\v\f\x00", text[i]) < 0 {
			seen[text[i]] = true
		}
	}
	return len(seen)
}
