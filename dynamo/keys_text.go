package dynamo

import (
	"fmt"
	"strings"
)

// unnamed is the key for messages that end in a log: without what belongs to persons or is a secret
// of theirs.
func (k keys) unnamed() string {
	for _, e := range []*Entity{&entityEmailClaim, &entityIdempotency} {
		if literal := e.PK.literal(); strings.HasPrefix(k.PK, literal) {
			return literal + "... " + k.SK
		}
	}
	return k.PK + " " + k.SK
}

func describeUnnamed(ks []keys) string {
	texts := make([]string, len(ks))
	for i, k := range ks {
		texts[i] = k.unnamed()
	}
	return shorten(texts)
}

// describe names the keys of a batch for people: a few of them, and how many more.
func describe(ks []keys) string {
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

// primaryKey is the text of a key.
func (k keys) primaryKey() string { return k.PK + " " + k.SK }

// primary is k without the keys of the index.
func (k keys) primary() keys { return keys{PK: k.PK, SK: k.SK} }
