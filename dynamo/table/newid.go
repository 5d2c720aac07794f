package table

import (
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
)

// Now returns the time for new records, in UTC, truncated to the millisecond. ULIDs and the table's
// timestamps have the same precision.
func (t *Table) Now() time.Time { return t.clock().UTC().Truncate(time.Millisecond) }

// NewULID returns a new ULID with the given time. It returns an error if the random source fails or
// a ULID cannot represent the time.
func (t *Table) NewULID(at time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(at), t.entropy)
	if err != nil {
		return "", fmt.Errorf("generate a ULID: %w", err)
	}
	return id.String(), nil
}

// MaxClockSkew limits how far the times of the table may be ahead of the clock. A time that is
// further ahead comes from a wrong clock. Changes are not dated after it, because their times would
// be wrong, too.
const MaxClockSkew = 24 * time.Hour

// TimeAfter returns a time after all the given times. It returns the current time, or the
// millisecond after the last given time if the clock is behind it. It ignores times that are more
// than MaxClockSkew ahead.
func (t *Table) TimeAfter(times ...time.Time) time.Time {
	now := t.Now()
	latest := now
	for _, at := range times {
		if at.After(now.Add(MaxClockSkew)) {
			continue
		}
		if next := at.UTC().Truncate(time.Millisecond).Add(time.Millisecond); next.After(latest) {
			latest = next
		}
	}
	return latest
}

// EventPosition returns the position of an event in the sequence of its customer's events, which is
// the event's ID. An event has no position, and the result is empty, in two cases: the ID is not a
// ULID (other software wrote the event), or its time is more than MaxClockSkew ahead.
func (t *Table) EventPosition(id commerce.EventID) commerce.EventID {
	if at, ok := id.Time(); !ok || at.After(t.Now().Add(MaxClockSkew)) {
		return ""
	}
	return id
}
