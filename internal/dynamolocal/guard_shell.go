package dynamolocal

import (
	"fmt"
	"os/exec"
)

// watchScript replaces the shell by the command (exec keeps the process ID). Before that, it starts
// a child that waits for the end of standard input and then kills the command. The child reads
// descriptor 3, because a shell gives background jobs an empty standard input.
const watchScript = `exec 3<&0
(cat <&3 >/dev/null 2>&1; kill -9 $$) >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null`

// startWithShell implements startGuarded for systems whose kernel cannot do it. A shell reads from
// a pipe, and this process has the only writing end. The operating system closes the pipe when this
// process ends for any reason.
//
// startWithShell is compiled on every system, so that its test also runs on Linux. Without a POSIX
// shell (Windows), the command starts unguarded, and only [Instance.Stop] ends it.
func startWithShell(cmd *exec.Cmd) (<-chan error, error) {
	if sh, err := exec.LookPath("sh"); err == nil {
		cmd.Args = append([]string{"sh", "-c", watchScript, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = sh
		// This process writes nothing to the pipe. [exec.Cmd.Wait] closes it when the command has ended.
		if _, err := cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("open the pipe that guards %s: %w", cmd.Path, err)
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
