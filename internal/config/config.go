// Package config reads the settings of all commands from flags, environment variables and a
// configuration file. No other package of the program calls os.Getenv.
package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/extension"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admin"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/gctuning"
	"github.com/ordergraph/ordergraph/internal/httpheader"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
	"github.com/ordergraph/ordergraph/internal/provider"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/setting"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// Values of Config.Store.
const (
	// Embedded is the built-in store, in memory or in a file.
	Embedded = "embedded"
	// DynamoDB is Amazon DynamoDB, or a compatible server at AWS_ENDPOINT_URL_DYNAMODB.
	DynamoDB = "dynamodb"
)

// Config is the configuration of all commands, including the server.
type Config struct {
	// Addr is the address to listen on, in the form host:port. If authentication is off, the default
	// host is 127.0.0.1. With AuthJWT, the server listens on all addresses by default.
	Addr string
	// AdminAddr is the address of the admin listener, in the form host:port. The admin listener serves
	// metrics. If AdminAddr is empty, there is no admin listener.
	AdminAddr string
	// Store is Embedded or DynamoDB.
	Store string
	// Data is the path of the embedded store's file. If Data is empty, the embedded store is in
	// memory.
	Data string
	// Table contains the name, the number of shards and other options of the table.
	Table dynamo.Options
	// CursorKey is the key that signs pagination cursors. It is empty if Auth is AuthJWT and
	// ORDERGRAPH_CURSOR_KEY is not set. In that case, the server does not start.
	CursorKey []byte
	// Origins are the origins of the web pages that may call the API from a browser (CORS).
	Origins []string
	// Hosts are the additional host names that a server without authentication accepts in the Host
	// header. The server always accepts localhost and IP addresses.
	Hosts []string
	// Proxies are the proxies whose X-Forwarded-For header contains the clients' addresses.
	Proxies httpheader.Proxies
	// Limits are the limits of one GraphQL request and its execution.
	Limits document.Limits
	// Rates are the rate limits for each principal.
	Rates rate.Options
	// ServerLimits are the limits of HTTP requests and connections.
	ServerLimits server.Limits
	// PoolSizes are the maximum amounts of the resources that all callers share, such as open
	// connections. Each caller can use only a share of a resource.
	PoolSizes admission.Sizes
	// ShareWeights maps a role to a factor. For a caller with this role, the factor multiplies the
	// caller's share of each resource in PoolSizes. The default factor is 1.
	ShareWeights map[access.Role]int
	// Introspection reports whether clients may query the schema with introspection.
	Introspection bool
	// GraphiQL reports whether the server serves GraphiQL. MCP reports whether it serves tools for
	// agents.
	GraphiQL, MCP bool
	// Documents is the path of the manifest file of trusted documents. It is empty if there is no
	// manifest.
	Documents string
	// SchemaExtension is the path of the file that declares custom fields. It is empty if there are none.
	// Extension contains the custom fields. ReadFrom does not set it, because it reads no such files.
	SchemaExtension string
	Extension       extension.Extension
	// Prices is the path of the price file. If it is empty, the standard prices apply.
	Prices string
	// TrustedOnly reports whether the server executes only trusted documents and rejects all others.
	TrustedOnly bool
	// Auth is AuthNone or AuthJWT. It is empty if ORDERGRAPH_AUTH is not set and Store is DynamoDB. In
	// that case, the server does not start.
	Auth string
	// AuthFromAlias reports whether Auth comes from the deprecated variable AUTH.
	AuthFromAlias bool
	// Anonymous reports whether requests without a token can read products. It has an effect only if
	// Auth is AuthJWT.
	Anonymous bool
	// JWT configures how tokens are verified. It has an effect only if Auth is AuthJWT.
	JWT auth.Options
	// Webhooks are the webhooks of payment providers that have secrets, by the name of the
	// provider.
	Webhooks map[string]*provider.Webhook
	// WebhookAllowedHosts are the hosts with private addresses to which events can be sent, each with
	// or without a port.
	WebhookAllowedHosts []string
	// ConfirmPaid reports whether an order is confirmed when a webhook reports that it is paid.
	ConfirmPaid bool
	// GCTuning configures the garbage collector. ReadFrom does not set its field Memory, because each
	// command determines the available memory itself.
	GCTuning gctuning.Options
	// Breaker reports whether the circuit breaker for DynamoDB is enabled. It has no effect on the
	// embedded store.
	Breaker bool
	// Shutdown contains the duration of each phase of a shutdown.
	Shutdown lifecycle.Shutdown
	// LogLevel is the minimum level of the messages that are logged.
	LogLevel slog.Level
	// LogFormat is telemetry.LogJSON or telemetry.LogText.
	LogFormat string
	// AccessLog reports whether the server logs each request.
	AccessLog bool
	// Traces reports whether the server exports traces. The OpenTelemetry SDK reads the destination of
	// the traces from the environment itself.
	Traces bool
	// Effective contains the value and the source of each setting. Secrets are masked.
	Effective []EffectiveSetting
	// Warnings contains a message for each environment variable that begins with ORDERGRAPH_ but is
	// not a setting. Such a variable has no effect.
	Warnings []string

	// secretFiles contains the files with secrets that ReadFrom has read. WatchSecrets reads these
	// files again periodically.
	secretFiles []secretFile
}

