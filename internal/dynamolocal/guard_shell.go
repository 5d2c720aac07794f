package dynamolocal

import (
	"fmt"
	"os/exec"
)

// watchScript runs the command it is given in its own place (exec: same process id), after leaving
// behind a child that waits for the end of standard input and then kills it. The detour over
// descriptor 3 is needed because a shell gives background jobs an empty standard input.
const watchScript = `exec 3<&0
(cat <&3 >/dev/null 2>&1; kill -9 $$) >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null`

// startWithShell is startGuarded for systems whose kernel does not offer it: a shell holds the
// reading end of a pipe of which this process holds the only writing end, and a pipe is closed
// however its holder ends.
//
// It is compiled on every system so that its test runs where we develop. Without a POSIX shell
// (Windows) the command starts unguarded, and only [Instance.Stop] ends it.
func startWithShell(cmd *exec.Cmd) (<-chan error, error) {
	if sh, err := exec.LookPath("sh"); err == nil {
		cmd.Args = append([]string{"sh", "-c", watchScript, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = sh
		// Nothing is ever written; [exec.Cmd.Wait] closes it once the command has ended.
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
