package server_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/httpheader"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
)

// First bytes of frames: the opcode and the final bit.
const (
	textFrame, textFrameStart, continuationFrame, finalFrame, closeFrame, pingFrame, pongFrame = 0x81, 0x01, 0x00, 0x80, 0x88, 0x89, 0x8A
)

// masked returns a frame of a client, masked with zeros.
func masked(first byte, text string) string {
	if len(text) < 126 {
		return string([]byte{first, 0x80 | byte(len(text)), 0, 0, 0, 0}) + text
	}
	return string([]byte{first, 0x80 | 126, byte(len(text) >> 8), byte(len(text)), 0, 0, 0, 0}) + text
}

// frameSocket is a client's end of a socket that can send any frames.
type frameSocket struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

// dialFrames opens a socket and sends bytes on it, without waiting until the server reads them.
func (l *liveServer) dialFrames(t *testing.T, sent string) frameSocket {
	t.Helper()
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.WriteString(conn, "GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"+sent)
	}()
	s := frameSocket{t, conn, bufio.NewReader(conn)}
	response, err := http.ReadResponse(s.r, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response, err)
	}
	return s
}

// readUntil reads frames until one satisfies end, or the connection ends. It returns the number of
// other frames, and the last frame's first byte and payload.
func (s frameSocket) readUntil(end func(first byte, payload string) bool) (others int, first byte, payload string) {
	s.t.Helper()
	for ; ; others++ {
		var header [2]byte
		if _, err := io.ReadFull(s.r, header[:]); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				s.t.Fatalf("timeout after %d frames", others)
			}
			return others, 0, ""
		}
		size := int(header[1])
		if size == 126 {
			var long [2]byte
			_, _ = io.ReadFull(s.r, long[:])
			size = int(binary.BigEndian.Uint16(long[:]))
		}
		text := make([]byte, size)
		_, _ = io.ReadFull(s.r, text)
		if end(header[0], string(text)) {
			return others, header[0], string(text)
		}
	}
}

// paidClock is a clock that advances only while a caller waits for points.
type paidClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *paidClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *paidClock) sleep(ctx context.Context, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		c.now = c.now.Add(d)
	}
}

