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

	"github.com/ordergraph/ordergraph/internal/longtest"
)

const upgrade = "GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
	"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"

// upgraded is a connection that has become a socket.
func (v *victim) upgraded(t *testing.T) net.Conn {
	t.Helper()
	conn := v.dial(t)
	if err := conn.SetDeadline(time.Now().Add(cutBy)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, upgrade); err != nil {
		t.Fatal(err)
	}
	// Nothing follows the head before the client has said something.
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response, err)
	}
	return conn
}

// masked is a frame as clients send it, masked with zeros: first is its first byte, which says what
// it is and whether more follow.
func masked(first byte, text string) string {
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
	wholeText, firstText, between, ping = 0x81, 0x01, 0x00, 0x89
)

var hello = masked(wholeText, `{"type":"connection_init"}`)

// What is no WebSocket, or none of this protocol, is cut.
func brokenFrames(t *testing.T, binary string) {
	t.Parallel()
	v := newVictim(t, binary, "ORDERGRAPH_INIT_TIMEOUT=1s", "ORDERGRAPH_KEEP_ALIVE=1s")
	deep := strings.Repeat("[", 50_000)
	for name, sent := range map[string]string{
		"nonsense":                    strings.Repeat("nonsense", 1000),
		"HTTP":                        upgrade,
		"no mask":                     "\x81\x1a" + `{"type":"connection_init"}`,
		"reserved bits":               masked(0xF1, "{}"),
		"an opcode that is none":      masked(0x83, "{}"),
		"a length of 2^63":            "\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x00\x00\x00\x00",
		"a length of 4 GB":            "\x81\xFF\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("a", 1<<20),
		"a message of 10 MB":          hello + masked(wholeText, strings.Repeat(" ", 10<<20)),
		"10 MB in fragments":          hello + masked(firstText, "{") + strings.Repeat(masked(between, strings.Repeat(" ", 1000)), 10_000),
		"a million empty fragments":   hello + masked(firstText, "{") + strings.Repeat(masked(between, ""), 1_000_000),
		"a fragment of nothing":       hello + masked(between, "{}"),
		"a message inside another":    hello + masked(firstText, "{") + masked(wholeText, "{}"),
		"a ping in fragments":         hello + masked(0x09, "a"),
		"a long ping":                 hello + masked(ping, strings.Repeat("a", 126)),
		"no UTF-8":                    hello + masked(wholeText, "\xff\xfe"),
		"brackets":                    hello + masked(wholeText, deep),
		"brackets in a payload":       hello + masked(wholeText, `{"type":"ping","payload":`+deep+`}`),
		"many values":                 hello + masked(wholeText, `{"type":"ping","payload":[`+strings.Repeat("0,", 60_000)+`0]}`),
		"half a frame":                hello + "\x81\xFE\x10",
		"half a message":              hello + masked(firstText, `{"type":"pi`),
		"a close of one byte":         hello + masked(0x88, "a"),
		"a close with a code too low": hello + masked(0x88, "\x00\x01"),
		"a hundred thousand pings":    hello + strings.Repeat(masked(ping, "a"), 100_000),
		"as many, by the protocol":    hello + strings.Repeat(masked(wholeText, `{"type":"ping"}`), 100_000),
		"a thousand queries at once":  hello + manyQueries(1000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := v.upgraded(t)
			go func() { _, _ = io.WriteString(conn, sent) }() // the server may stop reading
			// Who sends no pong is cut as well.
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("not cut after %v", cutBy)
			}
		})
	}
	t.Cleanup(func() { v.well(t) })
}

func manyQueries(n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(masked(wholeText, fmt.Sprintf(`{"id":"%d","type":"subscribe","payload":{"query":"{ orders(first: 100) { nodes { id items { nodes { name } } } } }"}}`, i)))
	}
	return all.String()
}

// 500 sockets that never say who they are, 500 that have said half of it, and upgrades that take
// their time: others are served meanwhile, and all are cut in the end.
func silentSockets(t *testing.T, binary string) {
	t.Parallel()
	v := newVictim(t, binary, "ORDERGRAPH_INIT_TIMEOUT=1s")
	conns := make([]net.Conn, longtest.Size(300, 1000))
	for i := range conns {
		conns[i] = v.upgraded(t)
		if _, err := io.WriteString(conns[i], []string{"", hello[:10]}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	v.well(t)
	for _, conn := range conns {
		if err := conn.SetDeadline(time.Now().Add(cutBy)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("not cut after %v", cutBy)
		}
	}
	v.well(t)
	drip(t, v.dial(t), upgrade[:60], "X-Slow: a\r\n")
	v.well(t)
}

// Documents and variables that subscriptions hold do not add up to gigabytes.
func bulkySubscriptions(t *testing.T, binary string) {
	v := newVictim(t, binary, "ORDERGRAPH_MAX_SOCKET_SUBSCRIPTIONS=1000")
	conn := v.upgraded(t)
	if err := conn.SetDeadline(time.Now().Add(3 * cutBy)); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := io.WriteString(conn, hello)
		for i := 0; i < 500 && err == nil; i++ {
			document := fmt.Sprintf("subscription S%d { orderStatusChanged { %s } }", i, strings.Repeat("id ", 1900))
			_, err = io.WriteString(conn, masked(wholeText, fmt.Sprintf(`{"id":"%d","type":"subscribe","payload":{"query":%q}}`, i, document)))
		}
	}()
	// There is room for some 20 of them. What the server has grown by is known when it has looked
	// at the others, too.
	said, part := "", make([]byte, 64<<10)
	for strings.Count(said, `"type":"error"`) < 450 {
		n, err := conn.Read(part)
		if err != nil {
			t.Fatalf("%v, after %d refusals", err, strings.Count(said, `"type":"error"`))
		}
		said += string(part[:n])
	}
	v.well(t)
}
