package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"time"
	"weak"

	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
)

const (
	// expiryInterval is the time between two deletions of expired items.
	expiryInterval = 10 * time.Minute
	// maxExpired is the maximum number of expired items that are deleted in one commit.
	maxExpired = 100
	// maxExpiryAge is the age of a time to live that DynamoDB ignores, because it is probably not
	// a time in seconds.
	maxExpiryAge = 5 * 365 * 24 * time.Hour
)

// expiryEntry returns the key of an item in the table's bucket of times to live, or nil if the item
// does not expire.
func expiryEntry(t *table, item attr.Item, key []byte) []byte {
	v, ok := item[t.Expiry]
	if !ok || v.Kind != attr.Number {
		return nil
	}
	whole, _, _ := strings.Cut(v.Text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds < 0 {
		return nil
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(seconds)), key...)
}

// expireLater starts or stops the timer for expired items.
func (s *Store) expireLater() {
	needed := false
	for _, t := range *s.tables.Load() {
		needed = needed || t.Expiry != ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || needed == (s.expiring != nil):
	case needed:
		w := weak.Make(s) // the timer does not keep the store alive
		s.expiring = time.AfterFunc(expiryInterval, func() {
			if s := w.Value(); s != nil {
				s.expireAndContinue()
			}
		})
	default:
		s.expiring.Stop()
		s.expiring = nil
	}
}

func (s *Store) expireAndContinue() {
	_ = s.Expire() // the next call tries again
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expiring != nil && !s.closed {
		s.expiring.Reset(expiryInterval)
	}
}

// Expire deletes the items whose time to live has ended, and streams that are too old. The store
// calls it every ten minutes.
func (s *Store) Expire() error {
	for more := true; more; {
		err := s.commit(func(c *change) (err error) {
			if more, err = c.expire(); err != nil {
				return err
			}
			return c.dropOldStreams()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expire deletes some expired items and reports whether there may be more.
func (c *change) expire() (more bool, _ error) {
	now := c.now()
	from := binary.BigEndian.AppendUint64(nil, uint64(now.Add(-maxExpiryAge).Unix()))
	to := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))
	for _, t := range c.tables {
		b := c.tx.Bucket(t.bucket)
		if t.Expiry == "" || b == nil {
			continue
		}
		var keys [][]byte
		cursor := b.Bucket(bucketExpiry).Cursor()
		for k, key := cursor.Seek(from); k != nil && bytes.Compare(k[:8], to) < 0 && len(keys) < maxExpired; k, key = cursor.Next() {
			keys = append(keys, bytes.Clone(key))
		}
		for _, key := range keys {
			a := &action{verb: remove, table: t, key: key, expired: true}
			if err := a.evaluate(b.Bucket(bucketItems)); err != nil {
				return false, err
			}
			if err := a.write(c, b); err != nil {
				return false, err
			}
			c.observe(a)
		}
		more = more || len(keys) == maxExpired
	}
	return more, nil
}

func (s *Store) updateTimeToLive(_ context.Context, in *struct {
	TableName               *string
	TimeToLiveSpecification *timeToLive
}) ([]byte, error) {
	v := &violations{}
	v.table(in.TableName)
	set := in.TimeToLiveSpecification
	switch {
	case set == nil:
		v.null("timeToLiveSpecification")
	case set.AttributeName == "":
		v.add("''", "timeToLiveSpecification.attributeName", "Member must have length greater than or equal to 1")
	case len(set.AttributeName) > 255:
		v.add(quote(set.AttributeName), "timeToLiveSpecification.attributeName", "Member must have length less than or equal to 255")
	}
	if err := v.error(); err != nil {
		return nil, err
	}
	err := s.commit(func(c *change) error {
		old, err := c.table(*in.TableName)
		if err != nil {
			return &failure{kind: codeNotFound, message: "Requested resource not found: Table: " + *in.TableName + " not found"}
		}
		switch {
		case old.Expiry == "" && !set.Enabled:
			return invalid("TimeToLive is already disabled")
		case old.Expiry != "" && old.Expiry != set.AttributeName:
			return invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", old.Expiry)
		case old.Expiry != "" && set.Enabled:
			return invalid("TimeToLive is already enabled")
		}
		t := &table{definition: old.definition}
		if t.Expiry = ""; set.Enabled {
			t.Expiry = set.AttributeName
		}
		t.derive()
		if err := fillExpiry(c.tx.Bucket(t.bucket), t); err != nil {
			return err
		}
		return c.putTable(t)
	})
	if err != nil {
		return nil, err
	}
	o := newObject()
	o.value("TimeToLiveSpecification", set)
	return o.done(), nil
}

// fillExpiry replaces the bucket of times to live.
func fillExpiry(b *bbolt.Bucket, t *table) error {
	if err := b.DeleteBucket(bucketExpiry); err != nil {
		return err
	}
	entries, err := b.CreateBucket(bucketExpiry)
	if err != nil || t.Expiry == "" {
		return err
	}
	return b.Bucket(bucketItems).ForEach(func(key, stored []byte) error {
		_, encoded := splitStored(stored)
		item, err := attr.ParseItem(encoded)
		if err != nil {
			return err
		}
		if entry := expiryEntry(t, item, key); entry != nil {
			return entries.Put(entry, key)
		}
		return nil
	})
}

func (s *Store) describeTimeToLive(_ context.Context, in *tableInput) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	t, err := s.table(*in.TableName)
	if err != nil {
		return nil, &failure{kind: codeNotFound, message: "Requested resource not found: Table: " + *in.TableName + " not found"}
	}
	o := newObject()
	o.nested("TimeToLiveDescription", func() {
		if t.Expiry == "" {
			o.text("TimeToLiveStatus", "DISABLED")
			return
		}
		o.text("TimeToLiveStatus", "ENABLED")
		o.text("AttributeName", t.Expiry)
	})
	return o.done(), nil
}
