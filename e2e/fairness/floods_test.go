package fairness_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

var (
	floodSockets  = flag.Int("flood-sockets", 50, "number of connections of TestFloods")
	floodRequests = flag.Int("flood-requests", longtest.Size(3, 41), "number of requests that the victim sends before and during each attack of TestFloods")
)

// flood is what a connection sends again and again, as fast as the server reads it.
type flood struct {
	// upgrade reports whether the connection becomes a WebSocket. If initialise is set, the client also
	// sends connection_init with a token.
	upgrade, initialise bool
	repeated            string
}

// floods are the messages and requests that cost a client nothing but its own time.
var floods = map[string]flood{
	"messages before connection_init": {upgrade: true, repeated: maskedFrame(textFrame, `{"type":"ping"}`)},
	"pings before connection_init":    {upgrade: true, repeated: maskedFrame(pingFrame, "")},
	"ping":                            {upgrade: true, initialise: true, repeated: maskedFrame(textFrame, `{"type":"ping"}`)},
	"pong":                            {upgrade: true, initialise: true, repeated: maskedFrame(textFrame, `{"type":"pong"}`)},
	"complete":                        {upgrade: true, initialise: true, repeated: maskedFrame(textFrame, `{"type":"complete","id":"1"}`)},
	"invalid operations":              {upgrade: true, initialise: true, repeated: maskedFrame(textFrame, `{"type":"subscribe","id":"1","payload":{"query":"{"}}`) + maskedFrame(textFrame, `{"type":"complete","id":"1"}`)},
	"protocol pings":                  {upgrade: true, initialise: true, repeated: maskedFrame(pingFrame, "")},
	"protocol pongs":                  {upgrade: true, initialise: true, repeated: maskedFrame(pongFrame, "")},
	"fragments":                       {upgrade: true, initialise: true, repeated: maskedFrame(textFrameStart, "{") + strings.Repeat(maskedFrame(continuationFrame, ""), 1000) + maskedFrame(finalFrame, `"type":"ping"}`)},
	"pings after a violation":         {upgrade: true, initialise: true, repeated: maskedFrame(textFrame, "nonsense") + strings.Repeat(maskedFrame(pingFrame, ""), 100_000)},
	"invalid tokens":                  {repeated: "GET /graphql?query={__typename} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n\r\n"},
	"missing pages":                   {repeated: "GET /missing HTTP/1.1\r\nHost: localhost\r\n\r\n"},
	"preflights":                      {repeated: "OPTIONS /graphql HTTP/1.1\r\nHost: localhost\r\nOrigin: https://shop.example\r\nAccess-Control-Request-Method: POST\r\n\r\n"},
}

// defaultFloods are the floods of the default run.
var defaultFloods = map[string]bool{"messages before connection_init": true, "ping": true, "invalid tokens": true}

// First bytes of frames: the opcode and the final bit.
const (
	textFrame, textFrameStart, continuationFrame, finalFrame, pingFrame, pongFrame = 0x81, 0x01, 0x00, 0x80, 0x89, 0x8A
)

// maskedFrame returns a short frame of a client, masked with zeros.
func maskedFrame(first byte, text string) string {
	return string([]byte{first, 0x80 | byte(len(text)), 0, 0, 0, 0}) + text
}

// While a caller floods the server with messages or requests that no operation pays for, a paying
// customer's requests succeed. The test logs how much slower they are.
func TestFloods(t *testing.T) {
	for name := range floods {
		if longtest.Enabled() || defaultFloods[name] {
			t.Run(name, func(t *testing.T) { newVictim(t, admission.Sizes{}, 0).measureFlood(t, name, *floodSockets) })
		}
	}
}

// measureFlood measures the victim on an idle server and during a flood.
func (v *victim) measureFlood(t *testing.T, name string, sockets int) {
	t.Helper()
	v.placeOrder(t, "c0")
	idle := v.medianTime(t, *floodRequests, 0, false)
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), "ATTACK_FLOOD="+name, "ATTACK_SOCKETS="+strconv.Itoa(sockets), "ATTACK_ADDRESS="+v.address, "ATTACK_TOKEN="+v.token(t, "c1"), "ATTACK_FROM=127.0.0.2")
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	for guard := time.After(30 * time.Second); v.pools[admission.PoolConnections].Used() < sockets/2; {
		select {
		case <-guard:
			t.Fatal("the attack has not begun")
		case <-time.After(time.Millisecond):
		}
	}
	attacked := v.medianTime(t, *floodRequests, 50*time.Millisecond, false)
	t.Logf("%d connections; median time of %d requests: %v, on an idle server: %v (factor %.1f)", sockets, *floodRequests,
		attacked.Round(10*time.Microsecond), idle.Round(10*time.Microsecond), float64(attacked)/float64(idle))
}

// runFlood floods a server until the process is killed. It runs in a separate process.
func runFlood(f flood) {
	sockets, err := strconv.Atoi(os.Getenv("ATTACK_SOCKETS"))
	if err != nil {
		panic(err)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(os.Getenv("ATTACK_FROM"))}}
	block := strings.Repeat(f.repeated, max(1, 4096/len(f.repeated)))
	var all sync.WaitGroup
	for range sockets {
		all.Go(func() {
			for {
				if f.send(dialer, block) != nil {
					waitBeforeRetry()
				}
			}
		})
	}
	all.Wait()
}

// send connects to the server and sends a block again and again until the server closes the
// connection.
func (f flood) send(dialer *net.Dialer, block string) error {
	conn, err := dialer.DialContext(context.Background(), "tcp", os.Getenv("ATTACK_ADDRESS"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if f.upgrade {
		_, err = io.WriteString(conn, "GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n")
		if part := make([]byte, 4096); err == nil {
			n := 0
			if n, err = conn.Read(part); err == nil && !strings.HasPrefix(string(part[:n]), fmt.Sprintf("HTTP/1.1 %d ", http.StatusSwitchingProtocols)) {
				err = errors.New("no upgrade")
			}
		}
	}
	if err == nil && f.initialise {
		init := `{"type":"connection_init","payload":{"Authorization":"Bearer ` + os.Getenv("ATTACK_TOKEN") + `"}}`
		header := []byte{textFrame, 0x80 | 126, byte(len(init) >> 8), byte(len(init)), 0, 0, 0, 0}
		if _, err = conn.Write(append(header, init...)); err == nil {
			_, err = conn.Read(make([]byte, 256)) // connection_ack
		}
	}
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}()
	for {
		if _, err := io.WriteString(conn, block); err != nil {
			return err
		}
	}
}
