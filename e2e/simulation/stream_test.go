package simulation_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/faults"
)

// repeatedRecords means that a response contains the records of the one before again.
const repeatedRecords faults.Kind = "stream records repeated"

// sharded presents the only shard of the engine's stream as several shards that split and end, like
// the shards of DynamoDB. Each shard contains the records of some partition keys.
type sharded struct {
	send   func(operation string, body any) (json.RawMessage, error)
	shards []*virtualShard
	arn    string
	// retention is how long the stream has its records, and lists an ended shard.
	retention time.Duration
	// last is the highest sequence number that was seen at a split.
	last string
	// previous contains the records in the last response, by process and shard.
	previous map[string][]json.RawMessage
}

// virtualShard has the records whose partition keys have a hash from low to high. Their sequence
// numbers are at least from, and less than to. If to is empty, the shard is open. The record with the
// sequence number before was the last one when the shard began.
type virtualShard struct {
	ID, Parent       string
	low, high        uint32
	before, from, to string
	began, ended     time.Time
}

// maxOpen is the maximum number of open shards.
const maxOpen = 4

// place is a place in a shard. At the horizon, the next record is the oldest one that the stream had at
// the first request for records, whose time is since.
type place struct {
	*virtualShard
	horizon bool
	since   time.Time
}

const engineShard = "shardId-00000000000000000000-embedded"

func newSharded(retention time.Duration, send func(string, any) (json.RawMessage, error)) *sharded {
	return &sharded{send: send, retention: cmp.Or(retention, 24*time.Hour), previous: map[string][]json.RawMessage{}, shards: []*virtualShard{{ID: "shardId-00000000000000000000-virtual", high: 1<<32 - 1}}}
}

// split ends an open shard, and adds two that continue it. Of maxOpen shards, only one continues it, as
// in DynamoDB after some hours.
func (s *sharded) split(r *rand.Rand) error {
	if s.arn == "" {
		return nil // no server has read the stream
	}
	if err := s.findLast(); err != nil {
		return err
	}
	var open []*virtualShard
	for _, shard := range s.shards {
		if shard.to == "" && shard.high > shard.low {
			open = append(open, shard)
		}
	}
	parent := open[r.IntN(len(open))]
	parent.to, parent.ended = next(s.last), time.Now()
	middle := parent.low + (parent.high-parent.low)/2
	parts := [][2]uint32{{parent.low, middle}, {middle + 1, parent.high}}
	if len(open) == maxOpen {
		parts = [][2]uint32{{parent.low, parent.high}}
	}
	for _, part := range parts {
		s.shards = append(s.shards, &virtualShard{ID: fmt.Sprintf("shardId-%020d-virtual", len(s.shards)), Parent: parent.ID, low: part[0], high: part[1], before: s.last, from: parent.to, began: parent.ended})
	}
	return nil
}

// next returns the sequence number after another one.
func next(sequence string) string {
	n, _ := strconv.ParseUint(strings.TrimPrefix(sequence, "1"), 10, 64)
	return fmt.Sprintf("1%020d", n+1)
}

// findLast reads the stream up to its end.
func (s *sharded) findLast() error {
	in := map[string]any{"StreamArn": s.arn, "ShardId": engineShard, "ShardIteratorType": "TRIM_HORIZON"}
	if s.last != "" {
		in["ShardIteratorType"], in["SequenceNumber"] = "AFTER_SEQUENCE_NUMBER", s.last
	}
	text, err := s.send("GetShardIterator", in)
	if err != nil && s.last != "" { // the record has been deleted
		text, err = s.send("GetShardIterator", map[string]any{"StreamArn": s.arn, "ShardId": engineShard, "ShardIteratorType": "TRIM_HORIZON"})
	}
	if err != nil {
		return err
	}
	var at struct{ ShardIterator string }
	if err := json.Unmarshal(text, &at); err != nil {
		return err
	}
	for {
		text, err := s.send("GetRecords", map[string]any{"ShardIterator": at.ShardIterator})
		if err != nil {
			return err
		}
		var page recordPage
		if err := json.Unmarshal(text, &page); err != nil {
			return err
		}
		if len(page.Records) == 0 {
			return nil
		}
		s.last, at.ShardIterator = sequenceOf(page.Records[len(page.Records)-1]), page.NextShardIterator
	}
}

type recordPage struct {
	Records           []json.RawMessage
	NextShardIterator string `json:",omitempty"`
}

func sequenceOf(record json.RawMessage) string {
	var r struct {
		Dynamodb struct{ SequenceNumber string }
	}
	_ = json.Unmarshal(record, &r) // the engine's JSON is valid
	return r.Dynamodb.SequenceNumber
}

// has reports whether a shard has a record. past reports whether the record is after its end, and
// created when it was created.
func (v *virtualShard) has(record json.RawMessage) (has, past bool, created time.Time) {
	var r struct {
		Dynamodb struct {
			SequenceNumber              string
			ApproximateCreationDateTime int64
			Keys                        struct{ Pk struct{ S string } }
		}
	}
	_ = json.Unmarshal(record, &r)
	created = time.Unix(r.Dynamodb.ApproximateCreationDateTime, 0)
	if v.to != "" && r.Dynamodb.SequenceNumber >= v.to {
		return false, true, created
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, r.Dynamodb.Keys.Pk.S)
	return r.Dynamodb.SequenceNumber >= v.from && h.Sum32() >= v.low && h.Sum32() <= v.high, false, created
}

