// Package config reads the environment, which no other package does.
package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/pacing"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// The stores.
const (
	// Embedded is the built-in store, in memory.
	Embedded = "embedded"
	// DynamoDB is Amazon DynamoDB, or whatever speaks its protocol at AWS_ENDPOINT_URL_DYNAMODB.
	DynamoDB = "dynamodb"
)

// Config is how a server is set up.
type Config struct {
	// Addr is where to listen, host:port: without authentication on this machine only.
	Addr string
	// Store is Embedded or DynamoDB.
	Store string
	// Table says which table and how it is laid out.
	Table dynamo.Options
	// CursorKey signs cursors; empty where a server needs one that is not set.
	CursorKey []byte
	// Origins are the browsers' origins that may use the API from another site, none by default.
	Origins []string
	// Hosts are the names by which clients may call a server without authentication, beside
	// localhost and IP addresses.
	Hosts []string
	// Limits bound what one request can ask for.
	Limits document.Limits
	// Rates are how much each principal may cost.
	Rates rate.Options
	// Serving bounds what one request or connection can take.
	Serving server.Limits
	// Pools are the sizes of what callers share, and Weights multiply the shares of roles.
	Pools   admission.Sizes
	Weights map[commerce.Role]int
	// Introspection is whether clients may ask for the schema.
	Introspection bool
	// Documents is the file of the manifest of trusted documents, empty where there is none.
	Documents string
	// TrustedOnly is whether only trusted documents are executed.
	TrustedOnly bool
	// Auth is AuthNone or AuthJWT; empty where the operator has yet to choose.
	Auth string
	// AuthAlias reports that the deprecated variable AUTH chose it.
	AuthAlias bool
	// Anonymous is whether requests without a token can read the catalog. It takes effect with
	// AuthJWT.
	Anonymous bool
	// JWT says what tokens are checked against. It takes effect with AuthJWT.
	JWT auth.Options
	// Pacing decides when Go's garbage collector collects; it has no Memory.
	Pacing pacing.Options
	// LogLevel is the least level that is logged.
	LogLevel slog.Level
}

// minCursorKey is the least length of a cursor key.
const minCursorKey = 16

// tableName is DynamoDB's rule for names of tables.
var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

// originName is an origin as browsers send it: scheme, host and, if it is not the scheme's own,
// port. A star in it stands for any characters.
var originName = regexp.MustCompile(`^(?i)[a-z][a-z0-9+.-]*://[^/?#@\s]+$`)

// reader is a Config that is being read.
type reader struct {
	Config
	port int
	// authAlias is the value of the deprecated variable AUTH.
	authAlias string
}

// Sections returns all settings; the AWS SDK reads others.
func Sections() []setting.Section { return new(reader).sections() }

func (r *reader) sections() []setting.Section {
	return []setting.Section{
		{Title: "Server", Settings: []setting.Setting{
			{Name: "PORT", Value: setting.Number(&r.port, "8080", 0, 65535), Meaning: "port to listen on without `-addr`: on all addresses with `ORDERGRAPH_AUTH=jwt`, otherwise on 127.0.0.1"},
			{Name: "ORDERGRAPH_CORS_ORIGINS", Value: setting.List(&r.Origins, "origins like https://shop.example.com or http://localhost:3000, without a path or a slash at the end, or to * for all", isOrigin), Meaning: "origins whose pages can call the API"},
			{Name: "ORDERGRAPH_ALLOWED_HOSTS", Value: setting.List(&r.Hosts, "host names like orders.example.com", isHostName), Meaning: "host names that a server without authentication answers to, besides `localhost`, names below `.localhost` and IP addresses"},
			{Name: "ORDERGRAPH_CURSOR_KEY", Value: setting.Secret(&r.CursorKey, minCursorKey), Meaning: fmt.Sprintf("secret that signs cursors, at least %d characters, such as from `openssl rand -hex 32`; the same for all servers of a table; required with `ORDERGRAPH_AUTH=jwt`, otherwise derived from the table's name, which does not prevent forgery", minCursorKey)},
			{Name: "ORDERGRAPH_INTROSPECTION", Value: setting.Switch(&r.Introspection, "on"), Meaning: "`on` or `off`: whether clients can query the schema; gateways can always query the subgraph schema"},
			{Name: "ORDERGRAPH_DOCUMENTS", Value: setting.Text(&r.Documents, ""), Meaning: "manifest file of trusted documents, in Apollo's or Relay's format"},
			{Name: "ORDERGRAPH_TRUSTED_ONLY", Value: setting.Switch(&r.TrustedOnly, "off"), Meaning: "`on` or `off`: whether only trusted documents are executed"},
			{Name: "ORDERGRAPH_LOG", Value: setting.Parsed(&r.LogLevel, "info", "debug, info, warn or error", parseLevel), Meaning: "minimum log level: `debug` (every request), `info`, `warn` or `error`"},
			{Name: "GOGC", Value: setting.Text(&r.Pacing.GOGC, ""), Meaning: "the [Go runtime's GOGC](https://go.dev/doc/gc-guide#GOGC); without it and `GOMEMLIMIT`, the heap is collected when it has doubled and grown by another 8 MiB"},
			{Name: "GOMEMLIMIT", Value: setting.Text(&r.Pacing.GOMEMLIMIT, ""), Meaning: "the [Go runtime's memory limit](https://go.dev/doc/gc-guide#Memory_limit); by default 90 % of the container's limit, if any"},
		}},
		{Title: "Store", Settings: []setting.Setting{
			{Name: "ORDERGRAPH_STORE", Value: setting.Choice(&r.Store, Embedded, Embedded, DynamoDB), Meaning: "`embedded` (in memory, with sample data) or `dynamodb`"},
			{Name: "ORDERGRAPH_TABLE", Value: setting.Matching(&r.Table.Table, "ordergraph", "3 to 255 characters of A-Z a-z 0-9 _ - and point", tableName.MatchString), Meaning: "name of the table"},
			{Name: "ORDERGRAPH_SHARDS", Value: setting.Number(&r.Table.Shards, "1", 1, model.MaxShards), Meaning: "partition keys per busy list; a property of the table, the same for all its servers and commands"},
			{Name: "ORDERGRAPH_CURRENCY", Value: setting.Parsed(&r.Table.Currency, "USD", "three upper-case letters of ISO 4217, such as USD", parseCurrency), Meaning: "currency of records without one"},
		}},
		{Title: "Authentication", Settings: append([]setting.Setting{
			{Name: "ORDERGRAPH_AUTH", Value: setting.Choice(&r.Auth, "", AuthJWT, AuthNone), Meaning: "`jwt` (each request needs a token) or `none` (everything is open); `none` by default with `ORDERGRAPH_STORE=embedded`, required to serve from `dynamodb`"},
			{Name: "AUTH", Value: setting.Choice(&r.authAlias, "", AuthJWT, AuthNone), Meaning: "deprecated name of `ORDERGRAPH_AUTH`; `none` does not open a DynamoDB table"},
		}, r.jwtSettings()...)},
		{Title: "Limits", Settings: slices.Concat(setting.Limits(&r.Limits), r.Rates.Settings(), setting.Limits(&r.Serving), r.Pools.Settings())},
		{Title: "Shares", Settings: []setting.Setting{
			{Name: "ORDERGRAPH_SHARE_WEIGHTS", Value: setting.Parsed(&r.Weights, "", "roles with whole numbers from 1 to 100, such as ADMIN=2,SERVICE=8", parseWeights), Meaning: "factors for the [shares](limits.md#shares) of roles, such as `ADMIN=2,SERVICE=8`; 1 for other roles"},
		}},
	}
}

