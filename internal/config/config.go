// Package config reads the environment, which no other package does.
package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/pacing"
	"github.com/ordergraph/ordergraph/internal/server"
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
	// Serving bounds what the server takes on.
	Serving server.Limits
	// Introspection tells whether clients may ask for the schema.
	Introspection bool
	// Documents is the file of the manifest of trusted documents, empty where there is none.
	Documents string
	// TrustedOnly tells that nothing but trusted documents is executed.
	TrustedOnly bool
	// Auth is AuthNone or AuthJWT; empty where the operator has yet to choose.
	Auth string
	// AuthAlias reports that the deprecated variable AUTH chose it.
	AuthAlias bool
	// JWT says what tokens are checked against, with AuthJWT.
	JWT auth.Options
	// Pacing decides when Go's garbage collector collects; it has no Memory.
	Pacing pacing.Options
	// LogLevel is the least level that is logged.
	LogLevel slog.Level
}

// minCursorKey is the least length of a key that is a secret worth the name.
const minCursorKey = 16

// tableName is DynamoDB's rule for names of tables.
var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

// originName is an origin as browsers send it: scheme, host and, if it is not the scheme's own,
// port. A star in it stands for any characters.
var originName = regexp.MustCompile(`^(?i)[a-z][a-z0-9+.-]*://[^/?#@\s]+$`)

// Variable is a variable of the environment that the server reads.
type Variable struct{ Name, Default, Meaning string }

// Variables lists them; the AWS SDK reads its own besides.
func Variables() []Variable {
	variables := []Variable{
		{"PORT", "8080", "the port to listen on, where `-addr` is not given: on all addresses with `jwt`, else on 127.0.0.1 only"},
		{"ORDERGRAPH_STORE", Embedded, "`embedded` (in memory, with sample data) or `dynamodb`"},
		{"ORDERGRAPH_TABLE", "ordergraph", "the table's name"},
		{"ORDERGRAPH_SHARDS", "1", "over how many partition keys each busy list is spread; a property of the table, the same for all who use it"},
		{"ORDERGRAPH_CURRENCY", "USD", "the currency of records that name none"},
		{"ORDERGRAPH_CURSOR_KEY", "", "the secret that signs cursors, 16 characters or more, the same for all servers, such as `openssl rand -hex 32` makes; required with `jwt`; else it defaults to a key made of the table's name, which guards against mistakes, not against forgers"},
		{"ORDERGRAPH_CORS_ORIGINS", "", "origins, separated by commas, whose pages may call the API from a browser"},
		{"ORDERGRAPH_ALLOWED_HOSTS", "", "without authentication: host names, separated by commas, by which clients may call the server, besides `localhost`, names below `.localhost` and IP addresses; ports do not matter"},
		{"ORDERGRAPH_LOG", "info", "`debug` (every request), `info`, `warn` or `error`"},
		{"GOGC", "", "when the garbage collector runs, as [Go's runtime](https://go.dev/doc/gc-guide#GOGC) reads it; without it, and without `GOMEMLIMIT`, the heap is collected when it has doubled and grown by 8 MiB besides"},
		{"GOMEMLIMIT", "", "the memory that the runtime stays within, as [it](https://go.dev/doc/gc-guide#Memory_limit) reads it; without it 90 % of the container's, where that has a limit"},
		{"ORDERGRAPH_INTROSPECTION", "on", "`on`, or `off`: clients cannot ask for the schema; gateways still get the subgraph's"},
		{"ORDERGRAPH_DOCUMENTS", "", "the file of a manifest of trusted documents, as Apollo's or Relay's tool writes it"},
		{"ORDERGRAPH_TRUSTED_ONLY", "off", "`on`: nothing but trusted documents is executed"},
		{rateBurst, "", fmt.Sprintf("how many points of cost each caller can spend at once, `0` for no limit; without it `%d` where callers say who they are, else `0`", rate.DefaultOptions().Burst)},
	}
	variables = append(variables, authVariables()...)
	var c Config
	for _, n := range c.numbers() {
		variables = append(variables, Variable{n.name, strconv.Itoa(n.standard), n.meaning})
	}
	for _, d := range c.durations() {
		variables = append(variables, Variable{d.name, d.standard.String(), d.meaning})
	}
	return variables
}

