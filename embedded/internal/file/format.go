package file

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

const (
	// formatVersion is the version of the file's layout.
	formatVersion = "5"
	// oldFormatVersion is the version whose values have no checksums.
	oldFormatVersion = "4"
)

// bucketFormat contains the format version under the key keyVersion. It is the only bucket whose
// values have no checksums, so that every version of the program can read it.
var (
	bucketFormat = []byte("format")
	keyVersion   = []byte("version")
)

// checkFormat returns an error if the file has another format, or belongs to another program.
func checkFormat(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketFormat)
	if b == nil {
		if name, _ := tx.Cursor().First(); name != nil {
			return damaged("it has no format version. Or it is not an embedded store, but a bbolt database of another program")
		}
		return nil
	}
	switch version := string(b.Get(keyVersion)); version {
	case formatVersion:
		return nil
	case oldFormatVersion:
		return ErrOldFormat
	default:
		return fmt.Errorf("the file has format version %q, but this program supports only version %q: export the records with the program that wrote the file, then import them into a new file", version, formatVersion)
	}
}

func writeFormat(tx *bbolt.Tx) error {
	b, err := tx.CreateBucket(bucketFormat)
	if err != nil {
		return err
	}
	return b.Put(keyVersion, []byte(formatVersion))
}

// Upgrade replaces a file of the previous format by a file of this format with the same content. It
// returns false if the file already has this format. The new file is complete and synced before it
// replaces the old one, so an interrupted call changes nothing.
func Upgrade(path string) (upgraded bool, err error) {
	if _, err := os.Stat(path); err != nil {
		return false, err
	}
	db, err := Open(path, true)
	if err == nil {
		return false, db.Close()
	}
	if !errors.Is(err, ErrOldFormat) {
		return false, err
	}
	from, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	name := path + ".upgrade"
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err // the rest of an interrupted call
	}
	defer func() {
		if !upgraded {
			_ = os.Remove(name)
		}
	}()
	if err := guard(func() error { return copyUpgraded(from, name) }); err != nil {
		return false, err
	}
	if err := Check(name); err != nil {
		return false, err
	}
	if err := os.Rename(name, path); err != nil {
		return false, err
	}
	return true, SyncDirectory(path)
}

// Check opens a file, verifies all of it and closes it.
func Check(path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	db, err := Open(path, true)
	if err != nil {
		return err
	}
	return db.Close()
}

// upgradeBytes is the approximate number of bytes that one transaction of an upgrade writes.
const upgradeBytes = 32 << 20

// copyUpgraded copies all buckets to a new file and adds the checksums.
func copyUpgraded(from *bbolt.DB, name string) (err error) {
	to, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	u := &upgrade{to: to}
	if err := from.View(func(tx *bbolt.Tx) error {
		if u.tx, err = to.Begin(true); err != nil {
			return err
		}
		if err := tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			if bytes.Equal(name, bucketFormat) {
				return nil
			}
			return u.bucket(b, [][]byte{name})
		}); err != nil {
			return errors.Join(err, u.tx.Rollback())
		}
		return errors.Join(writeFormat(u.tx), u.tx.Commit())
	}); err != nil {
		return err
	}
	return to.Sync()
}

// upgrade is a running upgrade.
type upgrade struct {
	to      *bbolt.DB
	tx      *bbolt.Tx
	written int
}

// target returns the bucket with the names in path, and creates it if it does not exist.
func (u *upgrade) target(path [][]byte) (b *bbolt.Bucket, err error) {
	b, err = u.tx.CreateBucketIfNotExists(path[0])
	for _, name := range path[1:] {
		if err != nil {
			return nil, err
		}
		b, err = b.CreateBucketIfNotExists(name)
	}
	return b, err
}

// bucket copies a bucket and its nested buckets.
func (u *upgrade) bucket(from *bbolt.Bucket, path [][]byte) error {
	b, err := u.target(path)
	if err != nil {
		return err
	}
	if number := from.Sequence(); number > 0 {
		if err := b.SetSequence(sealSequence(number)); err != nil {
			return err
		}
	}
	return from.ForEach(func(key, value []byte) (err error) {
		if value == nil {
			if err := u.bucket(from.Bucket(key), append(path[:len(path):len(path)], key)); err != nil {
				return err
			}
			b, err = u.target(path) // the nested bucket may have begun another transaction
			return err
		}
		if u.written += len(key) + len(value); u.written > upgradeBytes {
			u.written = 0
			if err := u.tx.Commit(); err != nil {
				return err
			}
			if u.tx, err = u.to.Begin(true); err != nil {
				return err
			}
			if b, err = u.target(path); err != nil {
				return err
			}
		}
		b.FillPercent = 0.9
		return b.Put(key, seal(key, value))
	})
}
