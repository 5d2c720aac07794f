package table

import (
	"fmt"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// describeUnnamed is Describe for messages that end in a log: see model.Keys.Unnamed.
func describeUnnamed(ks []model.Keys) string {
	texts := make([]string, len(ks))
	for i, k := range ks {
		texts[i] = k.Unnamed()
	}
	return shorten(texts)
}

// Describe names the keys of a batch for people: a few of them, and how many more.
func Describe(ks []model.Keys) string {
	texts := make([]string, len(ks))
	for i, k := range ks {
		texts[i] = k.PK + " " + k.SK
	}
	return shorten(texts)
}

// shorten is the first few of a list, and how many more there are.
func shorten(texts []string) string {
	const shown = 3
	if more := len(texts) - shown; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(texts[:shown], ", "), more)
	}
	return strings.Join(texts, ", ")
}
