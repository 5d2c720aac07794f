package httpheader

import (
	"net/http"
	"testing"
)

// A client cannot choose its address: only what trusted proxies have appended counts.
func TestClientAddress(t *testing.T) {
	trusted, ok := ParseProxies("10.0.0.0/8, 192.0.2.1,2001:db8::/32 ,")
	if !ok || len(trusted) != 3 {
		t.Fatal(trusted, ok)
	}
	const proxy = "10.1.2.3:4444"
	for name, c := range map[string]struct {
		remote string
		values []string
		want   string
	}{
		"no proxy":                       {"203.0.113.7:1", []string{"198.51.100.1"}, "203.0.113.7:1"},
		"no header":                      {proxy, nil, proxy},
		"a client":                       {proxy, []string{"198.51.100.1"}, "198.51.100.1:0"},
		"a forged hop":                   {proxy, []string{"1.2.3.4, 198.51.100.1"}, "198.51.100.1:0"},
		"a forged trusted hop":           {proxy, []string{"10.9.9.9, 198.51.100.1"}, "198.51.100.1:0"},
		"a forged line":                  {proxy, []string{"1.2.3.4", "198.51.100.1"}, "198.51.100.1:0"},
		"two proxies":                    {proxy, []string{"1.2.3.4, 198.51.100.1, 192.0.2.1"}, "198.51.100.1:0"},
		"two proxies in two lines":       {proxy, []string{"198.51.100.1", "192.0.2.1"}, "198.51.100.1:0"},
		"only proxies":                   {proxy, []string{"10.0.0.1, 192.0.2.1"}, "10.0.0.1:0"},
		"an address and its port":        {proxy, []string{"198.51.100.1:80"}, "198.51.100.1:0"},
		"IPv6":                           {"[2001:db8::1]:5", []string{"2001:db9::7"}, "[2001:db9::7]:0"},
		"IPv6 and its port":              {proxy, []string{"[2001:db9::7]:80"}, "[2001:db9::7]:0"},
		"IPv6 in brackets":               {proxy, []string{"[2001:db9::7]"}, "[2001:db9::7]:0"},
		"IPv4 in IPv6":                   {"[::ffff:10.1.2.3]:5", []string{"198.51.100.1"}, "198.51.100.1:0"},
		"a malformed hop":                {proxy, []string{"198.51.100.1, unknown"}, proxy},
		"a malformed hop before a proxy": {proxy, []string{"nonsense, 192.0.2.1"}, "192.0.2.1:0"},
		"an empty hop":                   {proxy, []string{"198.51.100.1, "}, proxy},
		"a malformed remote address":     {"@", []string{"198.51.100.1"}, "@"},
	} {
		if got := trusted.ClientAddress(c.remote, http.Header{forwardedFor: c.values}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	var none Proxies
	if got := none.ClientAddress(proxy, http.Header{forwardedFor: {"198.51.100.1"}}); got != proxy {
		t.Errorf("without trusted proxies, the client is %s", got)
	}
	for _, text := range []string{"10.0.0.0/33", "proxy.example", "10.0.0", "10.0.0.1-10.0.0.9"} {
		if all, ok := ParseProxies(text); ok {
			t.Errorf("%s is accepted as %v", text, all)
		}
	}
}
