package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"
	"weak"

	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/stream"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

const (
	// DefaultExpiryInterval is the default time between two calls of Expire.
	DefaultExpiryInterval = 10 * time.Minute
	// maxExpiredPerCommit is the maximum number of expired items that one commit deletes from one
	// table.
	maxExpiredPerCommit = 100
	// maxExpiryAge limits how long ago an item may have expired. If its time to live is even older,
	// the store ignores it, as DynamoDB does. Such a number is probably not a time in seconds.
	maxExpiryAge = 5 * 365 * 24 * time.Hour
)

// updateExpiryTimer starts or stops the timer that calls Expire. The timer runs while a table has a
// time to live.
func (s *Store) updateExpiryTimer() {
	needed := false
	for _, t := range *s.tables.Load() {
		needed = needed || t.Expiry != ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || needed == (s.expiring != nil):
	case needed:
		w := weak.Make(s) // so that the timer does not keep an unused store in memory
		s.expiring = time.AfterFunc(s.expiryInterval, func() {
			if s := w.Value(); s != nil {
				s.expireAndReschedule()
			}
		})
	default:
		s.expiring.Stop()
		s.expiring = nil
	}
}

func (s *Store) expireAndReschedule() {
	_ = s.Expire() // ignore the error, because the next call tries again
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expiring != nil && !s.closed {
		s.expiring.Reset(s.expiryInterval)
	}
}

// Expire deletes expired items. It also deletes each disabled stream if the stream and all its
// records are older than 24 hours. If a table has a time to live, the store calls Expire at the
// interval in Options.
func (s *Store) Expire() error {
	for more := true; more; {
		err := s.commit(func(c *commitState) (err error) {
			if more, err = c.expire(); err != nil {
				return err
			}
			dropped, err := stream.DropDisabledStreams(c.tx.Bucket(bucketStreams), c.now())
			c.changed = c.changed || dropped
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expire deletes up to maxExpiredPerCommit expired items of each table. more reports whether a
// table may have further expired items.
func (c *commitState) expire() (more bool, _ error) {
	now := c.now()
	from := binary.BigEndian.AppendUint64(nil, uint64(now.Add(-maxExpiryAge).Unix()))
	to := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))
	for _, t := range c.tables {
		b := c.tx.Bucket(t.BucketName)
		if t.Expiry == "" || b == nil {
			continue
		}
		var keys [][]byte
		cursor := storage.ExpiryBucket(b).Cursor()
		for k, key := cursor.Seek(from); k != nil && bytes.Compare(k[:8], to) < 0 && len(keys) < maxExpiredPerCommit; k, key = cursor.Next() {
			keys = append(keys, bytes.Clone(key))
		}
		for _, key := range keys {
			a := &action{verb: verbDelete, Change: storage.Change{Table: t, Key: key}, expired: true}
			if err := a.evaluate(storage.ItemBucket(b)); err != nil {
				return false, err
			}
			if err := a.write(c, b); err != nil {
				return false, err
			}
			c.notifyObservers(a)
		}
		more = more || len(keys) == maxExpiredPerCommit
	}
	return more, nil
}

func (s *Store) updateTimeToLive(_ context.Context, in *struct {
	TableName               *string
	TimeToLiveSpecification *struct {
		Enabled       bool
		AttributeName string
	}
}) ([]byte, error) {
	v := &wire.Violations{}
	v.CheckTableName(in.TableName)
	set := in.TimeToLiveSpecification
	if set == nil {
		v.AddMissing("timeToLiveSpecification")
	} else {
		v.CheckLength(set.AttributeName, "timeToLiveSpecification.attributeName", 1)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	err := s.commit(func(c *commitState) error {
		old, err := c.table(*in.TableName)
		if err != nil {
			return &wire.Failure{Code: wire.CodeNotFound, Message: "Requested resource not found: Table: " + *in.TableName + " not found"}
		}
		switch {
		case old.Expiry == "" && !set.Enabled:
			return wire.Invalid("TimeToLive is already disabled")
		case old.Expiry != "" && old.Expiry != set.AttributeName:
			return wire.Invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", old.Expiry)
		case old.Expiry != "" && set.Enabled:
			return wire.Invalid("TimeToLive is already enabled")
		}
		d := old.Definition
		if d.Expiry = ""; set.Enabled {
			d.Expiry = set.AttributeName
		}
		t := schema.NewTable(d)
		if err := storage.FillExpiry(c.tx.Bucket(t.BucketName), t); err != nil {
			return err
		}
		return c.putTable(t)
	})
	if err != nil {
		return nil, err
	}
	o := wire.NewObjectWriter()
	o.Value("TimeToLiveSpecification", set)
	return o.Done(), nil
}

func (s *Store) describeTimeToLive(_ context.Context, in *tableInput) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	t, err := s.table(*in.TableName)
	if err != nil {
		return nil, &wire.Failure{Code: wire.CodeNotFound, Message: "Requested resource not found: Table: " + *in.TableName + " not found"}
	}
	o := wire.NewObjectWriter()
	o.Nested("TimeToLiveDescription", func() {
		if t.Expiry == "" {
			o.Text("TimeToLiveStatus", "DISABLED")
			return
		}
		o.Text("TimeToLiveStatus", "ENABLED")
		o.Text("AttributeName", t.Expiry)
	})
	return o.Done(), nil
}
