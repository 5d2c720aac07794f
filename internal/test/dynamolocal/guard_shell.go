package dynamolocal

import (
	"fmt"
	"os/exec"
)

// watchScript runs the command in its arguments. A background job waits for the end of standard
// input, and then kills the command.
//
// exec replaces the shell by the command, so the command has the process ID $$. The standard input
// of a background job is empty, so the job reads the original input as descriptor 3.
const watchScript = `exec 3<&0
(cat <&3 >/dev/null 2>&1; kill -9 $$) >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null`

// startWithShell implements startKilledOnExit for systems other than Linux. When this process ends,
// the operating system closes the pipe to watchScript, and watchScript kills cmd. Without a POSIX
// shell, only [Instance.Stop] ends cmd.
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
