// Package disk simulates a disk that fails or loses power, for tests. It intercepts the system
// calls of this process that write and sync files. It imports no other package of the module.
package disk

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
)

// pageSize is the size of the blocks that reach the disk completely or not at all.
const pageSize = 4096

// Disk is the disk below one file. Pages that the process writes stay in memory until a sync
// succeeds. After a sync that fails, the operating system forgets that they must be written, as
// Linux does. A power loss leaves only the pages that have reached the disk.
type Disk struct {
	mu     sync.Mutex
	source *rand.Rand
	choose func(Call) Outcome
	path   string
	file   *os.File
	image  []byte
	dirty  map[int64]bool
	failed int
	// lost is the content of the disk after the power was lost. off reports whether it was.
	lost []byte
	off  bool
}

// Call is a write or a sync of the file. IsHeader reports whether it writes or syncs the first two
// pages, which make the other pages current in a file of bbolt.
type Call struct{ IsSync, IsHeader bool }

// Outcome is the outcome of a call.
type Outcome int

// The outcomes of calls. After PowerLoss, all calls fail until Start.
const (
	Success Outcome = iota
	Failure
	Full
	PowerLoss
)

// Start begins to simulate the disk below the file at path, which must exist. All calls succeed,
// and source determines what a power loss leaves.
func (d *Disk) Start(path string, source *rand.Rand) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file != nil {
		_ = d.file.Close()
	}
	d.path, d.file, d.source, d.choose, d.dirty, d.failed, d.off, d.lost = path, f, source, nil, map[int64]bool{}, 0, false, nil
	d.image = make([]byte, info.Size())
	_, err = f.ReadAt(d.image, 0)
	return err
}

// Choose sets the function that chooses the outcomes of further calls. If it is nil, they succeed.
// If source is not nil, it determines from now on which pages a failed sync or a power loss leaves.
func (d *Disk) Choose(source *rand.Rand, choose func(Call) Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.choose = choose; source != nil {
		d.source = source
	}
}

// Fail lets a number of syncs fail after some more syncs have succeeded.
func (d *Disk) Fail(after, number int) {
	d.Choose(nil, func(c Call) Outcome {
		if c.IsSync {
			after--
		}
		if c.IsSync && after < 0 && after >= -number {
			return Failure
		}
		return Success
	})
}

// Failed returns the number of syncs that have failed since Start.
func (d *Disk) Failed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// Off reports whether the power was lost since Start.
func (d *Disk) Off() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.off
}

// decide decides on a system call that writes or syncs an open file. If passes is true, the kernel
// executes the call. Otherwise, its result is errno.
func (d *Disk) decide(path string, isSync bool, at, length int64) (errno syscall.Errno, passes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file == nil || path != d.path {
		return 0, !isSync // syncs of other files succeed without effect
	}
	c := Call{isSync, d.dirty[0] || d.dirty[1]}
	if !isSync {
		c.IsHeader = at < 2*pageSize
	}
	outcome := Success
	if d.off {
		return syscall.EIO, false
	}
	if d.choose != nil {
		outcome = d.choose(c)
	}
	switch {
	case outcome == PowerLoss:
		d.lose(d.source.Float64())
		return syscall.EIO, false
	case outcome == Full:
		return syscall.ENOSPC, false
	case !isSync && outcome == Failure:
		return syscall.EIO, false
	case !isSync:
		for page := at / pageSize; page*pageSize < at+length; page++ {
			d.dirty[page] = true
		}
		return 0, true
	case outcome == Failure:
		d.failed++
		d.image = d.flush(d.source.Float64())
		errno = syscall.EIO
	default:
		d.image = d.flush(1)
	}
	clear(d.dirty)
	return errno, false
}

// flush returns the content of the disk after a part of the dirty pages was written. The headers
// are drawn first, because the numbers of other pages are not the same in each run.
func (d *Disk) flush(part float64) []byte {
	image := d.image
	info, err := d.file.Stat()
	if err != nil {
		return image
	}
	if grown := int(info.Size()) - len(image); grown > 0 {
		image = append(image, make([]byte, grown)...)
	}
	for _, page := range slices.Sorted(maps.Keys(d.dirty)) {
		if d.source.Float64() < part {
			end := min((page+1)*pageSize, info.Size())
			_, _ = d.file.ReadAt(image[page*pageSize:end], page*pageSize)
		}
	}
	return image
}

// lose loses the power. A part of the dirty pages has reached the disk.
func (d *Disk) lose(part float64) {
	d.off, d.image = true, slices.Clone(d.image)
	d.lost = d.flush(part)
}

// Cut loses the power now.
func (d *Disk) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.off {
		d.lose(d.source.Float64() / 2)
	}
}

// PowerLoss writes the content of the disk after the power loss to a file. If the power was not
// lost, the content is what a power loss at this moment would leave.
func (d *Disk) PowerLoss(path string) error {
	d.mu.Lock()
	lost := d.lost
	if !d.off {
		image := d.image
		d.image = slices.Clone(image)
		lost = d.flush(d.source.Float64() / 2)
		d.image = image
	}
	d.mu.Unlock() // decide must run during the writes to the other file
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(int64(len(lost))); err != nil {
		return err
	}
	for at := 0; at < len(lost); at += pageSize { // write only pages with content
		if page := lost[at:min(at+pageSize, len(lost))]; !bytes.Equal(page, make([]byte, len(page))) {
			if _, err := f.WriteAt(page, int64(at)); err != nil {
				return err
			}
		}
	}
	return nil
}
