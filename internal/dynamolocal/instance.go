package dynamolocal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	// mainClass is the main class of DynamoDB Local in version 3 and later. Older documentation names
	// com.amazonaws.services.dynamodbv2.local.main.ServerRunner.
	mainClass = "software.amazon.dynamodb.services.local.main.ServerRunner"

	// startTimeout is how long Start waits for the first response of the JVM. On an idle machine, the
	// JVM responds after about a second.
	startTimeout = 90 * time.Second

	// startAttempts is the maximum number of attempts to start the JVM. Each attempt uses another
	// port, because another program may open the chosen port before the JVM does.
	startAttempts = 3
)

// Instance is a running DynamoDB Local that keeps its tables in memory. It is safe for concurrent
// use.
type Instance struct {
	endpoint string
	cmd      *exec.Cmd
	ended    <-chan error // receives the process's result, then is closed
	logPath  string
	release  func() // releases the shared instance, which only its keeper ends
	stop     sync.Once
}

// Start starts DynamoDB Local on a free port and waits for its first response. If necessary, it
// first downloads DynamoDB Local (see [Fetch]). ctx limits only the start. The instance ends when
// [Instance.Stop] is called or this process ends.
//
// Start returns an [*UnavailableError] if Java or Maven is missing or the download fails. If the
// JVM ends or does not respond in time, the error contains the last lines of its log.
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
	// Only one process at a time starts an instance on this machine. Otherwise two test processes
	// could choose the same free port, and one of them could use the instance of the other process.
	unlock, err := lock(ctx, lib+".lock")
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: wait for another process: %w", err)
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

// errJVMEnded means that the JVM ended before its first response. Only after this error does Start try
// another port.
var errJVMEnded = errors.New("the JVM ended before its first response")

// startOnFreePort starts the JVM on one free port.
func startOnFreePort(ctx context.Context, java, lib string) (*Instance, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: find a free port: %w", err)
	}
	log, err := os.CreateTemp("", "ordergraph-dynamodb-local-*.log")
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: create its log: %w", err)
	}
	defer log.Close() // the JVM has its own descriptor
	// SQLite stores the records outside the heap, so a heap of 512 MB is more than tests need (see
	// TestHeapHoldsManyRecords). A single compiler tier and the serial collector make the start
	// faster, and avoid one thread per core.
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
		text, _ := os.ReadFile(inst.logPath) // the log explains err
		inst.Stop()
		return nil, fmt.Errorf("start DynamoDB Local on port %d: %w; the end of its log:\n%s", port, err, lastLines(string(text), 30))
	}
	return inst, nil
}

// freePort returns a port that is not in use.
func freePort(ctx context.Context) (int, error) {
	// The JVM listens on all network interfaces, so the port must be free on all of them.
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", ":0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// waitUntilUp sends ListTables requests until the instance responds. It returns an error if the JVM
// ends or the time limit has passed.
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

// exitError returns the error of a process that has ended. It also returns an error if the process
// ended successfully.
func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// Endpoint returns the URL of the instance.
func (i *Instance) Endpoint() string { return i.endpoint }

// accessKey is the access key of this process. DynamoDB Local, started without -sharedDb, keeps
// separate tables for each access key and region. An access key may contain only letters and
// digits.
var accessKey = rand.Text()

const region = "local"

// Environment returns environment variables that allow another process to access the tables of this
// process.
func Environment() []string {
	return []string{"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=ordergraph"}
}

// Client returns a new client of the instance. All clients of this process use the same tables.
// Other processes have other tables. optFns can change the credentials or the region to use other
// tables.
func (i *Instance) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return ClientOf(i.endpoint, optFns...)
}

// ClientOf returns a new client of a DynamoDB endpoint, with the credentials of this process.
func ClientOf(endpoint string, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: &endpoint,
		Region:       region,
		Credentials:  credentials.NewStaticCredentialsProvider(accessKey, "ordergraph", ""),
	}, optFns...)
}

// Stop ends the instance, waits until it has ended, and deletes its log. All tables are lost. Only
// the first call has an effect. A [Shared] instance continues to run for other processes.
func (i *Instance) Stop() {
	i.stop.Do(func() {
		if i.release != nil {
			i.release()
			return
		}
		// The instance has nothing to save, so it can be killed. Kill returns an error only if the
		// process has already ended.
		_ = i.cmd.Process.Kill()
		for range i.ended { // the channel is closed after Wait
		}
		_ = os.Remove(i.logPath)
	})
}
