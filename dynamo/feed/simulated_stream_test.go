package feed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// simulatedStream is an HTTP client that simulates the shards of DynamoDB Streams on DynamoDB
// Local. DynamoDB Local has one shard for each stream and trims no records. With reshaped, shards
// split, child shards are listed late, iterators expire and records are trimmed. The records and
// their order come from DynamoDB Local.
type simulatedStream struct {
	t    testing.TB
	next interface {
		Do(*http.Request) (*http.Response, error)
	}

	mu sync.Mutex
	// template is a request of the client. The requests to the engine are copies of it.
	template *http.Request
	arn      string
	// iterator is the current iterator of the engine's shard.
	iterator string
	// records are all records that the engine has returned.
	records []streamRecord
	shards  []*simulatedShard
	// generation is increased to expire all iterators.
	generation int
	// trimmed is the number of trimmed records. trims is the number of times that trim removed
	// records.
	trimmed, trims int
	// delayed makes all reads return no records, as if they were delayed.
	delayed bool
	// requestCounts counts the requests by operation.
	requestCounts map[string]int
	// readCounts counts the current requests for records by shard.
	readCounts map[string]int
}

// streamRecord is a record of the stream and the hash of its partition key.
type streamRecord struct {
	raw      json.RawMessage
	hash     uint32
	sequence string
}

// simulatedShard is a simulated shard. It has the records from begin to end whose hashes are from
// low up to, but not including, high.
type simulatedShard struct {
	id, parent string
	low, high  uint64
	begin      int
	// end is -1 while the shard is open.
	end int
	// unlisted is the number of lists that omit the shard before it is listed.
	unlisted int
	// listed reports whether the shard was listed. read reports whether it was read to its end.
	listed, read bool
	// hasIterator reports whether an iterator of the shard was requested.
	hasIterator bool
}

// Do answers a request from the simulated shards.

func (s *simulatedStream) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct{ StreamArn, ShardId, ShardIteratorType, SequenceNumber, ShardIterator, ExclusiveStartShardId string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.template = r
	s.requestCounts[operation]++
	if s.arn == "" {
		s.open(in.StreamArn)
	}
	switch operation {
	case "DescribeStream":
		return s.shardsResponse(r, in.ExclusiveStartShardId)
	case "GetShardIterator":
		return s.iteratorResponse(r, in.ShardId, in.ShardIteratorType, in.SequenceNumber)
	default:
		return s.recordsResponse(r, in.ShardIterator)
	}
}

// requestEngine sends a request to DynamoDB Local.
func (s *simulatedStream) requestEngine(operation string, in map[string]any, out any) {
	s.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		s.t.Error(err)
		return
	}
	r := s.template.Clone(context.Background())
	r.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810."+operation)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.GetBody = nil
	res, err := s.next.Do(r)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(out); err != nil || res.StatusCode != http.StatusOK {
		s.t.Errorf("%s: status %d, %v", operation, res.StatusCode, err)
	}
}

func (s *simulatedStream) open(arn string) {
	s.arn = arn
	var stream struct {
		StreamDescription struct{ Shards []struct{ ShardId string } }
	}
	s.requestEngine("DescribeStream", map[string]any{"StreamArn": arn}, &stream)
	var position struct{ ShardIterator string }
	s.requestEngine("GetShardIterator", map[string]any{"StreamArn": arn, "ShardId": stream.StreamDescription.Shards[0].ShardId, "ShardIteratorType": "TRIM_HORIZON"}, &position)
	s.iterator = position.ShardIterator
	s.readEngine()
	// One shard has ended, and its child is open.
	s.shards = []*simulatedShard{{id: "shard-0", parent: "shard-gone", high: 1 << 32, end: len(s.records)}, {id: "shard-1", parent: "shard-0", high: 1 << 32, begin: len(s.records), end: -1}}
}

// readEngine reads the new records of the engine.
func (s *simulatedStream) readEngine() {
	for {
		var page struct {
			Records           []json.RawMessage
			NextShardIterator string
		}
		s.requestEngine("GetRecords", map[string]any{"ShardIterator": s.iterator}, &page)
		for _, raw := range page.Records {
			var r struct {
				Dynamodb struct {
					Keys           struct{ Pk struct{ S string } }
					SequenceNumber string
				}
			}
			if err := json.Unmarshal(raw, &r); err != nil {
				s.t.Error(err)
			}
			h := fnv.New32a()
			_, _ = h.Write([]byte(r.Dynamodb.Keys.Pk.S))
			s.records = append(s.records, streamRecord{raw, h.Sum32(), r.Dynamodb.SequenceNumber})
		}
		if s.iterator = page.NextShardIterator; len(page.Records) == 0 {
			return
		}
	}
}

// split ends every open shard and adds two children for each.
func (s *simulatedStream) split() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readEngine()
	for _, sh := range s.shards {
		if sh.end >= 0 {
			continue
		}
		sh.end = len(s.records)
		middle := (sh.low + sh.high) / 2
		for _, half := range [][2]uint64{{sh.low, middle}, {middle, sh.high}} {
			s.shards = append(s.shards, &simulatedShard{id: fmt.Sprintf("shard-%d", len(s.shards)), parent: sh.id, low: half[0], high: half[1], begin: sh.end, end: -1, unlisted: len(s.shards) % 3})
		}
	}
}

// splitUnseen splits the shards while no reader is active. The ended shards need not be read, and
// the children are listed later.
func (s *simulatedStream) splitUnseen() {
	s.split()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.shards {
		if sh.read = sh.end >= 0; !sh.read {
			sh.unlisted = 10
		}
	}
}

