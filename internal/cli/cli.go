// Package cli is the command line: it puts the parts together and runs them.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/embedded"
	"github.com/ordergraph/ordergraph/internal/pacing"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/server"
)

// Environment is what a command has of the world.
type Environment struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	// Listening, where it is set, is told the address that a server listens on.
	Listening func(net.Addr)
}

// Exit statuses.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// usageError says what is wrong with the command's words.
type usageError struct{ problem string }

func (e usageError) Error() string { return e.problem }

// Run runs the command that args are, without the program's name, until it is done or ctx ends. It
// returns the exit status: 0, 1 where it failed, 2 where args are wrong; check has others.
func Run(ctx context.Context, args []string, env Environment) int {
	err := run(ctx, args, env)
	var wrong usageError
	var status *statusError
	var help *helpWanted
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &help):
		printCommandHelp(env.Stdout, help.set)
		return exitOK
	case errors.Is(err, flag.ErrHelp):
		printUsage(env.Stdout)
		return exitOK
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) && !errors.As(err, &status):
		fmt.Fprintln(env.Stderr, "ordergraph: interrupted")
		return exitFailed
	case errors.As(err, &wrong):
		fmt.Fprintf(env.Stderr, "ordergraph: %s; see ordergraph help\n", wrong.problem)
		return exitUsage
	case errors.As(err, &status):
		if status.err != nil {
			fmt.Fprintf(env.Stderr, "ordergraph: %s\n", explainFailure(status.err, env.Getenv))
		}
		return status.status
	default:
		fmt.Fprintf(env.Stderr, "ordergraph: %s\n", explainFailure(err, env.Getenv))
		return exitFailed
	}
}

func run(ctx context.Context, args []string, env Environment) error {
	command := "serve"
	if len(args) > 0 && isHelp(args[0]) {
		return flag.ErrHelp
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	if command == "help" {
		if len(args) == 0 || args[0] == "help" || isHelp(args[0]) {
			return flag.ErrHelp
		}
		command, args = args[0], []string{"-h"}
	}
	for _, c := range commands() {
		if c.name == command {
			return c.run(ctx, args, env)
		}
	}
	return usageError{fmt.Sprintf("there is no command %q", command)}
}

func isHelp(word string) bool { return word == "-h" || word == "-help" || word == "--help" }

// flags parses the flags of a command and puts the words behind them, at most most, into words.
func flags(command string, args []string, most int, define func(*flag.FlagSet), words *[]string) error {
	set := flag.NewFlagSet(command, flag.ContinueOnError)
	if define != nil {
		define(set)
	}
	if err := parseFlags(set, args); err != nil {
		return err
	}
	if most > 0 && define != nil && slices.ContainsFunc(set.Args()[min(1, set.NArg()):], isFlag) {
		return usageError{fmt.Sprintf("%s: flags stand before FILE", command)}
	}
	if set.NArg() > most {
		return usageError{fmt.Sprintf("%s takes no %q", command, set.Arg(most))}
	}
	if words != nil {
		*words = set.Args()
	}
	return nil
}

// flagsAnywhere is flags, for a command whose flags may stand before, between and behind its words.
func flagsAnywhere(command string, args []string, most int, define func(*flag.FlagSet), words *[]string) error {
	set := flag.NewFlagSet(command, flag.ContinueOnError)
	define(set)
	for {
		if err := parseFlags(set, args); err != nil {
			return err
		}
		if set.NArg() == 0 {
			return nil
		}
		if len(*words) == most {
			return usageError{fmt.Sprintf("%s takes no %q", command, set.Arg(0))}
		}
		*words = append(*words, set.Arg(0))
		args = set.Args()[1:]
	}
}

// parseFlags parses the flags up to the first word that is none.
func parseFlags(set *flag.FlagSet, args []string) error {
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return &helpWanted{set}
	}
	if err != nil {
		return usageError{fmt.Sprintf("%s: %v", set.Name(), err)}
	}
	return nil
}

func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// tableError is an error of a command that works on a table.
type tableError struct {
	table string
	err   error
}

func (e *tableError) Error() string { return e.err.Error() }

func (e *tableError) Unwrap() error { return e.err }

// onTable says which table an error is about; nil stays nil.
func onTable(cfg config.Config, err error) error {
	if err == nil {
		return nil
	}
	return &tableError{table: cfg.Table.Table, err: err}
}

