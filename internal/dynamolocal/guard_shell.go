package dynamolocal

import (
	"fmt"
	"os/exec"
)

// watchScript is a shell script. It starts a background job, and then replaces the shell with the
// command in its arguments. The job waits until standard input ends, and then kills the command.
// exec keeps the process ID of the shell, so $$ is also the process ID of the command. The job
// reads from descriptor 3, a copy of standard input, because a shell gives background jobs an empty
// standard input.
const watchScript = `exec 3<&0
(cat <&3 >/dev/null 2>&1; kill -9 $$) >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null`

// startWithShell implements startKilledOnExit for systems whose kernel cannot kill a child process
// when its parent ends. It runs cmd through a shell that reads from a pipe. Only this process can
// write to the pipe. When this process ends for any reason, the operating system closes the pipe. A
// background job of the shell then kills cmd.
//
// startWithShell is compiled on every system, so that its test also runs on Linux. On a system
// without a POSIX shell, such as Windows, only [Instance.Stop] ends cmd.
func startWithShell(cmd *exec.Cmd) (<-chan error, error) {
	if sh, err := exec.LookPath("sh"); err == nil {
		cmd.Args = append([]string{"sh", "-c", watchScript, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = sh
		// Create the pipe, but never write to it. [exec.Cmd.Wait] closes it after cmd has ended.
		if _, err := cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("create the standard input pipe of %s: %w", cmd.Path, err)
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
