package embedded_test

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ordergraph/ordergraph/embedded"
)

// streams is a client of a stream.
type streams struct {
	*dynamodbstreams.Client
	arn, shard string
}

// newStreams returns a client of the latest stream of the table "items".
func newStreams(t *testing.T, s *embedded.Store) *streams {
	t.Helper()
	table, err := s.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("items")})
	if err != nil {
		t.Fatal(err)
	}
	c := &streams{arn: aws.ToString(table.Table.LatestStreamArn), Client: dynamodbstreams.New(dynamodbstreams.Options{
		BaseEndpoint: aws.String("http://embedded.invalid"), Region: "local", HTTPClient: s, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("embedded", "embedded", ""),
	})}
	shards := c.describe(t).Shards
	if len(shards) != 1 {
		t.Fatalf("the stream has %d shards, want 1", len(shards))
	}
	c.shard = aws.ToString(shards[0].ShardId)
	return c
}

func (c *streams) describe(t *testing.T) *streamtypes.StreamDescription {
	t.Helper()
	out, err := c.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &c.arn})
	if err != nil {
		t.Fatal(err)
	}
	return out.StreamDescription
}

// iterator returns a shard iterator. sequence is "" for the types without a sequence number.
func (c *streams) iterator(ctx context.Context, kind streamtypes.ShardIteratorType, sequence string) (string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &c.arn, ShardId: &c.shard, ShardIteratorType: kind}
	if sequence != "" {
		in.SequenceNumber = &sequence
	}
	out, err := c.GetShardIterator(ctx, in)
	if err != nil {
		return "", err
	}
	return *out.ShardIterator, nil
}

