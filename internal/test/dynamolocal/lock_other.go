//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package dynamolocal

import "context"

// lock does nothing, because the standard library has no file locks for this system. Concurrent
// downloads still succeed (see fetchInto), and Start tries another port after a conflict.
func lock(ctx context.Context, _ string) (unlock func(), err error) {
	return func() {}, ctx.Err()
}

// keeperEnv is empty, because without file locks there is no keeper: each test process starts its
// own instance.
const keeperEnv = ""

func joinShared(ctx context.Context) (*Instance, error) { return Start(ctx) }

func runKeeper(string) int { return 1 }
