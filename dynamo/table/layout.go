package table

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// A server reads the table's layout again if its copy is older than layoutRefresh. If the copy is
// older than layoutLease, the server reads it before each list and each write, or rejects them.
//
// A new era begins layoutDelay after it was written. This is longer than layoutLease, the reads of one
// attempt of a mutation, and twice MaxClockDifference together. So no server can meet an order of an
// era that it does not know.
const (
	layoutRefresh = 5 * time.Second
	layoutLease   = 15 * time.Second
	layoutDelay   = time.Minute
	// layoutTimeout limits a read of the layout that no request waits for.
	layoutTimeout = 5 * time.Second
)

// ErrLayoutUnknown means that a list or write was rejected, because the server could not read the
// table's layout for some time. It wraps ErrUnavailable.
var ErrLayoutUnknown = fmt.Errorf("%w: the server could not read the layout of the table for %s, so it could miss a new number of shards", ErrUnavailable, layoutLease)

// layoutFollower reads the layout of a table when it is old.
type layoutFollower struct {
	db    *dynamodb.Client
	table string
	now   func() time.Time
	log   *slog.Logger
	// current contains the layout of the last read. configured is the layout if the table stores none.
	current    *model.CurrentLayout
	configured model.Layout
	// readAt is the time of the last successful read, or nil if the layout is not followed.
	readAt atomic.Pointer[time.Time]
	// reading contains a token while the layout is read. So the reads happen one after the other, and
	// a request that waits for a read stops to wait when its context ends.
	reading chan struct{}
	// isStored is true after the layout was found in the table. It is protected by reading.
	isStored bool
}

// FollowLayout reads the layout that the table stores, and lets the Table follow its changes. If the
// table stores no layout, the Table uses the configured number of shards.
func (t *Table) FollowLayout(ctx context.Context) error { return t.layout.read(ctx) }

// CheckLayout returns an error that wraps ErrLayoutUnknown if the layout is too old and cannot be read.
// Call it before you build keys or read lists.
func (t *Table) CheckLayout(ctx context.Context) error { return t.layout.check(ctx) }

func (f *layoutFollower) check(ctx context.Context) error {
	age := f.age()
	if age < layoutRefresh {
		return nil
	}
	if age < layoutLease {
		select {
		case f.reading <- struct{}{}:
			go func() {
				defer func() { <-f.reading }()
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), layoutTimeout)
				defer cancel()
				_ = f.readNow(ctx) // check reports the error when the layout is too old
			}()
		default: // another request reads the layout
		}
		return nil
	}
	if err := f.begin(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrLayoutUnknown, err)
	}
	defer func() { <-f.reading }()
	if f.age() < layoutLease {
		return nil // another request has read the layout in the meantime
	}
	if err := f.readNow(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrLayoutUnknown, err)
	}
	return nil
}

// age returns the time since the last read. If the layout is not followed, it returns 0. If the clock was
// set back to a time before the last read, the age is unknown, and age returns layoutLease.
func (f *layoutFollower) age() time.Duration {
	at := f.readAt.Load()
	if at == nil {
		return 0
	}
	now := f.now()
	// The monotonic clock stands still while a machine sleeps, and the wall clock can be set back.
	if age := max(now.Sub(*at), now.Round(0).Sub(at.Round(0))); age >= 0 {
		return age
	}
	return layoutLease
}

func (f *layoutFollower) read(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	defer func() { <-f.reading }()
	return f.readNow(ctx)
}

// begin waits until no other read is running. The caller must then take the token out of reading.
func (f *layoutFollower) begin(ctx context.Context) error {
	select {
	case f.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return WrapError("GetItem", "of the layout", ctx.Err())
	}
}

// readNow reads the layout. The caller must have called begin.
func (f *layoutFollower) readNow(ctx context.Context) error {
	at := f.now()
	stored, err := f.stored(ctx)
	if err != nil {
		return err
	}
	switch {
	case stored.Version > 0:
		f.isStored = true
	case f.isStored:
		return fmt.Errorf("the table's record %s, which contains its number of shards, was deleted: restore it from a backup", model.EntityLayout.PK)
	}
	before := f.current.Derivations()
	f.current.Set(stored)
	for _, d := range model.Derivations() {
		if is := stored.Derivations.Of(d.Name); f.readAt.Load() != nil && is.State != before.Of(d.Name).State {
			f.log.InfoContext(ctx, "the state of a list or number has changed", "table", f.table, "name", d.Name, "before", string(before.Of(d.Name).State), "state", string(is.State))
		}
	}
	f.readAt.Store(&at)
	return nil
}

// stored reads the layout that the table stores. If it stores none, the version is 0.
func (f *layoutFollower) stored(ctx context.Context) (model.StoredLayout, error) {
	key := model.Keys{PK: string(model.EntityLayout.PK), SK: string(model.EntityLayout.SK)}
	out, err := f.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &f.table, Key: key.Attributes(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return model.StoredLayout{}, WrapError("GetItem", "of the layout", err)
	}
	if out.Item == nil {
		return model.LayoutOfOldTable(f.configured), nil
	}
	stored, err := model.DecodeLayout(model.Reader{Record: out.Item})
	if err != nil {
		return model.StoredLayout{}, fmt.Errorf("the layout cannot be read: %w; if a command or a newer version did not write this, restore the record from a backup", err)
	}
	return *stored, nil
}

// ErrLayoutChanged means that other commands have changed the layout at the same time.
var ErrLayoutChanged = errors.New("other commands have changed the layout at the same time: try again")

