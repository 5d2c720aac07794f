package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The layout of a bbolt file. All numbers have the byte order of the machine. A page begins with its
// ID (8 bytes), its kind (2), the number of its elements (2) and the number of further pages that
// it occupies (4). The elements follow, then their keys and values.
const (
	pageHeader  = 16
	element     = 16
	headerBytes = 64

	kindBranch   = 1
	kindLeaf     = 2
	kindHeader   = 4
	kindFreelist = 16

	// A nested bucket is a leaf element with this flag. Its value begins with the ID of its root page
	// and its sequence number. If the ID is 0, the bucket's only page follows.
	flagBucket   = 1
	bucketHeader = 16

	magic = 0xED0CDAED
	// maxDepth limits the depth of a tree and of nested buckets.
	maxDepth = 32
)

var order = binary.NativeEndian

// header is one of the two headers of a file. Commits write them in turn.
type header struct {
	page []byte // page is the page with the header
	at   int64  // at is the place of the page in the file

	pageSize       uint32
	root, sequence uint64
	freelist       uint64
	pages          uint64 // pages is the number of pages in the file
	txid           uint64
}

// parseHeader parses a page with a header.
func parseHeader(page []byte) (*header, error) {
	if len(page) < pageHeader+headerBytes {
		return nil, damaged("a header is missing")
	}
	b := page[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:headerBytes-8])
	if order.Uint32(b) != magic || order.Uint64(b[headerBytes-8:]) != sum.Sum64() {
		return nil, damaged("a header has a wrong checksum")
	}
	if size := order.Uint32(b[8:]); size < 1024 || size > 1<<16 || size&(size-1) != 0 {
		return nil, damaged("a header has the page size %d", size)
	}
	return &header{page: page, pageSize: order.Uint32(b[8:]), root: order.Uint64(b[16:]), sequence: order.Uint64(b[24:]),
		freelist: order.Uint64(b[32:]), pages: order.Uint64(b[40:]), txid: order.Uint64(b[48:])}, nil
}

// errNoHeader means that the file does not contain the header of a transaction.
var errNoHeader = errors.New("the header is missing")

// header reads the header that the transaction with the ID has written. It is usually the first
// header if the ID is even, but not in a copy. If the file does not contain the header, and one of
// its headers is invalid, header returns a DamagedError. Otherwise, it returns errNoHeader.
func (db *DB) header(txid int) (*header, error) {
	size := db.bolt.Info().PageSize
	failure := fmt.Errorf("%w: transaction %d", errNoHeader, txid)
	for n := range int64(2) {
		page := make([]byte, size)
		at := n * int64(size)
		if _, err := db.file.ReadAt(page, at); err != nil {
			return nil, fmt.Errorf("read the header: %w", err)
		}
		h, err := parseHeader(page)
		if err != nil {
			failure = err
		} else if h.txid == uint64(txid) {
			h.at = at
			return h, nil
		}
	}
	return nil, failure
}

// newestHeader returns the valid header of the newest commit.
func newestHeader(f io.ReaderAt) (newest *header, err error) {
	first := make([]byte, pageHeader+headerBytes)
	if _, err := f.ReadAt(first, 0); err != nil {
		return nil, err
	}
	// If the first header is invalid, its page size is probably still right.
	size := order.Uint32(first[pageHeader+8:])
	for n := range int64(2) {
		page := make([]byte, min(size, 1<<16))
		if _, readErr := f.ReadAt(page, n*int64(size)); readErr != nil {
			err = readErr
			continue
		}
		h, parseErr := parseHeader(page)
		if parseErr != nil {
			err = parseErr
		} else if newest == nil || h.txid > newest.txid {
			newest = h
		}
	}
	if newest == nil {
		return nil, err
	}
	return newest, nil
}

// errClosing ends a verification in the background.
var errClosing = errors.New("the file is being closed")

