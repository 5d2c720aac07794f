package errcode_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

func TestAllCodesAreListed(t *testing.T) {
	source, err := os.ReadFile("errcode.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, m := range regexp.MustCompile(`(?m)^\t[A-Z]\w+\s+= "([A-Z_]+)"$`).FindAllStringSubmatch(string(source), -1) {
		declared = append(declared, m[1])
	}
	all := errcode.All()
	slices.Sort(all)
	if slices.Sort(declared); len(declared) == 0 || !slices.Equal(all, declared) {
		t.Errorf("All returns\n%q, declared are\n%q", all, declared)
	}
}
