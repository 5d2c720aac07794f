package dynamolocal

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startKilledOnExit starts cmd. When this process ends for any reason, the kernel kills cmd. When
// cmd has ended, the returned channel receives the result of cmd.Wait and is closed.
//
// The prctl option PR_SET_PDEATHSIG makes the kernel kill cmd when its parent ends. Here, the
// parent is the thread that started cmd, not the process, and the Go runtime may end a thread at
// any time. So the goroutine that starts cmd stays locked to its thread until cmd has ended.
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