// explainFailure is what to tell people of an error: one sentence that says what to change where
// there is one, else the error.
func explainFailure(err error, getenv func(string) string) string {
	name := ""
	if e := (*tableError)(nil); errors.As(err, &e) {
		name = e.table
	}
	wrong, clock := (*table.ShardsError)(nil), (*table.ClockError)(nil)
	switch {
	case errors.As(err, &wrong):
		return fmt.Sprintf("table %s was written with another number of shards than ORDERGRAPH_SHARDS=%d (it has records under %s): set ORDERGRAPH_SHARDS to the number that it was written with", name, wrong.Shards, wrong.Under())
	case errors.Is(err, table.ErrNoTable):
		return fmt.Sprintf("table %s does not exist: make it with `ordergraph table create`, or name another with ORDERGRAPH_TABLE", name)
	case errors.Is(err, table.ErrTableMismatch):
		return fmt.Sprintf("table %s: %v; name another with ORDERGRAPH_TABLE, and make it with `ordergraph table create`", name, err)
	case errors.Is(err, table.ErrOtherStream):
		return fmt.Sprintf("table %s: %v: turn that off (aws dynamodb update-table --table-name %s --stream-specification StreamEnabled=false) and run `ordergraph table create` again; its readers have to change to the new one", name, err, name)
	case errors.Is(err, table.ErrAccessDenied):
		return fmt.Sprintf("DynamoDB refuses the credentials: check AWS_ACCESS_KEY_ID, AWS_PROFILE or the role, and its policy (%s)", reason(err))
	case errors.As(err, &clock):
		return fmt.Sprintf("the clock of this machine is %s DynamoDB's, and what is written has its time: set the clock, and run the command again", clock.Difference())
	case errors.Is(err, table.ErrUnavailable):
		where := ""
		if endpoint := getenv("AWS_ENDPOINT_URL_DYNAMODB"); endpoint != "" {
			where = " at " + endpoint
		}
		return fmt.Sprintf("DynamoDB cannot be reached%s: check AWS_REGION and AWS_ENDPOINT_URL_DYNAMODB (%s)", where, reason(err))
	default:
		return err.Error()
	}
}

// reason is what stands at the bottom of an error: what the network or DynamoDB said.
func reason(err error) string {
	if errors.Is(err, table.ErrNotDynamoDB) {
		return "what answers there is not DynamoDB"
	}
	if said := (interface{ ErrorMessage() string })(nil); errors.As(err, &said) && said.ErrorMessage() != "" {
		return said.ErrorMessage()
	}
	if network := (*net.OpError)(nil); errors.As(err, &network) {
		return network.Error()
	}
	return err.Error()
}

// open returns the order book on DynamoDB; the embedded store has nothing that outlives the
// command.
func open(ctx context.Context, command string, env Environment) (*dynamo.Store, config.Config, error) {
	store, _, cfg, err := openWithStream(ctx, command, env, nil)
	return store, cfg, err
}

// openWithStream is open, and where the table's changes are told. log is the store's.
func openWithStream(ctx context.Context, command string, env Environment, log *slog.Logger) (*dynamo.Store, feed.Source, config.Config, error) {
	cfg, err := config.Read(env.Getenv)
	if err != nil {
		return nil, nil, cfg, err
	}
	if cfg.Store == config.Embedded {
		return nil, nil, cfg, fmt.Errorf("%s works on DynamoDB, the embedded store lives only while the server runs: set ORDERGRAPH_STORE=%s", command, config.DynamoDB)
	}
	db, streams, err := config.OpenDynamoDB(ctx)
	if err != nil {
		return nil, nil, cfg, err
	}
	opts := cfg.Table
	opts.Log = log
	store, err := dynamo.New(db, opts)
	return store, feed.Streamed(streams, feed.StreamOptions{}), cfg, err
}

// startTimeout is how long the checks at the start may take.
const startTimeout = 30 * time.Second

