package server_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/server"
)

// requestWithHost sends a request with a Host header to a server, and returns the status and the
// body. For an upgrade it returns only the status.
func requestWithHost(t *testing.T, addr, host, method, target, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+addr+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return response.StatusCode, ""
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestHosts sends requests with many Host headers to every entry point. Without authentication the
// server accepts only its own names. With authentication it accepts every name.
func TestHosts(t *testing.T) {
	store := sampleThrough(t, forward)
	opts := server.Options{Hosts: []string{"Shop.example:8443", "bare"}, Origins: []string{"https://origin.example"}}
	h, _ := newHandler(t, store, slog.LevelInfo, opts)
	open := listenTCP(t, h, server.Options{})
	g := newAuthenticatedServer(t, store, opts)
	guarded := listenTCP(t, g, server.Options{})
	bearer := "Bearer " + g.token(t, nil)

	for host, allowed := range map[string]bool{
		"localhost": true, "LOCALHOST:8080": true, "localhost.:80": true, "a.localhost:1": true, "A.b.LocalHost": true,
		"127.0.0.1:99": true, "192.0.2.7": true, "0.0.0.0:8080": true, "[::1]:8080": true, "[::1]": true, "[fe80::1]:1": true,
		"shop.example": true, "SHOP.example.:1": true, "shop.example:8443": true, "bare:8080": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "127.0.0.1.evil.example:80": false, "xlocalhost": false,
		"shop.example.evil": false, "a.shop.example": false, "origin.example": false, "2130706433": false, "0x7f.1": false, "127.1": false,
	} {
		for name, c := range map[string]struct {
			method, target, body string
			header               []string
			want                 int
		}{
			"GET":         {http.MethodGet, get(aliceQuery), "", nil, http.StatusOK},
			"POST":        {http.MethodPost, server.PathGraphQL, post(aliceQuery), nil, http.StatusOK},
			"events":      {http.MethodPost, server.PathGraphQL, post(aliceQuery), []string{"Accept", "text/event-stream"}, http.StatusOK},
			"a preflight": {http.MethodOptions, server.PathGraphQL, "", []string{"Origin", "http://" + host, "Access-Control-Request-Method", "POST"}, http.StatusNoContent},
			"a socket": {http.MethodGet, server.PathGraphQL, "", []string{
				"Origin", "http://" + host, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==",
			}, http.StatusSwitchingProtocols},
			"GraphiQL": {http.MethodGet, "/", "", nil, http.StatusOK},
			"no page":  {http.MethodGet, "/nothing", "", nil, http.StatusNotFound},
		} {
			want := c.want
			if !allowed {
				want = http.StatusMisdirectedRequest
			}
			status, body := requestWithHost(t, open, host, c.method, c.target, c.body, c.header...)
			if status != want {
				t.Errorf("%s, %s: status %d, want %d", name, host, status, want)
			}
			if refused := strings.Contains(body, `"HOST_NOT_ALLOWED"`) && strings.Contains(body, "ORDERGRAPH_ALLOWED_HOSTS"); refused == allowed {
				t.Errorf("%s, %s: %.200s", name, host, body)
			}
			if status, body := requestWithHost(t, guarded, host, c.method, c.target, c.body, append(c.header, "Authorization", bearer)...); status != c.want {
				t.Errorf("%s, %s, with a token: status %d, %.200s, want %d", name, host, status, body, c.want)
			}
		}
		for _, path := range []string{server.PathHealth, server.PathReady} {
			if status, body := requestWithHost(t, open, host, http.MethodGet, path, ""); status != http.StatusOK {
				t.Errorf("%s, %s: status %d, %s", path, host, status, body)
			}
		}
	}
}