// Each frame that a client sends costs a point. However many points the client has, after a burst,
// the server handles only the frames that the regained points pay for.
func TestFramesAreCharged(t *testing.T) {
	t.Parallel()
	const frames, restore, burst = 1500, 100, 100
	text := func(message string) string { return strings.Repeat(masked(textFrame, message), frames) }
	for name, sent := range map[string]string{
		"ping":              text(`{"type":"ping"}`),
		"ping with payload": text(`{"type":"ping","payload":{"a":1}}`),
		"pong":              text(`{"type":"pong"}`),
		"complete":          text(`{"type":"complete","id":"1"}`),
		"refused operation": strings.Repeat(masked(textFrame, `{"type":"subscribe","id":"1","payload":{"query":"{"}}`)+masked(textFrame, `{"type":"complete","id":"1"}`), frames/2),
		"protocol ping":     strings.Repeat(masked(pingFrame, ""), frames),
		"protocol pong":     strings.Repeat(masked(pongFrame, "a"), frames),
		"empty fragments":   masked(textFrameStart, "{") + strings.Repeat(masked(continuationFrame, ""), frames-2) + masked(finalFrame, `"type":"pong"}`),
		"tiny fragments":    masked(textFrameStart, "{") + strings.Repeat(masked(continuationFrame, " "), frames-2) + masked(finalFrame, `"type":"pong"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &paidClock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
			l := newLive(t, server.Options{}, func(o *server.Options) {
				o.Graph.Rates = rate.Options{Burst: 200_000, Restore: restore, Now: c.Now, Sleep: c.sleep}
			})
			began := c.Now()
			s := l.dialFrames(t, masked(textFrame, `{"type":"connection_init"}`))
			s.readUntil(func(_ byte, payload string) bool { return strings.Contains(payload, "connection_ack") })
			go func() {
				_, _ = io.WriteString(s.conn, sent+masked(textFrame, `{"type":"subscribe","id":"last","payload":{"query":"{ __typename }"}}`))
			}()
			_, _, last := s.readUntil(func(_ byte, payload string) bool { return strings.Contains(payload, `"id":"last"`) })
			if !strings.Contains(last, `"next"`) {
				t.Errorf("the last response is %s", last)
			}
			// The frames of connection_init and of the query cost points, too. So do the bytes.
			least := time.Duration(frames-burst) * time.Second / restore
			most := least + time.Duration(2+len(sent)/1024+1)*time.Second/restore
			if took := c.Now().Sub(began); took < least || took > most {
				t.Errorf("%d frames took %v, want %v to %v", frames, took, least, most)
			}
		})
	}
}

// After a protocol violation, the server reads on until the client's close frame arrives. What it
// reads meanwhile is charged.
func TestFramesWhileClosingAreCharged(t *testing.T) {
	t.Parallel()
	const points, frames = 200_000, 500
	c := &paidClock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	l := newLive(t, server.Options{}, func(o *server.Options) {
		o.Graph.Rates = rate.Options{Burst: points, Restore: 2 * frames, Now: c.Now, Sleep: c.sleep}
	})
	s := l.dialFrames(t, masked(textFrame, `{"type":"connection_init"}`))
	s.readUntil(func(_ byte, payload string) bool { return strings.Contains(payload, "connection_ack") })
	go func() {
		_, _ = io.WriteString(s.conn, masked(textFrame, "nonsense")+strings.Repeat(masked(pongFrame, ""), frames)+masked(closeFrame, "\x11\x30"))
	}()
	if _, first, _ := s.readUntil(func(first byte, _ string) bool { return first == closeFrame }); first != closeFrame {
		t.Fatal("there is no close frame")
	}
	s.readUntil(func(byte, string) bool { return false }) // until the connection ends
	w := l.open()
	w.subscribe("a", `{ __typename }`)
	var got struct{ Extensions struct{ Cost responseCost } }
	if err := json.Unmarshal(w.want("next", "a").Payload, &got); err != nil {
		t.Fatal(err)
	}
	// Two messages connection_init, the invalid message, the close frame and the query cost a point
	// each, and the bytes four.
	if available, want := got.Extensions.Cost.Available, points-frames-5-4; available < want || available > points-frames-5 {
		t.Errorf("%d points are left, want about %d", available, want)
	}
}

// Before connection_ack, the server reads only 16 frames. Then it waits until the time for
// connection_init has passed.
func TestFramesBeforeInit(t *testing.T) {
	t.Parallel()
	l := newLive(t, server.Options{Limits: server.Limits{InitTime: 50 * time.Millisecond}})
	const few = 16
	for name, frame := range map[string]string{
		"ping":          masked(textFrame, `{"type":"ping"}`),
		"complete":      masked(textFrame, `{"type":"complete","id":"1"}`),
		"protocol ping": masked(pingFrame, ""),
		"fragments":     masked(textFrameStart, "{") + strings.Repeat(masked(continuationFrame, "")+masked(pingFrame, ""), 1000),
		"long message":  masked(textFrameStart, "{") + strings.Repeat(masked(continuationFrame, strings.Repeat(" ", 1000)), 30),
	} {
		t.Run(name, func(t *testing.T) {
			s := l.dialFrames(t, strings.Repeat(frame, 5000)) // together with the upgrade request
			responses, first, payload := s.readUntil(func(first byte, _ string) bool { return first == closeFrame })
			if responses > few {
				t.Errorf("the server sent %d responses, want at most %d", responses, few)
			}
			if first != closeFrame || len(payload) < 2 || binary.BigEndian.Uint16([]byte(payload)) != 4408 {
				t.Errorf("the last frame is %x %q, want a close frame with the code 4408", first, payload)
			}
		})
	}
	// The last of them can be connection_init.
	w := l.dialFrames(t, strings.Repeat(masked(textFrame, `{"type":"ping"}`), few-1)+masked(textFrame, `{"type":"connection_init","payload":{"client":"`+strings.Repeat("x", 1000)+`"}}`))
	if pongs, _, _ := w.readUntil(func(_ byte, payload string) bool { return strings.Contains(payload, "connection_ack") }); pongs != few-1 {
		t.Errorf("%d pongs, want %d", pongs, few-1)
	}
}

// A socket without connection_init is closed soon after the close frame, even if the client does not
// respond to it.
func TestInitTimeoutClosesTheConnection(t *testing.T) {
	t.Parallel()
	l := newLive(t, server.Options{Limits: server.Limits{InitTime: 50 * time.Millisecond}})
	s := l.dialFrames(t, "")
	if _, first, _ := s.readUntil(func(first byte, _ string) bool { return first == closeFrame }); first != closeFrame {
		t.Fatalf("the first byte is %x, want a close frame", first)
	}
	closing := time.Now()
	_, _, _ = s.readUntil(func(byte, string) bool { return false })
	if took := time.Since(closing); took > 3*time.Second { // usually 250 ms
		t.Errorf("the connection was closed %v after the close frame", took)
	}
}

// Clients without a token can use up the sockets of their address. A client at the same address
// can still open a socket with a token in the upgrade request.
func TestTokenInTheUpgrade(t *testing.T) {
	t.Parallel()
	l, g := liveWithAuthentication(t, server.Options{Admission: admission.New(admission.Sizes{admission.PoolConnections: 64}), Limits: server.Limits{InitTime: time.Minute}})
	for opened := 0; ; opened++ {
		if _, status, err := l.tryDial([]string{"graphql-transport-ws"}); err != nil {
			if status != http.StatusServiceUnavailable || opened == 0 {
				t.Fatalf("after %d sockets: status %d, %v", opened, status, err)
			}
			break
		}
	}
	token := g.token(t, customerClaims("cust_01"))
	for range 3 {
		w, status, err := l.tryDial([]string{"graphql-transport-ws"}, "Authorization", "Bearer "+token)
		if err != nil {
			t.Fatalf("with a token in the upgrade: status %d, %v", status, err)
		}
		w.send(frame{Type: "connection_init"})
		w.want("connection_ack", "")
		w.subscribe("a", `{ viewer { role } }`)
		w.want("next", "a")
	}
	// An invalid token in the upgrade makes the socket belong to the address, as no token does.
	if _, status, err := l.tryDial([]string{"graphql-transport-ws"}, "Authorization", "Bearer nonsense"); err == nil || status != http.StatusServiceUnavailable {
		t.Errorf("with an invalid token: status %d, %v", status, err)
	}
}

// A valid token in connection_init is accepted even if the header of the upgrade contains something
// else, such as the credentials of a proxy.
func TestOtherCredentialsInTheUpgrade(t *testing.T) {
	t.Parallel()
	l, g := liveWithAuthentication(t)
	for _, header := range []string{"Basic YTpi", "Bearer nonsense", "Bearer " + g.token(t, customerClaims("cust_001"))} {
		w := l.dial("Authorization", header)
		w.text(`{"type":"connection_init","payload":{"Authorization":"Bearer ` + g.token(t, customerClaims("cust_01")) + `"}}`)
		w.want("connection_ack", "")
		w.subscribe("a", `{ viewer { customer { id } } }`)
		if got := w.want("next", "a"); !strings.Contains(string(got.Payload), `"cust_01"`) {
			t.Errorf("%s: %s", header, got.Payload)
		}
	}
}

// Behind a trusted proxy, the clients' addresses decide about shares and rate limits. A client
// cannot choose its address.
func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, trusted := range []bool{false, true} {
		opts := server.Options{Anonymous: true}
		opts.Graph.Rates = rate.Options{Burst: 100, Restore: 1, Now: func() time.Time { return now }}
		opts.Graph.Limits.Cost = 100
		if trusted {
			opts.Proxies, _ = httpheader.ParseProxies("127.0.0.0/8")
		}
		l, _ := liveWithAuthentication(t, opts)
		status := func(chain string) int {
			t.Helper()
			return l.request(http.MethodPost, l.url(), post(`{ __typename }`), "X-Forwarded-For", chain).response.StatusCode
		}
		for i := range 100 {
			if got := status(fmt.Sprintf("10.0.0.%d, 198.51.100.1", i)); got != http.StatusOK {
				t.Fatalf("trusted is %v: request %d gets status %d", trusted, i, got)
			}
		}
		if got := status("10.9.9.9, 198.51.100.1"); got != http.StatusTooManyRequests {
			t.Errorf("trusted is %v: a client over the limit gets status %d", trusted, got)
		}
		want := http.StatusTooManyRequests
		if trusted {
			want = http.StatusOK
		}
		if got := status("198.51.100.1, 198.51.100.2"); got != want {
			t.Errorf("trusted is %v: another client gets status %d, want %d", trusted, got, want)
		}
	}
}

// Requests that no caller pays for end the connection, so that a client cannot send them one after
// the other at no cost. Requests that are charged do not.
func TestUnpaidRequestsEndTheConnection(t *testing.T) {
	t.Parallel()
	l, g := liveWithAuthentication(t)
	for name, request := range map[string]string{
		"no token":         "GET /graphql HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"an invalid token": "POST /graphql HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"a preflight":      "OPTIONS /graphql HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"another method":   "DELETE /graphql HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"an upgrade":       "GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"a health check":   "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		if got := l.pipeline(t, request, 100); got > 8 {
			t.Errorf("%s: %d responses on one connection, want at most 8", name, got)
		}
	}
	paid := "GET /graphql?query={__typename} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + g.token(t, authtest.Object{"role": "STAFF"}) + "\r\n\r\n"
	if got := l.pipeline(t, paid, 100); got != 100 {
		t.Errorf("%d responses to charged requests, want 100", got)
	}
}

// pipeline sends a request n times on one connection, and returns the number of responses.
func (l *liveServer) pipeline(t *testing.T, request string, n int) (responses int) {
	t.Helper()
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, strings.Repeat(request, n)) }()
	for r := bufio.NewReader(conn); responses < n; responses++ {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			return responses
		}
		_, _ = io.Copy(io.Discard, response.Body)
	}
	return responses
}
