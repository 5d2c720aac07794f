package dynamo

import (
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// now is the time of what is written, to the millisecond, in UTC: as much as a ULID and the table's
// timestamps tell.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }

// newULID returns a new ULID of that moment.
//
// Errors: one where there is no entropy, or the moment is outside of what a ULID can tell.
func (s *Store) newULID(at time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(at), s.entropy)
	if err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return id.String(), nil
}
