// Package stream implements DynamoDB Streams. It records the changes to items, and executes the
// operations on streams.
//
// Each stream has its own bucket. In all functions, the parameter named streams is the bucket that
// contains the buckets of all streams.
package stream

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
)

const (
	// recordRetention is how long clients can read a stream record.
	recordRetention = 24 * time.Hour
	// iteratorLife is how long a shard iterator is valid.
	iteratorLife = 15 * time.Minute
	// shardID is the ID of the only shard of a stream.
	shardID = "shardId-00000000000000000000-embedded"
	// sequenceNumberFormat formats the number of a record as a sequence number with 21 digits.
	// DynamoDB's sequence numbers have at least 21 digits.
	sequenceNumberFormat = "1%020d"
	// maxPageBytes is the maximum total size of the records in a response, in bytes. A single
	// record may be larger.
	maxPageBytes = 1 << 20
	// maxTrimmed is the maximum number of old records that one write deletes from a stream.
	maxTrimmed = 100
)

// The keys in a stream's bucket. The value of keyStream is the description of the stream.
// bucketRecords is a nested bucket that contains the records.
var (
	keyStream     = []byte("stream")
	bucketRecords = []byte("records")
)

// stream is the description of a table's stream. The stream's bucket contains it as JSON.
type stream struct {
	ARN, Label, TableName, ViewType string
	KeySchema                       []schema.KeyElement
	Created                         time.Time
	Disabled                        bool
}

// Create creates a stream for the table, and sets the table's StreamLabel. streams is the bucket
// that contains all streams.
func Create(streams *file.Bucket, t *schema.Table, now time.Time) error {
	now = now.UTC()
	t.StreamLabel = now.Format("2006-01-02T15:04:05.000")
	for streams.Bucket([]byte(t.StreamARN())) != nil { // another stream was created in the same millisecond
		now = now.Add(time.Millisecond)
		t.StreamLabel = now.Format("2006-01-02T15:04:05.000")
	}
	b, err := streams.CreateBucket([]byte(t.StreamARN()))
	if err != nil {
		return err
	}
	if _, err := b.CreateBucket(bucketRecords); err != nil {
		return err
	}
	return putStream(b, &stream{ARN: t.StreamARN(), Label: t.StreamLabel, TableName: t.TableName, ViewType: t.StreamSpecification.StreamViewType, KeySchema: t.KeySchema, Created: now})
}

// CheckBuckets returns a DamagedError if the bucket of a stream has a wrong name or is incomplete.
// The names of buckets have no checksums. streams is the bucket that contains all streams.
func CheckBuckets(streams *file.Bucket) error {
	return streams.ForEachBucket(func(arn []byte) error {
		m, err := parseStream(streams.Bucket(arn))
		if err != nil {
			return err
		}
		if m.ARN != string(arn) || streams.Bucket(arn).Bucket(bucketRecords) == nil {
			return &file.DamagedError{Problem: fmt.Sprintf("the bucket of the stream %q has a wrong name or no records", arn)}
		}
		return nil
	})
}

// Disable disables the table's stream. Clients can still read the existing records.
func Disable(streams *file.Bucket, t *schema.Table) error {
	b := streams.Bucket([]byte(t.StreamARN()))
	m, err := parseStream(b)
	if err != nil {
		return err
	}
	m.Disabled = true
	return putStream(b, m)
}

func putStream(b *file.Bucket, m *stream) error {
	encoded, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return b.Put(keyStream, encoded)
}

func parseStream(b *file.Bucket) (*stream, error) {
	m := &stream{}
	return m, json.Unmarshal(b.Get(keyStream), m)
}

// Record adds a record of the change to the stream of the table. expired reports whether the store
// deleted the item because its time to live had ended.
func Record(streams *file.Bucket, a *storage.Change, expired bool, now time.Time) error {
	t := a.Table
	b := streams.Bucket([]byte(t.StreamARN())).Bucket(bucketRecords)
	if err := trim(b, now); err != nil {
		return err
	}
	number, err := b.NextSequence()
	if err != nil {
		return err
	}
	b.FillPercent = 1 // fill pages completely, because records are only appended
	return b.Put(recordKey(number), encode(a, expired, now))
}

func recordKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// trim deletes records that are older than recordRetention, but at most maxTrimmed of them.
func trim(b *file.Bucket, now time.Time) error {
	limit := now.Add(-recordRetention).UnixMilli()
	cursor := b.Cursor()
	var old [][]byte
	for k, v := cursor.First(); k != nil && recordTime(v) < limit && len(old) < maxTrimmed; k, v = cursor.Next() {
		old = append(old, bytes.Clone(k))
	}
	for _, k := range old {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// DropDisabledStreams deletes each disabled stream if the stream and all its records are older than
// 24 hours. dropped reports whether it has deleted a stream.
func DropDisabledStreams(streams *file.Bucket, now time.Time) (dropped bool, _ error) {
	limit := now.Add(-recordRetention).UnixMilli()
	var old [][]byte
	err := streams.ForEachBucket(func(arn []byte) error {
		m, err := parseStream(streams.Bucket(arn))
		if err != nil || !m.Disabled {
			return err
		}
		_, newest := streams.Bucket(arn).Bucket(bucketRecords).Cursor().Last()
		if newest == nil && m.Created.UnixMilli() < limit || newest != nil && recordTime(newest) < limit {
			old = append(old, bytes.Clone(arn))
		}
		return nil
	})
	for _, arn := range old {
		if err := streams.DeleteBucket(arn); err != nil {
			return true, err
		}
	}
	return len(old) > 0, err
}
