package table

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// lastUpdatePageSize is the maximum number of orders that one Query of LastOrderUpdate reads.
const lastUpdatePageSize = 1000

// LastOrderUpdate returns the latest updatedAt of a customer's orders, so every event that
// Ordergraph has written for them is at most this old. It is for customers whose record lastEvent is
// missing or unusable. It reads all orders in the customer's partition, and does not charge these
// reads to the ReadBudget in ctx, because the next event writes the record. It ignores times that
// are more than model.MaxClockSkew ahead of the local clock. Without orders, it returns the zero time.
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
			if r.Err() == nil && updated.After(last) && !updated.After(now.Add(model.MaxClockSkew)) {
				last = updated
			}
		}
		if !more {
			return last, nil
		}
	}
}
