package stream

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// findStream returns a stream and the bucket of its records. If the stream does not
// exist, findStream returns ResourceNotFoundException.
func findStream(streams *file.Bucket, arn string) (records *file.Bucket, _ *stream, _ error) {
	b := streams.Bucket([]byte(arn))
	if b == nil {
		return nil, nil, &wire.Failure{Code: wire.CodeNotFound, Message: "Requested resource not found: Stream: " + arn + " not found"}
	}
	m, err := parseStream(b)
	return b.Bucket(bucketRecords), m, err
}

// ListStreamsInput contains the parameters of ListStreams.
type ListStreamsInput struct {
	TableName               string
	Limit                   *int
	ExclusiveStartStreamArn string
}

// ListStreams executes the operation ListStreams. streams is the bucket that contains all streams.
func ListStreams(streams *file.Bucket, _ time.Time, in *ListStreamsInput) ([]byte, error) {
	limit := 100
	v := &wire.Violations{}
	if in.Limit != nil {
		limit = *in.Limit
		v.AtLeast(limit, 1, "limit")
		v.AtMost(limit, 100, "limit")
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	o := wire.NewObjectWriter()
	var found []*stream
	more := false
	err := streams.ForEachBucket(func(arn []byte) error {
		m, err := parseStream(streams.Bucket(arn))
		if err != nil || string(arn) <= in.ExclusiveStartStreamArn || in.TableName != "" && m.TableName != schema.TableNameFromARN(in.TableName) {
			return err
		}
		if len(found) == limit {
			more = true
			return nil
		}
		found = append(found, m)
		return nil
	})
	o.List("Streams", len(found), func(i int) {
		o.Open()
		o.Text("StreamArn", found[i].ARN)
		o.Text("StreamLabel", found[i].Label)
		o.Text("TableName", found[i].TableName)
		o.Close()
	})
	if more {
		o.Text("LastEvaluatedStreamArn", found[len(found)-1].ARN)
	}
	if err != nil {
		return nil, err
	}
	return o.Done(), nil
}

// DescribeStreamInput contains the parameters of DescribeStream.
type DescribeStreamInput struct {
	StreamArn             string
	ExclusiveStartShardID string `json:"ExclusiveStartShardId"`
}

// DescribeStream executes the operation DescribeStream. streams is the bucket that contains all
// streams.
func DescribeStream(streams *file.Bucket, _ time.Time, in *DescribeStreamInput) ([]byte, error) {
	o := wire.NewObjectWriter()
	records, m, err := findStream(streams, in.StreamArn)
	if err != nil {
		return nil, err
	}
	o.Nested("StreamDescription", func() {
		o.Float("CreationRequestDateTime", float64(m.Created.UnixMilli())/1000)
		o.Value("KeySchema", m.KeySchema)
		o.Text("StreamArn", m.ARN)
		o.Text("StreamLabel", m.Label)
		o.Text("StreamStatus", map[bool]string{false: "ENABLED", true: "DISABLED"}[m.Disabled])
		o.Text("StreamViewType", m.ViewType)
		o.Text("TableName", m.TableName)
		shards := 1
		if in.ExclusiveStartShardID >= shardID {
			shards = 0
		}
		o.List("Shards", shards, func(int) {
			o.Open()
			o.Text("ShardId", shardID)
			o.Nested("SequenceNumberRange", func() {
				o.Text("StartingSequenceNumber", fmt.Sprintf(sequenceNumberFormat, 1))
				if m.Disabled {
					o.Text("EndingSequenceNumber", fmt.Sprintf(sequenceNumberFormat, records.Sequence()+1))
				}
			})
			o.Close()
		})
	})
	return o.Done(), nil
}

// shardIterator is a client's position in a stream.
type shardIterator struct {
	next    uint64 // next is the number of the next record to read
	created time.Time
	arn     string
}

// String returns the iterator as the text that clients receive.
func (i shardIterator) String() string {
	return base64.URLEncoding.EncodeToString(fmt.Appendf(nil, "%d|%d|%s", i.next, i.created.UnixMilli(), i.arn))
}

// parseIterator decodes the text of an iterator. If the text is invalid, it returns a
// ValidationException.
func parseIterator(text string) (i shardIterator, _ error) {
	decoded, err := base64.URLEncoding.DecodeString(text)
	parts := strings.SplitN(string(decoded), "|", 3)
	if err != nil || len(parts) != 3 {
		return i, wire.Invalid("Invalid ShardIterator")
	}
	var created int64
	if i.next, err = strconv.ParseUint(parts[0], 10, 64); err == nil {
		created, err = strconv.ParseInt(parts[1], 10, 64)
	}
	if err != nil {
		return i, wire.Invalid("Invalid ShardIterator")
	}
	i.created, i.arn = time.UnixMilli(created), parts[2]
	return i, nil
}

// GetShardIteratorInput contains the parameters of GetShardIterator.
type GetShardIteratorInput struct {
	StreamArn         string
	ShardID           string `json:"ShardId"`
	ShardIteratorType string
	SequenceNumber    string
}

// GetShardIterator executes the operation GetShardIterator. streams is the bucket that contains all
// streams.
func GetShardIterator(streams *file.Bucket, now time.Time, in *GetShardIteratorInput) ([]byte, error) {
	v := &wire.Violations{}
	if in.ShardIteratorType == "" {
		v.AddMissing("shardIteratorType")
	}
	v.CheckEnum(in.ShardIteratorType, "shardIteratorType", "AFTER_SEQUENCE_NUMBER", "LATEST", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON")
	if err := v.Err(); err != nil {
		return nil, err
	}
	records, _, err := findStream(streams, in.StreamArn)
	if err != nil {
		return nil, err
	}
	i := shardIterator{created: now, arn: in.StreamArn}
	if i.next, err = in.startRecordNumber(records, now); err != nil {
		return nil, err
	}
	o := wire.NewObjectWriter()
	o.Text("ShardIterator", i.String())
	return o.Done(), nil
}

// startRecordNumber returns the number of the first record that the new iterator reads.
func (in *GetShardIteratorInput) startRecordNumber(records *file.Bucket, now time.Time) (uint64, error) {
	if in.ShardID != shardID {
		return 0, &wire.Failure{Code: wire.CodeNotFound, Message: "Requested resource not found: Shard does not exist"}
	}
	oldest := records.Sequence() + 1
	limit := now.Add(-recordRetention).UnixMilli()
	cursor := records.Cursor()
	for k, stored := cursor.First(); k != nil; k, stored = cursor.Next() {
		if recordTime(stored) >= limit {
			oldest = binary.BigEndian.Uint64(k)
			break
		}
	}
	switch in.ShardIteratorType {
	case "LATEST":
		return records.Sequence() + 1, nil
	case "TRIM_HORIZON":
		return oldest, nil
	}
	next, err := strconv.ParseUint(strings.TrimPrefix(in.SequenceNumber, "1"), 10, 64)
	if err != nil || len(in.SequenceNumber) != 21 {
		return 0, wire.Invalid("Invalid SequenceNumber")
	}
	if in.ShardIteratorType == "AFTER_SEQUENCE_NUMBER" {
		next++
	}
	if next < oldest {
		return 0, trimmedDataError()
	}
	return next, nil
}

// trimmedDataError returns the error for a read of records that are no longer available.
func trimmedDataError() error {
	return &wire.Failure{Code: wire.CodeTrimmedData, Message: "The operation attempted to read past the oldest stream record in a shard"}
}

// GetRecordsInput contains the parameters of GetRecords.
type GetRecordsInput struct {
	ShardIterator string
	Limit         *int
}

// GetRecords executes the operation GetRecords. streams is the bucket that contains all streams.
func GetRecords(streams *file.Bucket, now time.Time, in *GetRecordsInput) ([]byte, error) {
	v := &wire.Violations{}
	limit := 1000
	if in.Limit != nil {
		limit = *in.Limit
		v.AtLeast(limit, 1, "limit")
		v.AtMost(limit, 1000, "limit")
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	i, err := parseIterator(in.ShardIterator)
	if err != nil {
		return nil, err
	}
	if now.Sub(i.created) > iteratorLife {
		return nil, &wire.Failure{Code: wire.CodeExpiredIterator, Message: "The shard iterator has expired: request a new one"}
	}
	o := wire.NewObjectWriter()
	records, m, err := findStream(streams, i.arn)
	if err != nil {
		return nil, err
	}
	first := i.next
	var found [][]byte
	size := 0
	oldest := now.Add(-recordRetention).UnixMilli()
	cursor := records.Cursor()
	k, stored := cursor.Seek(recordKey(i.next))
	if i.next <= records.Sequence() && !bytes.Equal(k, recordKey(i.next)) {
		return nil, trimmedDataError() // the record has been deleted
	}
	for ; k != nil && len(found) < limit && (size == 0 || size+len(stored) <= maxPageBytes); k, stored = cursor.Next() {
		if recordTime(stored) < oldest {
			return nil, trimmedDataError()
		}
		found = append(found, stored)
		size += len(stored)
		i.next = binary.BigEndian.Uint64(k) + 1
	}
	o.List("Records", len(found), func(n int) {
		err = errors.Join(err, m.appendRecordJSON(o, first+uint64(n), found[n]))
	})
	if err != nil {
		return nil, err
	}
	if !m.Disabled || k != nil {
		i.created = now
		o.Text("NextShardIterator", i.String())
	}
	return o.Done(), nil
}
