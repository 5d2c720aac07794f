package feed

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Limits for tests.
const (
	MaxBacklog = maxBacklog
	MinBacklog = minBacklog
)

// Run exports sourceRun for sources in tests.
type Run = sourceRun

// Ready exports ready.
func (r *sourceRun) Ready() { r.markReady() }

// Changed exports changed.
func (r *sourceRun) Changed(before, after []map[string]types.AttributeValue) {
	r.deliverChanges(before, after)
}

// Gap exports gap.
func (r *sourceRun) Gap(cause error) { r.reportGap(cause) }

// SourceFunc adapts a function to Source.
type SourceFunc func(ctx context.Context, table string, r *Run) error

func (watch SourceFunc) watch(ctx context.Context, t *table.Table, r *sourceRun) error {
	return watch(ctx, t.Name, r)
}

// Poll is Next without waiting. It reports false if there is no change. It does not wrap the errors
// of catchUp, so that no test confuses them with a full queue.
func (s *Subscription) Poll(ctx context.Context) (OrderChange, bool, error) {
	change, found, err := s.tryNext()
	for err == nil && !found && s.mustCatchUp() {
		if err := s.catchUp(ctx); err != nil {
			return OrderChange{}, false, errors.New("catch up: " + err.Error())
		}
		change, found, err = s.tryNext()
	}
	return change, found, err
}

// Backlog returns the number of events in the subscription's backlog.
func (s *Subscription) Backlog() int { return len(s.backlog) }

// Backlog returns the counter of the events in all backlogs.
func (f *Feed) Backlog() *atomic.Int64 { return &f.backlog }

// SetMaxCatchUpPage sets the maximum number of events that a subscription reads at once. Call it
// before the first subscription.
func (f *Feed) SetMaxCatchUpPage(n int) { f.maxCatchUpPage = n }
