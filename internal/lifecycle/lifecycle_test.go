package lifecycle_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
)

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func listen() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// client returns an HTTP client that connects to the listener and reuses connections.
func (l *pipes) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case l.conns <- there:
			return here, nil
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}}}
}

// serve runs Serve with a handler until the caller calls stop. served receives the result of Serve.
func serve(l net.Listener, h http.HandlerFunc, shutdown lifecycle.Shutdown) (stop func(), served chan error) {
	ctx, stop := context.WithCancel(context.Background())
	served = make(chan error, 1)
	go func() {
		served <- lifecycle.Serve(ctx, l, h, lifecycle.Options{
			Connections: admission.New(admission.Sizes{})[admission.PoolConnections], Shutdown: shutdown, Log: slog.New(slog.DiscardHandler),
			HeaderTime: time.Minute, ReadTime: time.Minute, WriteTime: time.Minute,
		})
	}()
	return stop, served
}

// get sends a GET request. It returns the body and reports whether the server closes the
// connection.
func get(client *http.Client, path string) (body string, closing bool, err error) {
	response, err := client.Get("http://server" + path)
	if err != nil {
		return "", false, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), response.Close, err
}

// During Shutdown.Delay, the server serves requests and then closes their connections. After Delay,
// it refuses connections, and requests in progress complete.
func TestShutdown(t *testing.T) {
	const delay = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		l, release := listen(), make(chan struct{})
		stop, served := serve(l, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/slow":
				<-release
			case r.URL.Path == "/stream":
				<-lifecycle.StoppingContext(r.Context()).Done()
			case lifecycle.ShuttingDown(r.Context()):
				_, _ = io.WriteString(w, "shutting down")
				return
			}
			_, _ = io.WriteString(w, "served")
		}, lifecycle.Shutdown{Delay: delay})
		client := l.client()
		if body, closing, err := get(client, "/"); body != "served" || closing || err != nil {
			t.Errorf("before the shutdown: %q, closing %v, %v", body, closing, err)
		}
		stop()
		synctest.Wait()
		if body, closing, err := get(client, "/"); body != "shutting down" || !closing || err != nil {
			t.Errorf("during the delay: %q, closing %v, %v", body, closing, err)
		}
		results := make(chan string, 2)
		for _, path := range []string{"/slow", "/stream"} {
			go func() {
				body, _, err := get(client, path)
				results <- path + " " + body
				if err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if len(results) != 0 {
			t.Error("a request ended during the delay")
		}
		time.Sleep(delay)
		synctest.Wait()
		if got := <-results; got != "/stream served" {
			t.Errorf("after the delay, %q ended, want the stream", got)
		}
		if _, _, err := get(client, "/"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after the delay, a new connection: %v", err)
		}
		close(release)
		if got := <-results; got != "/slow served" {
			t.Errorf("the request in progress got %q", got)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// If a request does not end within Shutdown.DrainTime, Serve closes its connection.
func TestDrainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, release := listen(), make(chan struct{})
		stop, served := serve(l, func(http.ResponseWriter, *http.Request) { <-release }, lifecycle.Shutdown{DrainTime: 3 * time.Second})
		failed := make(chan error)
		go func() {
			_, _, err := get(l.client(), "/")
			failed <- err
		}()
		synctest.Wait()
		stop()
		started := time.Now()
		err := <-served
		if took := time.Since(started); err == nil || !strings.Contains(err.Error(), "3s") || took != 3*time.Second {
			t.Errorf("after %s, Serve returned %v", took, err)
		}
		if err := <-failed; err == nil {
			t.Error("the client got a response")
		}
		close(release)
	})
}
