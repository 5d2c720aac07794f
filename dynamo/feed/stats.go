package feed

import (
	"sync"
	"sync/atomic"
	"time"

	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// Stats contains the current values and counters of a Feed. The counters start at 0 when the Feed
// is opened.
type Stats struct {
	// Subscriptions is the number of subscriptions that exist at the moment.
	Subscriptions int
	// Events is the number of changes that Subscription.Next has returned, for all subscriptions
	// together.
	Events int64
	// CatchUps is the number of times that a subscription has read missed events from the timelines.
	CatchUps int64
	// Lag is the maximum lag of the stream's shards. The lag of a shard is the age of the newest
	// record that the last read of the shard returned. If this read returned no record, the lag is 0.
	Lag time.Duration
}

// Stats returns the current values and counters of the Feed.
func (f *Feed) Stats() Stats {
	return Stats{Subscriptions: f.Subscriptions(), Events: f.delivered.Load(), CatchUps: f.catchUps.Load(), Lag: f.lag.max()}
}

// counters contains the Feed's counters. The method Stats returns their values.
type counters struct {
	delivered, catchUps atomic.Int64
	lag                 shardLags
}

// shardLags contains the lag of each shard that is being read (see Stats.Lag).
type shardLags struct {
	mu   sync.Mutex
	lags map[*shard]time.Duration
}

// updateLag updates the lag of a shard after records were read from it. now is the time of the
// read.
func (l *shardLags) updateLag(s *shard, records []streamtypes.Record, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lags == nil {
		l.lags = map[*shard]time.Duration{}
	}
	l.lags[s] = 0
	if n := len(records); n > 0 && records[n-1].Dynamodb != nil && records[n-1].Dynamodb.ApproximateCreationDateTime != nil {
		l.lags[s] = max(0, now.Sub(*records[n-1].Dynamodb.ApproximateCreationDateTime))
	}
}

// removeShard removes the lag of a shard that is no longer read.
func (l *shardLags) removeShard(s *shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lags, s)
}

func (l *shardLags) max() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	greatest := time.Duration(0)
	for _, lag := range l.lags {
		greatest = max(greatest, lag)
	}
	return greatest
}