// number is a variable that holds a whole number of at least 1.
type number struct {
	name     string
	to       *int
	standard int
	meaning  string
}

// numbers are the variables that hold numbers, and where they go.
func (c *Config) numbers() []number {
	asked, serving := document.DefaultLimits(), server.DefaultLimits()
	return []number{
		{"ORDERGRAPH_MAX_TOKENS", &c.Limits.Tokens, asked.Tokens, "how many tokens a document can have"},
		{"ORDERGRAPH_MAX_DEPTH", &c.Limits.Depth, asked.Depth, "how many fields can stand inside one another"},
		{"ORDERGRAPH_MAX_ALIASES", &c.Limits.Aliases, asked.Aliases, "how many fields can have an alias"},
		{"ORDERGRAPH_MAX_ROOT_FIELDS", &c.Limits.RootFields, asked.RootFields, "how many fields an operation can have at its root"},
		{"ORDERGRAPH_MAX_DIRECTIVES", &c.Limits.Directives, asked.Directives, "how many directives a document can have"},
		{"ORDERGRAPH_MAX_LIST_DEPTH", &c.Limits.ListDepth, asked.ListDepth, "how many lists and objects can stand inside one another in a value"},
		{"ORDERGRAPH_MAX_INTROSPECTION_DEPTH", &c.Limits.IntrospectionDepth, asked.IntrospectionDepth, "how many lists of the schema can stand inside one another"},
		{"ORDERGRAPH_MAX_COST", &c.Limits.Cost, asked.Cost, "how much an operation can cost"},
		{"ORDERGRAPH_MAX_CONCURRENT_COST", &c.Limits.ConcurrentCost, asked.ConcurrentCost, "how much the operations can cost together that are executed at once; more are answered 503"},
		{"ORDERGRAPH_MAX_REQUESTS", &c.Limits.Requests, asked.Requests, "how many requests that read one operation can make of DynamoDB"},
		{"ORDERGRAPH_MAX_ANSWER", &c.Limits.Answer, asked.Answer, "how many bytes the data of an answer can have"},
		{"ORDERGRAPH_RATE_RESTORE", &c.Rates.Restore, rate.DefaultOptions().Restore, "how many points of cost come back to each caller in a second, where `ORDERGRAPH_RATE_BURST` is not 0"},
		{"ORDERGRAPH_MAX_BODY", &c.Serving.Body, serving.Body, "how many bytes a request's body can have"},
		{"ORDERGRAPH_MAX_CONCURRENT", &c.Serving.Concurrent, serving.Concurrent, "how many requests are worked on at once; more are answered 503"},
		{"ORDERGRAPH_MAX_CONNECTIONS", &c.Serving.Connections, serving.Connections, "how many connections are open at once; more wait"},
		{"ORDERGRAPH_MAX_SUBSCRIPTIONS", &c.Serving.Subscriptions, serving.Subscriptions, "how many subscriptions, and other operations on WebSockets, are under way at once"},
		{"ORDERGRAPH_MAX_SOCKET_SUBSCRIPTIONS", &c.Serving.SocketSubscriptions, serving.SocketSubscriptions, "how many of them on one WebSocket"},
		{"ORDERGRAPH_MAX_WAITING", &c.Serving.Waiting, serving.Waiting, "how many bytes of long bodies wait to arrive, and how many of long answers to be read; more are answered 503"},
	}
}

// duration is a variable that holds a span of time.
type duration struct {
	name     string
	to       *time.Duration
	standard time.Duration
	meaning  string
}

