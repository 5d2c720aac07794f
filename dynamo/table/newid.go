package table

import (
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
)

// Now is the time of what is written, to the millisecond, in UTC: as much as a ULID and the table's
// timestamps tell.
func (t *Table) Now() time.Time { return t.clock().UTC().Truncate(time.Millisecond) }

// NewULID returns a new ULID of that moment.
//
// Errors: one where there is no entropy, or the moment is outside of what a ULID can tell.
func (t *Table) NewULID(at time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(at), t.entropy)
	if err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return id.String(), nil
}

// MaxClockSkew is how far ahead of the clock a time in the table can be for the next change to be
// dated after it. A time further ahead was written by a clock that was wrong. To date changes after
// it would make them wrong, too.
const MaxClockSkew = 24 * time.Hour

// After returns a moment after all of times: now, or the next millisecond where the clock is behind
// the ones that wrote them.
func (t *Table) After(times ...time.Time) time.Time {
	now := t.Now()
	at := now
	for _, t := range times {
		if t.After(now.Add(MaxClockSkew)) {
			continue
		}
		if next := t.UTC().Truncate(time.Millisecond).Add(time.Millisecond); next.After(at) {
			at = next
		}
	}
	return at
}

// Position is the place of an event in the order of its customer's events. That is the event's ID.
// It is empty for an event without a place: its ID is not a ULID, as other software writes it, or
// is dated more than MaxClockSkew ahead.
func (t *Table) Position(id commerce.EventID) commerce.EventID {
	if at, ok := id.Time(); !ok || at.After(t.Now().Add(MaxClockSkew)) {
		return ""
	}
	return id
}