// Upper limits for the settings ORDERGRAPH_SHUTDOWN_DELAY and ORDERGRAPH_DRAIN_TIMEOUT.
const (
	maxShutdownDelay = 5 * time.Minute
	maxDrainTime     = 10 * time.Minute
)

func parseDrainTime(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= time.Second && d <= maxDrainTime
}

// minCursorKeyBytes is the minimum length of a cursor key in bytes.
const minCursorKeyBytes = 16

// tableNamePattern matches the table names that DynamoDB accepts.
var tableNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

// originPattern matches an origin, such as https://shop.example.com or http://localhost:3000. A
// star in an origin stands for any characters.
var originPattern = regexp.MustCompile(`^(?i)[a-z][a-z0-9+.-]*://[^/?#@\s]+$`)

// settingsReader reads the settings and stores their values in the embedded Config.
type settingsReader struct {
	Config
	port int
	// file is the path of the configuration file.
	file string
	// authAlias is the value of the deprecated variable AUTH.
	authAlias string
	traces    traceSettings

	// found maps the name of a setting to the setting's text and source.
	found    map[string]foundText
	problems []string
	// flagInvalid reports whether the value of at least one flag is invalid.
	flagInvalid bool
}

// Sections returns the declarations of all settings, except those that the AWS SDK reads.
func Sections() []setting.Section { return new(settingsReader).sections() }