// durations are the variables that hold spans of time, and where they go.
func (c *Config) durations() []duration {
	serving := server.DefaultLimits()
	return []duration{
		{"ORDERGRAPH_REQUEST_TIMEOUT", &c.Serving.RequestTime, serving.RequestTime, "how long a request can take, once it has arrived"},
		{"ORDERGRAPH_HEADER_TIMEOUT", &c.Serving.HeaderTime, serving.HeaderTime, "how long a request's headers can take to arrive"},
		{"ORDERGRAPH_BODY_TIMEOUT", &c.Serving.BodyTime, serving.BodyTime, "how long a request's body can take to arrive"},
		{"ORDERGRAPH_INIT_TIMEOUT", &c.Serving.InitTime, serving.InitTime, "how long a WebSocket can take until it has said who uses it (`connection_init`)"},
		{"ORDERGRAPH_KEEP_ALIVE", &c.Serving.KeepAlive, serving.KeepAlive, "how often WebSockets are pinged; one that answers nothing until the next ping is cut. Streams of events get a comment when they have been silent for so long"},
		{"ORDERGRAPH_ANSWER_TIMEOUT", &c.Serving.AnswerTime, serving.AnswerTime, "how long a client can take to read an answer"},
	}
}

// Read reads the environment through getenv.
//
// Errors: one that names the variable and says what to change.
func Read(getenv func(string) string) (Config, error) {
	value := func(name string) string {
		if v := getenv(name); v != "" {
			return v
		}
		for _, v := range Variables() {
			if v.Name == name {
				return v.Default
			}
		}
		return ""
	}
	c := Config{Store: value("ORDERGRAPH_STORE"), Pacing: pacing.Options{GOGC: value("GOGC"), GOMEMLIMIT: value("GOMEMLIMIT")}}
	if c.Store != Embedded && c.Store != DynamoDB {
		return c, fmt.Errorf("ORDERGRAPH_STORE is %q: set it to %s or %s", c.Store, Embedded, DynamoDB)
	}
	if port, err := strconv.Atoi(value("PORT")); err != nil || port < 0 || port > 65535 {
		return c, fmt.Errorf("PORT is %q: set it to a number from 0 to 65535", value("PORT"))
	}
	shards, err := strconv.Atoi(value("ORDERGRAPH_SHARDS"))
	if err != nil || shards < 1 || shards > dynamo.MaxShards {
		return c, fmt.Errorf("ORDERGRAPH_SHARDS is %q: set it to a number from 1 to %d", value("ORDERGRAPH_SHARDS"), dynamo.MaxShards)
	}
	currency, err := commerce.ParseCurrency(value("ORDERGRAPH_CURRENCY"))
	if err != nil {
		return c, fmt.Errorf("ORDERGRAPH_CURRENCY %w", err)
	}
	if !tableName.MatchString(value("ORDERGRAPH_TABLE")) {
		return c, fmt.Errorf("ORDERGRAPH_TABLE is %q: a table's name has 3 to 255 characters of A-Z a-z 0-9 _ - and point", value("ORDERGRAPH_TABLE"))
	}
	c.Table = dynamo.Options{Table: value("ORDERGRAPH_TABLE"), Shards: shards, Currency: currency}
	if c.CursorKey, err = cursorKey(value("ORDERGRAPH_CURSOR_KEY"), c.Table.Table); err != nil {
		return c, err
	}
	for origin := range strings.SplitSeq(value("ORDERGRAPH_CORS_ORIGINS"), ",") {
		if origin = strings.TrimSpace(origin); origin != "" {
			if origin != "*" && !originName.MatchString(origin) {
				return c, fmt.Errorf("ORDERGRAPH_CORS_ORIGINS has %q, which no browser sends: set it to origins like https://shop.example.com or http://localhost:3000, without a path or a slash at the end, or to * for all", origin)
			}
			c.Origins = append(c.Origins, origin)
		}
	}
	for host := range strings.SplitSeq(value("ORDERGRAPH_ALLOWED_HOSTS"), ",") {
		if host = strings.TrimSpace(host); host != "" {
			if !isHostName(host) {
				return c, fmt.Errorf("ORDERGRAPH_ALLOWED_HOSTS has %q, which is not a host name: set it to names like orders.example.com, separated by commas", host)
			}
			c.Hosts = append(c.Hosts, host)
		}
	}
	if err := c.LogLevel.UnmarshalText([]byte(value("ORDERGRAPH_LOG"))); err != nil {
		return c, fmt.Errorf("ORDERGRAPH_LOG is %q: set it to debug, info, warn or error", value("ORDERGRAPH_LOG"))
	}
	if err := c.readAuth(value); err != nil {
		return c, err
	}
	c.Addr = net.JoinHostPort("127.0.0.1", value("PORT"))
	if c.Auth == AuthJWT {
		c.Addr = ":" + value("PORT")
		if value("ORDERGRAPH_CURSOR_KEY") == "" {
			c.CursorKey = nil
		}
	}
	return c, c.readLimits(value)
}

