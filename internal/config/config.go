// Package config reads the environment, which no other package does.
package config

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
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
	// Addr is where to listen, host:port.
	Addr string
	// Store is Embedded or DynamoDB.
	Store string
	// Table says which table and how it is laid out.
	Table dynamo.Options
	// CursorKey signs cursors.
	CursorKey []byte
	// Origins are the browsers' origins that may use the API from another site, none by default.
	Origins []string
	// LogLevel is the least level that is logged.
	LogLevel slog.Level
}

// minCursorKey is the least length of a key that is a secret worth the name.
const minCursorKey = 16

// tableName is DynamoDB's rule for names of tables.
var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

// Variable is a variable of the environment that the server reads.
type Variable struct{ Name, Default, Meaning string }

// Variables lists them; the AWS SDK reads its own besides.
func Variables() []Variable {
	return []Variable{
		{"PORT", "8080", "the port to listen on, where `-addr` is not given"},
		{"ORDERGRAPH_STORE", Embedded, "`embedded` (in memory, with sample data) or `dynamodb`"},
		{"ORDERGRAPH_TABLE", "ordergraph", "the table's name"},
		{"ORDERGRAPH_SHARDS", "1", "over how many partition keys each busy list is spread; a property of the table, the same for all who use it"},
		{"ORDERGRAPH_CURRENCY", "USD", "the currency of records that name none"},
		{"ORDERGRAPH_CURSOR_KEY", "", "the secret that signs cursors, 16 characters or more, the same for all servers; without it the table's name makes a key that guards against mistakes, not against forgers"},
		{"ORDERGRAPH_CORS_ORIGINS", "", "origins, separated by commas, whose pages may call the API from a browser"},
		{"ORDERGRAPH_LOG", "info", "`debug` (every request), `info`, `warn` or `error`"},
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
	c := Config{Addr: ":" + value("PORT"), Store: value("ORDERGRAPH_STORE")}
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
			c.Origins = append(c.Origins, origin)
		}
	}
	if err := c.LogLevel.UnmarshalText([]byte(value("ORDERGRAPH_LOG"))); err != nil {
		return c, fmt.Errorf("ORDERGRAPH_LOG is %q: set it to debug, info, warn or error", value("ORDERGRAPH_LOG"))
	}
	return c, nil
}

// cursorKey is the key for cursors. Without a secret it is made of what all servers of a table share, so that cursors
// outlive a restart and work behind several servers.
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
