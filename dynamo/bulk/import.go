package bulk

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/semaphore"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// What an import holds at once.
const (
	// maxLine is how long a line can be. A record of DynamoDB's 400 KB takes up to 3.6 MB as JSON:
	// an empty string in a list counts as one byte and is written in nine.
	maxLine = 4 << 20
	// importBytes is how many bytes of lines are worked on at once, however many records these are;
	// MaxParallel of them at most. A longer line is worked on alone.
	importBytes = 8 << 20
	// lookahead is how many lines may be done before an earlier one is.
	lookahead = 1024
)

// namedLines is how many conflicts an import names, and how many lines that it left out.
const namedLines = 20

// Imported is what an import has done with all lines up to Offset. It does not count lines behind
// Offset, which may be written as well.
type Imported struct {
	// Offset is where the first line begins that is not done, in bytes, and Lines how many lines
	// are before it.
	Offset int64 `json:"offset"`
	Lines  int   `json:"lines"`
	// Written were not there, Replaced were there and differed, Unchanged were there and were the
	// same. LeftOut are idempotency records.
	Written   int `json:"written"`
	Replaced  int `json:"replaced"`
	Unchanged int `json:"unchanged"`
	LeftOut   int `json:"leftOut"`
	// Conflicts were there, differed, and were kept. ConflictKeys are the keys of the first 20.
	Conflicts    int         `json:"conflicts"`
	ConflictKeys []RecordKey `json:"conflictKeys,omitempty"`
	// Beside reports whether the table had records when the import began.
	Beside bool `json:"beside,omitempty"`
	// Unreadable are lines that cannot be imported, of which BadLines are the first 20.
	Unreadable int       `json:"unreadable,omitempty"`
	BadLines   []BadLine `json:"badLines,omitempty"`
}

// BadLine is a line that cannot be imported.
type BadLine struct {
	// Line counts from 1.
	Line    int    `json:"line"`
	Problem string `json:"problem"`
}

// Records is how many lines held one, be it a bad one.
func (done Imported) Records() int {
	return done.Written + done.Replaced + done.Unchanged + done.LeftOut + done.Conflicts + done.Unreadable
}

// ImportOptions say how to import.
type ImportOptions struct {
	// Overwrite replaces records that are there and differ. Without it they are kept, and are
	// conflicts.
	Overwrite bool
	// DryRun reads what is there and writes nothing. Each line is compared with the table, not with
	// the lines before it. It goes on behind lines that cannot be imported.
	DryRun bool
	// SkipUnreadable leaves lines out that cannot be imported. Without it the first one ends the
	// import.
	SkipUnreadable bool
	// From is what an earlier import of the same lines has done; the input begins at its Offset.
	From Imported
	// Done, where it is set, is told after each line what has been done; an error ends the import.
	Done func(Imported) error
}

