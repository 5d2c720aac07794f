// Package config reads the settings from flags, the environment and a file. No other package reads
// the environment.
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

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admin"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/gctuning"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
	"github.com/ordergraph/ordergraph/internal/logging"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// Values of Config.Store.
const (
	// Embedded is the built-in store, in memory or in a file.
	Embedded = "embedded"
	// DynamoDB is Amazon DynamoDB, or a compatible server at AWS_ENDPOINT_URL_DYNAMODB.
	DynamoDB = "dynamodb"
)

// Config is the configuration of the server and of the other commands.
type Config struct {
	// Addr is the address to listen on, in the form host:port. If authentication is off, the default
	// host is 127.0.0.1.
	Addr string
	// AdminAddr is the address of the admin listener, in the form host:port. If it is empty, there is
	// no admin listener.
	AdminAddr string
	// Store is Embedded or DynamoDB.
	Store string
	// Data is the file of the embedded store. If it is empty, the store is in memory.
	Data string
	// Table names the table and describes its layout.
	Table dynamo.Options
	// CursorKey is the key that signs cursors. It is empty if the server requires a secret key, but
	// the setting is missing.
	CursorKey []byte
	// Origins are the origins that may call the API from a browser.
	Origins []string
	// Hosts are the host names that a server without authentication accepts, in addition to localhost
	// and IP addresses.
	Hosts []string
	// Limits are the limits of one document.
	Limits document.Limits
	// Rates are the rate limits per principal.
	Rates rate.Options
	// ServerLimits are the limits of requests and connections.
	ServerLimits server.Limits
	// PoolSizes are the sizes of the resources that callers share. ShareWeights multiply the shares of
	// the callers with a role.
	PoolSizes    admission.Sizes
	ShareWeights map[commerce.Role]int
	// Introspection reports whether clients may query the schema.
	Introspection bool
	// Documents is the path of the manifest file of trusted documents. It is empty if there is no
	// manifest.
	Documents string
	// Prices is the path of the price file. If it is empty, the standard prices apply.
	Prices string
	// TrustedOnly reports whether only trusted documents are executed.
	TrustedOnly bool
	// Auth is AuthNone or AuthJWT. It is empty if the operator must set ORDERGRAPH_AUTH before the
	// server can start.
	Auth string
	// AuthFromAlias reports whether Auth comes from the deprecated variable AUTH.
	AuthFromAlias bool
	// Anonymous reports whether requests without a token can read the catalog. It applies only to
	// AuthJWT.
	Anonymous bool
	// JWT configures how tokens are verified. It applies only to AuthJWT.
	JWT auth.Options
	// GCTuning configures the garbage collector. This package does not set the field Memory.
	GCTuning gctuning.Options
	// Breaker reports whether the circuit breaker is enabled. The embedded store has no circuit
	// breaker.
	Breaker bool
	// Shutdown contains the durations of a shutdown.
	Shutdown lifecycle.Shutdown
	// LogLevel is the minimum level that is logged.
	LogLevel slog.Level
	// LogFormat is logging.JSON or logging.Text.
	LogFormat string
	// AccessLog reports whether the server logs each request.
	AccessLog bool
	// Traces reports whether traces are exported. The OpenTelemetry SDK reads its own variables.
	Traces bool
	// Effective contains the value and the source of each setting. Secrets are masked.
	Effective []EffectiveSetting
	// Warnings contains a sentence for each name that is not a setting and therefore has no effect.
	Warnings []string

	// secretFiles contains the files whose secrets are in use.
	secretFiles []secretFile
}

// Upper limits for the durations of a shutdown.
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

// tableNamePattern is DynamoDB's rule for table names.
var tableNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

// originPattern matches an origin as browsers send it: scheme, host, and the port if it is not the
// scheme's default. An origin may contain a star, which stands for any characters.
var originPattern = regexp.MustCompile(`^(?i)[a-z][a-z0-9+.-]*://[^/?#@\s]+$`)

// settingsReader reads the settings into a Config.
type settingsReader struct {
	Config
	port int
	// file is the path of the configuration file.
	file string
	// authAlias is the value of the deprecated variable AUTH.
	authAlias string
	traces    traceSettings

	// found maps the name of a setting to its text and its source.
	found    map[string]foundText
	problems []string
	// flagInvalid reports whether a problem is in the value of a flag.
	flagInvalid bool
}

// Sections returns all settings except the settings that the AWS SDK reads.
func Sections() []setting.Section { return new(settingsReader).sections() }