// isHostName reports whether text is the name of a host, with a port or without.
func isHostName(text string) bool {
	name, port, _ := strings.Cut(strings.ToLower(text), ":")
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && strings.Trim(port, "0123456789") == ""
}

// readLimits reads the limits and the switches.
func (c *Config) readLimits(value func(string) string) error {
	for _, n := range c.numbers() {
		v, err := strconv.Atoi(value(n.name))
		if err != nil || v < 1 || v > math.MaxInt32 {
			return fmt.Errorf("%s is %q: set it to a number from 1 to %d", n.name, value(n.name), math.MaxInt32)
		}
		*n.to = v
	}
	if err := c.readBurst(value(rateBurst)); err != nil {
		return err
	}
	for _, d := range c.durations() {
		v, err := time.ParseDuration(value(d.name))
		if err != nil || v <= 0 {
			return fmt.Errorf("%s is %q: set it to a span of time such as 10s or 1m30s", d.name, value(d.name))
		}
		*d.to = v
	}
	for name, to := range map[string]*bool{"ORDERGRAPH_INTROSPECTION": &c.Introspection, "ORDERGRAPH_TRUSTED_ONLY": &c.TrustedOnly} {
		switch value(name) {
		case "on":
			*to = true
		case "off":
		default:
			return fmt.Errorf("%s is %q: set it to on or off", name, value(name))
		}
	}
	c.Documents = value("ORDERGRAPH_DOCUMENTS")
	if c.TrustedOnly && c.Documents == "" {
		return errors.New("ORDERGRAPH_TRUSTED_ONLY is on, and there are no trusted documents: set ORDERGRAPH_DOCUMENTS to their manifest")
	}
	return nil
}

const rateBurst = "ORDERGRAPH_RATE_BURST"

// readBurst reads how many points a bucket holds, once the other limits and who is asked are read.
// Where nobody is asked who they are, all share one bucket, so that a limit is none but where it is
// asked for.
func (c *Config) readBurst(text string) error {
	if text == "" {
		if c.Auth == AuthJWT {
			c.Rates.Burst = max(rate.DefaultOptions().Burst, c.Limits.Cost)
		}
		return nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 0 || v > math.MaxInt32 {
		return fmt.Errorf("%s is %q: set it to a number from 1 to %d, or to 0 for no limit", rateBurst, text, math.MaxInt32)
	}
	if v > 0 && v < c.Limits.Cost {
		return fmt.Errorf("%s is %d, and an operation can cost %d (ORDERGRAPH_MAX_COST), which would never be executed: raise the one, or lower the other", rateBurst, v, c.Limits.Cost)
	}
	c.Rates.Burst = v
	return nil
}

// cursorKey is the key for cursors. Without a secret it is made of what all servers of a table
// share, so that cursors outlive a restart and work behind several servers.
func cursorKey(secret, table string) ([]byte, error) {
	if secret == "" {
		key := sha256.Sum256([]byte("ordergraph cursors of table " + table))
		return key[:], nil
	}
	if len(secret) < minCursorKey {
		return nil, fmt.Errorf("ORDERGRAPH_CURSOR_KEY has %d characters: give it at least %d", len(secret), minCursorKey)
	}
	return []byte(secret), nil
}

// Getenv reads a variable of this process.
func Getenv(name string) string { return os.Getenv(name) }
