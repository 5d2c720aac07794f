package model

import "strings"

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

// Text is the text of a key.
func (k Keys) Text() string { return k.PK + " " + k.SK }

// Primary is k without the keys of the index.
func (k Keys) Primary() Keys { return Keys{PK: k.PK, SK: k.SK} }