// read returns one page of records.
func (c *streams) read(ctx context.Context, iterator string, limit int32) (page []streamtypes.Record, next *string, _ error) {
	in := &dynamodbstreams.GetRecordsInput{ShardIterator: &iterator}
	if limit > 0 {
		in.Limit = &limit
	}
	out, err := c.GetRecords(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	return out.Records, out.NextShardIterator, nil
}

// records returns one page of records from an iterator type.
func (c *streams) records(t *testing.T, kind streamtypes.ShardIteratorType, sequence string) []streamtypes.Record {
	t.Helper()
	i, err := c.iterator(t.Context(), kind, sequence)
	if err != nil {
		t.Fatal(err)
	}
	page, _, err := c.read(t.Context(), i, 0)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// image returns an item of a stream as text.
func image(i map[string]streamtypes.AttributeValue) string {
	var attributes []string
	for name, v := range i {
		switch v := v.(type) {
		case *streamtypes.AttributeValueMemberS:
			attributes = append(attributes, name+"="+v.Value)
		case *streamtypes.AttributeValueMemberN:
			attributes = append(attributes, name+"="+v.Value)
		default:
			attributes = append(attributes, fmt.Sprintf("%s=%v", name, v))
		}
	}
	slices.Sort(attributes)
	return strings.Join(attributes, ",")
}

// keysOfRecords returns the keys of records.
func keysOfRecords(records []streamtypes.Record) (keys []string) {
	for _, r := range records {
		keys = append(keys, strings.TrimPrefix(image(r.Dynamodb.Keys), "pk="))
	}
	return keys
}

// All view types have the keys. Each has its images, and no record is about an unchanged item.
func TestStreamViews(t *testing.T) {
	t.Parallel()
	for view, want := range map[types.StreamViewType][]string{
		types.StreamViewTypeNewAndOldImages: {"INSERT pk=a  -> n=1,pk=a", "MODIFY pk=a n=1,pk=a -> n=2,pk=a", "REMOVE pk=a n=2,pk=a -> "},
		types.StreamViewTypeNewImage:        {"INSERT pk=a  -> n=1,pk=a", "MODIFY pk=a  -> n=2,pk=a", "REMOVE pk=a  -> "},
		types.StreamViewTypeOldImage:        {"INSERT pk=a  -> ", "MODIFY pk=a n=1,pk=a -> ", "REMOVE pk=a n=2,pk=a -> "},
		types.StreamViewTypeKeysOnly:        {"INSERT pk=a  -> ", "MODIFY pk=a  -> ", "REMOVE pk=a  -> "},
	} {
		t.Run(string(view), func(t *testing.T) {
			t.Parallel()
			s, now := newStore(t, withStream(view))
			c := newStreams(t, s)
			putItem(t, s, newItem("a", "n", 1))
			putItem(t, s, newItem("a", "n", 1))
			putItem(t, s, newItem("a", "n", 2))
			deleteItem(t, s, "a")
			deleteItem(t, s, "a")
			records := c.records(t, streamtypes.ShardIteratorTypeTrimHorizon, "")
			var got []string
			ids := map[string]bool{}
			for _, r := range records {
				got = append(got, fmt.Sprintf("%s %s %s -> %s", r.EventName, image(r.Dynamodb.Keys), image(r.Dynamodb.OldImage), image(r.Dynamodb.NewImage)))
				ids[*r.EventID] = true
				if string(r.Dynamodb.StreamViewType) != string(view) || !r.Dynamodb.ApproximateCreationDateTime.Equal(now.Now()) || r.UserIdentity != nil ||
					*r.EventSource != "aws:dynamodb" || *r.AwsRegion != "local" || *r.Dynamodb.SizeBytes < 3 {
					t.Errorf("the record has unexpected metadata: %+v, %+v", r, r.Dynamodb)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the records are\n%q, want\n%q", got, want)
			}
			if len(ids) != len(want) {
				t.Errorf("%d records have %d different IDs", len(want), len(ids))
			}
			if got := c.describe(t); string(got.StreamViewType) != string(view) || got.StreamStatus != streamtypes.StreamStatusEnabled || *got.TableName != "items" ||
				len(got.KeySchema) != 1 || got.Shards[0].SequenceNumberRange.EndingSequenceNumber != nil || *got.Shards[0].SequenceNumberRange.StartingSequenceNumber != *records[0].Dynamodb.SequenceNumber {
				t.Errorf("DescribeStream returned %+v", got)
			}
		})
	}
}

// A stream record has values of all types.
func TestStreamValues(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, withStream(types.StreamViewTypeNewImage))
	putItem(t, s, allTypes("a"))
	got := newStreams(t, s).records(t, streamtypes.ShardIteratorTypeTrimHorizon, "")[0].Dynamodb.NewImage
	want := map[string]streamtypes.AttributeValue{
		"pk": &streamtypes.AttributeValueMemberS{Value: "a"}, "s": &streamtypes.AttributeValueMemberS{Value: "text"},
		"n": &streamtypes.AttributeValueMemberN{Value: "12345678901234567890.5"}, "b": &streamtypes.AttributeValueMemberB{Value: []byte{0, 255}},
		"bool": &streamtypes.AttributeValueMemberBOOL{Value: true}, "null": &streamtypes.AttributeValueMemberNULL{Value: true},
		"m": &streamtypes.AttributeValueMemberM{Value: map[string]streamtypes.AttributeValue{"l": &streamtypes.AttributeValueMemberL{Value: []streamtypes.AttributeValue{
			&streamtypes.AttributeValueMemberS{Value: ""}, &streamtypes.AttributeValueMemberBOOL{}, &streamtypes.AttributeValueMemberM{Value: map[string]streamtypes.AttributeValue{}}}}}},
		"l":  &streamtypes.AttributeValueMemberL{Value: []streamtypes.AttributeValue{}},
		"ss": &streamtypes.AttributeValueMemberSS{Value: []string{"a", "b"}}, "ns": &streamtypes.AttributeValueMemberNS{Value: []string{"1", "20"}},
		"bs": &streamtypes.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the new image is %s, want %s", image(got), image(want))
	}
}

// The four types of iterators begin at their positions. A page ends at Limit.
func TestStreamIterators(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, withStream(types.StreamViewTypeKeysOnly))
	c := newStreams(t, s)
	empty, err := c.iterator(t.Context(), streamtypes.ShardIteratorTypeTrimHorizon, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, pk := range []string{"a", "b", "c"} {
		putItem(t, s, newItem(pk))
	}
	all := c.records(t, streamtypes.ShardIteratorTypeTrimHorizon, "")
	if got := keysOfRecords(all); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatalf("from the beginning, the records are %q", got)
	}
	second := *all[1].Dynamodb.SequenceNumber
	if got := keysOfRecords(c.records(t, streamtypes.ShardIteratorTypeAtSequenceNumber, second)); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("AT_SEQUENCE_NUMBER of the second record returned %q", got)
	}
	if got := keysOfRecords(c.records(t, streamtypes.ShardIteratorTypeAfterSequenceNumber, second)); !slices.Equal(got, []string{"c"}) {
		t.Errorf("AFTER_SEQUENCE_NUMBER of the second record returned %q", got)
	}
	latest, err := c.iterator(t.Context(), streamtypes.ShardIteratorTypeLatest, "")
	if err != nil {
		t.Fatal(err)
	}
	putItem(t, s, newItem("d"))
	if got, _, err := c.read(t.Context(), latest, 0); err != nil || !slices.Equal(keysOfRecords(got), []string{"d"}) {
		t.Errorf("LATEST returned %q, %v, want the record after the iterator", keysOfRecords(got), err)
	}
	var pages [][]string
	for i := empty; len(pages) < 4; {
		page, next, err := c.read(t.Context(), i, 2)
		if err != nil || next == nil {
			t.Fatalf("page %d: %v", len(pages), err)
		}
		pages, i = append(pages, keysOfRecords(page)), *next
		if len(pages) == 3 {
			putItem(t, s, newItem("e"))
		}
	}
	if want := [][]string{{"a", "b"}, {"c", "d"}, nil, {"e"}}; !reflect.DeepEqual(pages, want) {
		t.Errorf("with a limit of 2, the pages are %q, want %q", pages, want)
	}

	for name, c := range map[string]struct {
		request func() error
		want    string
	}{
		"a limit of 1001":     {func() error { _, _, err := c.read(t.Context(), latest, 1001); return err }, "ValidationException"},
		"an invalid iterator": {func() error { _, _, err := c.read(t.Context(), "AAAA", 0); return err }, "ValidationException"},
		"no sequence number": {func() error {
			_, err := c.iterator(t.Context(), streamtypes.ShardIteratorTypeAtSequenceNumber, "")
			return err
		}, "ValidationException"},
		"a malformed sequence number": {func() error {
			_, err := c.iterator(t.Context(), streamtypes.ShardIteratorTypeAtSequenceNumber, strings.Repeat("x", 21))
			return err
		}, "ValidationException"},
		"an unknown type": {func() error { _, err := c.iterator(t.Context(), "FIRST", ""); return err }, "ValidationException"},
		"an unknown shard": {func() error {
			_, err := (&streams{Client: c.Client, arn: c.arn, shard: "shardId-00000000000000000000-unknown"}).iterator(t.Context(), streamtypes.ShardIteratorTypeLatest, "")
			return err
		}, "ResourceNotFoundException"},
		"an unknown stream": {func() error {
			_, err := c.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(c.arn + "0")})
			return err
		}, "ResourceNotFoundException"},
	} {
		if got := errorCode(c.request()); got != c.want {
			t.Errorf("%s: the error is %q, want %q", name, got, c.want)
		}
	}
}