func (r *settingsReader) sections() []setting.Section {
	return []setting.Section{
		{Title: "Server", Settings: []setting.Setting{
			{Name: fileSettingName, Value: setting.Text(&r.file, ""), Meaning: "[file](#file) with settings"},
			{Name: "ORDERGRAPH_ADDR", Value: setting.TextMatching(&r.Addr, "", "HOST:PORT, such as :8080", isAddress), Meaning: "address to listen on; `:8080` listens on all addresses"},
			{Name: "PORT", Value: setting.Number(&r.port, "8080", 0, 65535), Meaning: "port to listen on if `ORDERGRAPH_ADDR` is not set; the server listens on 127.0.0.1, or with `ORDERGRAPH_AUTH=jwt` on all addresses"},
			{Name: "ORDERGRAPH_ADMIN_ADDR", Value: setting.ParsedBy(&r.AdminAddr, "", "HOST:PORT, such as 127.0.0.1:9090, or to a port without a host, such as 9090", admin.ParseAddr), Meaning: "address of the [admin listener](operations.md#metrics), which is off by default; for a port without a host, the host is 127.0.0.1"},
			{Name: "ORDERGRAPH_CORS_ORIGINS", Value: setting.List(&r.Origins, "origins like https://shop.example.com or http://localhost:3000, without a path or a slash at the end, or to * for all origins", isOrigin), Meaning: "origins of the web pages that can call the API from a browser"},
			{Name: "ORDERGRAPH_ALLOWED_HOSTS", Value: setting.List(&r.Hosts, "host names like orders.example.com", isHostName), Meaning: "additional host names that a [server without authentication](authentication.md#without-authentication) accepts"},
			{Name: "ORDERGRAPH_TRUSTED_PROXIES", Value: setting.ParsedBy(&r.Proxies, "", "addresses or networks like 10.0.0.0/8, separated by commas", httpheader.ParseProxies), Meaning: "addresses or networks, such as `10.0.0.0/8`, of the [proxies](operations.md#load) whose header `X-Forwarded-For` contains the clients' addresses"},
			{Name: "ORDERGRAPH_CURSOR_KEY", Value: setting.Secret(&r.CursorKey, minCursorKeyBytes), Meaning: fmt.Sprintf("secret of at least %d characters that signs pagination cursors; must be the same on all servers; required with `ORDERGRAPH_AUTH=jwt`. Without authentication, the default derives from the table name and is not secret", minCursorKeyBytes)},
			{Name: "ORDERGRAPH_INTROSPECTION", Value: setting.Switch(&r.Introspection, "on"), Meaning: "`off` disables introspection; federation gateways can still read the subgraph schema"},
			{Name: "ORDERGRAPH_GRAPHIQL", Value: setting.Switch(&r.GraphiQL, "on"), Meaning: "`off` disables the editor GraphiQL at `/`"},
			{Name: "ORDERGRAPH_MCP", Value: setting.Switch(&r.MCP, "on"), Meaning: "`off` disables the [tools for agents](agents.md) (MCP) at `/mcp`"},
			{Name: "ORDERGRAPH_DOCUMENTS", Value: setting.Text(&r.Documents, ""), Meaning: "file name of the manifest of [trusted documents](operations.md#trusted-documents)"},
			{Name: "ORDERGRAPH_TRUSTED_ONLY", Value: setting.Switch(&r.TrustedOnly, "off"), Meaning: "`on` executes only trusted documents and rejects all others"},
			{Name: "ORDERGRAPH_SCHEMA_EXTENSION", FlagName: "schema", Value: setting.Text(&r.SchemaExtension, ""), Meaning: "name of a file that declares [custom fields](custom-fields.md); must be the same for all servers and commands"},
			{Name: "ORDERGRAPH_PRICES", Value: setting.Text(&r.Prices, ""), Meaning: "name of a file with DynamoDB's prices, in the format of [prices.json](../internal/price/prices.json)"},
			{Name: "ORDERGRAPH_ORDER_EXPIRY", Value: setting.DurationUpTo(&r.Table.OrderExpiry, 0, commerce.MaxOrderExpiry), Meaning: "time after which the server cancels an order that is [neither confirmed nor paid](operations.md#unpaid-orders), such as `30m`; 0 means never"},
			{Name: "ORDERGRAPH_LOG", Value: setting.ParsedBy(&r.LogLevel, "info", "debug, info, warn or error", parseLogLevel), Meaning: "minimum log level: `debug`, `info`, `warn` or `error`"},
			{Name: "ORDERGRAPH_LOG_FORMAT", Value: setting.Choice(&r.LogFormat, telemetry.LogJSON, telemetry.LogJSON, telemetry.LogText), Meaning: "`json` or `text`"},
			{Name: "ORDERGRAPH_ACCESS_LOG", Value: setting.Switch(&r.AccessLog, "off"), Meaning: "`on` writes a log entry for [each request](operations.md#logs)"},
			{Name: "ORDERGRAPH_SHUTDOWN_DELAY", Value: setting.DurationUpTo(&r.Shutdown.Delay, 0, maxShutdownDelay), Meaning: "time from SIGTERM until the server [refuses new connections](operations.md#shutdown-and-rolling-updates)"},
			{Name: "ORDERGRAPH_DRAIN_TIMEOUT", Value: setting.ParsedBy(&r.Shutdown.DrainTime, lifecycle.DefaultDrainTime.String(), fmt.Sprintf("a duration from 1s to %s, such as 30s", maxDrainTime), parseDrainTime), Meaning: "maximum time to complete running requests after `ORDERGRAPH_SHUTDOWN_DELAY` has passed"},
			{Name: "GOGC", Value: setting.TextMatching(&r.GCTuning.GOGC, "", "a percentage such as 100, or off", gctuning.ValidGOGC), Meaning: "target percentage of the Go garbage collector, as described for the [Go runtime's GOGC](https://go.dev/doc/gc-guide#GOGC)"},
			{Name: "GOMEMLIMIT", Value: setting.TextMatching(&r.GCTuning.GOMEMLIMIT, "", "a size such as 512MiB, or off", gctuning.ValidGOMEMLIMIT), Meaning: "the [Go runtime's memory limit](https://go.dev/doc/gc-guide#Memory_limit); the default is 90 % of the container's memory limit"},
		}},
		{Title: "Store", Settings: []setting.Setting{
			{Name: "ORDERGRAPH_STORE", Value: setting.Choice(&r.Store, Embedded, Embedded, DynamoDB), Meaning: "`embedded` (in the server's process) or `dynamodb`"},
			{Name: "ORDERGRAPH_DATA", Value: setting.Text(&r.Data, ""), Meaning: "file of the embedded store, which is created if missing; if not set, the store is in memory and contains sample data"},
			{Name: "ORDERGRAPH_TABLE", Value: setting.TextMatching(&r.Table.Table, "ordergraph", "3 to 255 characters of A-Z a-z 0-9 _ - and .", tableNamePattern.MatchString), Meaning: "table name"},
			{Name: "ORDERGRAPH_SHARDS", Value: setting.Number(&r.Table.Shards, "1", 1, model.MaxShards), Meaning: "number of [shards](data-model.md#shards) of each sharded partition key in a new table; must be the same for all servers and commands, until [`ordergraph table shards`](operations.md#more-or-fewer-shards) stores the number in the table"},
			{Name: "ORDERGRAPH_ELECTRODB", Value: setting.ParsedBy(&r.Table.ElectroDB, "", "a version, such as 1, and exceptions, such as 1,order=2,customerOrder=Order:1", model.ParseElectroDB), Meaning: "version of the [ElectroDB](data-model.md#electrodb) entities, such as `1`, by which ElectroDB recognizes Ordergraph's records; must be the same for all servers and commands"},
			{Name: "ORDERGRAPH_CIRCUIT_BREAKER", Value: setting.Switch(&r.Breaker, "on"), Meaning: "`on` rejects operations immediately while [DynamoDB fails](operations.md#when-dynamodb-fails)"},
			{Name: "ORDERGRAPH_CURRENCY", Value: setting.ParsedBy(&r.Table.Currency, "USD", "three upper-case letters of ISO 4217, such as USD", parseCurrency), Meaning: "currency of stored records that do not specify a currency"},
		}},
		{Title: "Traces", Settings: r.traces.settings()},
		{Title: "Authentication", Settings: append([]setting.Setting{
			{Name: "ORDERGRAPH_AUTH", Value: setting.Choice(&r.Auth, "", AuthJWT, AuthNone), Meaning: "`jwt` (each request needs a token) or `none` (every caller has all permissions); with `ORDERGRAPH_STORE=dynamodb`, a value is required; otherwise, the default is `none`"},
			{Name: "AUTH", Value: setting.Choice(&r.authAlias, "", AuthJWT, AuthNone), AliasOf: "ORDERGRAPH_AUTH", Meaning: "deprecated name of `ORDERGRAPH_AUTH`"},
		}, r.jwtSettings()...)},
		{Title: "Payments", Settings: append(r.webhookSettings(),
			setting.Setting{Name: "ORDERGRAPH_CONFIRM_PAID", Value: setting.Switch(&r.ConfirmPaid, "off"), Meaning: "`on` confirms an order when one of these webhooks reports that it is paid"},
		)},
		{Title: "Webhooks", Settings: r.outgoingWebhookSettings()},
		{Title: "Limits", Settings: slices.Concat(setting.Limits(&r.Limits), setting.Limits(&r.Table.Reservations), r.Rates.SettingDefinitions(), setting.Limits(&r.ServerLimits), r.PoolSizes.Settings())},
		{Title: "Shares", Settings: []setting.Setting{
			{Name: "ORDERGRAPH_SHARE_WEIGHTS", Value: setting.ParsedBy(&r.ShareWeights, "", "roles with whole numbers from 1 to 100, such as ADMIN=2,SERVICE=8", parseShareWeights), Meaning: "factor for each role, such as `ADMIN=2,SERVICE=8`; it multiplies the [shares](limits.md#shares) of the role's callers"},
		}},
	}
}

