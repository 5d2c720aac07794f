package dynamolocal

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startKilledOnExit starts cmd. The kernel kills cmd when this process ends. When cmd has ended,
// the returned channel receives the result of cmd.Wait and is closed.
func startKilledOnExit(cmd *exec.Cmd) (<-chan error, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// The kernel kills cmd when the thread that started cmd ends. Lock the goroutine to this
		// thread, because the Go runtime may otherwise end the thread at any time.
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