// A page has 1 MB at most, but always one record.
func TestStreamPageSize(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, withStream(types.StreamViewTypeNewImage))
	c := newStreams(t, s)
	for _, pk := range []string{"a", "b", "c", "d"} {
		putItem(t, s, newItem(pk, "v", strings.Repeat("x", 380_000)))
	}
	i, err := c.iterator(t.Context(), streamtypes.ShardIteratorTypeTrimHorizon, "")
	if err != nil {
		t.Fatal(err)
	}
	page, next, err := c.read(t.Context(), i, 0)
	if err != nil || !slices.Equal(keysOfRecords(page), []string{"a", "b"}) {
		t.Fatalf("the first page has %q, %v, want two records", keysOfRecords(page), err)
	}
	page, _, err = c.read(t.Context(), *next, 0)
	if err != nil || !slices.Equal(keysOfRecords(page), []string{"c", "d"}) {
		t.Errorf("the second page has %q, %v, want the other two records", keysOfRecords(page), err)
	}
}

// setStream enables or disables the stream of the table "items". view is "" to disable it.
func setStream(t *testing.T, s *embedded.Store, view types.StreamViewType) error {
	set := &types.StreamSpecification{StreamEnabled: aws.Bool(view != ""), StreamViewType: view}
	_, err := s.Client().UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("items"), StreamSpecification: set})
	return err
}

