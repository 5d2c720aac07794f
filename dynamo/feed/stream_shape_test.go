package feed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// reshaped stands between a client and the streams of DynamoDB Local, which have one shard each and
// trim nothing, and gives them the shape that DynamoDB's have: shards that split, of which the
// children are listed late, iterators that expire, records that are trimmed. The records and their
// order are the engine's.
type reshaped struct {
	t    testing.TB
	next interface {
		Do(*http.Request) (*http.Response, error)
	}

	mu sync.Mutex
	// template is a request of the client, of which own ones are made.
	template *http.Request
	arn      string
	// iterator is that of the engine's shard, and records are all that it has told.
	iterator string
	records  []streamRecord
	shards   []*shapedShard
	// generation goes up when all iterators expire, trimmed is how many records are gone.
	generation, trimmed, trims int
	// silent gives no records: the reader is slow to learn of them.
	silent bool
	// asked counts the requests by operation, reading those for records that are under way by
	// shard.
	asked   map[string]int
	reading map[string]int
}

type streamRecord struct {
	raw      json.RawMessage
	hash     uint32
	sequence string
}

// shapedShard has the records from begin to end, -1 where it is open, whose hashes lie between low
// and high.
type shapedShard struct {
	id, parent string
	low, high  uint64
	begin, end int
	// unlisted is how many lists do not have it yet, listed is whether one had it, read is whether
	// its end was told.
	unlisted     int
	listed, read bool
	// begun is whether somebody has a position in it.
	begun bool
}

func (s *reshaped) Do(r *http.Request) (*http.Response, error) {
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
	s.asked[operation]++
	if s.arn == "" {
		s.open(in.StreamArn)
	}
	switch operation {
	case "DescribeStream":
		return s.list(r, in.ExclusiveStartShardId)
	case "GetShardIterator":
		return s.position(r, in.ShardId, in.ShardIteratorType, in.SequenceNumber)
	default:
		return s.read(r, in.ShardIterator)
	}
}

// engine makes a request of the engine.
func (s *reshaped) engine(operation string, in map[string]any, out any) {
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

func (s *reshaped) open(arn string) {
	s.arn = arn
	var stream struct {
		StreamDescription struct{ Shards []struct{ ShardId string } }
	}
	s.engine("DescribeStream", map[string]any{"StreamArn": arn}, &stream)
	var position struct{ ShardIterator string }
	s.engine("GetShardIterator", map[string]any{"StreamArn": arn, "ShardId": stream.StreamDescription.Shards[0].ShardId, "ShardIteratorType": "TRIM_HORIZON"}, &position)
	s.iterator = position.ShardIterator
	s.pull()
	// One that has ended, one that is open.
	s.shards = []*shapedShard{{id: "shard-0", parent: "shard-gone", high: 1 << 32, end: len(s.records)}, {id: "shard-1", parent: "shard-0", high: 1 << 32, begin: len(s.records), end: -1}}
}

// pull learns what the engine has to tell.
func (s *reshaped) pull() {
	for {
		var page struct {
			Records           []json.RawMessage
			NextShardIterator string
		}
		s.engine("GetRecords", map[string]any{"ShardIterator": s.iterator}, &page)
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

// split ends every open shard, and gives each two children.
func (s *reshaped) split() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pull()
	for _, sh := range s.shards {
		if sh.end >= 0 {
			continue
		}
		sh.end = len(s.records)
		middle := (sh.low + sh.high) / 2
		for _, half := range [][2]uint64{{sh.low, middle}, {middle, sh.high}} {
			s.shards = append(s.shards, &shapedShard{id: fmt.Sprintf("shard-%d", len(s.shards)), parent: sh.id, low: half[0], high: half[1], begin: sh.end, end: -1, unlisted: len(s.shards) % 3})
		}
	}
}

// splitUnseen is split while nobody reads: nobody has to read what has ended, and the children are
// listed later.
func (s *reshaped) splitUnseen() {
	s.split()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.shards {
		if sh.read = sh.end >= 0; !sh.read {
			sh.unlisted = 10
		}
	}
}

// trim forgets all records that were told so far, and all iterators, unless there is a shard that
// nobody reads yet: it is a day before its records go.
func (s *reshaped) trim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pull()
	for _, sh := range s.shards {
		if !sh.begun && sh.id != "shard-0" {
			return
		}
	}
	s.trims++
	s.trimmed = len(s.records)
	s.generation++
}

// silence keeps records back, or lets them come.
func (s *reshaped) silence(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = on
}

// expire lets all iterators expire.
func (s *reshaped) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
}

