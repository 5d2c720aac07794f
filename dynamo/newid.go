package dynamo

import (
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
)

// now is the time of what is written, to the millisecond, in UTC: as much as a ULID and the table's
// timestamps tell.
func (t *Table) now() time.Time { return t.clock().UTC().Truncate(time.Millisecond) }

// newULID returns a new ULID of that moment.
//
// Errors: one where there is no entropy, or the moment is outside of what a ULID can tell.
func (t *Table) newULID(at time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(at), t.entropy)
	if err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return id.String(), nil
}

// maxClockSkew is how far ahead of the clock a time in the table can be for the next change to be
// dated after it. A time further ahead was written by a clock that was wrong. To date changes after
// it would make them wrong, too.
const maxClockSkew = 24 * time.Hour

// after returns a moment after all of times: now, or the next millisecond where the clock is behind
// the ones that wrote them.
func (t *Table) after(times ...time.Time) time.Time {
	now := t.now()
	at := now
	for _, t := range times {
		if t.After(now.Add(maxClockSkew)) {
			continue
		}
		if next := t.UTC().Truncate(time.Millisecond).Add(time.Millisecond); next.After(at) {
			at = next
		}
	}
	return at
}

// position is the place of an event in the order of its customer's events. That is the event's ID.
// It is empty for an event without a place: its ID is not a ULID, as other software writes it, or
// is dated more than maxClockSkew ahead.
func (t *Table) position(id commerce.EventID) commerce.EventID {
	if at, ok := id.Time(); !ok || at.After(t.now().Add(maxClockSkew)) {
		return ""
	}
	return id
}