// listStreams returns the streams of a table, in pages of a size.
func (c *streams) listStreams(t *testing.T, table string, limit int32) (arns []string) {
	t.Helper()
	in := &dynamodbstreams.ListStreamsInput{TableName: &table, Limit: &limit}
	for {
		out, err := c.ListStreams(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range out.Streams {
			arns = append(arns, *stream.StreamArn)
		}
		if in.ExclusiveStartStreamArn = out.LastEvaluatedStreamArn; in.ExclusiveStartStreamArn == nil {
			return arns
		}
	}
}

// A disabled stream can be read to its end for 24 hours. A new stream begins empty.
func TestDisabledStream(t *testing.T) {
	t.Parallel()
	s, now := newStore(t, withStream(types.StreamViewTypeKeysOnly))
	createTable(t, s, "others", withStream(types.StreamViewTypeKeysOnly))
	first := newStreams(t, s)
	putItem(t, s, newItem("a"))
	putItem(t, s, newItem("b"))
	if err := setStream(t, s, types.StreamViewTypeKeysOnly); errorCode(err) != "ValidationException" {
		t.Errorf("enabling an enabled stream returned %v", err)
	}
	if err := setStream(t, s, ""); err != nil {
		t.Fatal(err)
	}
	if err := setStream(t, s, ""); errorCode(err) != "ValidationException" {
		t.Errorf("disabling a disabled stream returned %v", err)
	}
	putItem(t, s, newItem("without a stream"))
	if got := first.describe(t); got.StreamStatus != streamtypes.StreamStatusDisabled || got.Shards[0].SequenceNumberRange.EndingSequenceNumber == nil {
		t.Errorf("DescribeStream of the disabled stream returned %+v", got)
	}
	i, err := first.iterator(t.Context(), streamtypes.ShardIteratorTypeTrimHorizon, "")
	if err != nil {
		t.Fatal(err)
	}
	page, next, err := first.read(t.Context(), i, 1)
	if err != nil || !slices.Equal(keysOfRecords(page), []string{"a"}) || next == nil {
		t.Fatalf("the first page of the disabled stream has %q, %v, %v", keysOfRecords(page), next, err)
	}
	page, next, err = first.read(t.Context(), *next, 1)
	if err != nil || !slices.Equal(keysOfRecords(page), []string{"b"}) || next != nil {
		t.Errorf("the last page of the disabled stream has %q and the next iterator %v, %v, want none", keysOfRecords(page), next, err)
	}

	if err := setStream(t, s, types.StreamViewTypeNewImage); err != nil {
		t.Fatal(err)
	}
	second := newStreams(t, s)
	putItem(t, s, newItem("c"))
	if got := keysOfRecords(second.records(t, streamtypes.ShardIteratorTypeTrimHorizon, "")); second.arn == first.arn || !slices.Equal(got, []string{"c"}) {
		t.Errorf("the new stream has the records %q", got)
	}
	if got := first.listStreams(t, "items", 1); len(got) != 2 || !slices.Contains(got, first.arn) || !slices.Contains(got, second.arn) {
		t.Errorf("ListStreams returned %q, want both streams", got)
	}
	out, err := first.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{})
	if err != nil || len(out.Streams) != 3 {
		t.Errorf("ListStreams of all tables returned %v, %v, want three streams", out, err)
	}

	now.advance(24*time.Hour + time.Second)
	if err := s.Expire(); err != nil {
		t.Fatal(err)
	}
	if got := first.listStreams(t, "items", 100); !slices.Equal(got, []string{second.arn}) {
		t.Errorf("a day later, ListStreams returned %q, want only the enabled stream", got)
	}
}

