package admin_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/admin"
)

// Websites can neither read pages with DNS rebinding nor start profiles. Prometheus can read the
// metrics under any host name, unless the listener has a loopback address.
func TestWebsitesAreRefused(t *testing.T) {
	text := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "text") })
	h := admin.NewHandler(admin.Options{
		Metrics: text, Health: text, HealthPaths: []string{"/healthz"}, Hosts: []string{"admin.example"}, Log: slog.New(slog.DiscardHandler),
		Config: func(w io.Writer) error {
			_, err := io.WriteString(w, "settings")
			return err
		},
	})
	const metrics, config, profile, symbol = "GET /metrics", "GET /config", "GET /debug/pprof/heap", "POST /debug/pprof/symbol"
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}
	for address, all := range map[string]bool{"127.0.0.1:0": false, ":0": true} {
		l, err := admin.Listen(address, h, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			request, host string
			headers       []string
			allowed       bool
		}{
			{metrics, "127.0.0.1", nil, true}, {config, "localhost", nil, true}, {profile, "LOCALHOST.:1", nil, true}, {symbol, "[::1]:1", nil, true},
			{metrics, "evil.example", nil, all}, {"GET /healthz", "evil.example", nil, all},
			{config, "evil.example", nil, false}, {profile, "evil.example:1", nil, false}, {symbol, "evil.example", nil, false},
			{config, "admin.example", nil, all}, {profile, "admin.example:9090", nil, all},
			{profile, "localhost", link, false}, {config, "localhost", link, false}, {metrics, "localhost", link, true},
			{profile, "localhost", []string{"Referer", "http://evil.example/"}, false},
			{profile, "localhost", []string{"User-Agent", "Mozilla/5.0"}, false},
			{symbol, "localhost", []string{"Origin", "http://evil.example"}, false},
			{profile, "localhost", []string{"Sec-Fetch-Site", "none", "User-Agent", "Mozilla/5.0"}, true},
			{profile, "localhost", []string{"Sec-Fetch-Site", "same-origin", "Referer", "http://localhost/"}, true},
		} {
			method, path, _ := strings.Cut(c.request, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+port+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			for i := 0; i < len(c.headers); i += 2 {
				r.Header.Set(c.headers[i], c.headers[i+1])
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			want := http.StatusOK
			if !c.allowed {
				want = http.StatusForbidden
			}
			if response.StatusCode != want {
				t.Errorf("%s on %s for the host %s with %v: status %d, want %d", c.request, address, c.host, c.headers, response.StatusCode, want)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
