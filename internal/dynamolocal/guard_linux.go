package dynamolocal

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startKilledOnExit starts cmd. When this process ends for any reason, cmd is killed. When cmd has
// ended, the returned channel receives the result of cmd and is closed.
//
// The kernel kills cmd (prctl PR_SET_PDEATHSIG) when the parent of cmd ends. The parent is the
// thread that started cmd, not the process, and the Go runtime may end threads. So the goroutine
// that starts cmd locks its thread until cmd has ended.
func startKilledOnExit(cmd *exec.Cmd) (<-chan error, error) {
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