// maxShareWeight is the maximum factor in ORDERGRAPH_SHARE_WEIGHTS.
const maxShareWeight = 100

func parseShareWeights(text string) (map[access.Role]int, bool) {
	weights := map[access.Role]int{}
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		role, ok := access.ParseRole(name)
		weight, err := strconv.Atoi(number)
		if !ok || err != nil || weight < 1 || weight > maxShareWeight || weights[role] != 0 {
			return nil, false
		}
		weights[role] = weight
	}
	return weights, true
}

// burstNotSet is the value of Rates.Burst if ORDERGRAPH_RATE_BURST is not set.
const burstNotSet = -1

// Read reads the settings from the environment and from the file that ORDERGRAPH_CONFIG names. It
// returns the same errors as ReadFrom.
func Read(getenv func(string) string) (Config, error) { return ReadFrom(Sources{Getenv: getenv}) }

// ReadFrom reads the settings from all sources. If a setting is invalid, the error is an
// *InvalidError. Even then, Config.Effective and Config.Warnings are complete.
func ReadFrom(sources Sources) (Config, error) {
	r := &settingsReader{Config: Config{Rates: rate.Options{Burst: burstNotSet}, Warnings: sources.misspellingWarnings()}, found: map[string]foundText{}}
	layers, problems := sources.layers()
	r.problems = problems
	for _, section := range r.sections() {
		for _, s := range section.Settings {
			r.readSetting(s, layers)
		}
	}
	// If a setting is invalid, skip the validation of combinations of settings, because it could
	// report the same problem again.
	if len(r.problems) == 0 {
		r.resolveDependentSettings()
	}
	return r.Config, newInvalidError(r.problems, r.flagInvalid)
}

