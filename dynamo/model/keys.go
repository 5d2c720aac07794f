package model

import (
	"fmt"
	"strings"
)

// Unnamed is the key for messages that end in a log: without what belongs to persons or is a secret
// of theirs.
func (k Keys) Unnamed() string {
	for _, e := range []*Entity{&EntityEmailClaim, &EntityIdempotency} {
		if literal := e.PK.Literal(); strings.HasPrefix(k.PK, literal) {
			return literal + "... " + k.SK
		}
	}
	return k.PK + " " + k.SK
}

// DescribeUnnamed is Describe for messages that end in a log: see Keys.Unnamed.
func DescribeUnnamed(ks []Keys) string {
	texts := make([]string, len(ks))
	for i, k := range ks {
		texts[i] = k.Unnamed()
	}
	return shorten(texts)
}

// Describe names the keys of a batch for people: a few of them, and how many more.
func Describe(ks []Keys) string {
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

// Text is the text of a key.
func (k Keys) Text() string { return k.PK + " " + k.SK }

// Primary is k without the keys of the index.
func (k Keys) Primary() Keys { return Keys{PK: k.PK, SK: k.SK} }
