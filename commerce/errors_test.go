package commerce_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
)

// checkInvalidError fails the test unless err is an InvalidError that contains all parts.
func checkInvalidError(t *testing.T, err error, parts ...string) {
	t.Helper()
	invalid, ok := errors.AsType[*commerce.InvalidError](err)
	if !ok {
		t.Fatalf("error %v, want an InvalidError", err)
	}
	for _, part := range parts {
		if !strings.Contains(invalid.Error(), part) {
			t.Errorf("error %q does not contain %q", invalid, part)
		}
	}
}

func TestForNamesTheArgument(t *testing.T) {
	err := commerce.ErrorWithArgument("id", fmt.Errorf("look up: %w", commerce.NewInvalidError("has %d bytes", 70)))
	if got, want := err.Error(), `argument "id" has 70 bytes`; got != want {
		t.Errorf("For: %q, want %q", got, want)
	}
	if renamed := commerce.ErrorWithArgument("other", err); renamed.Error() != err.Error() {
		t.Errorf("For renamed an argument: %q", renamed)
	}
	if other := commerce.ErrorWithArgument("id", io.EOF); !errors.Is(other, io.EOF) {
		t.Errorf("For changed another error: %v", other)
	}
	if none := commerce.ErrorWithArgument("id", nil); none != nil {
		t.Errorf("For made an error of nil: %v", none)
	}
}
