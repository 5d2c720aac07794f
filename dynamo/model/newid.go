package model

import (
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
)

// IDSource returns the IDs and the times of new records.
type IDSource struct {
	// Clock returns the local time.
	Clock func() time.Time
	// Entropy is the source of the random bytes of new IDs. It must be safe for concurrent use.
	Entropy io.Reader
}

// Now returns the current time in UTC, for new records. The time is truncated to milliseconds,
// because ULIDs and the timestamps in the table have this precision.
func (s IDSource) Now() time.Time { return s.Clock().UTC().Truncate(time.Millisecond) }

// NewULID returns a new ULID for the given time. If the source of random bytes fails, or if a ULID
// cannot represent the time, NewULID returns an error.
func (s IDSource) NewULID(at time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(at), s.Entropy)
	if err != nil {
		return "", fmt.Errorf("generate a ULID: %w", err)
	}
	return id.String(), nil
}

// MaxClockSkew is the maximum duration by which a time stored in the table may be ahead of the
// local clock. A time that is further ahead is wrong and ignored.
const MaxClockSkew = 24 * time.Hour

// TimeAfter returns the current time or, if necessary, a time later than all given times. TimeAfter
// ignores times that are more than MaxClockSkew ahead of the local clock.
func (s IDSource) TimeAfter(times ...time.Time) time.Time {
	now := s.Now()
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

// EventPosition returns the ID of an event if the ID can be used to sort the event by time. If the
// ID is not a ULID, or its time is more than MaxClockSkew ahead, the result is empty.
func (s IDSource) EventPosition(id commerce.EventID) commerce.EventID {
	if at, ok := id.Time(); !ok || at.After(s.Now().Add(MaxClockSkew)) {
		return ""
	}
	return id
}
