package dynamolocal

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startGuarded starts cmd so that it is killed when this process ends for any reason. When cmd has
// ended, the channel receives its result and is closed.
//
// The kernel kills cmd (prctl PR_SET_PDEATHSIG) when its parent ends. The parent is the thread that
// started cmd, not the process, and the Go runtime may end threads. So the starting goroutine locks
// its thread until cmd has ended.
func startGuarded(cmd *exec.Cmd) (<-chan error, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		ended <- cmd.Wait()
		close(ended)
	}()
	return ended, <-started
}
