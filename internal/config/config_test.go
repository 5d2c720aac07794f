package config_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/gctuning"
	"github.com/ordergraph/ordergraph/internal/httpheader"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/setting"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// environment returns a lookup function for variables of the form NAME=value.
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
	c.Effective = nil // tested in TestSources
	return c
}

func TestDefaults(t *testing.T) {
	got := read(t)
	if len(got.CursorKey) != 32 {
		t.Errorf("the cursor key has %d bytes, want 32", len(got.CursorKey))
	}
	got.CursorKey = nil
	want := config.Config{
		Addr: "127.0.0.1:8080", Store: config.Embedded, Table: dynamo.Options{Table: "ordergraph", Shards: 1, Currency: "USD", Reservations: setting.OrDefaults(commerce.ReservationLimits{})}, LogLevel: slog.LevelInfo, LogFormat: telemetry.LogJSON,
		Limits: setting.OrDefaults(document.Limits{}), Rates: rate.Options{Restore: rate.DefaultOptions().Restore}, ServerLimits: setting.OrDefaults(server.Limits{}), PoolSizes: admission.New(admission.Sizes{}).Sizes(), Introspection: true, GraphiQL: true, MCP: true,
		Breaker: true, Shutdown: lifecycle.Shutdown{DrainTime: lifecycle.DefaultDrainTime},
		Auth: config.AuthNone, JWT: auth.Options{Leeway: 30 * time.Second, RoleClaim: "role", CustomerClaim: "customer_id"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("defaults are %+v, want %+v", got, want)
	}
}

func TestEveryVariableIsRead(t *testing.T) {
	set := []string{"PORT=0", "ORDERGRAPH_ADMIN_ADDR=9090", "ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_TABLE=orders", "ORDERGRAPH_SHARDS=64", "ORDERGRAPH_ELECTRODB=1,order=2", "ORDERGRAPH_CURRENCY=JPY",
		"ORDERGRAPH_CURSOR_KEY=sixteen letters!", "ORDERGRAPH_CORS_ORIGINS=https://a.example, http://localhost:3000,", "ORDERGRAPH_ALLOWED_HOSTS=a.example, B:8080,", "ORDERGRAPH_TRUSTED_PROXIES=10.0.0.0/8, 192.0.2.1", "ORDERGRAPH_LOG=debug", "ORDERGRAPH_ORDER_EXPIRY=30m", "ORDERGRAPH_LOG_FORMAT=text", "ORDERGRAPH_ACCESS_LOG=on", "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:4318/v1/traces", "OTEL_TRACES_EXPORTER=otlp", "OTEL_SDK_DISABLED=false",
		"GOGC=50", "GOMEMLIMIT=1GiB", "ORDERGRAPH_INTROSPECTION=off", "ORDERGRAPH_GRAPHIQL=off", "ORDERGRAPH_MCP=off", "ORDERGRAPH_DOCUMENTS=trusted.json", "ORDERGRAPH_TRUSTED_ONLY=on", "ORDERGRAPH_PRICES=prices.json", "ORDERGRAPH_SCHEMA_EXTENSION=shop.graphqls",
		"ORDERGRAPH_AUTH=jwt", "ORDERGRAPH_JWT_JWKS=https://id.example/keys", "ORDERGRAPH_JWT_ISSUER=https://id.example/", "ORDERGRAPH_JWT_AUDIENCE=shop",
		"ORDERGRAPH_ANONYMOUS=catalog", "ORDERGRAPH_JWT_LEEWAY=5m", "ORDERGRAPH_JWT_ROLE_CLAIM=https://shop.example/role", "ORDERGRAPH_JWT_CUSTOMER_CLAIM=cid", "ORDERGRAPH_SHARE_WEIGHTS=ADMIN=2,SERVICE=8",
		"ORDERGRAPH_SHUTDOWN_DELAY=10s", "ORDERGRAPH_DRAIN_TIMEOUT=20s", "ORDERGRAPH_CIRCUIT_BREAKER=off", "ORDERGRAPH_CONFIRM_PAID=on", "ORDERGRAPH_WEBHOOK_ALLOWED_HOSTS=erp.internal, 10.0.0.7:8443"}
	got := read(t, set...)
	identifiers, _ := model.ParseElectroDB("1,order=2")
	want := config.Config{
		Addr: ":0", AdminAddr: "127.0.0.1:9090", Store: config.DynamoDB, Table: dynamo.Options{Table: "orders", Shards: 64, ElectroDB: identifiers, Currency: "JPY", Reservations: setting.OrDefaults(commerce.ReservationLimits{}), OrderExpiry: 30 * time.Minute},
		CursorKey: []byte("sixteen letters!"), Origins: []string{"https://a.example", "http://localhost:3000"}, Hosts: []string{"a.example", "B:8080"}, Proxies: httpheader.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32")}, LogLevel: slog.LevelDebug, LogFormat: telemetry.LogText, AccessLog: true, Traces: true,
		Limits: setting.OrDefaults(document.Limits{}), Rates: rate.DefaultOptions(), ServerLimits: setting.OrDefaults(server.Limits{}), PoolSizes: admission.New(admission.Sizes{}).Sizes(), ShareWeights: map[access.Role]int{access.RoleAdmin: 2, access.RoleService: 8}, GCTuning: gctuning.Options{GOGC: "50", GOMEMLIMIT: "1GiB"},
		Shutdown: lifecycle.Shutdown{Delay: 10 * time.Second, DrainTime: 20 * time.Second}, ConfirmPaid: true, WebhookAllowedHosts: []string{"erp.internal", "10.0.0.7:8443"},
		Documents: "trusted.json", TrustedOnly: true, Prices: "prices.json", SchemaExtension: "shop.graphqls", Auth: config.AuthJWT, Anonymous: true,
		JWT: auth.Options{JWKS: "https://id.example/keys", Issuer: "https://id.example/", Audience: "shop", Leeway: 5 * time.Minute, RoleClaim: "https://shop.example/role", CustomerClaim: "cid"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("configuration is %+v, want %+v", got, want)
	}
	for _, s := range settings() {
		tested := s.Exceeded != "" || slices.ContainsFunc(set, func(v string) bool { return strings.HasPrefix(v, s.Name+"=") })
		if elsewhere := slices.Contains([]string{"AUTH", "ORDERGRAPH_ADDR", "ORDERGRAPH_CONFIG", "ORDERGRAPH_DATA", "ORDERGRAPH_JWT_SECRET", "ORDERGRAPH_WEBHOOK_KEY", "ORDERGRAPH_WEBHOOK_SECRETS_STRIPE", "ORDERGRAPH_WEBHOOK_SECRETS_PAYMENTS"}, s.Name); tested == elsewhere {
			t.Errorf("the setting %s is covered by this test: %t, and listed as covered by another test: %t", s.Name, tested, elsewhere)
		}
	}
}

// settings returns the settings of all sections.
func settings() (all []setting.Setting) {
	for _, section := range config.Sections() {
		all = append(all, section.Settings...)
	}
	return all
}

// Each limit has a setting with its name, which sets no other field.
func TestLimitSettings(t *testing.T) {
	fields := func(c config.Config) map[string]int64 {
		values := map[string]int64{}
		for prefix, limits := range map[string]any{"MAX_": c.Limits, "RATE_": c.Rates, "": c.ServerLimits} {
			v := reflect.ValueOf(limits)
			for i := range v.NumField() {
				if !v.Field(i).CanInt() {
					continue
				}
				name := strings.Replace(v.Type().Field(i).Name, "Time", "Timeout", 1)
				if prefix == "" && v.Field(i).Kind() == reflect.Int {
					name = "Max" + name
				}
				name = strings.ToUpper(regexp.MustCompile("(.)([A-Z])").ReplaceAllString(name, "${1}_$2"))
				values["ORDERGRAPH_"+prefix+name] = v.Field(i).Int()
			}
		}
		return values
	}
	unset := fields(read(t))
	for _, s := range settings() {
		if s.Exceeded == "" {
			continue
		}
		value := strconv.Itoa(math.MaxInt32)
		if _, err := time.ParseDuration(s.Default); err == nil {
			value = "25h"
		}
		for name, v := range fields(read(t, s.Name+"="+value)) {
			if before, known := unset[name]; known && (v != before) != (name == s.Name) {
				t.Errorf("setting %s=%s changes the field of %s to %d from %d, want only the field of that setting", s.Name, value, name, v, before)
			}
		}
		delete(unset, s.Name)
	}
	for name := range unset {
		t.Errorf("no setting with Exceeded has the name %s", name)
	}
}

// Names are unique, every setting has a meaning, and the documented defaults apply.
func TestSettings(t *testing.T) {
	seen := map[string]bool{}
	var defaults []string
	for _, s := range settings() {
		if seen[s.Name] || s.Meaning == "" {
			t.Errorf("%s is declared twice, or has no meaning", s.Name)
		}
		seen[s.Name] = true
		defaults = append(defaults, s.Name+"="+s.Default)
	}
	if got, want := read(t, defaults...), read(t); !reflect.DeepEqual(got, want) {
		t.Errorf("with every default set: %+v, with nothing set: %+v", got, want)
	}
}

// An error names the variable, its value, and valid values.
func TestInvalidVariables(t *testing.T) {
	cost := setting.OrDefaults(document.Limits{}).Cost
	for _, c := range []struct {
		variable string
		parts    []string
	}{
		{"ORDERGRAPH_STORE=mysql", []string{`"mysql"`, "embedded or dynamodb"}},
		{"ORDERGRAPH_STORE=DynamoDB", []string{`"DynamoDB"`, "embedded or dynamodb"}},
		{"PORT=http", []string{`"http"`, "0 to 65535"}},
		{"PORT=-1", []string{`"-1"`, "0 to 65535"}},
		{"PORT=65536", []string{`"65536"`, "0 to 65535"}},
		{"PORT=:8080", []string{`":8080"`, "0 to 65535"}},
		{"ORDERGRAPH_SHARDS=0", []string{`"0"`, "1 to 128"}},
		{"ORDERGRAPH_SHARDS=129", []string{`"129"`, "1 to 128"}},
		{"ORDERGRAPH_SHARDS=four", []string{`"four"`, "1 to 128"}},
		{"ORDERGRAPH_CURRENCY=usd", []string{`"usd"`, "three upper-case letters"}},
		{"ORDERGRAPH_CURRENCY=QQQ", []string{`"QQQ"`, "ISO 4217"}},
		{"ORDERGRAPH_CURSOR_KEY=fifteen letters", []string{"15", "at least 16"}},
		{"ORDERGRAPH_CORS_ORIGINS=*", []string{"ORDERGRAPH_CORS_ORIGINS", "every website", "ORDERGRAPH_AUTH=jwt"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://a.example,https://*", []string{"https://*", "every website"}},
		{"ORDERGRAPH_CORS_ORIGINS=http://*:3000", []string{"http://*:3000", "every website"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://shop.*", []string{"https://shop.*", "every website"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://*example.com", []string{"https://*example.com", "every website"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://*.com", []string{"https://*.com", "every website"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://*.CO.UK:8080", []string{"https://*.CO.UK:8080", "every website"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://shop.*.com", []string{"https://shop.*.com", "every website"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://shop-*.github.io", []string{"https://shop-*.github.io", "every website"}},
		{"ORDERGRAPH_CURSOR_KEY=" + strings.Repeat("\x00", 32), []string{"ORDERGRAPH_CURSOR_KEY can be guessed", "0 different"}},
		{"ORDERGRAPH_CURSOR_KEY=" + strings.Repeat("abcd", 9), []string{"ORDERGRAPH_CURSOR_KEY can be guessed", "4 different", "openssl rand"}},
		{"ORDERGRAPH_CORS_ORIGINS=shop.example", []string{`"shop.example"`, "https://"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://a.example,https://b.example/", []string{`"https://b.example/"`, "without a path"}},
		{"ORDERGRAPH_CORS_ORIGINS=https://a.example/shop", []string{`"https://a.example/shop"`, "without a path"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=https://shop.example", []string{`"https://shop.example"`, "host names like"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=a.example,*", []string{`"*"`, "host names like"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=*.shop.example", []string{`"*.shop.example"`, "host names like"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=shop.example/", []string{`"shop.example/"`, "host names like"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=shop.example:http", []string{`"shop.example:http"`, "host names like"}},
		{"ORDERGRAPH_ALLOWED_HOSTS=:8080", []string{`":8080"`, "host names like"}},
		{"ORDERGRAPH_WEBHOOK_ALLOWED_HOSTS=https://erp.internal", []string{`"https://erp.internal"`, "erp.internal:8443"}},
		{"ORDERGRAPH_SHARE_WEIGHTS=ADMIN", []string{`"ADMIN"`, "ADMIN=2,SERVICE=8"}},
		{"ORDERGRAPH_SHARE_WEIGHTS=ADMIN=0", []string{`"ADMIN=0"`, "1 to 100"}},
		{"ORDERGRAPH_SHARE_WEIGHTS=ADMIN=2,ADMIN=3", []string{`"ADMIN=2,ADMIN=3"`, "1 to 100"}},
		{"ORDERGRAPH_SHARE_WEIGHTS=ROOT=2", []string{`"ROOT=2"`, "roles"}},
		{"ORDERGRAPH_LOG=loud", []string{`"loud"`, "debug, info, warn or error"}},
		{"ORDERGRAPH_MAX_BODY=0", []string{`"0"`, "1 to 2147483647"}},
		{"ORDERGRAPH_MAX_BODY=2147483648", []string{`"2147483648"`, "1 to 2147483647"}},
		{"ORDERGRAPH_MAX_COST=none", []string{`"none"`, "1 to 2147483647"}},
		{"ORDERGRAPH_RATE_BURST=-1", []string{`"-1"`, "0 to 2147483647"}},
		{"ORDERGRAPH_RATE_BURST=many", []string{`"many"`, "0 to 2147483647"}},
		{fmt.Sprintf("ORDERGRAPH_RATE_BURST=%d", cost-1), []string{fmt.Sprint(cost - 1), fmt.Sprint(cost), "ORDERGRAPH_MAX_COST"}},
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
		for _, part := range append(c.parts, name) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q does not contain %s", c.variable, err, part)
			}
		}
		if name == "ORDERGRAPH_CURSOR_KEY" && strings.Contains(err.Error(), value) {
			t.Errorf("error %q contains the secret", err)
		}
	}
}

// Cursors stay valid after a restart and across servers of a table, but not for another table.
func TestDefaultCursorKey(t *testing.T) {
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
		if got := read(t, secretVariables("ORDERGRAPH_CORS_ORIGINS="+value)...).Origins; !slices.Equal(got, want) {
			t.Errorf("ORDERGRAPH_CORS_ORIGINS=%q is parsed to the origins %q, want %q", value, got, want)
		}
	}
}

// Without authentication, a star can stand for a part of the operator's own domain or for a port.
func TestOriginsOfOneOwner(t *testing.T) {
	for _, origin := range []string{"https://*.example.com", "https://shop-*.example.co.uk:8443", "http://*.localhost", "http://localhost:*", "http://*.shop.internal"} {
		if got := read(t, "ORDERGRAPH_AUTH=none", "ORDERGRAPH_CORS_ORIGINS="+origin).Origins; !slices.Equal(got, []string{origin}) {
			t.Errorf("the origins are %q, want %q", got, origin)
		}
	}
}

func TestProcessEnvironment(t *testing.T) {
	t.Setenv("ORDERGRAPH_TABLE", "from-the-process")
	if got := config.Getenv("ORDERGRAPH_TABLE"); got != "from-the-process" || !slices.Contains(config.Environ(), "ORDERGRAPH_TABLE=from-the-process") {
		t.Errorf("Getenv returns %q", got)
	}
}

// With authentication, callers have a rate limit unless it is switched off. Without authentication,
// they have one only if it is set.
func TestRates(t *testing.T) {
	jwt := []string{"AUTH=jwt", "ORDERGRAPH_JWT_JWKS=keys.json", "ORDERGRAPH_JWT_ISSUER=issuer", "ORDERGRAPH_JWT_AUDIENCE=shop"}
	for _, c := range []struct {
		set   []string
		burst int
	}{
		{nil, 0},
		{[]string{"ORDERGRAPH_RATE_BURST=100000"}, 100_000},
		{jwt, rate.DefaultOptions().Burst},
		{append(jwt, "ORDERGRAPH_MAX_COST=300000"), 300_000},
		{append(jwt, "ORDERGRAPH_RATE_BURST=0"), 0},
		{[]string{"ORDERGRAPH_MAX_COST=50", "ORDERGRAPH_RATE_BURST=50"}, 50},
	} {
		if got := read(t, c.set...).Rates; got.Burst != c.burst || got.Restore != rate.DefaultOptions().Restore {
			t.Errorf("%v: %+v, want %d", c.set, got, c.burst)
		}
	}
}