// The stream of a deleted table can be read.
func TestStreamOfDeletedTable(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, withStream(types.StreamViewTypeKeysOnly))
	c := newStreams(t, s)
	putItem(t, s, newItem("a"))
	if _, err := s.Client().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("items")}); err != nil {
		t.Fatal(err)
	}
	createTable(t, s, "items", withStream(types.StreamViewTypeKeysOnly))
	if got := c.describe(t).StreamStatus; got != streamtypes.StreamStatusDisabled {
		t.Errorf("the stream of the deleted table is %s", got)
	}
	if got := keysOfRecords(c.records(t, streamtypes.ShardIteratorTypeTrimHorizon, "")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the stream of the deleted table has the records %q", got)
	}
	if got := newStreams(t, s).records(t, streamtypes.ShardIteratorTypeTrimHorizon, ""); len(got) != 0 {
		t.Errorf("the stream of the new table begins with the records %q", keysOfRecords(got))
	}
}

// Records are trimmed after 24 hours: they can no longer be read, and later writes delete them.
func TestTrimmedRecords(t *testing.T) {
	t.Parallel()
	s, now := newStore(t, withStream(types.StreamViewTypeKeysOnly))
	c := newStreams(t, s)
	for _, pk := range []string{"a", "b"} {
		putItem(t, s, newItem(pk))
	}
	now.advance(time.Hour)
	putItem(t, s, newItem("c"))
	now.advance(23*time.Hour - time.Minute)
	all := c.records(t, streamtypes.ShardIteratorTypeTrimHorizon, "")
	if got := keysOfRecords(all); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatalf("before 24 hours, the records are %q", got)
	}
	number := func(record int) string { return *all[record].Dynamodb.SequenceNumber }
	old, err := c.iterator(t.Context(), streamtypes.ShardIteratorTypeTrimHorizon, "")
	if err != nil {
		t.Fatal(err)
	}
	at := func(kind streamtypes.ShardIteratorType, sequence string) error {
		_, err := c.iterator(t.Context(), kind, sequence)
		return err
	}
	checkTrimmed := func(when string) {
		t.Helper()
		if got := keysOfRecords(c.records(t, streamtypes.ShardIteratorTypeTrimHorizon, "")); len(got) == 0 || got[0] != "c" {
			t.Errorf("%s: TRIM_HORIZON returned %q, want the records since c", when, got)
		}
		if _, _, err := c.read(t.Context(), old, 0); errorCode(err) != "TrimmedDataAccessException" {
			t.Errorf("%s: an iterator before the oldest record returned %v, want TrimmedDataAccessException", when, err)
		}
		if err := at(streamtypes.ShardIteratorTypeAtSequenceNumber, number(1)); errorCode(err) != "TrimmedDataAccessException" {
			t.Errorf("%s: AT_SEQUENCE_NUMBER of a trimmed record returned %v, want TrimmedDataAccessException", when, err)
		}
		if err := at(streamtypes.ShardIteratorTypeAfterSequenceNumber, number(0)); errorCode(err) != "TrimmedDataAccessException" {
			t.Errorf("%s: AFTER_SEQUENCE_NUMBER before a trimmed record returned %v, want TrimmedDataAccessException", when, err)
		}
		if got := keysOfRecords(c.records(t, streamtypes.ShardIteratorTypeAfterSequenceNumber, number(1))); len(got) == 0 || got[0] != "c" {
			t.Errorf("%s: AFTER_SEQUENCE_NUMBER of the last trimmed record returned %q, want the records since c", when, got)
		}
	}
	now.advance(2 * time.Minute)
	checkTrimmed("after 24 hours")
	putItem(t, s, newItem("d"))
	if got := s.StoredRecords(c.arn); got != 2 {
		t.Errorf("after a write, %d records are stored, want 2", got)
	}
	checkTrimmed("after a write")

	// All records are trimmed.
	if old, err = c.iterator(t.Context(), streamtypes.ShardIteratorTypeTrimHorizon, ""); err != nil {
		t.Fatal(err)
	}
	now.advance(48 * time.Hour)
	if got := c.records(t, streamtypes.ShardIteratorTypeTrimHorizon, ""); len(got) != 0 {
		t.Errorf("after two days, the records are %q", keysOfRecords(got))
	}
	putItem(t, s, newItem("e"))
	if got := keysOfRecords(c.records(t, streamtypes.ShardIteratorTypeTrimHorizon, "")); !slices.Equal(got, []string{"e"}) {
		t.Errorf("after two days and a write, the records are %q", got)
	}
}

