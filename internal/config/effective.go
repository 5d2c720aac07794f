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

// EffectiveSetting is the value of one setting for display. It contains no secret.
type EffectiveSetting struct {
	// Name is the name of the setting.
	Name string `json:"name"`
	// Value is the value. A secret is masked. Value is empty if the setting has no value.
	Value string `json:"value"`
	// Source is where the value comes from: "default", "environment", "flag", or "file" with the path
	// and the line.
	Source string `json:"source"`
	// SecretFile is the path of the file that contains the secret.
	SecretFile string `json:"secretFile,omitempty"`
	// Problem describes why the value is invalid.
	Problem string `json:"problem,omitempty"`
}

// secretMask is displayed in place of a secret.
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

// InvalidError reports invalid settings.
type InvalidError struct {
	// Problems contains a sentence for each problem. The sentences contain no secrets.
	Problems []string
	// FromFlag reports whether a problem is in the value of a flag.
	FromFlag bool
}

// newInvalidError returns an *InvalidError, or nil if there are no problems.
func newInvalidError(problems []string, fromFlag bool) error {
	if len(problems) == 0 {
		return nil
	}
	return &InvalidError{Problems: problems, FromFlag: fromFlag}
}

// Error returns the problem, or one line for each problem.
func (e *InvalidError) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0]
	}
	return fmt.Sprintf("the settings have %d problems:\n  %s", len(e.Problems), strings.Join(e.Problems, "\n  "))
}