func (s *sharded) shard(id string) *virtualShard {
	for _, shard := range s.shards {
		if shard.ID == id {
			return shard
		}
	}
	return nil
}

// request returns the body of the request to the engine for a request to a virtual shard, and the
// place in the shard.
func (s *sharded) request(operation string, body []byte) ([]byte, place) {
	var in map[string]any
	if json.Unmarshal(body, &in) != nil {
		return body, place{}
	}
	if arn, ok := in["StreamArn"].(string); ok {
		s.arn = arn
	}
	var at place
	switch operation {
	case "GetShardIterator":
		at = place{virtualShard: s.shard(in["ShardId"].(string)), horizon: in["ShardIteratorType"] == "TRIM_HORIZON"}
		in["ShardId"] = engineShard
		// The engine keeps records for 24 hours.
		if at.horizon && at.before != "" && time.Since(at.began) < 23*time.Hour {
			in["ShardIteratorType"], in["SequenceNumber"] = "AFTER_SEQUENCE_NUMBER", at.before
		}
	case "GetRecords":
		words := strings.Fields(in["ShardIterator"].(string))
		in["ShardIterator"], at = words[0], place{virtualShard: s.shard(words[1]), horizon: len(words) > 2, since: time.Now()}
		if len(words) > 3 {
			nanoseconds, _ := strconv.ParseInt(words[3], 10, 64)
			at.since = time.Unix(0, nanoseconds)
		}
	case "DescribeStream":
		delete(in, "ExclusiveStartShardId") // all shards are on one page
	}
	changed, err := json.Marshal(in)
	if err != nil {
		return body, place{}
	}
	return changed, at
}

// response changes the response of the engine.
func (s *sharded) response(i *interaction, at place, repeated bool, r *http.Response) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.StatusCode == http.StatusOK {
		if body, err = s.change(i, at, repeated, body); errors.Is(err, errTrimmed) {
			r.StatusCode, body = http.StatusBadRequest, []byte(`{"__type": "com.amazonaws.dynamodb.v20120810#TrimmedDataAccessException", "message": "the stream has deleted records"}`)
		} else if err != nil {
			return err
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Del("X-Amz-Crc32")
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// errTrimmed means that the stream has deleted the record at a place.
var errTrimmed = errors.New("the stream has deleted records")

// iterator adds a place to an iterator of the engine.
func (at place) iterator(of string) string {
	of += " " + at.ID
	if at.horizon {
		of += " horizon"
		if !at.since.IsZero() {
			of += fmt.Sprint(" ", at.since.UnixNano())
		}
	}
	return of
}

func (s *sharded) change(i *interaction, at place, repeated bool, body []byte) ([]byte, error) {
	switch i.name {
	case "GetShardIterator":
		var out struct{ ShardIterator string }
		if err := json.Unmarshal(body, &out); err != nil {
			return nil, err
		}
		out.ShardIterator = at.iterator(out.ShardIterator)
		return json.Marshal(out)
	case "GetRecords":
		var page recordPage
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, err
		}
		out := recordPage{Records: []json.RawMessage{}}
		past := len(page.Records) == 0 && at.to != ""
		at.horizon = at.horizon && len(page.Records) > 0
		for _, record := range page.Records {
			has, isPast, created := at.has(record)
			isTrimmed := time.Since(created) > s.retention
			if at.horizon = at.horizon && at.since.Sub(created) > s.retention; has && !isTrimmed {
				out.Records = append(out.Records, record)
			} else if has && !at.horizon {
				return nil, errTrimmed
			}
			past = past || isPast
		}
		out.NextShardIterator = at.iterator(page.NextShardIterator)
		if past {
			out.NextShardIterator = ""
		}
		before := s.previous[i.from+at.ID]
		if len(out.Records) > 0 {
			s.previous[i.from+at.ID] = out.Records
		}
		if repeated {
			out.Records = slices.Concat(before, out.Records)
		}
		return json.Marshal(out)
	case "DescribeStream":
		var out struct{ StreamDescription map[string]any }
		if err := json.Unmarshal(body, &out); err != nil {
			return nil, err
		}
		var listed []map[string]any
		for _, shard := range s.shards {
			if shard.to != "" && time.Since(shard.ended) > s.retention {
				continue
			}
			numbers := map[string]any{"StartingSequenceNumber": strings.Repeat("0", 20) + "1"}
			if shard.from != "" {
				numbers["StartingSequenceNumber"] = shard.from
			}
			if shard.to != "" {
				numbers["EndingSequenceNumber"] = shard.to
			}
			about := map[string]any{"ShardId": shard.ID, "SequenceNumberRange": numbers}
			if shard.Parent != "" {
				about["ParentShardId"] = shard.Parent
			}
			listed = append(listed, about)
		}
		out.StreamDescription["Shards"] = listed
		return json.Marshal(out)
	default:
		return body, nil
	}
}

// splitStream splits a shard of the stream.
func splitStream(_ context.Context, w *world, r *rand.Rand) {
	if err := w.stream.split(r); err != nil {
		w.found("the stream cannot be split: %v", err)
	}
}

// sendToStream sends a request to the engine's stream without faults.
func (w *world) sendToStream(operation string, in any) (json.RawMessage, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://embedded.invalid", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810."+operation)
	response, err := w.engine.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", operation, text)
	}
	return text, err
}
