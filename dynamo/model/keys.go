package model

import "strings"

// Redacted returns the primary key as text for log messages, without email addresses and
// idempotency keys.
func (k Keys) Redacted() string {
	for _, e := range []*Entity{&EntityEmailClaim, &EntityIdempotency} {
		if literal := e.PK.Prefix(); strings.HasPrefix(k.PK, literal) {
			return literal + "... " + k.SK
		}
	}
	return k.PK + " " + k.SK
}

// Text returns the partition key and the sort key, separated by a space.
func (k Keys) Text() string { return k.PK + " " + k.SK }

// Primary returns only the primary key of k, without the keys of the index.
func (k Keys) Primary() Keys { return Keys{PK: k.PK, SK: k.SK} }
