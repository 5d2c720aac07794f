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

// describeRange tells people which keys a Query reads.
func describeRange(p *model.AccessPattern, partition, prefix string, b model.Range) string {
	_, sk := p.KeyAttributes()
	from, exclusive := strings.CutSuffix(b.From, model.JustAfter(""))
	relation := " <= "
	if exclusive {
		relation = " < "
	}
	switch {
	case b == model.Range{} && prefix == "":
		return partition
	case b == model.Range{}:
		return partition + " " + prefix + "*"
	case b.To == "":
		return partition + " " + prefix + from + relation + sk
	case b.From == "":
		return partition + " " + sk + " < " + prefix + b.To
	default:
		return partition + " " + prefix + from + relation + sk + " < " + prefix + b.To
	}
}
