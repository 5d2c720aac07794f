//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package dynamolocal

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// keeperEnv is the environment variable that makes a test binary run as the keeper, the process
// that starts and stops the shared instance. Its value is the path of the users file, which
// joinShared describes.
const keeperEnv = "ORDERGRAPH_TEST_DYNAMOLOCAL_KEEPER"

// idleTimeout is how long the shared instance keeps running after the last test process has stopped
// using it.
const idleTimeout = 30 * time.Second

// joinShared returns the instance that all test processes of this user share. If no instance is
// running, joinShared starts a keeper. If DynamoDB Local is not available, joinShared returns an
// [*UnavailableError].
func joinShared(ctx context.Context) (*Instance, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return nil, &UnavailableError{Missing: "java", Err: err}
	}
	lib, err := Fetch(ctx)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, lib+".joining") // so that only one process starts a keeper
	if err != nil {
		return nil, fmt.Errorf("join the shared DynamoDB Local: wait for the lock of another process: %w", err)
	}
	defer unlock()
	// The users file contains the endpoint. Each process that uses the instance holds a shared lock on
	// this file. The keeper needs the exclusive lock to stop the instance, so it cannot stop an
	// instance in use.
	users := lib + ".users"
	leave, err := waitForLock(ctx, users, syscall.LOCK_SH)
	if err != nil {
		return nil, fmt.Errorf("join DynamoDB Local: %w", err)
	}
	endpoint, err := os.ReadFile(users)
	if err == nil && responds(ctx, string(endpoint)) {
		return &Instance{endpoint: string(endpoint), release: leave}, nil
	}
	started, err := startKeeper(users)
	if err != nil {
		leave()
		return nil, fmt.Errorf("join DynamoDB Local: %w", err)
	}
	return &Instance{endpoint: started, release: leave}, nil
}

// responds reports whether DynamoDB Local responds at the endpoint.
func responds(ctx context.Context, endpoint string) bool {
	if endpoint == "" {
		return false
	}
	i := Instance{endpoint: endpoint}
	_, err := i.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }).ListTables(ctx, &dynamodb.ListTablesInput{})
	return err == nil
}

// startKeeper starts the keeper, a process that runs the instance, and returns the endpoint of the
// instance. users is the path of the users file.
func startKeeper(users string) (endpoint string, err error) {
	// The keeper executes this test binary, which runs no tests because of -test.run=^$. If the binary
	// does not call Main, it ends immediately.
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), keeperEnv+"="+users)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // in its own session, the keeper does not receive Ctrl+C
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	defer out.Close()
	if err := cmd.Start(); err != nil {
		return "", err
	}
	text, err := io.ReadAll(out)
	if err != nil || !strings.HasPrefix(string(text), "http://") {
		return "", fmt.Errorf("the keeper ended (%w): %s", exitError(cmd.Wait()), text)
	}
	return string(text), cmd.Process.Release()
}

// runKeeper runs the keeper and returns its exit code. It prints the endpoint of the instance to
// standard output, or the error if the instance does not start.
func runKeeper(users string) int {
	inst, err := Start(context.Background())
	if err == nil {
		err = os.WriteFile(users, []byte(inst.endpoint), 0o644)
	}
	if err != nil {
		fmt.Print(err)
		return 1
	}
	fmt.Print(inst.endpoint)
	os.Stdout.Close()
	if inst.stopWhenUnused(users, idleTimeout) != nil {
		return 1
	}
	return 0
}

// stopWhenUnused waits until no process has used the instance for the duration after, and then
// stops the instance. If the instance ends earlier, stopWhenUnused returns its exit error. users is
// the path of the users file.
func (i *Instance) stopWhenUnused(users string, after time.Duration) error {
	const looks = 30
	ticker := time.NewTicker(after / looks)
	defer ticker.Stop()
	for unused := 0; unused < looks; {
		select {
		case err := <-i.ended:
			return err
		case <-ticker.C:
			if unlock, err := tryLock(users, syscall.LOCK_EX); err != nil {
				unused = 0
			} else {
				unused++
				if unused == looks {
					_ = os.Truncate(users, 0) // remove the endpoint from the file
					i.Stop()
				}
				unlock()
			}
		}
	}
	return nil
}