// LineError says which line cannot be imported, and why.
type LineError struct {
	// Line counts from 1.
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Import writes the records of lines as Export makes them, many at once, and returns what it has
// done. It writes what is not there and skips what is there and the same, so that importing twice
// equals importing once, and an import that ended early can go on from what it returned. Of lines
// with one key, the first counts, or with Overwrite the last. Index keys become those of this
// table, whatever its number of shards. It holds some tens of megabytes, however long r is.
//
// The first line that cannot be imported ends it, unless such are left out, and so do a line longer
// than any record's and the end of ctx. Import waits for the writes that have begun. A line that
// DynamoDB refuses is found while lines behind it are being written, so some of them may be in the
// table. Importing again is safe: it skips what is there and the same. A read of r that is under
// way when ctx ends may still go on when Import has returned.
//
// Errors: LineError for a line that is no record or that DynamoDB refuses; Done's and r's;
// ErrUnavailable, ErrNoTable, ErrAccessDenied, the context's.
func (t Transfers) Import(ctx context.Context, r io.Reader, opts ImportOptions) (Imported, error) {
	if opts.From.Offset == 0 {
		beside, err := t.hasRecords(ctx)
		if err != nil {
			return opts.From, err
		}
		opts.From.Beside = beside
	}
	i := &importer{
		numbers: &importedNumbers{Transfers: t, done: map[model.Keys]bool{}},
		table:   t.table, opts: opts, texts: make(chan textLine), lines: make(chan *importLine, lookahead),
		slots: semaphore.NewWeighted(importBytes), busy: map[model.Keys]*importLine{},
	}
	// Ends the reading of lines, not the writing of those that were read.
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go i.read(reading, r)
	go i.begin(ctx, reading)
	return i.collect(stop)
}

// importer is an import under way. Lines go from read, which may wait for input for ever, through
// begin, which starts a goroutine to write each, to collect, which waits for what came of them, in
// their order.
type importer struct {
	table *table.Table
	opts  ImportOptions
	texts chan textLine
	lines chan *importLine
	// slots are bytes of importBytes.
	slots   *semaphore.Weighted
	numbers *importedNumbers

	mu sync.Mutex
	// busy are the last lines of all keys that are being written, or could not be.
	busy map[model.Keys]*importLine
}

// textLine is a line as it was read, or why there is none.
type textLine struct {
	text []byte
	err  error
}

// importLine is a line on its way.
type importLine struct {
	bytes int64
	// key is empty for a line that holds no record to write.
	key model.Keys
	// done is closed when outcome and err are known.
	done    chan struct{}
	outcome outcome
	err     error
	// bad is why an unreadable line is.
	bad *LineError
}

// fail ends the import, but for a line that can be left out.
func (l *importLine) fail(err error, skip bool) {
	if skip && errors.As(err, &l.bad) {
		l.outcome, err = unreadable, nil
	}
	l.err = err
}

// outcome is what came of a line.
type outcome int

const (
	blank outcome = iota
	leftOut
	written
	replaced
	unchanged
	conflicting
	unreadable
)

// read reads lines until there are no more, or nobody wants them.
func (i *importer) read(reading context.Context, r io.Reader) {
	defer close(i.texts)
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		text, err := readLine(in)
		if errors.Is(err, io.EOF) && len(text) > 0 {
			err = nil // the last line needs no end, and the next read ends the file
		}
		select {
		case i.texts <- textLine{text, err}:
		case <-reading.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line with its end, and no more of it than a line may have.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, &LineError{Err: fmt.Errorf("is longer than %d bytes, which no record is", maxLine)}
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// next is the next line; reading may end before it comes.
//
// Errors: io.EOF where there is none, those of readLine, and why reading ended.
func (i *importer) next(reading context.Context) ([]byte, error) {
	select {
	case line := <-i.texts:
		return line.text, line.err
	case <-reading.Done():
		return nil, context.Cause(reading)
	}
}

// begin starts to write lines until there are no more, one cannot be done, or reading ends. What it
// starts goes on under ctx, which outlives reading.
func (i *importer) begin(ctx, reading context.Context) {
	defer close(i.lines)
	for {
		text, err := i.next(reading)
		if errors.Is(err, io.EOF) {
			return
		}
		line := &importLine{bytes: int64(len(text)), done: make(chan struct{})}
		var rec model.Record
		if err == nil {
			if line.outcome, rec, err = i.parseLine(text); err != nil {
				line.fail(err, i.skips())
				err = line.err
			}
		}
		weight := min(max(line.bytes, importBytes/table.MaxParallel), importBytes)
		if err == nil && rec != nil {
			err = i.slots.Acquire(reading, weight)
		}
		if err == nil && rec != nil {
			i.start(ctx, line, rec, weight)
			continue
		}
		line.err = err
		close(line.done)
		i.lines <- line
		if err != nil {
			return
		}
	}
}

// skips reports whether it goes on behind a line that cannot be imported.
func (i *importer) skips() bool { return i.opts.SkipUnreadable || i.opts.DryRun }

// parseLine returns the record of a line as it is to be written, none where the line is blank or
// left out.
//
// Errors: LineError.
func (i *importer) parseLine(text []byte) (outcome, model.Record, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return blank, nil, nil
	}
	rec, err := fromJSON(text)
	if err == nil {
		err = checkKeys(rec, model.AttrPK, model.AttrSK)
	}
	if err != nil {
		return 0, nil, &LineError{Err: err}
	}
	if isIdempotency(rec) {
		return leftOut, nil, nil
	}
	if rec, err = i.table.Reindexed(rec); err != nil {
		return 0, nil, &LineError{Err: err}
	}
	// DynamoDB accepts a record that has only one of the keys of the index, and does not index it.
	var indexKeys []string
	for _, name := range []string{model.AttrIndexPK, model.AttrIndexSK} {
		if rec[name] != nil {
			indexKeys = append(indexKeys, name)
		}
	}
	err = checkKeys(rec, indexKeys...)
	if size := model.SizeOf(rec); err == nil && size > maxRecord {
		err = fmt.Errorf("record %s has %d bytes, DynamoDB holds %d", rec.KeyText(), size, maxRecord)
	}
	if err != nil {
		return 0, nil, &LineError{Err: err}
	}
	return 0, rec, nil
}

// DynamoDB's limits for a record and its keys, in bytes:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	maxRecord       = 400 << 10
	maxPartitionKey = 2048
	maxSortKey      = 1024
)

// checkKeys reports what is wrong with the first of some key attributes that is not a key.
//
// Errors: ErrCorrupt.
func checkKeys(r model.Record, names ...string) error {
	at := model.Reader{Record: r}
	for _, name := range names {
		most := maxPartitionKey
		if name == model.AttrSK || name == model.AttrIndexSK {
			most = maxSortKey
		}
		switch key := at.MustText(name); {
		case key == "":
			at.Fail(name, "is empty, which no key can be")
		case len(key) > most:
			at.Fail(name, fmt.Sprintf("has %d bytes, and that key at most %d", len(key), most))
		}
	}
	return at.Err()
}

// start writes a record as soon as all earlier lines of its key are done, which have begun before
// it.
func (i *importer) start(ctx context.Context, line *importLine, rec model.Record, weight int64) {
	key := model.KeyOf(rec)
	line.key = key
	i.mu.Lock()
	before := i.busy[key]
	i.busy[key] = line
	i.mu.Unlock()
	i.lines <- line
	go func() {
		defer i.slots.Release(weight)
		defer close(line.done)
		if before != nil {
			<-before.done
			line.err = before.err // were this one written, it would be there first when the import goes on
		}
		if line.err == nil {
			var err error
			if line.outcome, err = i.putBeside(ctx, key, rec); err != nil {
				line.fail(err, i.skips())
			}
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if line.err == nil && i.busy[key] == line {
			delete(i.busy, key)
		}
	}()
}

// putAttempts is how often a record is written that others write and delete at the same time.
const putAttempts = 12

// putBeside is put for a table that may have had records: it takes away the numbers of orders that
// the record makes wrong.
//
// Errors: those of put.
func (i *importer) putBeside(ctx context.Context, key model.Keys, rec model.Record) (outcome, error) {
	if i.opts.From.Beside && !i.opts.DryRun && i.numbers.numberOf(rec).PK != "" {
		old, err := i.current(ctx, key)
		if err == nil && (old == nil || i.opts.Overwrite) {
			err = i.numbers.forget(ctx, old, rec)
		}
		if err != nil {
			return 0, err
		}
	}
	met, err := i.put(ctx, key, rec)
	if met == written && err == nil {
		i.numbers.finished(key)
	}
	return met, err
}

// put writes a record, or finds out why it need not be written.
//
// Errors: LineError where DynamoDB does not take the record; those of failed.
func (i *importer) put(ctx context.Context, key model.Keys, rec model.Record) (outcome, error) {
	if i.opts.DryRun {
		old, err := i.current(ctx, key)
		if err != nil || old == nil {
			return written, err
		}
		return i.meet(old, rec), nil
	}
	for range putAttempts {
		old, err := i.putIfAbsent(ctx, key, rec)
		if err == nil && old == nil {
			return written, nil
		}
		if err == nil && len(old) == 0 {
			old, err = i.current(ctx, key)
		}
		if err != nil {
			return 0, err
		}
		if old == nil {
			continue // somebody has deleted it meanwhile
		}
		met := i.meet(old, rec)
		if met == replaced {
			var changed bool
			if changed, err = i.replace(ctx, key, old, rec); changed {
				continue
			}
		}
		return met, err
	}
	return 0, fmt.Errorf("%w: record %s %s comes and goes", table.ErrUnavailable, key.PK, key.SK)
}

// meet is the outcome for a record where another is there.
func (i *importer) meet(old, rec model.Record) outcome {
	if i.opts.From.Beside {
		rec = adopted(old, rec)
	}
	switch {
	case model.SameRecord(old, rec):
		return unchanged
	case i.opts.Overwrite:
		return replaced
	default:
		return conflicting
	}
}

// putIfAbsent writes a record where there is none. Otherwise it returns the one that is there, or
// an empty one: some engines do not tell.
func (i *importer) putIfAbsent(ctx context.Context, key model.Keys, rec model.Record) (old model.Record, err error) {
	err = i.putItem(ctx, key, &dynamodb.PutItemInput{
		TableName: &i.table.Name, Item: rec,
		ConditionExpression:                 aws.String("attribute_not_exists(" + model.AttrPK + ")"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if there := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &there) {
		if there.Item == nil {
			return model.Record{}, nil
		}
		return there.Item, nil
	}
	return nil, err
}

// replace writes a record where old is. changed reports that it did not, as a number that it would
// keep is another one by now.
func (i *importer) replace(ctx context.Context, key model.Keys, old, rec model.Record) (changed bool, err error) {
	in := &dynamodb.PutItemInput{TableName: &i.table.Name, Item: rec}
	if names := keptNumbers(key); i.opts.From.Beside && len(names) > 0 {
		var e table.Expression
		in.Item, in.ConditionExpression = adopted(old, rec), aws.String(table.Still(old, names...)(&e))
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.Names, e.Values
	}
	err = i.putItem(ctx, key, in)
	if there := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &there) {
		return true, nil
	}
	return false, err
}

func (i *importer) putItem(ctx context.Context, key model.Keys, in *dynamodb.PutItemInput) error {
	_, err := i.table.Client.PutItem(ctx, in, i.table.Bulk)
	if err == nil {
		return nil
	}
	if api := smithy.APIError(nil); errors.As(err, &api) && api.ErrorCode() == "ValidationException" {
		return &LineError{Err: fmt.Errorf("record %s %s: DynamoDB does not take it: %s", key.PK, key.SK, api.ErrorMessage())}
	}
	return table.Failed("PutItem", key.PK+" "+key.SK, err)
}

// current is the record at a key as it is now, nil where there is none.
func (i *importer) current(ctx context.Context, key model.Keys) (model.Record, error) {
	out, err := i.table.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &i.table.Name, Key: key.Attributes(), ConsistentRead: aws.Bool(true)}, i.table.Bulk)
	if err != nil {
		return nil, table.Failed("GetItem", key.PK+" "+key.SK, err)
	}
	return out.Item, nil
}

// collect counts what came of the lines, in their order, until one has failed; then it stops the
// reading, and waits for what is begun.
func (i *importer) collect(stop context.CancelCauseFunc) (Imported, error) {
	done := i.opts.From
	var failure error
	for line := range i.lines {
		<-line.done
		if failure != nil {
			continue
		}
		if failure = line.err; failure == nil {
			done = done.with(line)
			if i.opts.Done != nil {
				failure = i.opts.Done(done)
			}
		}
		if bad := (*LineError)(nil); errors.As(failure, &bad) {
			bad.Line = done.Lines + 1
		}
		if failure != nil {
			stop(failure)
		}
	}
	return done, failure
}

// with is done and one line more.
func (done Imported) with(line *importLine) Imported {
	done.Offset += line.bytes
	done.Lines++
	switch line.outcome {
	case blank:
	case leftOut:
		done.LeftOut++
	case written:
		done.Written++
	case replaced:
		done.Replaced++
	case unchanged:
		done.Unchanged++
	case conflicting:
		done.Conflicts++
		if len(done.ConflictKeys) < namedLines {
			// A slice of its own: who was told the last one may keep it.
			done.ConflictKeys = append(slices.Clip(done.ConflictKeys), RecordKey{PK: line.key.PK, SK: line.key.SK})
		}
	case unreadable:
		done.Unreadable++
		if len(done.BadLines) < namedLines {
			done.BadLines = append(slices.Clip(done.BadLines), BadLine{Line: done.Lines, Problem: line.bad.Err.Error()})
		}
	}
	return done
}
