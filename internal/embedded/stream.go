package embedded

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"go.etcd.io/bbolt"
)

// viewTypes are the values of StreamViewType.
var viewTypes = []string{"NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"}

const (
	// streamLife is how long stream records are kept.
	streamLife = 24 * time.Hour
	// iteratorLife is how long a shard iterator can be used.
	iteratorLife = 15 * time.Minute
	// shardID is the name of the only shard of a stream.
	shardID = "shardId-00000000000000000000-embedded"
	// firstSequence is added to the numbers of records, because sequence numbers have at least 21
	// digits.
	firstSequence = "1%020d"
	// maxTrimmed is the maximum number of old records that a write deletes.
	maxTrimmed = 100
)

// The keys in a stream's bucket.
var (
	keyStream     = []byte("stream")
	bucketRecords = []byte("records")
)

// stream is what the file has about a stream.
type stream struct {
	ARN, Label, TableName, ViewType string
	KeySchema                       []keyElement
	Created                         time.Time
	Disabled                        bool
}

// checkStreamSpecification validates a stream's setting, which may be nil. isNew reports whether the
// table is being created.
func checkStreamSpecification(set *streamSpecification, isNew bool) error {
	switch {
	case set == nil:
	case set.StreamEnabled && set.StreamViewType == "":
		return invalid("One or more parameter values were invalid: StreamViewType is required when StreamEnabled is true")
	case !set.StreamEnabled && set.StreamViewType != "" && isNew:
		return invalid("One or more parameter values were invalid: Table is being created with a stream disabled, UpdateViewType should not be specified")
	case !set.StreamEnabled && set.StreamViewType != "":
		return invalid("One or more parameter values were invalid: Table is being disabled for streams. StreamViewType should not be specified")
	}
	return nil
}

// openStream creates a stream for the table.
func (c *change) openStream(t *table) error {
	now := c.now().UTC()
	t.StreamLabel = now.Format("2006-01-02T15:04:05.000")
	for c.tx.Bucket(bucketStreams).Bucket([]byte(t.streamARN())) != nil { // a stream of the same millisecond
		now = now.Add(time.Millisecond)
		t.StreamLabel = now.Format("2006-01-02T15:04:05.000")
	}
	b, err := c.tx.Bucket(bucketStreams).CreateBucket([]byte(t.streamARN()))
	if err != nil {
		return err
	}
	if _, err := b.CreateBucket(bucketRecords); err != nil {
		return err
	}
	return putStream(b, &stream{ARN: t.streamARN(), Label: t.StreamLabel, TableName: t.TableName, ViewType: t.StreamSpecification.StreamViewType, KeySchema: t.KeySchema, Created: now})
}

// closeStream disables the table's stream. Its records can still be read.
func (c *change) closeStream(t *table) error {
	b := c.tx.Bucket(bucketStreams).Bucket([]byte(t.streamARN()))
	m, err := parseStream(b)
	if err != nil {
		return err
	}
	m.Disabled = true
	return putStream(b, m)
}

func putStream(b *bbolt.Bucket, m *stream) error {
	encoded, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return b.Put(keyStream, encoded)
}

func parseStream(b *bbolt.Bucket) (*stream, error) {
	m := &stream{}
	return m, json.Unmarshal(b.Get(keyStream), m)
}

// record adds a change of an item to the table's stream.
func (c *change) record(a *action) error {
	t := a.table
	b := c.tx.Bucket(bucketStreams).Bucket([]byte(t.streamARN())).Bucket(bucketRecords)
	if err := c.trim(b); err != nil {
		return err
	}
	number, err := b.NextSequence()
	if err != nil {
		return err
	}
	now := c.now()
	view := t.StreamSpecification.StreamViewType
	name, item := "MODIFY", a.old
	if a.old == nil {
		name, item = "INSERT", a.new
	} else if a.new == nil {
		name = "REMOVE"
	}
	o := newObject()
	o.text("awsRegion", region)
	o.nested("dynamodb", func() {
		o.int("ApproximateCreationDateTime", int(now.Unix()))
		keys := t.keyItem(item)
		size := keys.Size()
		o.item("Keys", keys)
		if a.new != nil && strings.HasPrefix(view, "NEW") {
			_, image := splitStored(a.encoded)
			o.raw("NewImage", image)
			size += a.newSize
		}
		if a.old != nil && strings.HasSuffix(view, "OLD_IMAGES") || a.old != nil && view == "OLD_IMAGE" {
			o.raw("OldImage", a.oldJSON)
			size += a.oldSize
		}
		o.text("SequenceNumber", fmt.Sprintf(firstSequence, number))
		o.int("SizeBytes", size)
		o.text("StreamViewType", view)
	})
	o.text("eventID", strings.ReplaceAll(uuid.NewString(), "-", ""))
	o.text("eventName", name)
	o.text("eventSource", "aws:dynamodb")
	o.text("eventVersion", "1.1")
	if a.expired {
		o.nested("userIdentity", func() {
			o.text("PrincipalId", "dynamodb.amazonaws.com")
			o.text("Type", "Service")
		})
	}
	value := binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))
	b.FillPercent = 1 // records are only appended
	return b.Put(recordKey(number), append(value, o.done()...))
}

func recordKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// trim deletes records that are too old.
func (c *change) trim(b *bbolt.Bucket) error {
	limit := c.now().Add(-streamLife).UnixMilli()
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

// recordTime returns the time of a stored record in milliseconds.
func recordTime(stored []byte) int64 { return int64(binary.BigEndian.Uint64(stored)) }

// withStream calls read with a stream's bucket.
func (s *Store) withStream(arn string, read func(*bbolt.Bucket, *stream) error) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketStreams).Bucket([]byte(arn))
		if b == nil {
			return &failure{kind: codeNotFound, message: "Requested resource not found: Stream: " + arn + " not found"}
		}
		m, err := parseStream(b)
		if err != nil {
			return err
		}
		return read(b.Bucket(bucketRecords), m)
	})
}

func (s *Store) listStreams(_ context.Context, in *struct {
	TableName               string
	Limit                   *int
	ExclusiveStartStreamArn string
}) ([]byte, error) {
	limit := 100
	v := &violations{}
	if in.Limit != nil {
		limit = *in.Limit
		v.atLeast(limit, 1, "limit")
		v.atMost(limit, 100, "limit")
	}
	if err := v.error(); err != nil {
		return nil, err
	}
	o := newObject()
	err := s.db.View(func(tx *bbolt.Tx) error {
		var found []*stream
		b := tx.Bucket(bucketStreams)
		more := false
		err := b.ForEachBucket(func(arn []byte) error {
			m, err := parseStream(b.Bucket(arn))
			if err != nil || string(arn) <= in.ExclusiveStartStreamArn || in.TableName != "" && m.TableName != tableName(in.TableName) {
				return err
			}
			if len(found) == limit {
				more = true
				return nil
			}
			found = append(found, m)
			return nil
		})
		o.list("Streams", len(found), func(i int) {
			o.open()
			o.text("StreamArn", found[i].ARN)
			o.text("StreamLabel", found[i].Label)
			o.text("TableName", found[i].TableName)
			o.close()
		})
		if more {
			o.text("LastEvaluatedStreamArn", found[len(found)-1].ARN)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return o.done(), nil
}

func (s *Store) describeStream(_ context.Context, in *struct {
	StreamArn             string
	ExclusiveStartShardID string `json:"ExclusiveStartShardId"`
}) ([]byte, error) {
	o := newObject()
	err := s.withStream(in.StreamArn, func(records *bbolt.Bucket, m *stream) error {
		o.nested("StreamDescription", func() {
			o.float("CreationRequestDateTime", float64(m.Created.UnixMilli())/1000)
			o.value("KeySchema", m.KeySchema)
			o.text("StreamArn", m.ARN)
			o.text("StreamLabel", m.Label)
			o.text("StreamStatus", map[bool]string{false: "ENABLED", true: "DISABLED"}[m.Disabled])
			o.text("StreamViewType", m.ViewType)
			o.text("TableName", m.TableName)
			shards := 1
			if in.ExclusiveStartShardID >= shardID {
				shards = 0
			}
			o.list("Shards", shards, func(int) {
				o.open()
				o.text("ShardId", shardID)
				o.nested("SequenceNumberRange", func() {
					o.text("StartingSequenceNumber", fmt.Sprintf(firstSequence, 1))
					if m.Disabled {
						o.text("EndingSequenceNumber", fmt.Sprintf(firstSequence, records.Sequence()+1))
					}
				})
				o.close()
			})
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return o.done(), nil
}

// iterator is a position in a stream.
type iterator struct {
	next    uint64 // next is the number of the next record
	created time.Time
	arn     string
}

// String returns the iterator as clients get it.
func (i iterator) String() string {
	return base64.URLEncoding.EncodeToString(fmt.Appendf(nil, "%d|%d|%s", i.next, i.created.UnixMilli(), i.arn))
}

// parseIterator decodes an iterator. It returns a ValidationException.
func parseIterator(text string) (i iterator, _ error) {
	decoded, err := base64.URLEncoding.DecodeString(text)
	parts := strings.SplitN(string(decoded), "|", 3)
	if err != nil || len(parts) != 3 {
		return i, invalid("Invalid ShardIterator")
	}
	var created int64
	if i.next, err = strconv.ParseUint(parts[0], 10, 64); err == nil {
		created, err = strconv.ParseInt(parts[1], 10, 64)
	}
	if err != nil {
		return i, invalid("Invalid ShardIterator")
	}
	i.created, i.arn = time.UnixMilli(created), parts[2]
	return i, nil
}

func (s *Store) getShardIterator(_ context.Context, in *struct {
	StreamArn         string
	ShardID           string `json:"ShardId"`
	ShardIteratorType string
	SequenceNumber    string
}) ([]byte, error) {
	v := &violations{}
	if in.ShardIteratorType == "" {
		v.null("shardIteratorType")
	}
	v.enum(in.ShardIteratorType, "shardIteratorType", "AFTER_SEQUENCE_NUMBER", "LATEST", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON")
	if err := v.error(); err != nil {
		return nil, err
	}
	i := iterator{created: s.now(), arn: in.StreamArn}
	err := s.withStream(in.StreamArn, func(records *bbolt.Bucket, m *stream) error {
		if in.ShardID != shardID {
			return &failure{kind: codeNotFound, message: "Requested resource not found: Shard does not exist"}
		}
		oldest := records.Sequence() + 1
		limit := s.now().Add(-streamLife).UnixMilli()
		cursor := records.Cursor()
		for k, stored := cursor.First(); k != nil; k, stored = cursor.Next() {
			if recordTime(stored) >= limit {
				oldest = binary.BigEndian.Uint64(k)
				break
			}
		}
		switch in.ShardIteratorType {
		case "LATEST":
			i.next = records.Sequence() + 1
			return nil
		case "TRIM_HORIZON":
			i.next = oldest
			return nil
		}
		number, err := strconv.ParseUint(strings.TrimPrefix(in.SequenceNumber, "1"), 10, 64)
		if err != nil || len(in.SequenceNumber) != 21 {
			return invalid("Invalid SequenceNumber")
		}
		if i.next = number; in.ShardIteratorType == "AFTER_SEQUENCE_NUMBER" {
			i.next++
		}
		if i.next < oldest {
			return trimmed()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	o := newObject()
	o.text("ShardIterator", i.String())
	return o.done(), nil
}

// trimmed returns the error for a position before the oldest record.
func trimmed() error {
	return &failure{kind: codeTrimmed, message: "The operation attempted to read past the oldest stream record in a shard"}
}

func (s *Store) getRecords(_ context.Context, in *struct {
	ShardIterator string
	Limit         *int
}) ([]byte, error) {
	v := &violations{}
	limit := 1000
	if in.Limit != nil {
		limit = *in.Limit
		v.atLeast(limit, 1, "limit")
		v.atMost(limit, 1000, "limit")
	}
	if err := v.error(); err != nil {
		return nil, err
	}
	i, err := parseIterator(in.ShardIterator)
	if err != nil {
		return nil, err
	}
	now := s.now()
	if now.Sub(i.created) > iteratorLife {
		return nil, &failure{kind: codeOldIterator, message: "The shard iterator has expired: request a new one"}
	}
	o := newObject()
	err = s.withStream(i.arn, func(records *bbolt.Bucket, m *stream) error {
		var found [][]byte
		size := 0
		oldest := now.Add(-streamLife).UnixMilli()
		cursor := records.Cursor()
		k, stored := cursor.Seek(recordKey(i.next))
		if i.next <= records.Sequence() && !bytes.Equal(k, recordKey(i.next)) {
			return trimmed() // the record has been deleted
		}
		for ; k != nil && len(found) < limit && (size == 0 || size+len(stored) <= maxPage); k, stored = cursor.Next() {
			if recordTime(stored) < oldest {
				return trimmed()
			}
			found = append(found, stored[8:])
			size += len(stored)
			i.next = binary.BigEndian.Uint64(k) + 1
		}
		o.list("Records", len(found), func(n int) { o.element(found[n]) })
		if !m.Disabled || k != nil {
			i.created = now
			o.text("NextShardIterator", i.String())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return o.done(), nil
}

// dropOldStreams deletes disabled streams without records of the last 24 hours.
func (c *change) dropOldStreams() error {
	b := c.tx.Bucket(bucketStreams)
	limit := c.now().Add(-streamLife).UnixMilli()
	var old [][]byte
	err := b.ForEachBucket(func(arn []byte) error {
		m, err := parseStream(b.Bucket(arn))
		if err != nil || !m.Disabled {
			return err
		}
		_, newest := b.Bucket(arn).Bucket(bucketRecords).Cursor().Last()
		if newest == nil && m.Created.UnixMilli() < limit || newest != nil && recordTime(newest) < limit {
			old = append(old, bytes.Clone(arn))
		}
		return nil
	})
	for _, arn := range old {
		c.changed = true
		if err := b.DeleteBucket(arn); err != nil {
			return err
		}
	}
	return err
}