// SetShards appends an era with the given number of shards, and returns the time when it begins. If
// the last era already has this number of shards, it returns the beginning of that era. In any case,
// the table then stores its layout.
//
// Errors: ErrLayoutChanged, errors from WrapError, and an error for an invalid number of shards.
func (t *Table) SetShards(ctx context.Context, shards int) (from time.Time, err error) {
	err = t.UpdateLayout(ctx, func(l *model.StoredLayout) error {
		last := l.Eras[len(l.Eras)-1]
		if last.Shards != shards {
			last.From, last.Shards = t.nextEra(), shards
			l.Eras = append(l.Eras[:len(l.Eras):len(l.Eras)], last)
		}
		from = last.From
		if err := l.Eras.Check(); err != nil {
			return fmt.Errorf("the layout would be invalid: %w", err)
		}
		return nil
	})
	return from, err
}

// nextEra returns the beginning of a new era. By then, all servers know it.
func (t *Table) nextEra() time.Time { return t.Now().Add(layoutDelay).UTC().Truncate(time.Millisecond) }

// SetTimeZone sets the time zone in which the days of sales begin, and returns the time of the change. If
// the table has sales, the days before that time stay as they are. Otherwise, the time zone applies to all
// days, and the time is zero.
//
// Errors: ErrLayoutChanged, errors from WrapError, and an error for an unknown time zone.
func (t *Table) SetTimeZone(ctx context.Context, name string) (from time.Time, err error) {
	if name == "UTC" {
		name = ""
	}
	err = t.UpdateLayout(ctx, func(l *model.StoredLayout) error {
		l.Eras = slices.Clone(l.Eras)
		last := l.Eras[len(l.Eras)-1]
		if l.Derivations.Of(model.EntityDailySales.Name).State == model.Absent {
			for i := range l.Eras {
				l.Eras[i].TimeZone = name
			}
			last.From = time.Time{}
		} else if last.TimeZone != name {
			last.From, last.TimeZone = t.nextEra(), name
			l.Eras = append(l.Eras, last)
		}
		from = last.From
		if err := l.Eras.Check(); err != nil {
			return fmt.Errorf("the layout would be invalid: %w", err)
		}
		return nil
	})
	return from, err
}

// maxLayoutAttempts is the maximum number of attempts to change the layout.
const maxLayoutAttempts = 5

// UpdateLayout reads the stored layout, and stores it as changed by the function change. If another
// command has changed the layout meanwhile, UpdateLayout tries again.
//
// Errors: ErrLayoutChanged, errors from WrapError, and errors from change.
func (t *Table) UpdateLayout(ctx context.Context, change func(*model.StoredLayout) error) error {
	for attempt := range maxLayoutAttempts {
		if err := BackOff(ctx, attempt); err != nil {
			return WrapError("UpdateItem", "of the layout", err)
		}
		before, err := t.layout.stored(ctx)
		if err != nil {
			return err
		}
		after := before
		after.Derivations = maps.Clone(before.Derivations)
		if err := change(&after); err != nil {
			return err
		}
		when := CompareAttribute(model.AttrVersion, "=", model.Num(before.Version))
		if before.Version == 0 {
			when = RecordNotExists
		} else if reflect.DeepEqual(before, after) {
			return t.FollowLayout(ctx)
		}
		after.Version++
		if err := t.putLayout(ctx, after, when); !errors.Is(err, ErrLayoutChanged) {
			return err
		}
	}
	return ErrLayoutChanged
}

// InitLayout stores the layout of a table without records: the configured number of shards, and all
// derivations. If the table already stores a layout, InitLayout changes nothing.
//
// Errors: errors from WrapError.
func (t *Table) InitLayout(ctx context.Context) error {
	l := model.LayoutOfOldTable(t.layout.configured)
	l.Derivations, l.Version = model.ReadableDerivations(t.Now().UTC()), 1
	err := t.putLayout(ctx, l, RecordNotExists)
	if errors.Is(err, ErrLayoutChanged) {
		return t.FollowLayout(ctx)
	}
	return err
}

// WithDerivation returns a copy of the table in which a derivation has the given state. The copy does
// not follow changes of the layout.
func (t *Table) WithDerivation(name string, state model.DerivationState) *Table {
	copied, all := *t, maps.Clone(t.Layout.Derivations())
	if all == nil {
		all = model.DerivationStatuses{}
	}
	all[name] = model.DerivationStatus{State: state}
	copied.Layout = model.NewCurrentLayout(t.Layout.Get())
	copied.Layout.Set(model.StoredLayout{Eras: t.Layout.Get(), Derivations: all})
	return &copied
}

// LayoutDelay is the time after which all servers use a layout that has been stored, or have stopped
// writing.
const LayoutDelay = layoutDelay

func (t *Table) putLayout(ctx context.Context, l model.StoredLayout, when Condition) error {
	var e Expression
	record := model.LayoutRecord(t.KeyBuilder(), l)
	update, condition := e.UpdateRecord(nil, record), when(&e)
	_, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: model.KeyOf(record).Attributes(), UpdateExpression: &update, ConditionExpression: &condition,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	})
	if _, failed := errors.AsType[*types.ConditionalCheckFailedException](err); failed {
		return ErrLayoutChanged
	}
	if err != nil {
		return WrapError("UpdateItem", "of the layout", err)
	}
	return t.FollowLayout(ctx)
}