func (r *settingsReader) sections() []setting.Section {
	return []setting.Section{
		{Title: "Server", Settings: []setting.Setting{
			{Name: fileSettingName, Value: setting.Text(&r.file, ""), Meaning: "[file](#file) with settings"},
			{Name: "ORDERGRAPH_ADDR", Value: setting.TextMatching(&r.Addr, "", "HOST:PORT, such as :8080", isAddress), Meaning: "address to listen on; `:8080` listens on all addresses"},
			{Name: "PORT", Value: setting.Number(&r.port, "8080", 0, 65535), Meaning: "port to listen on if `ORDERGRAPH_ADDR` is not set; the host is 127.0.0.1, or all addresses with `ORDERGRAPH_AUTH=jwt`"},
			{Name: "ORDERGRAPH_ADMIN_ADDR", Value: setting.ParsedBy(&r.AdminAddr, "", "HOST:PORT, such as 127.0.0.1:9090, or to a port of 127.0.0.1, such as 9090", admin.ParseAddr), Meaning: "address of the [admin listener](operations.md#metrics), off by default; a port alone means 127.0.0.1"},
			{Name: "ORDERGRAPH_CORS_ORIGINS", Value: setting.List(&r.Origins, "origins like https://shop.example.com or http://localhost:3000, without a path or a slash at the end, or to * for all", isOrigin), Meaning: "origins that can call the API from a browser"},
			{Name: "ORDERGRAPH_ALLOWED_HOSTS", Value: setting.List(&r.Hosts, "host names like orders.example.com", isHostName), Meaning: "additional host names that a [server without authentication](authentication.md#without-authentication) accepts"},
			{Name: "ORDERGRAPH_CURSOR_KEY", Value: setting.Secret(&r.CursorKey, minCursorKeyBytes), Meaning: fmt.Sprintf("secret of at least %d characters (`openssl rand -hex 32`) that signs cursors; must be the same on all servers; required with `ORDERGRAPH_AUTH=jwt`; the default is not secret", minCursorKeyBytes)},
			{Name: "ORDERGRAPH_INTROSPECTION", Value: setting.Switch(&r.Introspection, "on"), Meaning: "`off` disables introspection; gateways can still read the subgraph schema"},
			{Name: "ORDERGRAPH_DOCUMENTS", Value: setting.Text(&r.Documents, ""), Meaning: "manifest of [trusted documents](operations.md#trusted-documents)"},
			{Name: "ORDERGRAPH_TRUSTED_ONLY", Value: setting.Switch(&r.TrustedOnly, "off"), Meaning: "`on` executes only trusted documents"},
			{Name: "ORDERGRAPH_PRICES", Value: setting.Text(&r.Prices, ""), Meaning: "file with DynamoDB's prices, in the format of [prices.json](../internal/price/prices.json)"},
			{Name: "ORDERGRAPH_LOG", Value: setting.ParsedBy(&r.LogLevel, "info", "debug, info, warn or error", parseLogLevel), Meaning: "minimum log level: `debug`, `info`, `warn` or `error`"},
			{Name: "ORDERGRAPH_LOG_FORMAT", Value: setting.Choice(&r.LogFormat, logging.JSON, logging.JSON, logging.Text), Meaning: "`json` or `text`"},
			{Name: "ORDERGRAPH_ACCESS_LOG", Value: setting.Switch(&r.AccessLog, "off"), Meaning: "`on` logs [each request](operations.md#logs)"},
			{Name: "ORDERGRAPH_SHUTDOWN_DELAY", Value: setting.DurationUpTo(&r.Shutdown.Delay, 0, maxShutdownDelay), Meaning: "time from SIGTERM until the server [refuses connections](operations.md#shutdown-and-rolling-updates)"},
			{Name: "ORDERGRAPH_DRAIN_TIMEOUT", Value: setting.ParsedBy(&r.Shutdown.DrainTime, lifecycle.DefaultDrainTime.String(), fmt.Sprintf("a duration from 1s to %s, such as 30s", maxDrainTime), parseDrainTime), Meaning: "maximum time to complete requests after `ORDERGRAPH_SHUTDOWN_DELAY`"},
			{Name: "GOGC", Value: setting.TextMatching(&r.GCTuning.GOGC, "", "a percentage such as 100, or off", gctuning.ValidGOGC), Meaning: "the [Go runtime's GOGC](https://go.dev/doc/gc-guide#GOGC)"},
			{Name: "GOMEMLIMIT", Value: setting.TextMatching(&r.GCTuning.GOMEMLIMIT, "", "a size such as 512MiB, or off", gctuning.ValidGOMEMLIMIT), Meaning: "the [Go runtime's memory limit](https://go.dev/doc/gc-guide#Memory_limit); the default is 90 % of the container's limit"},
		}},
		{Title: "Store", Settings: []setting.Setting{
			{Name: "ORDERGRAPH_STORE", Value: setting.Choice(&r.Store, Embedded, Embedded, DynamoDB), Meaning: "`embedded` (in the server's process) or `dynamodb`"},
			{Name: "ORDERGRAPH_DATA", Value: setting.Text(&r.Data, ""), Meaning: "file of the embedded store, created if missing; by default, the store has sample data in memory"},
			{Name: "ORDERGRAPH_TABLE", Value: setting.TextMatching(&r.Table.Table, "ordergraph", "3 to 255 characters of A-Z a-z 0-9 _ - and .", tableNamePattern.MatchString), Meaning: "table name"},
			{Name: "ORDERGRAPH_SHARDS", Value: setting.Number(&r.Table.Shards, "1", 1, model.MaxShards), Meaning: "number of [shards](data-model.md#shards) per sharded partition key; the same for all servers and commands"},
			{Name: "ORDERGRAPH_CIRCUIT_BREAKER", Value: setting.Switch(&r.Breaker, "on"), Meaning: "`on` rejects operations while [DynamoDB fails](operations.md#when-dynamodb-fails)"},
			{Name: "ORDERGRAPH_CURRENCY", Value: setting.ParsedBy(&r.Table.Currency, "USD", "three upper-case letters of ISO 4217, such as USD", parseCurrency), Meaning: "currency of records without a currency"},
		}},
		{Title: "Traces", Settings: r.traces.settings()},
		{Title: "Authentication", Settings: append([]setting.Setting{
			{Name: "ORDERGRAPH_AUTH", Value: setting.Choice(&r.Auth, "", AuthJWT, AuthNone), Meaning: "`jwt` (each request needs a token) or `none` (every caller has all permissions); the default is `none`, but `ORDERGRAPH_STORE=dynamodb` requires a value"},
			{Name: "AUTH", Value: setting.Choice(&r.authAlias, "", AuthJWT, AuthNone), AliasOf: "ORDERGRAPH_AUTH", Meaning: "deprecated name of `ORDERGRAPH_AUTH`"},
		}, r.jwtSettings()...)},
		{Title: "Limits", Settings: slices.Concat(setting.Limits(&r.Limits), r.Rates.SettingDefinitions(), setting.Limits(&r.ServerLimits), r.PoolSizes.Settings())},
		{Title: "Shares", Settings: []setting.Setting{
			{Name: "ORDERGRAPH_SHARE_WEIGHTS", Value: setting.ParsedBy(&r.ShareWeights, "", "roles with whole numbers from 1 to 100, such as ADMIN=2,SERVICE=8", parseShareWeights), Meaning: "factors by role that multiply [shares](limits.md#shares), such as `ADMIN=2,SERVICE=8`"},
		}},
	}
}

