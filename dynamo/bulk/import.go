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

// Limits on the memory that an import uses.
const (
	// maxLine is the maximum length of a line in bytes. The JSON of a DynamoDB record of 400 KB can
	// have 3.6 MB.
	maxLine = 4 << 20
	// maxInFlightBytes is the maximum total size in bytes of the lines that are written at the same
	// time.
	maxInFlightBytes = 8 << 20
	// maxPendingLines is the maximum number of lines that wait to be counted. Lines are written
	// concurrently, but counted in order. So a line waits until all earlier lines have been written.
	maxPendingLines = 1024
)

// maxReportedLines is the maximum number of conflicts that an ImportResult lists. The same maximum
// applies to the lines that cannot be imported.
const maxReportedLines = 20

// ImportResult is the result of an import. It covers all lines before Offset. Later lines may also
// have been written, but the result does not count them.
type ImportResult struct {
	// Offset is the byte offset of the first line that has not been counted. Lines is the number of
	// lines before Offset.
	Offset int64 `json:"offset"`
	Lines  int   `json:"lines"`
	// Written counts records that were not in the table before.
	Written int `json:"written"`
	// Replaced counts records that replaced a different record with the same key.
	Replaced int `json:"replaced"`
	// Unchanged counts records that the table already contained with the same attributes.
	Unchanged int `json:"unchanged"`
	// LeftOut counts the records that are not imported: idempotency records, the layout, order counts by
	// status whose keys do not exist in the layout of this table, and edges that this table does not have.
	LeftOut int `json:"leftOut"`
	// OtherLayout reports whether the file shows that its table had another layout.
	OtherLayout bool `json:"otherLayout,omitempty"`
	// Conflicts counts the records that the import did not write, because Overwrite is false and the
	// table contains a different record with the same key. ConflictKeys contains the keys of the first
	// 20 of these records.
	Conflicts    int         `json:"conflicts"`
	ConflictKeys []RecordKey `json:"conflictKeys,omitempty"`
	// HadRecords is true if the table had records when the import began. It is nil if the import has
	// not started to write.
	HadRecords *bool `json:"hadRecords,omitempty"`
	// Unreadable counts the lines that cannot be imported. BadLines contains the first 20 of these
	// lines.
	Unreadable int       `json:"unreadable,omitempty"`
	BadLines   []BadLine `json:"badLines,omitempty"`
}

// BadLine is a line that cannot be imported.
type BadLine struct {
	// Line is the number of the line. The first line of the import has the number 1.
	Line    int    `json:"line"`
	Problem string `json:"problem"`
}

// RecordCount returns the number of lines before Offset that are not blank.
func (done ImportResult) RecordCount() int {
	return done.Written + done.Replaced + done.Unchanged + done.LeftOut + done.Conflicts + done.Unreadable
}

// ImportOptions are the options of Import.
type ImportOptions struct {
	// If Overwrite is true, Import replaces an existing record that differs from the imported record.
	// If Overwrite is false, Import keeps the existing record and counts a conflict.
	Overwrite bool
	// If DryRun is true, Import writes nothing. It only compares each line with the table, but not
	// with earlier lines. A dry run continues after lines that cannot be imported.
	DryRun bool
	// If SkipUnreadable is true, Import skips lines that cannot be imported. If SkipUnreadable and
	// DryRun are false, the first such line ends the import.
	SkipUnreadable bool
	// From is the result of an earlier, interrupted import of the same lines. The import continues at
	// From.Offset, so the input must begin there. For a new import, From is zero.
	From ImportResult
	// If Done is set, Import calls it after each line with the result up to this line. If Done returns
	// an error, the import ends.
	Done func(ImportResult) error
}

