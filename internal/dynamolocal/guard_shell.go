package dynamolocal

import (
	"fmt"
	"os/exec"
)

// watchScript starts a background job, and then replaces the shell with the command. The job waits
// until standard input ends, and then kills the command. exec keeps the process ID, so $$ is the ID
// of the command. The job reads descriptor 3, because a shell gives background jobs an empty
// standard input.
const watchScript = `exec 3<&0
(cat <&3 >/dev/null 2>&1; kill -9 $$) >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null`

// startWithShell implements startKilledOnExit for systems in which the kernel cannot kill a child
// process. A shell reads from a pipe, and only this process can write to the pipe. When this
// process ends for any reason, the operating system closes the pipe. Then a background job of the
// shell kills the command.
//
// startWithShell is compiled on every system, so that its test also runs on Linux. On a system
// without a POSIX shell (Windows), only [Instance.Stop] ends the command.
func startWithShell(cmd *exec.Cmd) (<-chan error, error) {
	if sh, err := exec.LookPath("sh"); err == nil {
		cmd.Args = append([]string{"sh", "-c", watchScript, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = sh
		// This process writes nothing to the pipe. [exec.Cmd.Wait] closes the pipe after the command has
		// ended.
		if _, err := cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("open the pipe to watch %s: %w", cmd.Path, err)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		close(ended)
	}()
	return ended, nil
}
