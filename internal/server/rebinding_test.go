package server_test

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/ordergraph/ordergraph/internal/server"
)

// A page that has made its name stand for this machine is refused, by HTTP and for sockets. This machine's own names are not, nor one that
// the operator has named.
func TestRebinding(t *testing.T) {
	store := sampleThrough(t, direct)
	for _, private := range []bool{true, false} {
		h, _ := newHandler(t, store, slog.LevelInfo, server.Options{Private: private, Origins: []string{"https://Shop.example:8443"}})
		addr := listenTCP(t, h, server.Limits{})
		for host, known := range map[string]bool{
			"localhost": true, "LOCALHOST:8080": true, "localhost.:80": true, "a.localhost:1": true, "127.0.0.1:99": true, "192.0.2.7": true, "[::1]:8080": true,
			"shop.example": true, "SHOP.example.:1": true,
			"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "127.0.0.1.evil.example:80": false, "xlocalhost": false, "shop.example.evil": false,
		} {
			known = known || !private
			r, err := http.NewRequest(http.MethodGet, "http://"+addr+get(alice), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[known]; response.StatusCode != want {
				t.Errorf("private %v, %s: status %d, want %d", private, host, response.StatusCode, want)
			}
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Sec-WebSocket-Version", "13")
			r.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
			r.Header.Set("Origin", "http://"+host)
			if response, err = http.DefaultClient.Do(r); err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if want := map[bool]int{true: http.StatusSwitchingProtocols, false: http.StatusForbidden}[known]; response.StatusCode != want {
				t.Errorf("private %v, a socket by %s: status %d, want %d", private, host, response.StatusCode, want)
			}
		}
	}
}
