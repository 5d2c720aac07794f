package dynamolocal

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startGuarded starts cmd so that it is killed when this process ends in whatever way. When it has
// ended, its result is sent on the channel, which is then closed.
//
// The kernel does it (prctl PR_SET_PDEATHSIG). The surprise is that "parent" there means the thread
// that started the child, not its process: were that thread to end before the process does, the
// child would die with it. The Go runtime does end threads. So the goroutine that starts the child
// keeps its thread to itself and stays on it until the child is gone.
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
