//go:build !linux

package dynamolocal

import "os/exec"

// startGuarded starts cmd so that it is killed when this process ends for any reason. When cmd has
// ended, the channel receives its result and is closed. It uses startWithShell.
func startGuarded(cmd *exec.Cmd) (<-chan error, error) { return startWithShell(cmd) }