// readSetting reads one setting and appends its value to r.Effective.
func (r *settingsReader) readSetting(s setting.Setting, layers []sourceLayer) {
	f, err := findText(s, layers)
	if err == nil {
		if err = s.Set(f.text); err != nil {
			label := f.label
			if f.secretFile != "" {
				label += " (file " + f.secretFile + ")"
			}
			err = fmt.Errorf("%s %w", label, err)
		}
	}
	r.found[s.Name] = f
	e := newEffectiveSetting(s, f)
	if err != nil {
		e.Problem = err.Error()
		r.problems = append(r.problems, e.Problem)
		r.flagInvalid = r.flagInvalid || f.source == SourceFlag
	} else if f.secretFile != "" {
		r.secretFiles = append(r.secretFiles, secretFile{s.Name, f.secretFile, sha256.Sum256([]byte(f.text))})
	}
	r.Effective = append(r.Effective, e)
}

// resolveDependentSettings sets the values that depend on several settings, and validates
// combinations of settings.
func (r *settingsReader) resolveDependentSettings() {
	check := func(err error) {
		if err != nil {
			r.problems = append(r.problems, err.Error())
		}
	}
	r.Traces = r.traces.enabled()
	check(r.resolveAuth())
	if r.Addr == "" || r.found["PORT"].source > r.found["ORDERGRAPH_ADDR"].source {
		host := "127.0.0.1"
		if r.Auth == AuthJWT {
			host = ""
		}
		r.Addr = net.JoinHostPort(host, strconv.Itoa(r.port))
		r.setDerived("ORDERGRAPH_ADDR", r.Addr, r.found["PORT"].place)
	}
	if r.Auth != AuthJWT && len(r.CursorKey) == 0 {
		r.CursorKey = defaultCursorKey(r.Table.Table)
		r.setDerived("ORDERGRAPH_CURSOR_KEY", "derived from the table's name", defaultSourceText)
	}
	if r.Data != "" && r.Store != Embedded {
		check(errors.New("ORDERGRAPH_DATA names a file of the embedded store, but ORDERGRAPH_STORE is dynamodb: unset one of them"))
	}
	if r.TrustedOnly && r.Documents == "" {
		check(errors.New("ORDERGRAPH_TRUSTED_ONLY is on, but ORDERGRAPH_DOCUMENTS is not set: set ORDERGRAPH_DOCUMENTS to the manifest of the trusted documents"))
	}
	if i := slices.IndexFunc(r.Origins, matchesEverySite); i >= 0 && r.Auth != AuthJWT {
		check(fmt.Errorf("ORDERGRAPH_CORS_ORIGINS contains %s, so without authentication every website could read and change all data in the browser of a user: list the origins of your own pages, or set ORDERGRAPH_AUTH=jwt", r.Origins[i]))
	}
	check(r.resolveBurst())
}