// Verify reads the complete file. If anything differs from what was written, Verify returns a
// DamagedError.
func (db *DB) Verify() error {
	return db.View(func(tx *Tx) error {
		h, err := db.header(tx.tx.ID())
		if err != nil {
			return err
		}
		if _, err := db.header(tx.tx.ID() - 1); err != nil {
			if _, ok := errors.AsType[*DamagedError](err); ok {
				// The invalid header may be the newer one.
				return damaged("one of its two headers is invalid, so the last change may be missing")
			}
		}
		return verify(db.file, h, db.closing.Load)
	})
}

// verifier checks a file.
type verifier struct {
	file    io.ReaderAt
	header  *header
	stopped func() bool
	// used has one bit for each page that belongs to a tree or to the list of free pages.
	used []byte
	buf  [maxDepth][]byte
}

// verify checks all pages that a header refers to. The pages must not change meanwhile.
func verify(f *os.File, h *header, stopped func() bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && uint64(info.Size())/uint64(h.pageSize) < h.pages {
		return damaged("the file is truncated: it has %d of %d bytes", info.Size(), h.pages*uint64(h.pageSize))
	}
	v := &verifier{file: f, header: h, stopped: stopped, used: make([]byte, h.pages/8+1)}
	if err := v.tree(h.root, 0, nil, nil, nil); err != nil {
		return err
	}
	if h.freelist != ^uint64(0) {
		if err := v.freelist(); err != nil {
			return err
		}
		for id := uint64(2); id < h.pages; id++ {
			if v.used[id/8]&(1<<(id%8)) == 0 {
				return damaged("page %d is neither used nor free", id)
			}
		}
	}
	return nil
}

// use marks pages as used.
func (v *verifier) use(id, number uint64) error {
	for n := id; n < id+number; n++ {
		if n < 2 || n >= v.header.pages {
			return damaged("page %d is outside of the file", n)
		}
		if v.used[n/8]&(1<<(n%8)) != 0 {
			return damaged("page %d is used twice", n)
		}
		v.used[n/8] |= 1 << (n % 8)
	}
	return nil
}

// read reads a page, and the further pages that it occupies, into the buffer of a level of the tree.
func (v *verifier) read(id uint64, level int) ([]byte, error) {
	if v.stopped() {
		return nil, errClosing
	}
	if level >= maxDepth {
		return nil, damaged("page %d is too deep", id)
	}
	if err := v.use(id, 1); err != nil {
		return nil, err
	}
	size := int(v.header.pageSize)
	if len(v.buf[level]) < size {
		v.buf[level] = make([]byte, size)
	}
	b := v.buf[level]
	if _, err := v.file.ReadAt(b[:size], int64(id)*int64(size)); err != nil {
		return nil, damaged("page %d cannot be read: %v", id, err)
	}
	further := int(order.Uint32(b[12:]))
	if order.Uint64(b) != id {
		return nil, damaged("page %d has the ID %d", id, order.Uint64(b))
	}
	if further == 0 {
		return b[:size], nil
	}
	if err := v.use(id+1, uint64(further)); err != nil {
		return nil, err
	}
	if need := size * (1 + further); len(b) < need {
		v.buf[level] = append(make([]byte, 0, need), b[:size]...)[:need]
		b = v.buf[level]
	}
	if _, err := v.file.ReadAt(b[size:size*(1+further)], int64(id+1)*int64(size)); err != nil {
		return nil, damaged("page %d cannot be read: %v", id, err)
	}
	return b[:size*(1+further)], nil
}