// An iterator can be used for 15 minutes. Each page has a new iterator.
func TestExpiredIterator(t *testing.T) {
	t.Parallel()
	s, now := newStore(t, withStream(types.StreamViewTypeKeysOnly))
	c := newStreams(t, s)
	i, err := c.iterator(t.Context(), streamtypes.ShardIteratorTypeLatest, "")
	if err != nil {
		t.Fatal(err)
	}
	now.advance(15 * time.Minute)
	_, next, err := c.read(t.Context(), i, 0)
	if err != nil {
		t.Fatalf("after 15 minutes: %v", err)
	}
	now.advance(time.Millisecond)
	if _, _, err := c.read(t.Context(), i, 0); errorCode(err) != "ExpiredIteratorException" {
		t.Errorf("after more than 15 minutes, GetRecords returned %v, want ExpiredIteratorException", err)
	}
	if _, _, err := c.read(t.Context(), *next, 0); err != nil {
		t.Errorf("with the iterator of the last page: %v", err)
	}
}

// Records keep the order of the commits, also of concurrent writers, and survive Close and Open.
func TestReopenedStream(t *testing.T) {
	t.Parallel()
	path, now := filepath.Join(t.TempDir(), "store.db"), newClock()
	s := open(t, path, now.Now)
	createTable(t, s, "items", withStream(types.StreamViewTypeNewImage))
	release := holdCommit(t, s)
	var results []func() error
	var want []string
	for n := range 10 {
		results = append(results, background(t, s, put(s, newItem("a", "n", n))))
		want = append(want, fmt.Sprintf("n=%d,pk=a", n))
	}
	release()
	for _, result := range results {
		if err := result(); err != nil {
			t.Error(err)
		}
	}
	c := newStreams(t, s)
	i, err := c.iterator(t.Context(), streamtypes.ShardIteratorTypeTrimHorizon, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c = newStreams(t, open(t, path, now.Now))
	records, _, err := c.read(t.Context(), i, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for n, r := range records {
		got = append(got, image(r.Dynamodb.NewImage))
		if n > 0 && *r.Dynamodb.SequenceNumber <= *records[n-1].Dynamodb.SequenceNumber {
			t.Errorf("the sequence number %s follows %s", *r.Dynamodb.SequenceNumber, *records[n-1].Dynamodb.SequenceNumber)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the records are %q, want %q", got, want)
	}
}
