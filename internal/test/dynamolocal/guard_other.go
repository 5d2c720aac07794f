//go:build !linux

package dynamolocal

import "os/exec"

// startKilledOnExit starts cmd. When this process ends for any reason, cmd is killed, except
// without a POSIX shell. When cmd has ended, the returned channel receives the result of cmd.Wait
// and is closed.
func startKilledOnExit(cmd *exec.Cmd) (<-chan error, error) { return startWithShell(cmd) }