func serve(ctx context.Context, args []string, env Environment) error {
	addr := ""
	err := flags("serve", args, 0, func(set *flag.FlagSet) {
		set.StringVar(&addr, "addr", "", "the address to listen on, such as :8080 for all addresses of the machine; without it PORT says the port")
	}, nil)
	if err != nil {
		return err
	}
	cfg, err := config.Read(env.Getenv)
	if err != nil {
		return err
	}
	if addr != "" {
		cfg.Addr = addr
	}
	if _, _, err := net.SplitHostPort(cfg.Addr); err != nil {
		return usageError{fmt.Sprintf("-addr %q is no address: give HOST:PORT, such as :8080", cfg.Addr)}
	}
	if err := checkServing(cfg); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(env.Stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	if cfg.AuthAlias {
		log.Warn("AUTH is deprecated: set ORDERGRAPH_AUTH instead")
	}
	cfg.Pacing.Memory = pacing.ContainerMemory()
	defer pacing.Start(cfg.Pacing)()
	store, source, err := openForServing(ctx, cfg, env, log)
	if err != nil {
		return err
	}
	opts := graph.Options{Store: store, Cursors: paging.NewCursors(cfg.CursorKey), Limits: cfg.Limits, Rates: cfg.Rates, NoIntrospection: !cfg.Introspection}
	pools := admission.New(cfg.Pools)
	opts.Feed = store.OpenFeed(source, feed.Options{Log: log, Reading: pools.CatchingUp})
	defer opts.Feed.Close()
	trusted, err := trust(cfg, &opts, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends what reads the keys of tokens
	serving := server.Options{Graph: opts, Origins: cfg.Origins, Hosts: cfg.Hosts, Limits: cfg.Serving, Admission: pools, Weights: cfg.Weights, Log: log}
	if err := authenticate(ctx, cfg, &serving); err != nil {
		return err
	}
	handler, err := server.New(serving)
	if err != nil {
		return err
	}
	if err := trusted(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken: something else listens there; choose another port with -addr or PORT", cfg.Addr)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", cfg.Addr, err)
	}
	welcome(env.Stdout, cfg, listener.Addr())
	if env.Listening != nil {
		env.Listening(listener.Addr())
	}
	return server.Serve(ctx, listener, handler, serving)
}

// openForServing returns an order book that can be served, as the table is there and fits, and
// where its changes are told.
func openForServing(ctx context.Context, cfg config.Config, env Environment, log *slog.Logger) (*dynamo.Store, feed.Source, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if cfg.Store == config.DynamoDB {
		store, source, _, err := openWithStream(ctx, "serve", env, log)
		if err != nil {
			return nil, nil, err
		}
		if err := store.Check(ctx); err != nil {
			return nil, nil, onTable(cfg, err)
		}
		if err := store.BeginCounts(ctx); err != nil {
			log.Warn("it is not known whether orders are counted by status", "table", cfg.Table.Table, "error", err)
		}
		// All else works without; when the stream is turned on, subscriptions work without a
		// restart.
		if err := store.CheckStream(ctx); err != nil {
			log.Warn("subscriptions are not served", "table", cfg.Table.Table, "error", err)
		}
		if why := store.LongWay(); why != "" {
			log.Info("all requests to DynamoDB go through the AWS SDK, which costs more CPU time than the fast path", "reason", why)
		}
		return store, source, nil
	}
	book, err := sampledata.Sample()
	if err != nil {
		return nil, nil, err
	}
	engine := embedded.New()
	store, err := dynamo.New(engine.Client(), cfg.Table)
	if err != nil {
		return nil, nil, err
	}
	if err := store.CreateTable(ctx); err != nil {
		return nil, nil, err
	}
	_, err = store.Load(ctx, book)
	return store, feed.Observed(engine), err
}

// welcome says where the server is and what to try.
func welcome(w io.Writer, cfg config.Config, addr net.Addr) {
	base := "http://" + reachable(addr)
	fmt.Fprintf(w, "Ordergraph is ready.\n\n  GraphQL   %s%s\n  GraphiQL  %s/\n  Health    %s%s  %s%s\n", base, server.PathGraphQL, base, base, server.PathHealth, base, server.PathReady)
	if cfg.Store == config.Embedded {
		fmt.Fprint(w, "  Store     in memory, with sample data; it is gone when the server stops\n")
	} else {
		fmt.Fprintf(w, "  Store     DynamoDB table %s\n", cfg.Table.Table)
	}
	bearer := ""
	if cfg.Auth == config.AuthJWT {
		bearer = "-H \"Authorization: Bearer $TOKEN\" "
		fmt.Fprintf(w, "  Access    with a token of %s\n", cfg.JWT.Issuer)
		if cfg.Anonymous {
			fmt.Fprint(w, "            without one, products only\n")
		}
	} else {
		fmt.Fprintf(w, "  Access    %s\n", openTo(addr))
	}
	if cfg.TrustedOnly {
		fmt.Fprintf(w, "  Documents only those of %s are executed\n", cfg.Documents)
		return // the command below would be refused
	}
	fmt.Fprint(w, "\nTry:\n\n")
	if bearer != "" {
		key := " -key FILE" // whose public part is in the JWKS
		if cfg.JWT.Secret != nil {
			key = ""
		}
		fmt.Fprintf(w, "  TOKEN=$(ordergraph token -role ADMIN%s)   # in development, with the server's ORDERGRAPH_AUTH and ORDERGRAPH_JWT variables\n", key)
	}
	fmt.Fprintf(w, `  curl -s %s%s %s-H 'Content-Type: application/json' -H '%s: true' \
    -d '{"query":"{ customer(id: \"cust_01\") { name orders(first: 10) { nodes { id status total { amount } items { nodes { name quantity } } } } } }"}'
`, base, server.PathGraphQL, bearer, server.ExplainHeader)
}

// openTo says who can use a server without authentication.
func openTo(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return fmt.Sprintf("open to this machine only: every program on it can read and change everything; -addr :%d opens it to others", tcp.Port)
	}
	return "open: everyone who reaches the server can read and change everything"
}

