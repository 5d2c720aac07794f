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
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/semaphore"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Limits of the memory that an import uses.
const (
	// maxLine is the maximum length of a line in bytes. The largest DynamoDB record has 400 KB, but
	// its JSON can have 3.6 MB. For example, DynamoDB counts 1 byte for an empty string in a list, but
	// its JSON has 9 bytes.
	maxLine = 4 << 20
	// maxInFlightBytes is the maximum total size in bytes of the lines that are written at the same time.
	// Each line counts as at least 1/MaxParallel of this size, so at most MaxParallel lines are
	// written at the same time.
	maxInFlightBytes = 8 << 20
	// An import writes later lines while it is still writing an earlier line. maxPendingLines is the
	// maximum number of such later lines.
	maxPendingLines = 1024
)

// maxReportedLines is the maximum number of conflicts that an import reports individually. The same
// maximum applies to unreadable lines.
const maxReportedLines = 20

// ImportResult is the result of an import up to Offset. Lines after Offset may also have been
// written, but the result does not include them.
type ImportResult struct {
	// Offset is the position in bytes of the first line that has not been processed. Lines is the
	// number of lines before Offset.
	Offset int64 `json:"offset"`
	Lines  int   `json:"lines"`
	// Written counts new records. Replaced counts records that have replaced a different existing
	// record. Unchanged counts records that were equal to the existing record. LeftOut counts
	// idempotency records, which are not imported.
	Written   int `json:"written"`
	Replaced  int `json:"replaced"`
	Unchanged int `json:"unchanged"`
	LeftOut   int `json:"leftOut"`
	// Conflicts counts existing records that differed from the imported record and were kept.
	// ConflictKeys contains the keys of the first 20 of these records.
	Conflicts    int         `json:"conflicts"`
	ConflictKeys []RecordKey `json:"conflictKeys,omitempty"`
	// HadRecords reports whether the table had records when the import began. It is nil if the import
	// has not written anything.
	HadRecords *bool `json:"hadRecords,omitempty"`
	// Unreadable counts the lines that cannot be imported. BadLines contains the first 20 of these
	// lines.
	Unreadable int       `json:"unreadable,omitempty"`
	BadLines   []BadLine `json:"badLines,omitempty"`
}

// BadLine is a line that cannot be imported.
type BadLine struct {
	// Line is the number of the line, from 1.
	Line    int    `json:"line"`
	Problem string `json:"problem"`
}

// RecordCount returns the number of lines that are not blank.
func (done ImportResult) RecordCount() int {
	return done.Written + done.Replaced + done.Unchanged + done.LeftOut + done.Conflicts + done.Unreadable
}

// ImportOptions are the options of Import.
type ImportOptions struct {
	// Overwrite reports whether Import replaces an existing record that differs from the imported
	// record. Otherwise the existing record is kept and counted as a conflict.
	Overwrite bool
	// DryRun reports whether Import only compares each line with the table and writes nothing. Lines
	// are not compared with earlier lines. A dry run does not stop at lines that cannot be imported.
	DryRun bool
	// SkipUnreadable reports whether lines that cannot be imported are skipped. Otherwise the first
	// such line ends the import.
	SkipUnreadable bool
	// From is the result of an earlier import of the same lines. The import continues after this
	// result, so the input must begin at From.Offset.
	From ImportResult
	// Done, if set, is called after each line with the result up to this line. If Done returns an
	// error, the import ends.
	Done func(ImportResult) error
}

