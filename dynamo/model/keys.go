package model

import "strings"

// Redacted returns the primary key as text for log messages, without claimed values, such as email
// addresses, and without idempotency keys.
func (k Keys) Redacted() string {
	for _, e := range allEntities {
		if literal := e.PK.Prefix(); strings.HasPrefix(k.PK, literal) && (e.Kind == Claim || e == &EntityIdempotency) {
			return literal + "... " + k.SK
		}
	}
	return k.PK + " " + k.SK
}

// Text returns the partition key and the sort key, separated by a space.
func (k Keys) Text() string { return k.PK + " " + k.SK }

// Primary returns only the primary key of k, without the keys of the index.
func (k Keys) Primary() Keys { return Keys{PK: k.PK, SK: k.SK} }