// tree checks the pages of a bucket, beginning with the page at the given level. Unless low and high
// are nil, low must be the first key, and all keys must be less than high. The parent must contain
// the first key: otherwise, bbolt would add the page a second time when it changes. path contains
// the names of the bucket and its parents.
func (v *verifier) tree(id uint64, level int, low, high []byte, path [][]byte) error {
	page, err := v.read(id, level)
	if err != nil {
		return err
	}
	switch kind := order.Uint16(page[8:]); kind {
	case kindLeaf:
		return v.leaf(page, id, level, low, high, path)
	case kindBranch:
	default:
		return damaged("page %d has the kind %d", id, kind)
	}
	count := int(order.Uint16(page[10:]))
	if count == 0 {
		return damaged("page %d has no elements", id)
	}
	body := page[pageHeader:]
	next := count * element
	keys := make([][]byte, count)
	children := make([]uint64, count)
	for i := range count {
		if (i+1)*element > len(body) {
			return damaged("page %d has too many elements", id)
		}
		e := body[i*element:]
		from, size := i*element+int(order.Uint32(e)), int(order.Uint32(e[4:]))
		if from != next || size > len(body)-from {
			return damaged("element %d of page %d is at the wrong place", i, id)
		}
		next = from + size
		keys[i], children[i] = bytes.Clone(body[from:next]), order.Uint64(e[8:])
	}
	for i, key := range keys {
		if i == 0 && low != nil && !bytes.Equal(key, low) || i > 0 && bytes.Compare(keys[i-1], key) >= 0 || high != nil && bytes.Compare(key, high) >= 0 {
			return damaged("key %d of page %d is out of order", i, id)
		}
		end := high
		if i+1 < count {
			end = keys[i+1]
		}
		if err := v.tree(children[i], level+1, key, end, path); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks a page with values.
func (v *verifier) leaf(page []byte, id uint64, level int, low, high []byte, path [][]byte) error {
	count := int(order.Uint16(page[10:]))
	body := page[pageHeader:]
	if count == 0 {
		if low != nil || len(bytes.Trim(body, "\x00")) > 0 {
			return damaged("page %d has no elements", id)
		}
		return nil
	}
	next := count * element
	var previous []byte
	for i := range count {
		if (i+1)*element > len(body) {
			return damaged("page %d has too many elements", id)
		}
		e := body[i*element:]
		flags, from := order.Uint32(e), i*element+int(order.Uint32(e[4:]))
		keySize, valueSize := int(order.Uint32(e[8:])), int(order.Uint32(e[12:]))
		if from != next || keySize > len(body)-from || valueSize > len(body)-from-keySize {
			return damaged("element %d of page %d is at the wrong place", i, id)
		}
		next = from + keySize + valueSize
		key, value := body[from:from+keySize], body[from+keySize:next]
		if i == 0 && low != nil && !bytes.Equal(key, low) || i > 0 && bytes.Compare(previous, key) >= 0 || high != nil && bytes.Compare(key, high) >= 0 {
			return damaged("key %d of page %d is out of order", i, id)
		}
		previous = key
		switch {
		case flags == flagBucket:
			if err := v.bucket(value, id, level, append(path[:len(path):len(path)], bytes.Clone(key))); err != nil {
				return err
			}
		case flags != 0 || !isSealed(key, value) && (len(path) != 1 || !bytes.Equal(path[0], bucketFormat)):
			return damaged("the value of key %d of page %d has a wrong checksum", i, id)
		}
	}
	return nil
}

// bucket checks a nested bucket. value is its element in the page of the parent.
func (v *verifier) bucket(value []byte, id uint64, level int, path [][]byte) error {
	if len(value) < bucketHeader {
		return damaged("page %d has an incomplete bucket", id)
	}
	if _, ok := unsealSequence(order.Uint64(value[8:])); !ok {
		return damaged("page %d has a sequence number with a wrong checksum", id)
	}
	if root := order.Uint64(value); root != 0 {
		return v.tree(root, level+1, nil, nil, path)
	}
	page := value[bucketHeader:]
	if len(page) < pageHeader || order.Uint16(page[8:]) != kindLeaf || len(path) > maxDepth {
		return damaged("page %d has an invalid bucket", id)
	}
	return v.leaf(page, id, level, nil, nil, path)
}

// freelist checks the list of free pages.
func (v *verifier) freelist() error {
	page, err := v.read(v.header.freelist, 0)
	if err != nil {
		return err
	}
	if order.Uint16(page[8:]) != kindFreelist {
		return damaged("the list of free pages has the wrong kind")
	}
	ids := page[pageHeader:]
	count := uint64(order.Uint16(page[10:]))
	if count == 0xFFFF { // the number is too large for the page's header, so it is the first element
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids))/8 {
		return damaged("the list of free pages is incomplete")
	}
	for i := range count {
		if err := v.use(order.Uint64(ids[i*8:]), 1); err != nil {
			return err
		}
	}
	return nil
}
