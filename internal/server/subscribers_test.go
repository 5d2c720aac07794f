package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// Maximum memory of a waiting subscriber in bytes, heap and stacks, including the client's end of
// its connection. The limits are several times the measured values (docs/subscriptions.md).
const (
	mostPerSocket       = 100 << 10
	mostPerSubscription = 20 << 10
)

// rawSocket is a client's end of a socket that uses little memory. It implements only a part of the
// protocol, and reads nothing by itself.
type rawSocket struct {
	conn  net.Conn
	lines *bufio.Reader
}

func (l *liveServer) openRawSocket() rawSocket {
	l.t.Helper()
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * testTimeout)); err != nil {
		l.t.Fatal(err)
	}
	s := rawSocket{conn, bufio.NewReaderSize(conn, 512)}
	if _, err := io.WriteString(conn, "GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"); err != nil {
		l.t.Fatal(err)
	}
	response, err := http.ReadResponse(s.lines, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		l.t.Fatal(response, err)
	}
	s.write(l.t, `{"type":"connection_init"}`)
	if got := s.read(l.t); got != `{"type":"connection_ack"}` {
		l.t.Fatal(got)
	}
	return s
}

// write writes a message of less than 64 KB, masked with zeros.
func (s rawSocket) write(t testing.TB, text string) {
	t.Helper()
	frame := []byte{0x81, 0x80 | 126, byte(len(text) >> 8), byte(len(text)), 0, 0, 0, 0}
	if _, err := s.conn.Write(append(frame, text...)); err != nil {
		t.Fatal(err)
	}
}

// read reads a message.
func (s rawSocket) read(t testing.TB) string {
	t.Helper()
	var head [2]byte
	if _, err := io.ReadFull(s.lines, head[:]); err != nil {
		t.Fatal(err)
	}
	length := int(head[1])
	if length == 126 {
		if _, err := io.ReadFull(s.lines, head[:]); err != nil {
			t.Fatal(err)
		}
		length = int(head[0])<<8 | int(head[1])
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(s.lines, text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// processMemory returns the heap and stacks of the process in bytes.
func processMemory() int {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// Waiting subscribers use little memory, all get the event, and no memory is left after they
// disconnect.
func TestManySubscribers(t *testing.T) {
	for name, c := range map[string]struct{ sockets, each int }{
		"50 sockets with 100 subscriptions each": {50, 100}, "sockets with one subscription each": {maxSockets(longtest.Size(400, 5000)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, server.Options{Limits: server.Limits{KeepAlive: time.Hour}, Admission: admission.New(admission.Sizes{admission.PoolConnections: 10_000, admission.PoolRequests: 10_000})})
			l.openRawSocket() // allocations that are made once
			before, goroutines := processMemory(), runtime.NumGoroutine()
			all := make([]rawSocket, c.sockets)
			for i := range all {
				all[i] = l.openRawSocket()
				for n := range c.each {
					all[i].write(t, fmt.Sprintf(`{"id":"%d","type":"subscribe","payload":{"query":"subscription($to: OrderStatus) { orderStatusChanged(status: $to) { id orderId } }","variables":{"to":"PENDING"}}}`, n))
				}
			}
			l.waitForSubscriptions(c.sockets * c.each)
			grown, subscribers := processMemory()-before, c.sockets*c.each
			maximum := c.sockets*mostPerSocket + subscribers*mostPerSubscription
			t.Logf("%d subscribers on %d sockets use %d KB, %d bytes each, and %d goroutines", subscribers, c.sockets, grown>>10, grown/subscribers, runtime.NumGoroutine()-goroutines)
			if grown > maximum {
				t.Errorf("the memory exceeds %d KB", maximum>>10)
			}
			order := l.place()
			for _, s := range all {
				for range c.each {
					if got := s.read(t); !strings.Contains(got, `"type":"next"`) || !strings.Contains(got, string(order)) {
						t.Fatal(got)
					}
				}
			}
			for _, s := range all {
				_ = s.conn.Close()
			}
			l.waitForNoSubscriptions()
			for deadline := time.Now().Add(testTimeout); runtime.NumGoroutine() > goroutines; {
				if time.Now().After(deadline) {
					stacks := make([]byte, 1<<16)
					t.Fatalf("after all subscriptions ended, there are %d goroutines, %d more than before:\n%s", runtime.NumGoroutine(), runtime.NumGoroutine()-goroutines, stacks[:runtime.Stack(stacks, true)])
				}
				<-time.After(time.Millisecond)
			}
			if left := processMemory() - before; left > maximum/10 {
				t.Errorf("after all subscriptions ended, %d KB of %d KB are still in use", left>>10, grown>>10)
			}
		})
	}
}