// setDerived changes the value and the source of a setting in r.Effective. It must be called for
// each setting whose value was determined by other settings.
func (r *settingsReader) setDerived(name, value, source string) {
	i := slices.IndexFunc(r.Effective, func(e EffectiveSetting) bool { return e.Name == name })
	r.Effective[i].Value, r.Effective[i].Source = value, source
}

// resolveBurst validates Rates.Burst, or sets its default. Without authentication, the default is
// no rate limit, because all callers would share one rate limit.
func (r *settingsReader) resolveBurst() error {
	switch {
	case r.Rates.Burst > 0 && r.Rates.Burst < r.Limits.Cost:
		return fmt.Errorf("ORDERGRAPH_RATE_BURST is %d, so an operation of the maximum cost %d (ORDERGRAPH_MAX_COST) could never be executed: raise ORDERGRAPH_RATE_BURST, or lower ORDERGRAPH_MAX_COST", r.Rates.Burst, r.Limits.Cost)
	case r.Rates.Burst != burstNotSet:
		return nil
	case r.Auth == AuthJWT:
		r.Rates.Burst = max(rate.DefaultOptions().Burst, r.Limits.Cost)
	default:
		r.Rates.Burst = 0
	}
	r.setDerived("ORDERGRAPH_RATE_BURST", strconv.Itoa(r.Rates.Burst), defaultSourceText)
	return nil
}

// defaultCursorKey returns the key that signs cursors if ORDERGRAPH_CURSOR_KEY is not set. The key
// depends only on the table's name, so cursors stay valid after a restart and on other servers.
func defaultCursorKey(table string) []byte {
	key := sha256.Sum256([]byte("ordergraph cursors of table " + table))
	return key[:]
}

func isOrigin(text string) bool { return text == "*" || originPattern.MatchString(text) }

// matchesEverySite reports whether a website of any owner can have an origin that matches the given
// origin: a star in the host is not followed by a dot and a domain of one owner. For example, anyone
// can register a domain that matches *example.com or shop.*.com.
func matchesEverySite(origin string) bool {
	_, host, _ := strings.Cut(origin, "://")
	host, _, _ = strings.Cut(host, ":")
	_, afterStar, star := strings.Cut(host, "*")
	if !star {
		return origin == "*"
	}
	_, domain, _ := strings.Cut(strings.ToLower(afterStar), ".")
	// Websites of different owners share a public suffix such as com, co.uk or github.io. The list of
	// these suffixes does not contain private names such as localhost.
	suffix, icann := publicsuffix.PublicSuffix(domain)
	return domain == "" || domain == suffix && (icann || strings.Contains(suffix, "."))
}

// isAddress reports whether text has the form host:port.
func isAddress(text string) bool {
	_, _, err := net.SplitHostPort(text)
	return err == nil
}

// isHostName reports whether text is a host name, with or without a port.
func isHostName(text string) bool {
	name, port, _ := strings.Cut(strings.ToLower(text), ":")
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && strings.Trim(port, "0123456789") == ""
}

func parseCurrency(text string) (commerce.Currency, bool) {
	c, err := commerce.ParseCurrency(text)
	return c, err == nil
}

func parseLogLevel(text string) (slog.Level, bool) {
	var level slog.Level
	err := level.UnmarshalText([]byte(text))
	return level, err == nil
}
