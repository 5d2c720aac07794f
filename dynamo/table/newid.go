package table

import (
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
)

// Now returns the time for new records in UTC. The time is truncated to milliseconds, which is the
// precision of ULIDs and of timestamps in the table.
func (t *Table) Now() time.Time { return t.clock().UTC().Truncate(time.Millisecond) }

// NewULID returns a new ULID for the given time. It returns an error if the source of random bytes
// fails, or if a ULID cannot represent the time.
func (t *Table) NewULID(at time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(at), t.entropy)
	if err != nil {
		return "", fmt.Errorf("generate a ULID: %w", err)
	}
	return id.String(), nil
}

// MaxClockSkew is the maximum time by which a stored time may be ahead of the local clock. A stored
// time that is further ahead is wrong. TimeAfter ignores it, because a time after a wrong time
// would also be wrong.
const MaxClockSkew = 24 * time.Hour

// TimeAfter returns a time that is later than the given times. It returns the later of two times:
// the current time, and the latest given time plus one millisecond. It ignores times that are more
// than MaxClockSkew ahead of the local clock.
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

// EventPosition returns the position of an event in the sequence of its customer's events. The
// position is the event's ID, or empty if the event has no position.
//
// An event has no position if its ID is not a ULID, because other software wrote the event. An
// event also has no position if its time is more than MaxClockSkew ahead of the local clock.
func (t *Table) EventPosition(id commerce.EventID) commerce.EventID {
	if at, ok := id.Time(); !ok || at.After(t.Now().Add(MaxClockSkew)) {
		return ""
	}
	return id
}
