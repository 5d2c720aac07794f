package config_test

import (
	"bytes"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/server"
)

// environment is an environment of these variables, NAME=value.
func environment(variables ...string) func(string) string {
	return func(name string) string {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func read(t *testing.T, variables ...string) config.Config {
	t.Helper()
	c, err := config.Read(environment(variables...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	got := read(t)
	if len(got.CursorKey) != 32 {
		t.Errorf("the cursor key has %d bytes, want 32", len(got.CursorKey))
	}
	got.CursorKey = nil
	want := config.Config{
		Addr: "127.0.0.1:8080", Store: config.Embedded, Table: dynamo.Options{Table: "ordergraph", Shards: 1, Currency: "USD"}, LogLevel: slog.LevelInfo,
		Limits: document.DefaultLimits(), Rates: rate.Options{Restore: 2000}, Serving: server.DefaultLimits(), Introspection: true,
		Auth: config.AuthNone,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("defaults are %+v, want %+v", got, want)
	}
}

func TestEveryVariableCounts(t *testing.T) {
	got := read(t, "PORT=0", "ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_TABLE=orders", "ORDERGRAPH_SHARDS=64", "ORDERGRAPH_CURRENCY=JPY",
		"ORDERGRAPH_CURSOR_KEY=sixteen letters!", "ORDERGRAPH_CORS_ORIGINS=https://a.example, http://localhost:3000,", "ORDERGRAPH_ALLOWED_HOSTS=a.example, B:8080,", "ORDERGRAPH_LOG=debug",
		"ORDERGRAPH_INTROSPECTION=off", "ORDERGRAPH_DOCUMENTS=trusted.json", "ORDERGRAPH_TRUSTED_ONLY=on",
		"ORDERGRAPH_AUTH=jwt", "ORDERGRAPH_JWT_JWKS=https://id.example/keys", "ORDERGRAPH_JWT_ISSUER=https://id.example/", "ORDERGRAPH_JWT_AUDIENCE=shop",
		"ORDERGRAPH_JWT_LEEWAY=5m", "ORDERGRAPH_JWT_ROLE_CLAIM=https://shop.example/role", "ORDERGRAPH_JWT_CUSTOMER_CLAIM=cid",
		"ORDERGRAPH_MAX_TOKENS=1", "ORDERGRAPH_MAX_DEPTH=2", "ORDERGRAPH_MAX_ALIASES=3", "ORDERGRAPH_MAX_ROOT_FIELDS=4", "ORDERGRAPH_MAX_DIRECTIVES=5",
		"ORDERGRAPH_MAX_LIST_DEPTH=6", "ORDERGRAPH_MAX_INTROSPECTION_DEPTH=7", "ORDERGRAPH_MAX_COST=8", "ORDERGRAPH_MAX_CONCURRENT_COST=16", "ORDERGRAPH_MAX_REQUESTS=19", "ORDERGRAPH_MAX_ANSWER=17", "ORDERGRAPH_MAX_WAITING=18",
		"ORDERGRAPH_MAX_SUBSCRIPTIONS=21", "ORDERGRAPH_MAX_SOCKET_SUBSCRIPTIONS=22", "ORDERGRAPH_INIT_TIMEOUT=23s", "ORDERGRAPH_KEEP_ALIVE=24s",
		"ORDERGRAPH_RATE_BURST=20", "ORDERGRAPH_RATE_RESTORE=25", "ORDERGRAPH_MAX_BODY=9", "ORDERGRAPH_MAX_CONCURRENT=10", "ORDERGRAPH_MAX_CONNECTIONS=11",
		"ORDERGRAPH_REQUEST_TIMEOUT=12s", "ORDERGRAPH_HEADER_TIMEOUT=13ms", "ORDERGRAPH_BODY_TIMEOUT=1m14s", "ORDERGRAPH_ANSWER_TIMEOUT=15h")
	want := config.Config{
		Addr: ":0", Store: config.DynamoDB, Table: dynamo.Options{Table: "orders", Shards: 64, Currency: "JPY"},
		CursorKey: []byte("sixteen letters!"), Origins: []string{"https://a.example", "http://localhost:3000"}, Hosts: []string{"a.example", "B:8080"}, LogLevel: slog.LevelDebug,
		Limits:    document.Limits{Tokens: 1, Depth: 2, Aliases: 3, RootFields: 4, Directives: 5, ListDepth: 6, IntrospectionDepth: 7, Cost: 8, ConcurrentCost: 16, Requests: 19, Answer: 17},
		Rates:     rate.Options{Burst: 20, Restore: 25},
		Serving:   server.Limits{Body: 9, Concurrent: 10, Connections: 11, Waiting: 18, Subscriptions: 21, SocketSubscriptions: 22, InitTime: 23 * time.Second, KeepAlive: 24 * time.Second, RequestTime: 12 * time.Second, HeaderTime: 13 * time.Millisecond, BodyTime: 74 * time.Second, AnswerTime: 15 * time.Hour},
		Documents: "trusted.json", TrustedOnly: true, Auth: config.AuthJWT,
		JWT: auth.Options{JWKS: "https://id.example/keys", Issuer: "https://id.example/", Audience: "shop", Leeway: 5 * time.Minute, RoleClaim: "https://shop.example/role", CustomerClaim: "cid"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("configuration is %+v, want %+v", got, want)
	}
}

// The documentation is made of Variables, so it must name what Read reads, with the values that it
// falls back to.
func TestVariablesAreThoseThatAreRead(t *testing.T) {
	asked := map[string]bool{}
	if _, err := config.Read(func(name string) string { asked[name] = true; return "" }); err != nil {
		t.Fatal(err)
	}
	var defaults []string
	for _, v := range config.Variables() {
		if !asked[v.Name] {
			t.Errorf("%s is listed and not read", v.Name)
		}
		if v.Meaning == "" {
			t.Errorf("%s has no meaning", v.Name)
		}
		delete(asked, v.Name)
		defaults = append(defaults, v.Name+"="+v.Default)
	}
	if len(asked) > 0 {
		t.Errorf("%v are read and not listed", asked)
	}
	if got, want := read(t, defaults...), read(t); !reflect.DeepEqual(got, want) {
		t.Errorf("with every default set: %+v, with nothing set: %+v", got, want)
	}
}

// A message names the variable, what stands in it, and what to put there.
func TestBadVariables(t *testing.T) {
	for _, c := range []struct {
		variable string
		says     []string
	}{
		{"ORDERGRAPH_STORE=mysql", []string{`"mysql"`, "embedded or dynamodb"}},
		{"ORDERGRAPH_STORE=DynamoDB", []string{`"DynamoDB"`, "embedded or dynamodb"}},
		{"PORT=http", []string{`"http"`, "0 to 65535"}},
		{"PORT=-1", []string{`"-1"`, "0 to 65535"}},
		{"PORT=65536", []string{`"65536"`, "0 to 65535"}},
		{"PORT=:8080", []string{`":8080"`, "0 to 65535"}},
		{"ORDERGRAPH_SHARDS=0", []string{`"0"`, "1 to 64"}},
		{"ORDERGRAPH_SHARDS=65", []string{`"65"`, "1 to 64"}},
		{"ORDERGRAPH_SHARDS=four", []string{`"four"`, "1 to 64"}},
		{"ORDERGRAPH_CURRENCY=usd", []string{`"usd"`, "three upper-case letters"}},
		{"ORDERGRAPH_CURRENCY=QQQ", []string{`"QQQ"`, "ISO 4217"}},
		{"ORDERGRAPH_CURSOR_KEY=fifteen letters", []string{"15", "at least 16"}},
		{"ORDERGRAPH_CORS_ORIGINS=shop.example", []string{`"shop.example"`, "https://"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://a.example,https://b.example/", []string{`"https://b.example/"`, "without a path"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://a.example/shop", []string{`"https://a.example/shop"`, "without a path"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=https://shop.example", []string{`"https://shop.example"`, "not a host name"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=a.example,*", []string{`"*"`, "not a host name"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=*.shop.example", []string{`"*.shop.example"`, "not a host name"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=shop.example/", []string{`"shop.example/"`, "not a host name"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=shop.example:http", []string{`"shop.example:http"`, "not a host name"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=:8080", []string{`":8080"`, "not a host name"}},
		{"ORDERGRAPH_LOG=loud", []string{`"loud"`, "debug, info, warn or error"}},
		{"ORDERGRAPH_MAX_BODY=0", []string{`"0"`, "1 to 2147483647"}},
		{"ORDERGRAPH_MAX_BODY=2147483648", []string{`"2147483648"`, "1 to 2147483647"}},
		{"ORDERGRAPH_MAX_COST=none", []string{`"none"`, "1 to 2147483647"}},
		{"ORDERGRAPH_RATE_BURST=-1", []string{`"-1"`, "1 to 2147483647", "0 for no limit"}},
		{"ORDERGRAPH_RATE_BURST=many", []string{`"many"`, "1 to 2147483647"}},
		{"ORDERGRAPH_RATE_BURST=99999", []string{"99999", "100000", "ORDERGRAPH_MAX_COST"}},
		{"ORDERGRAPH_RATE_RESTORE=0", []string{`"0"`, "1 to 2147483647"}},
		{"ORDERGRAPH_REQUEST_TIMEOUT=10", []string{`"10"`, "10s"}},
		{"ORDERGRAPH_BODY_TIMEOUT=0s", []string{`"0s"`, "10s"}},
		{"ORDERGRAPH_HEADER_TIMEOUT=-1s", []string{`"-1s"`, "10s"}},
		{"ORDERGRAPH_INTROSPECTION=yes", []string{`"yes"`, "on or off"}},
		{"ORDERGRAPH_TRUSTED_ONLY=true", []string{`"true"`, "on or off"}},
		{"ORDERGRAPH_TRUSTED_ONLY=on", []string{"ORDERGRAPH_DOCUMENTS"}},
	} {
		name, value, _ := strings.Cut(c.variable, "=")
		_, err := config.Read(environment(c.variable))
		if err == nil {
			t.Errorf("%s: no error", c.variable)
			continue
		}
		for _, part := range append(c.says, name) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q does not say %s", c.variable, err, part)
			}
		}
		if name == "ORDERGRAPH_CURSOR_KEY" && strings.Contains(err.Error(), value) {
			t.Errorf("error %q tells the secret", err)
		}
	}
}

// Cursors outlive a restart and work behind several servers of one table, and not on another table.
func TestCursorKeyOfTheTable(t *testing.T) {
	key := func(variables ...string) []byte { return read(t, variables...).CursorKey }
	if first, second := key("ORDERGRAPH_TABLE=orders", "PORT=1"), key("ORDERGRAPH_TABLE=orders", "PORT=2"); !bytes.Equal(first, second) {
		t.Error("two servers of one table have different keys")
	}
	if bytes.Equal(key("ORDERGRAPH_TABLE=orders"), key("ORDERGRAPH_TABLE=orders2")) {
		t.Error("two tables have the same key")
	}
	secret := "ORDERGRAPH_CURSOR_KEY=sixteen letters!"
	if got := key(secret, "ORDERGRAPH_TABLE=orders"); string(got) != "sixteen letters!" {
		t.Errorf("the key is %q, want the secret", got)
	}
}

func TestOrigins(t *testing.T) {
	for value, want := range map[string][]string{
		"":                                     nil,
		" , ,":                                 nil,
		"https://a.example":                    {"https://a.example"},
		"https://a.example ,https://b.example": {"https://a.example", "https://b.example"},
		"*":                                    {"*"},
		"https://*.example, app://localhost":   {"https://*.example", "app://localhost"},
		"http://[::1]:3000":                    {"http://[::1]:3000"},
	} {
		if got := read(t, "ORDERGRAPH_CORS_ORIGINS="+value).Origins; !slices.Equal(got, want) {
			t.Errorf("%q gives the origins %q, want %q", value, got, want)
		}
	}
}

func TestGetenvReadsTheProcess(t *testing.T) {
	t.Setenv("ORDERGRAPH_TABLE", "from-the-process")
	if got := config.Getenv("ORDERGRAPH_TABLE"); got != "from-the-process" || got != os.Getenv("ORDERGRAPH_TABLE") {
		t.Errorf("Getenv gives %q", got)
	}
}

// The README tells what the server reads, docs/limits.md the limits: each variable stands in one of
// them.
func TestDocumentationListsTheVariables(t *testing.T) {
	var documents [2]string
	for i, file := range []string{"../../README.md", "../../docs/limits.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents[i] = string(text)
	}
	for _, v := range config.Variables() {
		preset := " "
		if v.Default != "" {
			preset = " `" + v.Default + "` "
		}
		row := "| `" + v.Name + "` |" + preset + "| " + v.Meaning + " |"
		if inREADME, inLimits := strings.Contains(documents[0], row), strings.Contains(documents[1], row); inREADME == inLimits {
			t.Errorf("in README.md: %t, in docs/limits.md: %t, want one of them to have the row %s", inREADME, inLimits, row)
		}
	}
}

// Callers are limited where they say who they are, unless it is switched off; where they do not,
// only if it is asked for.
func TestRates(t *testing.T) {
	jwt := []string{"AUTH=jwt", "ORDERGRAPH_JWT_JWKS=keys.json", "ORDERGRAPH_JWT_ISSUER=issuer", "ORDERGRAPH_JWT_AUDIENCE=shop"}
	for _, c := range []struct {
		set   []string
		burst int
	}{
		{nil, 0},
		{[]string{"ORDERGRAPH_RATE_BURST=100000"}, 100_000},
		{jwt, 200_000},
		{append(jwt, "ORDERGRAPH_MAX_COST=300000"), 300_000},
		{append(jwt, "ORDERGRAPH_RATE_BURST=0"), 0},
		{[]string{"ORDERGRAPH_MAX_COST=50", "ORDERGRAPH_RATE_BURST=50"}, 50},
	} {
		if got := read(t, c.set...).Rates; got.Burst != c.burst || got.Restore != 2000 {
			t.Errorf("%v: %+v, want %d", c.set, got, c.burst)
		}
	}
}
