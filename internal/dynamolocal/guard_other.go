//go:build !linux

package dynamolocal

import "os/exec"

// startGuarded starts cmd so that it is killed when this process ends in whatever way. When it has
// ended, its result is sent on the channel, which is then closed. See startWithShell for how.
func startGuarded(cmd *exec.Cmd) (<-chan error, error) { return startWithShell(cmd) }
