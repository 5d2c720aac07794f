package embedded_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// diskPage is the size of the blocks that reach the disk completely or not at all.
const diskPage = 4096

// disk simulates the disk below one file. Pages that the process writes stay in memory until a sync
// succeeds. After a sync that fails, the operating system forgets that they must be written, as
// Linux does. A power loss leaves only the pages that have reached the disk.
type disk struct {
	mu     sync.Mutex
	source *rand.Rand
	path   string
	file   *os.File
	image  []byte
	dirty  map[int64]bool
	// syncs counts the syncs. Those from failFrom up to failTo, exclusively, fail.
	syncs, failFrom, failTo int
}

// interceptedCalls are the system calls that newDisk sends to this process before they run.
var interceptedCalls = []uint32{unix.SYS_PWRITE64, unix.SYS_FDATASYNC, unix.SYS_FSYNC}

// newDisk intercepts all writes and syncs of this process until it ends.
func newDisk(t *testing.T) *disk {
	t.Helper()
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for i, call := range interceptedCalls {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: uint8(len(interceptedCalls) - i)})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW}, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_USER_NOTIF})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		t.Fatalf("the kernel cannot intercept system calls: %v", errno)
	}
	d := &disk{}
	go d.serve(listener)
	return d
}

// notification is struct seccomp_notif, and response is struct seccomp_notif_resp of Linux.
type notification struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	address    uint64
	args       [6]uint64
}

type response struct {
	id           uint64
	value        int64
	errno        int32
	continueFlag uint32
}

// serve decides on the intercepted system calls.
func (d *disk) serve(listener uintptr) {
	const receive, send = 0xC0502100, 0xC0182101
	for {
		n := &notification{}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, receive, uintptr(unsafe.Pointer(n))); errno != 0 {
			continue
		}
		r := &response{id: n.id}
		d.decide(n, r)
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, listener, send, uintptr(unsafe.Pointer(r)))
	}
}

func (d *disk) decide(n *notification, r *response) {
	d.mu.Lock()
	defer d.mu.Unlock()
	isWrite := uint32(n.number) == unix.SYS_PWRITE64
	path, err := os.Readlink("/proc/self/fd/" + strconv.FormatUint(n.args[0], 10))
	if d.file == nil || err != nil || path != d.path {
		if isWrite {
			r.continueFlag = 1
		}
		return // syncs of other files succeed without effect
	}
	if isWrite {
		for page := int64(n.args[3]) / diskPage; page*diskPage < int64(n.args[3]+n.args[2]); page++ {
			d.dirty[page] = true
		}
		r.continueFlag = 1
		return
	}
	d.syncs++
	if d.syncs >= d.failFrom && d.syncs < d.failTo {
		d.flush(d.source.Float64())
		r.errno = -int32(unix.EIO)
	} else {
		d.flush(1)
	}
	clear(d.dirty)
}

// flush writes a part of the dirty pages to the disk.
func (d *disk) flush(part float64) {
	info, err := d.file.Stat()
	if err != nil {
		return
	}
	if grown := int(info.Size()) - len(d.image); grown > 0 {
		d.image = append(d.image, make([]byte, grown)...)
	}
	for page := range d.dirty {
		if d.source.Float64() < part {
			end := min((page+1)*diskPage, info.Size())
			_, _ = d.file.ReadAt(d.image[page*diskPage:end], page*diskPage)
		}
	}
}

// start begins to simulate the disk below the file at path, which must exist.
func (d *disk) start(t *testing.T, path string, source *rand.Rand) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file != nil {
		_ = d.file.Close()
	}
	d.path, d.file, d.source, d.image, d.dirty = path, f, source, nil, map[int64]bool{}
	d.syncs, d.failFrom, d.failTo = 0, 0, 0
}

// fail lets a number of syncs fail after some more syncs have succeeded.
func (d *disk) fail(after, number int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failFrom = d.syncs + 1 + after
	d.failTo = d.failFrom + number
}

// powerLoss writes the content of the disk after a power loss at this moment to a file.
func (d *disk) powerLoss(path string) error {
	d.mu.Lock()
	image := d.image
	d.image = slices.Clone(image)
	d.flush(d.source.Float64() / 2)
	lost := d.image
	d.image = image
	d.mu.Unlock() // decide must run during the writes to the other file
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(int64(len(lost))); err != nil {
		return err
	}
	for at := 0; at < len(lost); at += diskPage { // write only pages with content
		if page := lost[at:min(at+diskPage, len(lost))]; !bytes.Equal(page, make([]byte, len(page))) {
			if _, err := f.WriteAt(page, int64(at)); err != nil {
				return err
			}
		}
	}
	return nil
}