// LineError describes a line that cannot be imported.
type LineError struct {
	// Line is the number of the line, from 1.
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Import reads lines in the format of Export and writes their records, with concurrent requests. It
// skips a record if the table contains an equal record. So a second import of the same lines
// changes nothing, and an import that ended early can continue from its result. If several lines
// have the same key, the first line is imported, or the last line if Overwrite is set. The index
// keys of the records depend on the number of shards, so Import computes them again for this table.
// Import uses some tens of megabytes of memory for any input.
//
// Import ends at the first line that cannot be imported, unless such lines are skipped. It always
// ends at a line that is too long for a record, or when ctx ends. It waits for the writes that have
// begun. If DynamoDB rejects a line, later lines may already have been written. Importing these
// lines again is safe, because equal records are skipped. If ctx ends during a read of r, the read
// may continue after Import has returned.
//
// Errors: LineError for a line that contains no record or that DynamoDB rejects; the errors of Done
// and r; ErrUnavailable, ErrNoTable, ErrAccessDenied, the context's error.
func (t Transfers) Import(ctx context.Context, r io.Reader, opts ImportOptions) (ImportResult, error) {
	resumed := opts.From.HadRecords != nil
	if !resumed {
		hadRecords, err := t.hasRecords(ctx)
		if err != nil {
			return opts.From, err
		}
		opts.From.HadRecords = &hadRecords
	}
	i := &importer{
		numbers: &countInvalidator{Transfers: t, done: map[model.Keys]bool{}},
		table:   t.table, opts: opts, rawLines: make(chan rawLine), lines: make(chan *importLine, maxPendingLines),
		slots: semaphore.NewWeighted(maxInFlightBytes), lastLines: map[model.Keys]*importLine{},
	}
	i.begun.Store(resumed)
	// After this context is cancelled, no more lines are read, but the lines that were already read
	// are still written.
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go i.read(reading, r)
	go i.writeLines(ctx, reading)
	return i.collectResults(stop)
}

// importer is the state of an import. Three goroutines process the lines. read waits for input,
// possibly forever. begin starts another goroutine for each write. collect waits for the results of
// the writes, in the order of the lines.
type importer struct {
	table    *table.Table
	opts     ImportOptions
	rawLines chan rawLine
	lines    chan *importLine
	// slots limits the lines that are written at the same time: their total size is at most
	// maxInFlightBytes.
	slots   *semaphore.Weighted
	numbers *countInvalidator
	// begun reports whether a write has begun, in this import or in the earlier import that it
	// continues.
	begun atomic.Bool

	mu sync.Mutex
	// lastLines maps a key to the last line so far that has this key. It contains only lines that are
	// being written or have failed.
	lastLines map[model.Keys]*importLine
}

// rawLine is a line of the input, or the error that ended the reading of the input.
type rawLine struct {
	text []byte
	err  error
}

// importLine is a line that is being imported.
type importLine struct {
	bytes int64
	// key is the key of the record to write. It is empty if there is no record to write.
	key model.Keys
	// done is closed when outcome and err are set.
	done    chan struct{}
	outcome lineOutcome
	err     error
	// bad is the problem of an unreadable line.
	bad *LineError
}

// fail sets the line's error, which ends the import. If skip is set, a LineError is stored in the
// field bad instead, and the import continues.
func (l *importLine) fail(err error, skip bool) {
	if skip && errors.As(err, &l.bad) {
		l.outcome, err = outcomeUnreadable, nil
	}
	l.err = err
}

// lineOutcome is the result of a line.
type lineOutcome int

const (
	outcomeBlank lineOutcome = iota
	outcomeSkipped
	outcomeWritten
	outcomeReplaced
	outcomeUnchanged
	outcomeConflict
	outcomeUnreadable
)

// read reads lines until the input ends or its context is cancelled.
func (i *importer) read(reading context.Context, r io.Reader) {
	defer close(i.rawLines)
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		text, err := readLine(in)
		if errors.Is(err, io.EOF) && len(text) > 0 {
			err = nil // the last line may lack a line break; the next read returns io.EOF
		}
		select {
		case i.rawLines <- rawLine{text, err}:
		case <-reading.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line, including its line break. It returns an error if the line exceeds maxLine.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, &LineError{Err: fmt.Errorf("exceeds %d bytes, the maximum for a record", maxLine)}
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// next returns the next line.
//
// Errors: io.EOF at the end of the input; the errors of readLine; the context's cause if the
// context is cancelled.
func (i *importer) next(reading context.Context) ([]byte, error) {
	select {
	case line := <-i.rawLines:
		return line.text, line.err
	case <-reading.Done():
		return nil, context.Cause(reading)
	}
}

// writeLines starts writing lines until the input ends, a line fails, or the context reading is
// cancelled. The writes use the context ctx, so that they continue after reading is cancelled.
func (i *importer) writeLines(ctx, reading context.Context) {
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
				line.fail(err, i.skipsInvalidLines())
				err = line.err
			}
		}
		weight := min(max(line.bytes, maxInFlightBytes/table.MaxParallel), maxInFlightBytes)
		if err == nil && rec != nil {
			err = i.slots.Acquire(reading, weight)
		}
		if err == nil && rec != nil {
			i.startWrite(ctx, line, rec, weight)
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

// skipsInvalidLines reports whether the import continues after a line that cannot be imported.
func (i *importer) skipsInvalidLines() bool { return i.opts.SkipUnreadable || i.opts.DryRun }

// parseLine returns the record to write for a line. It returns no record if the line is blank or
// contains an idempotency record.
//
// Errors: LineError.
func (i *importer) parseLine(text []byte) (lineOutcome, model.Record, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return outcomeBlank, nil, nil
	}
	rec, err := fromJSON(text)
	if err == nil {
		err = checkKeys(rec, model.AttrPK, model.AttrSK)
	}
	if err != nil {
		return 0, nil, &LineError{Err: err}
	}
	if isIdempotency(rec) {
		return outcomeSkipped, nil, nil
	}
	if rec, err = i.table.WithIndexKeys(rec); err != nil {
		return 0, nil, &LineError{Err: err}
	}
	// DynamoDB accepts a record that has only one of the two index keys, but does not index it. So
	// check only the index keys that the record has.
	var indexKeys []string
	for _, name := range []string{model.AttrIndexPK, model.AttrIndexSK} {
		if rec[name] != nil {
			indexKeys = append(indexKeys, name)
		}
	}
	err = checkKeys(rec, indexKeys...)
	if size := model.SizeOf(rec); err == nil && size > maxRecord {
		err = fmt.Errorf("record %s has %d bytes, the maximum is %d", rec.KeyText(), size, maxRecord)
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

// checkKeys verifies that the named attributes are valid keys. It reports the first invalid key.
//
// Errors: ErrCorrupt.
func checkKeys(r model.Record, names ...string) error {
	reader := model.Reader{Record: r}
	for _, name := range names {
		limit := maxPartitionKey
		if name == model.AttrSK || name == model.AttrIndexSK {
			limit = maxSortKey
		}
		switch key := reader.RequiredText(name); {
		case key == "":
			reader.Fail(name, "is empty, which DynamoDB does not allow in a key")
		case len(key) > limit:
			reader.Fail(name, fmt.Sprintf("has %d bytes, the maximum for this key is %d", len(key), limit))
		}
	}
	return reader.Err()
}

// startWrite starts a goroutine that writes a record. If earlier lines have the same key, the
// goroutine waits until they are written.
func (i *importer) startWrite(ctx context.Context, line *importLine, rec model.Record, weight int64) {
	key := model.KeyOf(rec)
	line.key = key
	i.begun.Store(true)
	i.mu.Lock()
	before := i.lastLines[key]
	i.lastLines[key] = line
	i.mu.Unlock()
	i.lines <- line
	go func() {
		defer i.slots.Release(weight)
		defer close(line.done)
		if before != nil {
			<-before.done
			line.err = before.err // if this line were written, a resumed import would find its record
		}
		if line.err == nil {
			var err error
			if line.outcome, err = i.putAndInvalidateCounts(ctx, key, rec); err != nil {
				line.fail(err, i.skipsInvalidLines())
			}
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if line.err == nil && i.lastLines[key] == line {
			delete(i.lastLines, key)
		}
	}()
}

// putAttempts is the maximum number of attempts to write a record while other clients repeatedly
// create and delete it.
const putAttempts = 12

// putAndInvalidateCounts is like put. But if the table had records before the import, it first
// removes the order counts that would become wrong.
//
// It returns the errors of put.
func (i *importer) putAndInvalidateCounts(ctx context.Context, key model.Keys, rec model.Record) (lineOutcome, error) {
	if *i.opts.From.HadRecords && !i.opts.DryRun && i.numbers.counterKey(rec).PK != "" {
		old, err := i.currentRecord(ctx, key)
		if err == nil && (old == nil || i.opts.Overwrite) {
			err = i.numbers.removeCounts(ctx, old, rec)
		}
		if err != nil {
			return 0, err
		}
	}
	result, err := i.put(ctx, key, rec)
	if result == outcomeWritten && err == nil {
		i.numbers.markDone(key)
	}
	return result, err
}

// put writes a record and returns the outcome. put does not write the record in a dry run, if an
// equal record exists, or if the options keep a different existing record.
//
// Errors: LineError if DynamoDB rejects the record, or an error that table.WrapError wraps.
func (i *importer) put(ctx context.Context, key model.Keys, rec model.Record) (lineOutcome, error) {
	if i.opts.DryRun {
		old, err := i.currentRecord(ctx, key)
		if err != nil || old == nil {
			return outcomeWritten, err
		}
		return i.outcomeForExisting(old, rec), nil
	}
	for range putAttempts {
		old, err := i.putIfAbsent(ctx, key, rec)
		if err == nil && old == nil {
			return outcomeWritten, nil
		}
		if err == nil && len(old) == 0 {
			old, err = i.currentRecord(ctx, key)
		}
		if err != nil {
			return 0, err
		}
		if old == nil {
			continue // another client has deleted the record
		}
		result := i.outcomeForExisting(old, rec)
		if result == outcomeReplaced {
			var changed bool
			if changed, err = i.replace(ctx, key, old, rec); changed {
				continue
			}
		}
		return result, err
	}
	return 0, fmt.Errorf("%w: other clients repeatedly create and delete the record %s %s", table.ErrUnavailable, key.PK, key.SK)
}

// outcomeForExisting returns the outcome of importing rec if the table contains the record old with the same
// key.
func (i *importer) outcomeForExisting(old, rec model.Record) lineOutcome {
	if *i.opts.From.HadRecords {
		rec = withExistingCounts(old, rec)
	}
	switch {
	case model.EqualRecords(old, rec):
		return outcomeUnchanged
	case i.opts.Overwrite:
		return outcomeReplaced
	default:
		return outcomeConflict
	}
}

// putIfAbsent writes a record if no record with the same key exists. Otherwise it returns the
// existing record. If the engine does not report the existing record, putIfAbsent returns an empty
// record, not nil.
func (i *importer) putIfAbsent(ctx context.Context, key model.Keys, rec model.Record) (old model.Record, err error) {
	err = i.putItem(ctx, key, &dynamodb.PutItemInput{
		TableName: &i.table.Name, Item: rec,
		ConditionExpression:                 aws.String("attribute_not_exists(" + model.AttrPK + ")"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &failed) {
		if failed.Item == nil {
			return model.Record{}, nil
		}
		return failed.Item, nil
	}
	return nil, err
}

// replace replaces the stored record (old) with rec, but keeps the stored counts. If changed is
// true, nothing was written, because a stored count has changed since old was read.
func (i *importer) replace(ctx context.Context, key model.Keys, old, rec model.Record) (changed bool, err error) {
	in := &dynamodb.PutItemInput{TableName: &i.table.Name, Item: rec}
	if names := preservedCountAttributes(key); *i.opts.From.HadRecords && len(names) > 0 {
		var e table.Expression
		in.Item, in.ConditionExpression = withExistingCounts(old, rec), aws.String(table.AttributesUnchanged(old, names...)(&e))
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.Names, e.Values
	}
	err = i.putItem(ctx, key, in)
	if there := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &there) {
		return true, nil
	}
	return false, err
}

func (i *importer) putItem(ctx context.Context, key model.Keys, in *dynamodb.PutItemInput) error {
	_, err := i.table.Client.PutItem(ctx, in, i.table.BulkOptions)
	if err == nil {
		return nil
	}
	if api := smithy.APIError(nil); errors.As(err, &api) && api.ErrorCode() == "ValidationException" {
		return &LineError{Err: fmt.Errorf("record %s %s: DynamoDB rejects the record: %s", key.PK, key.SK, api.ErrorMessage())}
	}
	return table.WrapError("PutItem", key.PK+" "+key.SK, err)
}

// currentRecord returns the current record with the given key, or nil if there is no such record.
func (i *importer) currentRecord(ctx context.Context, key model.Keys) (model.Record, error) {
	out, err := i.table.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &i.table.Name, Key: key.Attributes(), ConsistentRead: aws.Bool(true)}, i.table.BulkOptions)
	if err != nil {
		return nil, table.WrapError("GetItem", key.PK+" "+key.SK, err)
	}
	return out.Item, nil
}

// collectResults counts the results of the lines, in the order of the lines. If a line has failed, collect
// stops the reading and waits for the writes that have begun.
func (i *importer) collectResults(stop context.CancelCauseFunc) (ImportResult, error) {
	done := i.opts.From
	var failure error
	for line := range i.lines {
		<-line.done
		if failure != nil {
			continue
		}
		if failure = line.err; failure == nil {
			done = done.add(line)
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
	if !i.begun.Load() {
		done.HadRecords = nil
	}
	return done, failure
}

// add returns the result including one more line.
func (done ImportResult) add(line *importLine) ImportResult {
	done.Offset += line.bytes
	done.Lines++
	switch line.outcome {
	case outcomeBlank:
	case outcomeSkipped:
		done.LeftOut++
	case outcomeWritten:
		done.Written++
	case outcomeReplaced:
		done.Replaced++
	case outcomeUnchanged:
		done.Unchanged++
	case outcomeConflict:
		done.Conflicts++
		if len(done.ConflictKeys) < maxReportedLines {
			// Clip forces append to copy the slice, because the caller may keep the previous result.
			done.ConflictKeys = append(slices.Clip(done.ConflictKeys), RecordKey{PK: line.key.PK, SK: line.key.SK})
		}
	case outcomeUnreadable:
		done.Unreadable++
		if len(done.BadLines) < maxReportedLines {
			done.BadLines = append(slices.Clip(done.BadLines), BadLine{Line: done.Lines, Problem: line.bad.Err.Error()})
		}
	}
	return done
}