// maxWeight is the highest weight of a role.
const maxWeight = 100

func parseWeights(text string) (map[commerce.Role]int, bool) {
	weights := map[commerce.Role]int{}
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		role, ok := commerce.ParseRole(name)
		weight, err := strconv.Atoi(number)
		if !ok || err != nil || weight < 1 || weight > maxWeight || weights[role] != 0 {
			return nil, false
		}
		weights[role] = weight
	}
	return weights, true
}

// burstNotSet is Rates.Burst while ORDERGRAPH_RATE_BURST is not set.
const burstNotSet = -1

// Read reads the environment through getenv.
//
// Errors: one that names the variable and says what to change.
func Read(getenv func(string) string) (Config, error) {
	r := &reader{Config: Config{Rates: rate.Options{Burst: burstNotSet}}}
	for _, section := range r.sections() {
		for _, s := range section.Settings {
			if err := s.Read(getenv(s.Name)); err != nil {
				return r.Config, err
			}
		}
	}
	if err := r.resolveAuth(getenv); err != nil {
		return r.Config, err
	}
	r.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port))
	switch {
	case r.Auth == AuthJWT:
		r.Addr = ":" + strconv.Itoa(r.port)
	case len(r.CursorKey) == 0:
		r.CursorKey = tableKey(r.Table.Table)
	}
	if r.TrustedOnly && r.Documents == "" {
		return r.Config, errors.New("ORDERGRAPH_TRUSTED_ONLY is on, and there are no trusted documents: set ORDERGRAPH_DOCUMENTS to their manifest")
	}
	return r.Config, r.resolveBurst()
}

// resolveBurst sets the default of the burst. Callers without authentication share one bucket, so
// they have a limit only if it is set.
func (c *Config) resolveBurst() error {
	switch {
	case c.Rates.Burst == burstNotSet && c.Auth == AuthJWT:
		c.Rates.Burst = max(rate.DefaultOptions().Burst, c.Limits.Cost)
	case c.Rates.Burst == burstNotSet:
		c.Rates.Burst = 0
	case c.Rates.Burst > 0 && c.Rates.Burst < c.Limits.Cost:
		return fmt.Errorf("ORDERGRAPH_RATE_BURST is %d, and an operation can cost %d (ORDERGRAPH_MAX_COST), which would never be executed: raise the one, or lower the other", c.Rates.Burst, c.Limits.Cost)
	}
	return nil
}

// tableKey is the cursor key of a server without a secret. It depends on the table only, so that
// cursors outlive a restart and work behind several servers.
func tableKey(table string) []byte {
	key := sha256.Sum256([]byte("ordergraph cursors of table " + table))
	return key[:]
}

func isOrigin(text string) bool { return text == "*" || originName.MatchString(text) }

// isHostName reports whether text is the name of a host, with or without a port.
func isHostName(text string) bool {
	name, port, _ := strings.Cut(strings.ToLower(text), ":")
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && strings.Trim(port, "0123456789") == ""
}

func parseCurrency(text string) (commerce.Currency, bool) {
	c, err := commerce.ParseCurrency(text)
	return c, err == nil
}

func parseLevel(text string) (slog.Level, bool) {
	var level slog.Level
	err := level.UnmarshalText([]byte(text))
	return level, err == nil
}

// Getenv reads a variable of this process.
func Getenv(name string) string { return os.Getenv(name) }
