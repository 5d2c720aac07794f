package hostile_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

const upgrade = "GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
	"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"

// dialWebSocket returns a connection that was upgraded to a WebSocket.
func (v *victim) dialWebSocket(t *testing.T) net.Conn {
	t.Helper()
	conn := v.dial(t)
	if err := conn.SetDeadline(time.Now().Add(closeLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, upgrade); err != nil {
		t.Fatal(err)
	}
	// The server sends nothing after the response headers until the client sends a message.
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response, err)
	}
	return conn
}

// maskedFrame returns a client's frame, masked with zeros. The first byte has the opcode and the
// final bit.
func maskedFrame(first byte, text string) string {
	switch n := len(text); {
	case n < 126:
		return string([]byte{first, 0x80 | byte(n), 0, 0, 0, 0}) + text
	case n < 1<<16:
		return string([]byte{first, 0x80 | 126, byte(n >> 8), byte(n), 0, 0, 0, 0}) + text
	default:
		return string([]byte{first, 0x80 | 127, 0, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), 0, 0, 0, 0}) + text
	}
}

// First bytes of frames.
const (
	textFrame, textFrameStart, continuationFrame, pingFrame = 0x81, 0x01, 0x00, 0x89
)

var initMessage = maskedFrame(textFrame, `{"type":"connection_init"}`)

// brokenFrames verifies that the server closes connections that violate WebSocket or
// graphql-transport-ws.
func brokenFrames(t *testing.T, binary string) {
	t.Parallel()
	v := newVictim(t, binary, "ORDERGRAPH_INIT_TIMEOUT=1s", "ORDERGRAPH_KEEP_ALIVE=1s")
	deep := strings.Repeat("[", 50_000)
	for name, sent := range map[string]string{
		"nonsense":                    strings.Repeat("nonsense", 1000),
		"HTTP":                        upgrade,
		"no mask":                     "\x81\x1a" + `{"type":"connection_init"}`,
		"reserved bits":               maskedFrame(0xF1, "{}"),
		"an unknown opcode":           maskedFrame(0x83, "{}"),
		"a length of 2^63":            "\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x00\x00\x00\x00",
		"a length of 4 GB":            "\x81\xFF\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("a", 1<<20),
		"a message of 10 MB":          initMessage + maskedFrame(textFrame, strings.Repeat(" ", 10<<20)),
		"10 MB in fragments":          initMessage + maskedFrame(textFrameStart, "{") + strings.Repeat(maskedFrame(continuationFrame, strings.Repeat(" ", 1000)), 10_000),
		"a million empty fragments":   initMessage + maskedFrame(textFrameStart, "{") + strings.Repeat(maskedFrame(continuationFrame, ""), 1_000_000),
		"a fragment of nothing":       initMessage + maskedFrame(continuationFrame, "{}"),
		"a message inside another":    initMessage + maskedFrame(textFrameStart, "{") + maskedFrame(textFrame, "{}"),
		"a ping in fragments":         initMessage + maskedFrame(0x09, "a"),
		"a long ping":                 initMessage + maskedFrame(pingFrame, strings.Repeat("a", 126)),
		"no UTF-8":                    initMessage + maskedFrame(textFrame, "\xff\xfe"),
		"brackets":                    initMessage + maskedFrame(textFrame, deep),
		"brackets in a payload":       initMessage + maskedFrame(textFrame, `{"type":"ping","payload":`+deep+`}`),
		"many values":                 initMessage + maskedFrame(textFrame, `{"type":"ping","payload":[`+strings.Repeat("0,", 60_000)+`0]}`),
		"half a frame":                initMessage + "\x81\xFE\x10",
		"half a message":              initMessage + maskedFrame(textFrameStart, `{"type":"pi`),
		"a close of one byte":         initMessage + maskedFrame(0x88, "a"),
		"a close with a code too low": initMessage + maskedFrame(0x88, "\x00\x01"),
		"a hundred thousand pings":    initMessage + strings.Repeat(maskedFrame(pingFrame, "a"), 100_000),
		"the same by the protocol":    initMessage + strings.Repeat(maskedFrame(textFrame, `{"type":"ping"}`), 100_000),
		"a thousand queries at once":  initMessage + manyQueries(1000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := v.dialWebSocket(t)
			go func() { // the server may stop reading
				_, _ = io.WriteString(conn, sent)
				if c, ok := conn.(*net.TCPConn); ok && !longtest.Enabled() {
					_ = c.CloseWrite() // otherwise, the server waits 5 s for the client's close frame
				}
			}()
			// The server also closes the connection of a client that sends no pong.
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection is open after %v", closeLimit)
			}
		})
	}
	t.Cleanup(func() { v.checkHealthy(t) })
}

func manyQueries(n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(maskedFrame(textFrame, fmt.Sprintf(`{"id":"%d","type":"subscribe","payload":{"query":"{ orders(first: 100) { nodes { id items { nodes { name } } } } }"}}`, i)))
	}
	return all.String()
}

// silentSockets opens 500 WebSockets that send no connection_init, 500 WebSockets that send half of
// the message, and slow upgrades. The server still responds to other clients, and finally closes
// all connections.
func silentSockets(t *testing.T, binary string) {
	longtest.Skip(t)
	t.Parallel()
	v := newVictim(t, binary, "ORDERGRAPH_INIT_TIMEOUT=1s")
	conns := make([]net.Conn, 1000)
	for i := range conns {
		conns[i] = v.dialWebSocket(t)
		if _, err := io.WriteString(conns[i], []string{"", initMessage[:10]}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	v.checkHealthy(t)
	for _, conn := range conns {
		if err := conn.SetDeadline(time.Now().Add(closeLimit)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the connection is open after %v", closeLimit)
		}
	}
	v.checkHealthy(t)
	sendBytewise(t, v.dial(t), upgrade[:60], "X-Slow: a\r\n")
	v.checkHealthy(t)
}

// largeSubscriptions opens many subscriptions with long documents. The documents and variables that
// the server keeps must not add up to gigabytes.
func largeSubscriptions(t *testing.T, binary string) {
	v := newVictim(t, binary, "ORDERGRAPH_MAX_SOCKET_SUBSCRIPTIONS=1000")
	conn := v.dialWebSocket(t)
	if err := conn.SetDeadline(time.Now().Add(3 * closeLimit)); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := io.WriteString(conn, initMessage)
		for i := 0; i < 500 && err == nil; i++ {
			document := fmt.Sprintf("subscription S%d { orderStatusChanged { %s } }", i, strings.Repeat("id ", 1900))
			_, err = io.WriteString(conn, maskedFrame(textFrame, fmt.Sprintf(`{"id":"%d","type":"subscribe","payload":{"query":%q}}`, i, document)))
		}
	}()
	// About 20 subscriptions fit within the limit. The test waits until the server has rejected the
	// others, because the server's memory can grow until then.
	received, part := "", make([]byte, 64<<10)
	for strings.Count(received, `"type":"error"`) < 450 {
		n, err := conn.Read(part)
		if err != nil {
			t.Fatalf("the connection failed with %v after %d errors, want 450", err, strings.Count(received, `"type":"error"`))
		}
		received += string(part[:n])
	}
	v.checkHealthy(t)
}
