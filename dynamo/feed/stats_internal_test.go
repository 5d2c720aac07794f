package feed

import (
	"testing"
	"time"

	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// The lag of a shard is the age of its last record when the record was read. The lag of the feed is
// the maximum of all shards.
func TestStreamLag(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	record := func(age time.Duration) streamtypes.Record {
		created := now.Add(-age)
		return streamtypes.Record{Dynamodb: &streamtypes.StreamRecord{ApproximateCreationDateTime: &created}}
	}
	var lags shardLags
	a, b := &shard{id: "a"}, &shard{id: "b"}
	for _, step := range []struct {
		do   func()
		want time.Duration
	}{
		{func() { lags.updateLag(a, []streamtypes.Record{record(9 * time.Second), record(3 * time.Second)}, now) }, 3 * time.Second},
		{func() { lags.updateLag(b, []streamtypes.Record{record(5 * time.Second)}, now) }, 5 * time.Second},
		{func() { lags.removeShard(b) }, 3 * time.Second},
		{func() { lags.updateLag(a, []streamtypes.Record{record(-time.Second)}, now) }, 0}, // the clocks differ
		{func() { lags.updateLag(a, []streamtypes.Record{{}}, now) }, 0},
		{func() { lags.updateLag(a, nil, now) }, 0},
	} {
		if step.do(); lags.max() != step.want {
			t.Errorf("the lag is %v, want %v", lags.max(), step.want)
		}
	}
}
