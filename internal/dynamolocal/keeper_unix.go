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

// keeperEnv is an environment variable that makes a test binary run as the keeper, the process that
// starts and ends the shared instance. Its value is the path of the users file (see joinShared).
const keeperEnv = "ORDERGRAPH_TEST_DYNAMOLOCAL_KEEPER"

// idleTimeout is how long the shared instance runs after the last process has stopped using it.
const idleTimeout = 30 * time.Second

// joinShared returns the instance that all test processes of this user share. If there is no
// instance, joinShared starts the keeper, which runs the instance. The keeper is the same test
// binary in a separate session.
//
// The users file contains the endpoint of the instance. Each process that uses the instance holds a
// shared lock on this file. The keeper acquires the exclusive lock before it ends the instance. So
// no process can join an instance that is about to end.
//
// joinShared returns the errors of [Start].
func joinShared(ctx context.Context) (*Instance, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return nil, &UnavailableError{Missing: "java", Err: err}
	}
	lib, err := Fetch(ctx)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, lib+".joining") // only one process starts a keeper
	if err != nil {
		return nil, fmt.Errorf("join the shared DynamoDB Local: wait for another process: %w", err)
	}
	defer unlock()
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

// responds reports whether an instance responds at an endpoint.
func responds(ctx context.Context, endpoint string) bool {
	if endpoint == "" {
		return false
	}
	i := Instance{endpoint: endpoint}
	_, err := i.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }).ListTables(ctx, &dynamodb.ListTablesInput{})
	return err == nil
}

// startKeeper starts the keeper and returns the endpoint of the instance as soon as the instance
// responds. If the test binary does not call [Main], the keeper runs no tests and ends immediately.
func startKeeper(users string) (endpoint string, err error) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), keeperEnv+"="+users)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt of the test does not end the keeper
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

// runKeeper runs the keeper and returns its exit code.
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

// stopWhenUnused ends the instance after no process has used it for the given time, and then
// returns. If the instance ends before that, stopWhenUnused returns its exit error.
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
					_ = os.Truncate(users, 0) // the endpoint is no longer valid
					i.Stop()
				}
				unlock()
			}
		}
	}
	return nil
}
