//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package dynamolocal

import "context"

// lock does nothing, because the standard library has no file locks for this system. If two
// processes download DynamoDB Local at the same time, both succeed, and the first complete download
// is used. If two processes choose the same port, one of them tries another port.
func lock(ctx context.Context, _ string) (unlock func(), err error) {
	return func() {}, ctx.Err()
}

// keeperEnv is empty, because without file locks there is no keeper: each test process starts its
// own instance.
const keeperEnv = ""

func joinShared(ctx context.Context) (*Instance, error) { return Start(ctx) }

func runKeeper(string) int { return 1 }