// LineError describes why a line cannot be imported.
type LineError struct {
	// Line is the number of the line. The first line of the import has the number 1.
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Import reads lines in the format of Export, and writes their records to the table. If the same
// lines are imported again, nothing changes.
//
// Errors: LineError; the errors of Done and r; table.ErrUnavailable, table.ErrNoTable,
// table.ErrAccessDenied; the context's error.
func (t Transfers) Import(ctx context.Context, r io.Reader, opts ImportOptions) (ImportResult, error) {
	resumed := opts.From.HadRecords != nil
	if !resumed {
		hadRecords, err := t.HasRecords(ctx)
		if err != nil {
			return opts.From, err
		}
		opts.From.HadRecords = &hadRecords
	}
	if !opts.DryRun {
		if err := t.interruptSales(ctx); err != nil {
			return opts.From, err
		}
	}
	i := &importer{
		numbers:  &countInvalidator{Transfers: t, done: map[model.Keys]bool{}},
		statuses: importedStatuses{Transfers: t, counts: t.firstCounters(), complete: true},
		table:    t.table, opts: opts, rawLines: make(chan rawLine), lines: make(chan *importLine, maxPendingLines),
		slots: semaphore.NewWeighted(maxInFlightBytes), lastLines: map[model.Keys]*importLine{},
	}
	i.begun.Store(resumed)
	// If the context named reading is cancelled, no more lines are read. But writes that have begun
	// continue, because they use the context named ctx.
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// If ctx ends, a read of r may continue after Import has returned.
	go i.read(reading, r)
	go i.writeLines(ctx, reading)
	done, err := i.collectResults(stop)
	if err == nil && done.OtherLayout && done.Written+done.Replaced > 0 && !opts.DryRun {
		err = i.statuses.write(ctx, !resumed && !*done.HadRecords)
	}
	return done, err
}

// importer is the state of an import. The methods read, writeLines and collectResults run in
// separate goroutines, because reading the input may block forever.
type importer struct {
	table    *table.Table
	opts     ImportOptions
	rawLines chan rawLine
	lines    chan *importLine
	// slots limits the lines that are written at the same time. Their total size is at most
	// maxInFlightBytes.
	slots   *semaphore.Weighted
	numbers *countInvalidator
	// statuses counts the orders of the lines before ImportResult.Offset.
	statuses importedStatuses
	// begun is true if a write has begun. The write may also belong to the earlier import that this
	// import continues.
	begun atomic.Bool

	mu sync.Mutex
	// lastLines maps a key to the latest line whose record has this key. It contains only lines that
	// are being written or that have failed.
	lastLines map[model.Keys]*importLine
}

// rawLine is a line of the input, or the error that ended reading.
type rawLine struct {
	text []byte
	err  error
}

// importLine is a line that is being imported.
type importLine struct {
	bytes int64
	// key is the key of the line's record. It is empty if the line has no record to write. status is the
	// status of an order.
	key    model.Keys
	status string
	// done is closed after outcome and err have been set.
	done    chan struct{}
	outcome lineOutcome
	err     error
	// bad describes why the line is skipped. It is set only if outcome is outcomeUnreadable.
	bad *LineError
}

// fail records the error of a line. If skip is true and err is a LineError, fail stores err in the
// field bad, and the import continues. Otherwise, fail stores err in the line's field err, which
// ends the import.
func (l *importLine) fail(err error, skip bool) {
	if skip && errors.As(err, &l.bad) {
		l.outcome, err = outcomeUnreadable, nil
	}
	l.err = err
}

// lineOutcome is the result of importing a line.
type lineOutcome int

const (
	outcomeBlank lineOutcome = iota
	outcomeSkipped
	outcomeOtherLayout
	outcomeWritten
	outcomeReplaced
	outcomeUnchanged
	outcomeConflict
	outcomeUnreadable
)

// read reads lines until the input ends or the context named reading is cancelled.
func (i *importer) read(reading context.Context, r io.Reader) {
	defer close(i.rawLines)
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		text, err := readLine(in)
		if errors.Is(err, io.EOF) && len(text) > 0 {
			err = nil // the last line has no line break, and the next read returns io.EOF
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

// readLine reads a line, including its line break. If the line is longer than maxLine, readLine
// returns an error, which always ends the import.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, &LineError{Err: fmt.Errorf("the line is longer than %d bytes, the maximum for the JSON of a record", maxLine)}
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// next returns the next line of the input.
//
// Errors: io.EOF at the end of the input; the errors of readLine; if the context is cancelled, its
// cause.
func (i *importer) next(reading context.Context) ([]byte, error) {
	select {
	case line := <-i.rawLines:
		return line.text, line.err
	case <-reading.Done():
		return nil, context.Cause(reading)
	}
}

// writeLines starts a write for each line. If reading is cancelled, the writes that have begun
// continue, because they use ctx.
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
		// The minimum weight limits the number of concurrent writes to MaxParallel.
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

// parseLine returns the record of a line. If the line is blank, or contains a record that is not
// imported (see ImportResult.LeftOut), it returns no record.
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
	layout := i.table.Layout.Get()
	switch e := model.EntityOf(model.KeyOf(rec)); {
	case e == &model.EntityLayout:
		if stored, err := model.DecodeLayout(model.Reader{Record: rec}); err != nil || !slices.EqualFunc(stored.Eras, layout, func(a, b model.Era) bool {
			return a.Shards == b.Shards && a.From.Equal(b.From) && a.TimeZone == b.TimeZone
		}) {
			return outcomeOtherLayout, nil, nil
		}
		return outcomeSkipped, nil, nil
	case e == &model.EntityOrderCounts && !layout.HasCounters(e.Shard(model.KeyOf(rec).PK)):
		return outcomeOtherLayout, nil, nil
	case model.IsUndeclaredQueryRecord(model.KeyOf(rec)), model.IsUnlisted(rec), isIdempotency(rec), e == &model.EntityDailySales, e != nil && (e.IsEdge() || e.Kind == model.Claim) && !i.table.Layout.Derivations().Writes(e.Name):
		return outcomeSkipped, nil, nil
	case e != nil:
		if err := i.table.Layout.Derivations().CheckFeatures(e, rec); err != nil {
			return 0, nil, &LineError{Err: fmt.Errorf("record %s: %w", rec.KeyText(), err)}
		}
	}
	// The index keys depend on the table's number of shards, so compute them again.
	if rec, err = i.table.WithIndexKeys(rec); err != nil {
		return 0, nil, &LineError{Err: err}
	}
	// DynamoDB also accepts a record with only one of its two index keys, but does not index it. So
	// check only the index keys that the record has.
	var indexKeys []string
	for _, name := range []string{model.AttrIndexPK, model.AttrIndexSK} {
		if rec[name] != nil {
			indexKeys = append(indexKeys, name)
		}
	}
	err = checkKeys(rec, indexKeys...)
	if size := model.SizeOf(rec); err == nil && size > maxRecord {
		err = fmt.Errorf("record %s has %d bytes, but the maximum is %d", rec.KeyText(), size, maxRecord)
	}
	if err != nil {
		return 0, nil, &LineError{Err: err}
	}
	return 0, rec, nil
}

// DynamoDB's maximum sizes of a record and its keys, in bytes:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	maxRecord       = 400 << 10
	maxPartitionKey = 2048
	maxSortKey      = 1024
)

// checkKeys verifies that the attributes with the given names are valid keys. Its error describes
// the first invalid key.
//
// Errors: model.ErrCorrupt.
func checkKeys(r model.Record, names ...string) error {
	reader := model.Reader{Record: r}
	for _, name := range names {
		limit := maxPartitionKey
		if name == model.AttrSK || name == model.AttrIndexSK {
			limit = maxSortKey
		}
		switch key := reader.RequiredText(name); {
		case key == "":
			reader.Fail(name, "is empty, but DynamoDB does not allow an empty key")
		case len(key) > limit:
			reader.Fail(name, fmt.Sprintf("has %d bytes, but the maximum for this key is %d", len(key), limit))
		}
	}
	return reader.Err()
}

// startWrite starts a goroutine that writes the record of a line. If an earlier line has the same
// key, the goroutine waits until that line has been written.
func (i *importer) startWrite(ctx context.Context, line *importLine, rec model.Record, weight int64) {
	key := model.KeyOf(rec)
	line.key, line.status = key, model.TextOf(rec, "status")
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
			line.err = before.err // do not write this line, because a resumed import would find its record before the failed line's
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

// putAttempts is the maximum number of attempts to write a record. An attempt fails if another
// client deletes the record or changes its order count at the same time.
const putAttempts = 12

// putAndInvalidateCounts writes a record like put. If the table had records before the import, it
// first removes the order counts that the write would make wrong.
//
// It returns the errors of put.
func (i *importer) putAndInvalidateCounts(ctx context.Context, key model.Keys, rec model.Record) (lineOutcome, error) {
	if *i.opts.From.HadRecords && !i.opts.DryRun && isCounted(key) {
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

// put writes a record and returns the outcome. It replaces an existing record only if Overwrite is
// set.
//
// If DynamoDB rejects the record, put returns LineError. Other errors are wrapped by
// table.WrapError.
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
			continue // another client has deleted the record, so try to write it again
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
	return 0, fmt.Errorf("%w: the record %s %s was not written, because other clients change it repeatedly", table.ErrUnavailable, key.PK, key.SK)
}

// outcomeForExisting returns the outcome of importing rec. old is the record in the table with the
// same key.
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

// putIfAbsent writes a record if the table contains no record with the same key. Otherwise, it
// returns the existing record as old.
func (i *importer) putIfAbsent(ctx context.Context, key model.Keys, rec model.Record) (old model.Record, err error) {
	err = i.putItem(ctx, key, &dynamodb.PutItemInput{
		TableName: &i.table.Name, Item: rec,
		ConditionExpression:                 aws.String("attribute_not_exists(" + model.AttrPK + ")"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &failed) {
		if failed.Item == nil {
			// An empty record means that DynamoDB did not return the existing record.
			return model.Record{}, nil
		}
		return failed.Item, nil
	}
	return nil, err
}

// replace replaces the stored record old with rec. If the table had records before the import,
// replace keeps the order counts of old. If another client has changed these counts since, replace
// writes nothing and returns true.
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
		return &LineError{Err: fmt.Errorf("DynamoDB rejects the record %s %s: %s", key.PK, key.SK, api.ErrorMessage())}
	}
	return table.WrapError("PutItem", key.PK+" "+key.SK, err)
}

// currentRecord reads the record with the given key from the table. If the table has no such
// record, it returns nil.
func (i *importer) currentRecord(ctx context.Context, key model.Keys) (model.Record, error) {
	out, err := i.table.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &i.table.Name, Key: key.Attributes(), ConsistentRead: aws.Bool(true)}, i.table.BulkOptions)
	if err != nil {
		return nil, table.WrapError("GetItem", key.PK+" "+key.SK, err)
	}
	return out.Item, nil
}

// collectResults counts the results of the lines, in the order of the lines. If a line has failed,
// collectResults cancels reading and waits for the writes that have begun.
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
			i.statuses.add(line)
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

// add returns the result after one more line.
func (done ImportResult) add(line *importLine) ImportResult {
	done.Offset += line.bytes
	done.Lines++
	switch line.outcome {
	case outcomeBlank:
	case outcomeSkipped, outcomeOtherLayout:
		done.LeftOut++
		done.OtherLayout = done.OtherLayout || line.outcome == outcomeOtherLayout
	case outcomeWritten:
		done.Written++
	case outcomeReplaced:
		done.Replaced++
	case outcomeUnchanged:
		done.Unchanged++
	case outcomeConflict:
		done.Conflicts++
		if len(done.ConflictKeys) < maxReportedLines {
			// The caller may keep an earlier result. slices.Clip makes append copy the slice, so the results
			// share no array.
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