// splitUntilTrimmed splits the shards, calls change, and removes all records so far. The new shards are
// listed only after that.
func (s *simulatedStream) splitUntilTrimmed(change func()) {
	s.split()
	setUnlisted := func(lists int) {
		for _, sh := range s.shards {
			if sh.end < 0 {
				sh.unlisted = lists
			}
		}
	}
	s.mu.Lock()
	setUnlisted(math.MaxInt)
	s.mu.Unlock()
	change()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readEngine()
	s.trimmed = len(s.records)
	setUnlisted(0)
}

// trim removes all records so far and expires all iterators. It does nothing if a shard has no
// reader yet, because DynamoDB keeps the records for a day.
func (s *simulatedStream) trim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readEngine()
	for _, sh := range s.shards {
		if !sh.hasIterator && sh.id != "shard-0" {
			return
		}
	}
	s.trims++
	s.trimmed = len(s.records)
	s.generation++
}

// setDelayed turns the delay of records on or off.
func (s *simulatedStream) setDelayed(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delayed = on
}

// expire expires all iterators.
func (s *simulatedStream) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
}

// requests returns the number of requests of an operation.
func (s *simulatedStream) requests(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requestCounts[operation]
}

func (s *simulatedStream) shard(id string) *simulatedShard {
	for _, sh := range s.shards {
		if sh.id == id {
			return sh
		}
	}
	return nil
}

// shardsResponse responds with up to two shards after the shard from.
func (s *simulatedStream) shardsResponse(r *http.Request, from string) (*http.Response, error) {
	shards, last := []any{}, ""
	for _, sh := range s.shards {
		if sh.unlisted > 0 {
			sh.unlisted--
			continue
		}
		if sh.end >= 0 && sh.end < s.trimmed || from != "" && paddedShardNumber(sh.id) <= paddedShardNumber(from) {
			continue
		}
		// No shard is listed before its parent.
		if parent := s.shard(sh.parent); parent != nil && !parent.listed && parent.end >= s.trimmed {
			continue
		}
		if len(shards) == 2 {
			return replyJSON(r, 200, map[string]any{"StreamDescription": map[string]any{"StreamStatus": "ENABLED", "Shards": shards, "LastEvaluatedShardId": last}})
		}
		sequence := map[string]string{"StartingSequenceNumber": fmt.Sprint(sh.begin)}
		if sh.end >= 0 {
			sequence["EndingSequenceNumber"] = fmt.Sprint(sh.end)
		}
		sh.listed = true
		shards, last = append(shards, map[string]any{"ShardId": sh.id, "ParentShardId": sh.parent, "SequenceNumberRange": sequence}), sh.id
	}
	return replyJSON(r, 200, map[string]any{"StreamDescription": map[string]any{"StreamStatus": "ENABLED", "Shards": shards}})
}

// paddedShardNumber returns the number of a shard ID, padded to 21 characters so that it sorts by
// value.
func paddedShardNumber(id string) string {
	_, n, _ := strings.Cut(id, "-")
	return fmt.Sprintf("%21s", n)
}

// iteratorResponse responds with an iterator: a generation, an index of a record and a shard ID.
func (s *simulatedStream) iteratorResponse(r *http.Request, id, kind, sequence string) (*http.Response, error) {
	sh := s.shard(id)
	if sh == nil {
		return failStream(r, "ResourceNotFoundException")
	}
	if parent := s.shard(sh.parent); parent != nil && parent.id != "shard-0" && !parent.read {
		s.t.Errorf("%s is read before the end of its parent", id)
	}
	s.readEngine()
	sh.hasIterator = true
	at := max(sh.begin, s.trimmed)
	switch kind {
	case "LATEST":
		if at = len(s.records); sh.end >= 0 {
			at = sh.end
		}
	case "AFTER_SEQUENCE_NUMBER":
		at = 1 + slices.IndexFunc(s.records, func(r streamRecord) bool { return r.sequence == sequence })
		if at < s.trimmed {
			return failStream(r, "TrimmedDataAccessException")
		}
	}
	return replyJSON(r, 200, map[string]any{"ShardIterator": fmt.Sprintf("%d %d %s", s.generation, at, id)})
}

// recordsResponse responds with the next records of an iterator.
func (s *simulatedStream) recordsResponse(r *http.Request, iterator string) (*http.Response, error) {
	generation, at, id := 0, 0, ""
	if _, err := fmt.Sscan(iterator, &generation, &at, &id); err != nil {
		s.t.Error(err)
	}
	if generation != s.generation {
		return failStream(r, "ExpiredIteratorException")
	}
	// A shard has at most one request at a time.
	if s.readCounts[id]++; s.readCounts[id] > 1 {
		s.t.Errorf("%s has %d concurrent requests", id, s.readCounts[id])
	}
	defer func() { s.readCounts[id]-- }()
	sh := s.shard(id)
	s.readEngine()
	end := len(s.records)
	if sh.end >= 0 {
		end = sh.end
	}
	found := []json.RawMessage{}
	// Return a few records at a time, so that responses end at arbitrary records.
	for ; at < end && len(found) < 7 && !s.delayed; at++ {
		if h := uint64(s.records[at].hash); sh.low <= h && h < sh.high {
			found = append(found, s.records[at].raw)
		}
	}
	out := map[string]any{"Records": found, "NextShardIterator": fmt.Sprintf("%d %d %s", s.generation, at, id)}
	if sh.end >= 0 && at >= sh.end && !s.delayed {
		delete(out, "NextShardIterator")
		sh.read = true
	}
	return replyJSON(r, 200, out)
}

func failStream(r *http.Request, name string) (*http.Response, error) {
	return replyJSON(r, 400, map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + name, "message": name})
}

func replyJSON(r *http.Request, status int, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, nil
}
