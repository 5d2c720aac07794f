package feed

import (
	"sync"
	"sync/atomic"
	"time"

	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// Stats describes a feed. The counters begin at 0 when the feed is opened.
type Stats struct {
	// Subscriptions is the current number of subscriptions.
	Subscriptions int
	// Events is the number of changes that Next has returned to all subscriptions.
	Events int64
	// CatchUps is the number of times that subscriptions have read missed events from the timelines.
	CatchUps int64
	// Lag is the maximum lag of the stream's shards. The lag of a shard is the age of its last record
	// when the feed read it. It is 0 if the last read returned no records. Lag is always 0 for
	// EngineSource.
	Lag time.Duration
}

// Stats returns the current Stats.
func (f *Feed) Stats() Stats {
	return Stats{Subscriptions: f.Subscriptions(), Events: f.delivered.Load(), CatchUps: f.catchUps.Load(), Lag: f.lag.max()}
}

// counters contains the counters of Stats.
type counters struct {
	delivered, catchUps atomic.Int64
	lag                 shardLags
}

// shardLags contains the lag of each shard that is being read.
type shardLags struct {
	mu   sync.Mutex
	lags map[*shard]time.Duration
}

// updateLag updates the lag of a shard after records were read from it at the time now.
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

// removeShard removes a shard that is no longer read.
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
