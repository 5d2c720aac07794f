package model

import "strings"

// Redacted returns the key for log messages. It hides e-mail addresses and idempotency keys.
func (k Keys) Redacted() string {
	for _, e := range []*Entity{&EntityEmailClaim, &EntityIdempotency} {
		if literal := e.PK.Prefix(); strings.HasPrefix(k.PK, literal) {
			return literal + "... " + k.SK
		}
	}
	return k.PK + " " + k.SK
}

// Text returns the primary key as text.
func (k Keys) Text() string { return k.PK + " " + k.SK }

// Primary returns k without the keys of the index.
func (k Keys) Primary() Keys { return Keys{PK: k.PK, SK: k.SK} }
