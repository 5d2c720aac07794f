package disk

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// interceptedCalls are the system calls that Intercept sends to this process before they run.
var interceptedCalls = []uint32{unix.SYS_PWRITE64, unix.SYS_FDATASYNC, unix.SYS_FSYNC}

// Intercept intercepts all writes and syncs of this process until it ends. If the kernel does not
// allow this, Intercept returns an error.
func Intercept() (*Disk, error) {
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for i, call := range interceptedCalls {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: uint8(len(interceptedCalls) - i)})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW}, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_USER_NOTIF})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	// WAIT_KILLABLE_RECV: a signal of the Go scheduler does not repeat a call that serve has received.
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return nil, fmt.Errorf("the kernel cannot intercept system calls: %w", errno)
	}
	d := &Disk{}
	go d.serve(listener)
	return d, nil
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
func (d *Disk) serve(listener uintptr) {
	const receive, send = 0xC0502100, 0xC0182101
	for {
		n := &notification{}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, receive, uintptr(unsafe.Pointer(n))); errno != 0 {
			continue
		}
		path, _ := os.Readlink("/proc/self/fd/" + strconv.FormatUint(n.args[0], 10))
		errno, passes := d.decide(path, uint32(n.number) != unix.SYS_PWRITE64, int64(n.args[3]), int64(n.args[2]))
		r := &response{id: n.id, errno: -int32(errno)}
		if passes {
			r.continueFlag = 1
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, listener, send, uintptr(unsafe.Pointer(r)))
	}
}
