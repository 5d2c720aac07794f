//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package dynamolocal

import "context"

// lock does nothing here: the standard library has no file lock for this system. Two processes may
// then fetch at the same time, of which the first to finish wins, and one may lose its port to the
// other and try again.
func lock(ctx context.Context, _ string) (unlock func(), err error) {
	return func() {}, ctx.Err()
}

// Without locks each test process has an instance of its own.
const keeperEnv = ""

func join(ctx context.Context) (*Instance, error) { return Start(ctx) }

func keep(string) int { return 1 }
