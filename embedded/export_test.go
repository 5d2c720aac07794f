package embedded

import (
	"github.com/ordergraph/ordergraph/embedded/internal/file"

	"errors"
	"strings"
)

// Commit calls apply within a commit, like a write. The write fails if apply returns an error.
func (s *Store) Commit(apply func() error) error {
	return s.commit(func(c *commitState) error {
		c.changed = true
		return apply()
	})
}

// WaitingWrites returns the number of writes that wait for the running commit.
func (s *Store) WaitingWrites() int {
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	return len(s.commits.waiting)
}

// Commits returns the number of commits since the file was created.
func (s *Store) Commits() int { return s.db.Commits() }

// StoredExpiries returns the number of entries in a table's bucket of times to live.
func (s *Store) StoredExpiries(table string) int { return s.entries(table, []byte("expiry")) }

// StoredEntries returns the number of entries in the bucket of an index.
func (s *Store) StoredEntries(table, index string) int {
	return s.entries(table, []byte("index-"+index))
}

// entries returns the number of keys in a bucket of a table, or -1 if the bucket does not exist.
func (s *Store) entries(table string, bucket []byte) (number int) {
	err := s.db.View(func(tx *file.Tx) error {
		t, err := s.table(table)
		if err != nil {
			return err
		}
		b := tx.Bucket(t.BucketName).Bucket(bucket)
		if b == nil {
			return errors.New("the bucket does not exist")
		}
		number = b.Len()
		return nil
	})
	return number + errorAsNumber(err)
}

// StoredRecords returns the number of records in a stream's bucket.
func (s *Store) StoredRecords(arn string) (number int) {
	err := s.db.View(func(tx *file.Tx) error {
		b := tx.Bucket(bucketStreams).Bucket([]byte(arn))
		if b == nil {
			return errors.New("the stream does not exist")
		}
		number = b.Bucket([]byte("records")).Len()
		return nil
	})
	return number + errorAsNumber(err)
}

// Verify returns the damage of the file.
func (s *Store) Verify() error { return s.db.Verify() }

// errorAsNumber returns -1 for an error.
func errorAsNumber(err error) int {
	if err != nil {
		return -1
	}
	return 0
}

// StoredTokens returns the number of ClientRequestTokens in the file.
func (s *Store) StoredTokens() (number int) {
	err := s.db.View(func(tx *file.Tx) error {
		number = tx.Bucket(bucketTokens).Len() / 2
		return nil
	})
	return number + errorAsNumber(err)
}

// StoredTables returns the number of tables that have a bucket in the file.
func (s *Store) StoredTables() (number int) {
	err := s.db.View(func(tx *file.Tx) error {
		return tx.ForEachBucket(func(name []byte) error {
			if strings.HasPrefix(string(name), "table-") {
				number++
			}
			return nil
		})
	})
	return number + errorAsNumber(err)
}
