package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/httpheader"
)

const (
	// localAddr is the default address of the endpoint. It has the default port of DynamoDB Local.
	localAddr = "127.0.0.1:8000"
	// localStopTimeout is the maximum time that the endpoint waits for running requests before it
	// stops.
	localStopTimeout = 15 * time.Second
)

// serveLocal serves the embedded store as a DynamoDB endpoint until ctx ends.
func serveLocal(ctx context.Context, args []string, env Environment) error {
	addr, interval := "", time.Duration(0)
	err := parseArgs("local", args, 0, func(set *flag.FlagSet) {
		defineStoreFlags(set, &env)
		set.StringVar(&addr, "addr", localAddr, "address to listen on; the endpoint accepts all credentials, so use an address that only this machine can reach")
		set.DurationVar(&interval, "ttl-interval", embedded.DefaultExpiryInterval, "time between two deletions of expired items")
	}, nil)
	if err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return usageError{fmt.Sprintf("-addr %q is not a valid address: use HOST:PORT, such as %s", addr, localAddr)}
	}
	if interval <= 0 {
		return usageError{fmt.Sprintf("-ttl-interval is %s: use a positive duration, such as 1s", interval)}
	}
	path, err := env.sources().SettingText("ORDERGRAPH_DATA")
	if err != nil {
		return err
	}
	hosts, err := env.sources().SettingText("ORDERGRAPH_ALLOWED_HOSTS")
	if err != nil {
		return err
	}
	engine, err := openEmbeddedStore(path, embedded.Options{ExpiryInterval: interval}, env)
	if err != nil {
		return err
	}
	if err := serveBackups(engine, path, env); err != nil {
		fmt.Fprintf(env.Stderr, "ordergraph: `ordergraph backup` does not work while this command runs: %v\n", err)
	}
	listener, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use by another program: choose another port with -addr", addr)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	where := "in memory; all data is lost when this command stops"
	if path != "" {
		where = "file " + path
	}
	base := "http://" + browsableAddr(listener.Addr())
	fmt.Fprintf(env.Stdout, "The DynamoDB endpoint is ready.\n\n  Endpoint  %s\n  Store     %s\n\nTry:\n\n  AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_REGION=local aws dynamodb list-tables --endpoint-url %s\n  AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_REGION=local AWS_ENDPOINT_URL_DYNAMODB=%s ORDERGRAPH_STORE=%s ordergraph table create\n",
		base, where, base, base, config.DynamoDB)
	if env.OnListening != nil {
		env.OnListening(listener.Addr())
	}
	// The body of a transaction or batch request can have several megabytes, so allow one minute to
	// read it over a slow connection.
	serving := &http.Server{Handler: refuseWebsites(httpheader.NewAllowedHosts(strings.Split(hosts, ",")), engine), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	stopped := make(chan error, 1)
	go func() { stopped <- serving.Serve(listener) }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), localStopTimeout)
	defer cancel()
	return serving.Shutdown(ending)
}

// refuseWebsites is middleware that rejects requests that a website could have caused. The endpoint
// accepts all credentials, so a website could otherwise read and change all items in the browser of
// a developer, for example with DNS rebinding. Programs on this machine and in containers can use
// the endpoint. NoSQL Workbench can, too: its pages are files.
func refuseWebsites(allowed httpheader.AllowedHosts, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		message := ""
		switch {
		case !allowed.Allow(r.Host) && !httpheader.PrivateName(r.Host):
			message = "the Host header is not allowed: use localhost, an IP address, or a host name in ORDERGRAPH_ALLOWED_HOSTS"
		case r.Header.Get("Origin") != "file://" && httpheader.ForeignPage(r):
			message = "a page of another site sent the request: web pages cannot use this endpoint"
		default:
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("Connection", "close") // the response does not wait for the rest of a body
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"%s"}`, message)
	})
}
