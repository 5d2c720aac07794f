package dynamolocal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	// mainClass is the main class of DynamoDB Local since version 3. Older documentation names the
	// class of earlier versions, com.amazonaws.services.dynamodbv2.local.main.ServerRunner.
	mainClass = "software.amazon.dynamodb.services.local.main.ServerRunner"

	// startTimeout is how long Start waits for the first response of the JVM. An idle machine needs
	// about one second, but a busy machine needs longer.
	startTimeout = 90 * time.Second

	// startAttempts is the maximum number of attempts to start the JVM. An attempt fails if another
	// program takes the chosen port before the JVM opens it. The next attempt uses another port.
	startAttempts = 3
)

// Instance is a running DynamoDB Local. It keeps its tables in memory. It is safe for concurrent
// use.
type Instance struct {
	endpoint string
	cmd      *exec.Cmd
	ended    <-chan error // receives the result of cmd.Wait, and is then closed
	logPath  string
	release  func() // releases the lock on the shared instance; nil if this process has started the instance
	stop     sync.Once
}

// Start starts DynamoDB Local and waits for its first response. ctx limits only the start, not the
// life of the instance. If Java, Maven or the download is not available, Start returns an
// [*UnavailableError].
func Start(ctx context.Context) (*Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: %w", err)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, &UnavailableError{Missing: "java", Err: err}
	}
	lib, err := Fetch(ctx)
	if err != nil {
		return nil, err
	}
	// Allow only one process at a time to start an instance. Otherwise, two processes could choose
	// the same free port, and one could connect to the other's instance.
	unlock, err := lock(ctx, lib+".lock")
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: wait for the lock of another process: %w", err)
	}
	defer unlock()
	var errs []error
	for range startAttempts {
		inst, err := startOnFreePort(ctx, java, lib)
		if err == nil {
			return inst, nil
		}
		errs = append(errs, err)
		if !errors.Is(err, errJVMEnded) || ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// errJVMEnded means that the JVM ended before it responded, for example because another program
// took its port. Start tries another port after this error, but not after any other error.
var errJVMEnded = errors.New("the JVM ended before its first response")

// startOnFreePort starts the JVM on a free port and waits until it responds.
func startOnFreePort(ctx context.Context, java, lib string) (*Instance, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: find a free port: %w", err)
	}
	log, err := os.CreateTemp("", "ordergraph-dynamodb-local-*.log")
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: create its log: %w", err)
	}
	defer log.Close() // the JVM has its own file descriptor for the log
	// A heap of 512 MB is enough, because the data is outside the heap (see
	// TestHeapHoldsManyRecords). UseSerialGC and TieredStopAtLevel=1 make the JVM start faster.
	cmd := exec.Command(java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Djava.library.path="+lib, "-cp", filepath.Join(lib, "*"), mainClass,
		"-inMemory", "-disableTelemetry", "-port", strconv.Itoa(port))
	cmd.Dir = os.TempDir()
	cmd.Stdout, cmd.Stderr = log, log
	ended, err := startKilledOnExit(cmd)
	if err != nil {
		os.Remove(log.Name())
		return nil, fmt.Errorf("start DynamoDB Local: run java: %w", err)
	}
	inst := &Instance{
		endpoint: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		cmd:      cmd,
		ended:    ended,
		logPath:  log.Name(),
	}
	if err := inst.waitUntilUp(ctx); err != nil {
		text, _ := os.ReadFile(inst.logPath) // the log shows the cause of err
		inst.Stop()
		return nil, fmt.Errorf("start DynamoDB Local on port %d: %w; the end of its log:\n%s", port, err, lastLines(string(text), 30))
	}
	return inst, nil
}

// freePort returns a TCP port that no program uses.
func freePort(ctx context.Context) (port int, err error) {
	for range 100 {
		// Systems take the ports of outgoing connections from 32768 upwards. So no connection takes this
		// port before the JVM does.
		port = 15_000 + mathrand.IntN(15_000)
		// The JVM listens on all network interfaces, so the port must be free on all of them.
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", ":"+strconv.Itoa(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// waitUntilUp sends ListTables requests until the instance responds. If the JVM ends, ctx ends or
// startTimeout passes, waitUntilUp returns an error.
func (i *Instance) waitUntilUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := i.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	ticker := time.NewTicker(25 * time.Millisecond)
	defer ticker.Stop()
	for {
		_, err := client.ListTables(ctx, &dynamodb.ListTablesInput{})
		select {
		case exit := <-i.ended:
			return fmt.Errorf("%w: %w", errJVMEnded, exitError(exit))
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case exit := <-i.ended:
			return fmt.Errorf("%w: %w", errJVMEnded, exitError(exit))
		case <-ctx.Done():
			return fmt.Errorf("DynamoDB Local does not respond: %w (last error: %w)", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// exitError returns the error for a process that should still be running but has ended. err is the
// result of [exec.Cmd.Wait]. If err is nil, exitError returns an error with the text "exit status
// 0".
func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// Endpoint returns the URL of the instance.
func (i *Instance) Endpoint() string { return i.endpoint }

// accessKey is the random access key of this process. DynamoDB Local keeps separate tables for each
// access key. It allows only letters and digits in the key.
var accessKey = rand.Text()

// region is a region of AWS, because the SDK compiles regular expressions for each request to any
// other region.
const region = "us-east-1"

// Environment returns environment variables that give another process access to the tables of this
// process. They contain the region and the credentials, but not the endpoint.
func Environment() []string {
	return []string{"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=ordergraph"}
}

// Client returns a new client of the instance. All clients of this process use the same tables,
// unless optFns changes the credentials or the region.
func (i *Instance) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return ClientOf(i.endpoint, optFns...)
}

// ClientOf returns a new client of the DynamoDB endpoint. The client uses the credentials of this
// process.
func ClientOf(endpoint string, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: &endpoint,
		Region:       region,
		Credentials:  credentials.NewStaticCredentialsProvider(accessKey, "ordergraph", ""),
	}, optFns...)
}

// Stop kills the instance and deletes its log. If the keeper runs the instance, Stop only ends its
// use by this process. Later calls have no effect.
func (i *Instance) Stop() {
	i.stop.Do(func() {
		if i.release != nil {
			i.release()
			return
		}
		// Kill the process, because it has nothing to save. Ignore the error: Kill fails only if
		// the process has already ended.
		_ = i.cmd.Process.Kill()
		for range i.ended { // wait until the process has ended and the channel is closed
		}
		_ = os.Remove(i.logPath)
	})
}
