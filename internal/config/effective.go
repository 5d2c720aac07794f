package config

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/ordergraph/ordergraph/internal/setting"
)

// EffectiveSetting describes the current value of one setting to users. It contains no secret.
type EffectiveSetting struct {
	// Name is the name of the setting.
	Name string `json:"name"`
	// Value is the value of the setting. If the setting is a secret, Value is masked. If the setting
	// is not set and has no default, Value is empty.
	Value string `json:"value"`
	// Source describes where the value comes from: "default", "environment", "flag", or "file"
	// followed by the path and the line number.
	Source string `json:"source"`
	// SecretFile is the path of the file that contains the secret. It is empty if the value does not
	// come from such a file.
	SecretFile string `json:"secretFile,omitempty"`
	// Problem describes why the value is invalid. It is empty if the value is valid.
	Problem string `json:"problem,omitempty"`
}

// secretMask is displayed instead of a secret.
const secretMask = "********"

func newEffectiveSetting(s setting.Setting, f foundText) EffectiveSetting {
	e := EffectiveSetting{Name: s.Name, Source: f.place, SecretFile: f.secretFile, Value: cmp.Or(f.text, s.Default)}
	switch {
	case e.Value == "":
	case s.Secret:
		e.Value = secretMask
	default:
		e.Value = maskURL(e.Value)
	}
	return e
}

// maskURL masks the user information and the query of a URL, because these parts can contain a
// password or a token.
func maskURL(text string) string {
	before, after, isURL := strings.Cut(text, "://")
	if !isURL {
		return text
	}
	if _, err := url.Parse(text); err != nil && !strings.Contains(text, ",") {
		return secretMask
	}
	if i := strings.LastIndex(after, "@"); i >= 0 {
		after = secretMask + after[i:]
	}
	if i := strings.IndexAny(after, "?#"); i >= 0 {
		after = after[:i+1] + secretMask
	}
	return before + "://" + after
}

// WriteEffective writes a line for each setting, with its value and its source. Secrets are masked.
func WriteEffective(w io.Writer, cfg Config) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range cfg.Effective {
		value := cmp.Or(e.Value, "-")
		if e.SecretFile != "" {
			value += " in " + e.SecretFile
		}
		if e.Problem != "" {
			value += " (invalid)"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\n", e.Name, value, e.Source)
	}
	return tab.Flush()
}

// InvalidError is the error for invalid settings.
type InvalidError struct {
	// Problems contains a message for each problem. The messages contain no secrets.
	Problems []string
	// FromFlag reports whether the value of at least one flag is invalid.
	FromFlag bool
}

// newInvalidError returns an *InvalidError. If there are no problems, it returns nil.
func newInvalidError(problems []string, fromFlag bool) error {
	if len(problems) == 0 {
		return nil
	}
	return &InvalidError{Problems: problems, FromFlag: fromFlag}
}

// Error returns a description of all problems. If there are several problems, each problem has its
// own line.
func (e *InvalidError) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0]
	}
	return fmt.Sprintf("the settings have %d problems:\n  %s", len(e.Problems), strings.Join(e.Problems, "\n  "))
}
