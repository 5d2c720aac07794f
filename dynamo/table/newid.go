package table

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Now returns the current time in UTC, for new records. The time is truncated to milliseconds,
// because ULIDs and the timestamps in the table have this precision.
func (t *Table) Now() time.Time { return t.clock().UTC().Truncate(time.Millisecond) }

// NewULID returns a new ULID for the given time. If the source of random bytes fails, or if a ULID
// cannot represent the time, NewULID returns an error.
func (t *Table) NewULID(at time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(at), t.entropy)
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

// EventPosition returns the ID of an event if the ID can be used to sort the event by time. If the
// ID is not a ULID, or its time is more than MaxClockSkew ahead, the result is empty.
func (t *Table) EventPosition(id commerce.EventID) commerce.EventID {
	if at, ok := id.Time(); !ok || at.After(t.Now().Add(MaxClockSkew)) {
		return ""
	}
	return id
}

// lastUpdatePageSize is the maximum number of orders that one Query of LastOrderUpdate reads.
const lastUpdatePageSize = 1000

// LastOrderUpdate returns the latest updatedAt of a customer's orders, so every event that
// Ordergraph has written for them is at most this old. It is for customers whose record lastEvent is
// missing or unusable. It reads all orders in the customer's partition, and does not charge these
// reads to the ReadBudget in ctx, because the next event writes the record. It ignores times that
// are more than MaxClockSkew ahead of the local clock. Without orders, it returns the zero time.
//
// It returns errors from WrapError.
func (t *Table) LastOrderUpdate(ctx context.Context, partition string) (last time.Time, err error) {
	ctx = NewReadBudget(math.MaxInt32).NewContext(ctx)
	p, bounds, now := &model.CustomerOrders.AccessPattern, model.Range{}, t.Now()
	for {
		records, more, err := t.Query(ctx, p, partition, string(p.SK), bounds, lastUpdatePageSize, false)
		if err != nil {
			return last, err
		}
		for _, r := range records {
			bounds.To = strings.TrimPrefix(r.Text(model.AttrSK), string(p.SK))
			updated := r.UpdatedAtOr(now)
			if r.Err() == nil && updated.After(last) && !updated.After(now.Add(MaxClockSkew)) {
				last = updated
			}
		}
		if !more {
			return last, nil
		}
	}
}
