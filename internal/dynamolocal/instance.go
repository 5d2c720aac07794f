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
	// mainClass changed its name with version 3;
	// com.amazonaws.services.dynamodbv2.local.main.ServerRunner is what older instructions say.
	mainClass = "software.amazon.dynamodb.services.local.main.ServerRunner"

	// startTimeout is how long the JVM may take until it answers. It takes about a second on an
	// idle machine.
	startTimeout = 90 * time.Second

	// startAttempts is how many ports are tried. Between our finding a free port and the JVM's
	// taking it anything else on the machine may take it first.
	startAttempts = 3
)

// Instance is a running DynamoDB Local. It keeps its tables in memory. Its methods may be called
// from several goroutines.
type Instance struct {
	endpoint string
	cmd      *exec.Cmd
	ended    <-chan error // receives the process's result, then is closed
	logPath  string
	leave    func() // of the shared instance, which only its keeper ends
	stop     sync.Once
}

// Start fetches DynamoDB Local if it is not there yet (see [Fetch]), starts one on a free port and
// waits until it answers. The instance outlives ctx, which only limits the start; it ends with
// [Instance.Stop] or with this process.
//
// The error is an [*UnavailableError] when Java or Maven is missing or the download fails. When the
// JVM was started but ended or did not answer in time, the error has the last lines of its log.
func Start(ctx context.Context) (*Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: %w", err)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, &UnavailableError{What: "java", Err: err}
	}
	lib, err := Fetch(ctx)
	if err != nil {
		return nil, err
	}
	// One start at a time on this machine: test processes of several packages run at once, and
	// would otherwise be given each other's free ports. Worse than the failed start would be the
	// successful one, with the answer to "are you up" coming from the other process's instance.
	unlock, err := lock(ctx, lib+".lock")
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: wait for another process: %w", err)
	}
	defer unlock()
	var errs []error
	for range startAttempts {
		inst, err := startOnce(ctx, java, lib)
		if err == nil {
			return inst, nil
		}
		errs = append(errs, err)
		if !errors.Is(err, errEnded) || ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// errEnded is for a JVM that ended before it answered: the one failure where another port may help.
var errEnded = errors.New("the JVM ended before it answered")

// startOnce starts the JVM on one free port.
func startOnce(ctx context.Context, java, lib string) (*Instance, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: find a free port: %w", err)
	}
	log, err := os.CreateTemp("", "ordergraph-dynamodb-local-*.log")
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: create its log: %w", err)
	}
	defer log.Close() // the JVM has its own descriptor
	// The heap limit is far above what tests need (the doc of TestTheHeapHoldsManyRecords has the
	// numbers); the rows are in SQLite's memory, outside the heap. One compiler tier and the serial
	// collector make the start quicker and keep the JVM from starting threads for every core.
	cmd := exec.Command(java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Djava.library.path="+lib, "-cp", filepath.Join(lib, "*"), mainClass,
		"-inMemory", "-disableTelemetry", "-port", strconv.Itoa(port))
	cmd.Dir = os.TempDir()
	cmd.Stdout, cmd.Stderr = log, log
	ended, err := startGuarded(cmd)
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
		text, _ := os.ReadFile(inst.logPath) // only to explain err
		inst.Stop()
		return nil, fmt.Errorf("start DynamoDB Local on port %d: %w; the end of its log:\n%s", port, err, tail(string(text), 30))
	}
	return inst, nil
}

// freePort returns a port nobody listens on at the moment.
func freePort(ctx context.Context) (int, error) {
	// The JVM will bind every interface, so that is what has to be free.
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", ":0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// waitUntilUp asks for the list of tables until there is an answer, the JVM has ended, or time is
// up.
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
			return fmt.Errorf("%w: %w", errEnded, exitError(exit))
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case exit := <-i.ended:
			return fmt.Errorf("%w: %w", errEnded, exitError(exit))
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w (last: %w)", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// exitError gives a normal end, which is an error here, a text.
func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// Endpoint returns the URL the instance answers on.
func (i *Instance) Endpoint() string { return i.endpoint }

// accessKey is this process's. Without -sharedDb, DynamoDB Local keeps separate tables per access
// key and region. It refuses keys with anything but letters and digits.
var accessKey = rand.Text()

const region = "local"

// Environment returns the variables by which another process finds this process's tables.
func Environment() []string {
	return []string{"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=ordergraph"}
}

// Client returns a new client of the instance. All clients of a process see the same tables, and
// none of another process, unless optFns change the credentials or the region.
func (i *Instance) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(i.endpoint),
		Region:       region,
		Credentials:  credentials.NewStaticCredentialsProvider(accessKey, "ordergraph", ""),
	}, optFns...)
}

// Stop ends the instance and waits until it is gone. Its tables are lost. Further calls do nothing.
// The instance of [Shared] goes on for other processes.
func (i *Instance) Stop() {
	i.stop.Do(func() {
		if i.leave != nil {
			i.leave()
			return
		}
		// There is nothing to save, so nothing is gained by asking politely; the error would say
		// that it has ended already.
		_ = i.cmd.Process.Kill()
		for range i.ended { // drained: closed when the process has been reaped
		}
		_ = os.Remove(i.logPath)
	})
}
