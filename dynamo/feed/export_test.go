package feed

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/table"
)

// The limits that tests reach.
const (
	MaxBacklog = maxBacklog
	MinBacklog = minBacklog
)

// Run is a run, for sources in tests.
type Run = run

// Ready is ready.
func (r *run) Ready() { r.ready() }

// Changed is changed.
func (r *run) Changed(before, after []map[string]types.AttributeValue) { r.changed(before, after) }

// Gap is gap.
func (r *run) Gap(why error) { r.gap(why) }

// SourceFunc is a source in a test.
type SourceFunc func(ctx context.Context, table string, r *Run) error

func (watch SourceFunc) watch(ctx context.Context, t *table.Table, r *run) error {
	return watch(ctx, t.Name, r)
}

// Poll is Next without waiting. It reports false if there is no change. The errors of catchUp are
// not wrapped, so that no test takes one for the end of a slow subscription.
func (s *Subscription) Poll(ctx context.Context) (OrderChange, bool, error) {
	change, found, err := s.next()
	for err == nil && !found && s.mustCatchUp() {
		if err := s.catchUp(ctx); err != nil {
			return OrderChange{}, false, errors.New("catch up: " + err.Error())
		}
		change, found, err = s.next()
	}
	return change, found, err
}

// Backlog returns how many events from timelines are held for the subscription.
func (s *Subscription) Backlog() int { return len(s.backlog) }

// Backlog returns the count of events from timelines for all subscriptions.
func (f *Feed) Backlog() *atomic.Int64 { return &f.backlog }