// reachable is an address that a browser on this machine can use.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return fmt.Sprintf("localhost:%d", tcp.Port)
}

func tableCommand(ctx context.Context, args []string, env Environment) error {
	var words []string
	if err := flags("table", args, 1, nil, &words); err != nil {
		return err
	}
	if len(words) == 0 || words[0] != "create" && words[0] != "describe" {
		return usageError{"table: say create or describe"}
	}
	store, cfg, err := open(ctx, "table "+words[0], env)
	if err != nil {
		return err
	}
	if words[0] == "create" {
		err := create(ctx, store, cfg, env)
		if err != nil && ctx.Err() != nil {
			return errors.New("table create: interrupted; run it again")
		}
		return err
	}
	d, err := store.DescribeTable(ctx)
	if err != nil {
		return onTable(cfg, err)
	}
	fmt.Fprintf(env.Stdout, "table    %s\nstatus   %s\nrecords  %d (DynamoDB's estimate)\nbytes    %d (DynamoDB's estimate)\n", d.Name, d.Status, d.Records, d.Bytes)
	if d.Expires {
		fmt.Fprint(env.Stdout, "expiry   on: idempotency records go when they have expired\n")
	} else {
		fmt.Fprint(env.Stdout, "expiry   off: idempotency records stay for ever; `ordergraph table create` turns it on\n")
	}
	if d.Followable == nil {
		fmt.Fprint(env.Stdout, "stream   on: subscriptions are told what changes\n")
	} else {
		fmt.Fprintf(env.Stdout, "stream   off: no subscriptions (%v)\n", d.Followable)
	}
	err = d.Mismatch()
	if err == nil {
		fmt.Fprint(env.Stdout, "fits     yes\n")
		return nil
	}
	fmt.Fprint(env.Stdout, "fits     no\n")
	return onTable(cfg, err)
}

// create makes the table. One that is there already and fits is as good, so that creating twice
// equals once; what it lacked is told.
func create(ctx context.Context, store *dynamo.Store, cfg config.Config, env Environment) error {
	err := store.CreateTable(ctx)
	if errors.Is(err, table.ErrTableExists) {
		was, err := store.DescribeTable(ctx)
		if err == nil {
			err = was.Mismatch()
		}
		if err != nil {
			return onTable(cfg, err)
		}
		if err := store.EnableExpiry(ctx); err != nil {
			return onTable(cfg, err)
		}
		if err := store.EnableStream(ctx); err != nil {
			return onTable(cfg, err)
		}
		fmt.Fprintf(env.Stdout, "Table %s already exists, and fits the model.\n", cfg.Table.Table)
		if !was.Expires {
			fmt.Fprint(env.Stdout, "Expiry is on now: idempotency records go when they have expired.\n")
		}
		if was.Followable != nil {
			fmt.Fprint(env.Stdout, "Its stream is on now: subscriptions are told what changes.\n")
		}
		return nil
	}
	if err != nil {
		return onTable(cfg, err)
	}
	fmt.Fprintf(env.Stdout, "Table %s is ready. Load the sample data with `ordergraph seed`.\n", cfg.Table.Table)
	return nil
}

func patterns(_ context.Context, args []string, env Environment) error {
	asMarkdown := false
	err := flags("patterns", args, 0, func(set *flag.FlagSet) {
		set.BoolVar(&asMarkdown, "markdown", false, "as the table in docs/data-model.md")
	}, nil)
	if err != nil {
		return err
	}
	if asMarkdown {
		fmt.Fprint(env.Stdout, bound.PatternsMarkdown(graph.Schema()))
		return nil
	}
	tab := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	for _, p := range model.AccessPatterns() {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", p.ID, p.What, markdown.Request(p), markdown.ReadKeys(p))
	}
	for _, p := range model.WritePatterns() {
		fmt.Fprintf(tab, "%s\t%s\tTransactWriteItems\t%s\n", p.ID, p.Mutation, markdown.Records(p))
	}
	return tab.Flush()
}