// maxShareWeight is the maximum share weight of a role.
const maxShareWeight = 100

func parseShareWeights(text string) (map[commerce.Role]int, bool) {
	weights := map[commerce.Role]int{}
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		role, ok := commerce.ParseRole(name)
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

// Read reads the settings from the environment, and from the file in ORDERGRAPH_CONFIG. It returns
// the errors of ReadFrom.
func Read(getenv func(string) string) (Config, error) { return ReadFrom(Sources{Getenv: getenv}) }

// ReadFrom reads the settings from all sources. It returns an *InvalidError if settings are
// invalid. Even in that case, Config.Effective and Config.Warnings are complete.
func ReadFrom(sources Sources) (Config, error) {
	r := &settingsReader{Config: Config{Rates: rate.Options{Burst: burstNotSet}, Warnings: sources.misspellingWarnings()}, found: map[string]foundText{}}
	layers, problems := sources.layers()
	r.problems = problems
	for _, section := range r.sections() {
		for _, s := range section.Settings {
			r.readSetting(s, layers)
		}
	}
	// If a setting is invalid, validating combinations of settings could report the same problem
	// again.
	if len(r.problems) == 0 {
		r.resolveDependentSettings()
	}
	return r.Config, newInvalidError(r.problems, r.flagInvalid)
}

// readSetting reads one setting and adds it to Effective.
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

// resolveDependentSettings sets the values that depend on several settings, and validates combinations of settings.
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
		check(errors.New("ORDERGRAPH_DATA names a file of the embedded store, but ORDERGRAPH_STORE is dynamodb: remove one of them"))
	}
	if r.TrustedOnly && r.Documents == "" {
		check(errors.New("ORDERGRAPH_TRUSTED_ONLY is on, but ORDERGRAPH_DOCUMENTS is not set: set ORDERGRAPH_DOCUMENTS to the manifest of the trusted documents"))
	}
	check(r.resolveBurst())
}

// setDerived sets the effective value and source of a setting whose value comes from other settings.
func (r *settingsReader) setDerived(name, value, source string) {
	i := slices.IndexFunc(r.Effective, func(e EffectiveSetting) bool { return e.Name == name })
	r.Effective[i].Value, r.Effective[i].Source = value, source
}

// resolveBurst sets the default of Rates.Burst. Without authentication, all callers share one token
// bucket, so the default is no rate limit.
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

// defaultCursorKey returns the cursor key of a server without a secret. The key depends only on the
// table's name, so cursors stay valid after a restart and on other servers.
func defaultCursorKey(table string) []byte {
	key := sha256.Sum256([]byte("ordergraph cursors of table " + table))
	return key[:]
}

func isOrigin(text string) bool { return text == "*" || originPattern.MatchString(text) }

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
