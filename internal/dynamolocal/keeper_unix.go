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

// keeperEnv makes a test binary the keeper of the shared instance. Its value is the path of the
// users' file.
const keeperEnv = "ORDERGRAPH_TEST_DYNAMOLOCAL_KEEPER"

// linger is how long the shared instance waits for its next user.
const linger = 30 * time.Second

// join returns the instance that all test processes of this user share. The first process starts a
// keeper, which is its own binary run once more, apart from the process and its output.
//
// Each user holds a shared lock on the users' file, which has the instance's endpoint. The keeper
// takes the exclusive lock to end the instance, so nobody joins one that is about to end.
//
// The errors are those of [Start].
func join(ctx context.Context) (*Instance, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return nil, &UnavailableError{What: "java", Err: err}
	}
	lib, err := Fetch(ctx)
	if err != nil {
		return nil, err
	}
	done, err := lock(ctx, lib+".joining") // one start at a time
	if err != nil {
		return nil, fmt.Errorf("join DynamoDB Local: wait for another process: %w", err)
	}
	defer done()
	users := lib + ".users"
	leave, err := wait(ctx, users, syscall.LOCK_SH)
	if err != nil {
		return nil, fmt.Errorf("join DynamoDB Local: %w", err)
	}
	endpoint, err := os.ReadFile(users)
	if err == nil && answers(ctx, string(endpoint)) {
		return &Instance{endpoint: string(endpoint), leave: leave}, nil
	}
	started, err := startKeeper(users)
	if err != nil {
		leave()
		return nil, fmt.Errorf("join DynamoDB Local: %w", err)
	}
	return &Instance{endpoint: started, leave: leave}, nil
}

// answers reports whether an instance answers at an endpoint.
func answers(ctx context.Context, endpoint string) bool {
	if endpoint == "" {
		return false
	}
	i := Instance{endpoint: endpoint}
	_, err := i.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }).ListTables(ctx, &dynamodb.ListTablesInput{})
	return err == nil
}

// startKeeper starts a keeper, and returns the endpoint of its instance once that answers. Where
// [Main] is not called the keeper ends at once, because it is told to run no tests.
func startKeeper(users string) (endpoint string, err error) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), keeperEnv+"="+users)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what interrupts a test leaves it alone
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
		return "", fmt.Errorf("its keeper ended (%w): %s", exitError(cmd.Wait()), text)
	}
	return string(text), cmd.Process.Release()
}

// keep runs the keeper, and returns what to exit with.
func keep(users string) int {
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
	if inst.stopWhenUnused(users, linger) != nil {
		return 1
	}
	return 0
}

// stopWhenUnused returns when the instance has ended, which it does when it has had no users for
// some time.
//
// Errors: that of an instance that ended by itself.
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
					_ = os.Truncate(users, 0) // the next user would otherwise find that it does not answer
					i.Stop()
				}
				unlock()
			}
		}
	}
	return nil
}