// requests is how many requests of an operation there were.
func (s *reshaped) requests(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[operation]
}

func (s *reshaped) shard(id string) *shapedShard {
	for _, sh := range s.shards {
		if sh.id == id {
			return sh
		}
	}
	return nil
}

// list gives two shards a page.
func (s *reshaped) list(r *http.Request, from string) (*http.Response, error) {
	shards, last := []any{}, ""
	for _, sh := range s.shards {
		if sh.unlisted > 0 {
			sh.unlisted--
			continue
		}
		if sh.end >= 0 && sh.end < s.trimmed || from != "" && number21(sh.id) <= number21(from) {
			continue
		}
		// No shard is listed before its parent.
		if parent := s.shard(sh.parent); parent != nil && !parent.listed && parent.end >= s.trimmed {
			continue
		}
		if len(shards) == 2 {
			return replyJSON(r, 200, map[string]any{"StreamDescription": map[string]any{"StreamStatus": "ENABLED", "Shards": shards, "LastEvaluatedShardId": last}})
		}
		span := map[string]string{"StartingSequenceNumber": fmt.Sprint(sh.begin)}
		if sh.end >= 0 {
			span["EndingSequenceNumber"] = fmt.Sprint(sh.end)
		}
		sh.listed = true
		shards, last = append(shards, map[string]any{"ShardId": sh.id, "ParentShardId": sh.parent, "SequenceNumberRange": span}), sh.id
	}
	return replyJSON(r, 200, map[string]any{"StreamDescription": map[string]any{"StreamStatus": "ENABLED", "Shards": shards}})
}

// number21 makes ids of shards sort by number.
func number21(id string) string {
	_, n, _ := strings.Cut(id, "-")
	return fmt.Sprintf("%21s", n)
}

func (s *reshaped) position(r *http.Request, id, kind, sequence string) (*http.Response, error) {
	sh := s.shard(id)
	if sh == nil {
		return failStream(r, "ResourceNotFoundException")
	}
	if parent := s.shard(sh.parent); parent != nil && parent.id != "shard-0" && !parent.read {
		s.t.Errorf("%s is read before its parent's end", id)
	}
	s.pull()
	sh.begun = true
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

func (s *reshaped) read(r *http.Request, iterator string) (*http.Response, error) {
	generation, at, id := 0, 0, ""
	if _, err := fmt.Sscan(iterator, &generation, &at, &id); err != nil {
		s.t.Error(err)
	}
	if generation != s.generation {
		return failStream(r, "ExpiredIteratorException")
	}
	// Nobody else reads the shard while this request is under way.
	if s.reading[id]++; s.reading[id] > 1 {
		s.t.Errorf("%d read %s at once", s.reading[id], id)
	}
	defer func() { s.reading[id]-- }()
	sh := s.shard(id)
	s.pull()
	end := len(s.records)
	if sh.end >= 0 {
		end = sh.end
	}
	found := []json.RawMessage{}
	// A few at once, so that batches end anywhere.
	for ; at < end && len(found) < 7 && !s.silent; at++ {
		if h := uint64(s.records[at].hash); sh.low <= h && h < sh.high {
			found = append(found, s.records[at].raw)
		}
	}
	out := map[string]any{"Records": found, "NextShardIterator": fmt.Sprintf("%d %d %s", s.generation, at, id)}
	if sh.end >= 0 && at >= sh.end && !s.silent {
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
