// Package cli implements the commands of the program ordergraph. Each command reads the
// configuration and calls the packages that do its work.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/admin"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/gctuning"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// Environment contains the parts of the process that a command uses, such as standard output.
type Environment struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv returns the value of an environment variable. Environ returns all variables in the form
	// NAME=value. If Environ is nil, there are no warnings about misspelled variables.
	Getenv  func(string) string
	Environ func() []string
	// OnListening, if not nil, is called with the server's address when the server accepts
	// connections.
	OnListening func(net.Addr)
	// AfterFunc calls f in its own goroutine after the duration d. The function stop cancels the call,
	// and reports whether it was still pending. Commands use AfterFunc for periodic work, such as
	// reading files with secrets again. If AfterFunc is nil, they use time.AfterFunc.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// IndexLag is check.Options.IndexLag for the command check.
	IndexLag time.Duration

	// closers contains one function for each store that the command has opened. When the command has
	// ended, run calls these functions to close the stores.
	closers *[]func() error
	// flags maps the name of a setting's environment variable to the value of the setting's flag.
	flags map[string]string
}

// Exit statuses of the program. The command check also uses exitIncomplete.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// usageError is the error for invalid arguments.
type usageError struct{ problem string }

func (e usageError) Error() string { return e.problem }

// Run runs the command in args, which do not include the program's name. Run returns the exit
// status: 0 for success, 1 for failure, 2 for invalid arguments, or exitIncomplete.
func Run(ctx context.Context, args []string, env Environment) int {
	err := run(ctx, args, env)
	var usage usageError
	var invalid *config.InvalidError
	var status *exitStatusError
	var help *helpRequestedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &help):
		printCommandHelp(env.Stdout, help.flags)
		return exitOK
	case errors.Is(err, flag.ErrHelp):
		printUsage(env.Stdout)
		return exitOK
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) && !errors.As(err, &status):
		fmt.Fprintln(env.Stderr, "ordergraph: interrupted")
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(env.Stderr, "ordergraph: %s; see `ordergraph help`\n", usage.problem)
		return exitUsage
	case errors.As(err, &status):
		if status.err != nil {
			fmt.Fprintf(env.Stderr, "ordergraph: %s\n", describeError(status.err, env.Getenv))
		}
		return status.status
	case errors.As(err, &invalid) && invalid.FromFlag:
		fmt.Fprintf(env.Stderr, "ordergraph: %s; see `ordergraph help config`\n", err)
		return exitUsage
	default:
		fmt.Fprintf(env.Stderr, "ordergraph: %s\n", describeError(err, env.Getenv))
		return exitFailed
	}
}

func run(ctx context.Context, args []string, env Environment) error {
	command := "serve"
	if len(args) == 0 && env.Getenv(lambdaRuntimeAPIVariable) != "" {
		command = "lambda"
	}
	if len(args) > 0 && isHelpFlag(args[0]) {
		return flag.ErrHelp
	}
	if len(args) > 0 && (args[0] == "-version" || args[0] == "--version") {
		args = append([]string{"version"}, args[1:]...)
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	if command == "help" {
		if len(args) == 0 || args[0] == "help" || isHelpFlag(args[0]) {
			return flag.ErrHelp
		}
		command, args = args[0], []string{"-h"}
	}
	var closers []func() error
	env.closers = &closers
	var names []string
	for _, c := range commands() {
		if c.name != command {
			names = append(names, c.name)
			continue
		}
		err := c.run(ctx, args, env)
		for _, closeOpened := range slices.Backward(closers) {
			err = errors.Join(err, closeOpened())
		}
		return err
	}
	return usageError{fmt.Sprintf("unknown command %q", command) + suggestion(command, "", names)}
}

// suggestion returns the end of an error message for an unknown name of a command or flag. If a
// known name is similar, the text suggests this name, with the given prefix.
func suggestion(name, prefix string, known []string) string {
	if similar := config.Similar(name, known); similar != "" {
		return fmt.Sprintf(" (did you mean %s%s?)", prefix, similar)
	}
	return ""
}

func isHelpFlag(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

// parseArgs parses the arguments of a command. All flags must come first. parseArgs stores the
// arguments after the flags in words. The parameter most is the maximum number of these arguments.
func parseArgs(command string, args []string, most int, define func(*flag.FlagSet), words *[]string) error {
	set := flag.NewFlagSet(command, flag.ContinueOnError)
	if define != nil {
		define(set)
	}
	if err := parseFlags(set, args); err != nil {
		return err
	}
	if most > 0 && define != nil && slices.ContainsFunc(set.Args()[min(1, set.NArg()):], isFlag) {
		return usageError{fmt.Sprintf("%s: put flags before FILE", command)}
	}
	if set.NArg() > most {
		return usageError{fmt.Sprintf("%s: unexpected argument %q", command, set.Arg(most))}
	}
	if words != nil {
		*words = set.Args()
	}
	return nil
}

// parseMixedArgs is like parseArgs, but flags can also follow the other arguments.
func parseMixedArgs(command string, args []string, most int, define func(*flag.FlagSet), words *[]string) error {
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
			return usageError{fmt.Sprintf("%s: unexpected argument %q", command, set.Arg(0))}
		}
		*words = append(*words, set.Arg(0))
		args = set.Args()[1:]
	}
}

// parseFlags parses the flags at the beginning of args. It stops at the first argument that is not
// a flag.
func parseFlags(set *flag.FlagSet, args []string) error {
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return &helpRequestedError{set}
	}
	if err != nil {
		problem := fmt.Sprintf("%s: %v", set.Name(), err)
		if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); unknown {
			var names []string
			set.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
			problem += suggestion(name, "-", names)
		}
		return usageError{problem}
	}
	return nil
}

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// tableError adds the table's name to an error.
type tableError struct {
	table string
	// createCommand is the command that creates the table.
	createCommand string
	err           error
}

func (e *tableError) Error() string { return e.err.Error() }

func (e *tableError) Unwrap() error { return e.err }

// withTableName wraps a non-nil error in a tableError.
func withTableName(cfg config.Config, err error) error {
	if err == nil {
		return nil
	}
	create := "ordergraph table create"
	if cfg.Store == config.Embedded {
		create += " -data " + cfg.Data
	}
	return &tableError{table: cfg.Table.Table, createCommand: create, err: err}
}

// describeError returns the message that a command prints for an error. For a known problem, the
// message describes how to fix the problem.
func describeError(err error, getenv func(string) string) string {
	name, create := "", "ordergraph table create"
	if e := (*tableError)(nil); errors.As(err, &e) {
		name, create = e.table, e.createCommand
	}
	shards, clock := (*table.ShardsError)(nil), (*table.ClockError)(nil)
	switch {
	case errors.As(err, &shards):
		return fmt.Sprintf("table %s was written with another number of shards than ORDERGRAPH_SHARDS=%d (its index has the keys %s): set ORDERGRAPH_SHARDS to the table's number of shards", name, shards.Shards, shards.KeyList())
	case errors.Is(err, table.ErrNoTable):
		return fmt.Sprintf("table %s does not exist: create it with %#q, or set ORDERGRAPH_TABLE to another table", name, create)
	case errors.Is(err, table.ErrTableMismatch):
		return fmt.Sprintf("table %s: %v; set ORDERGRAPH_TABLE to another name, create that table with `ordergraph table create`, and convert an export of %s with `ordergraph import -from`", name, err, name)
	case errors.Is(err, table.ErrStreamViewType):
		return fmt.Sprintf("table %s: %v: turn the stream off (aws dynamodb update-table --table-name %s --stream-specification StreamEnabled=false) and run `ordergraph table create` again; other software that reads the stream must then switch to the new stream", name, err, name)
	case errors.Is(err, table.ErrAccessDenied):
		return fmt.Sprintf("DynamoDB rejects the credentials or denies access: check AWS_ACCESS_KEY_ID, AWS_PROFILE or the IAM role, and the IAM policy (%s)", rootMessage(err))
	case errors.As(err, &clock):
		return fmt.Sprintf("the clock of this machine is %s DynamoDB's clock, so records would have the wrong time: set the clock and run the command again", clock.DifferenceText())
	case errors.Is(err, table.ErrUnavailable):
		location := ""
		if endpoint := getenv("AWS_ENDPOINT_URL_DYNAMODB"); endpoint != "" {
			location = " at " + endpoint
		}
		return fmt.Sprintf("DynamoDB cannot be reached%s: check AWS_REGION and AWS_ENDPOINT_URL_DYNAMODB (%s)", location, rootMessage(err))
	default:
		return err.Error()
	}
}

// rootMessage returns the message of the DynamoDB error or network error inside err. If err
// contains neither, rootMessage returns the message of err.
func rootMessage(err error) string {
	if errors.Is(err, table.ErrNotDynamoDB) {
		return "the endpoint is not DynamoDB"
	}
	if api := (interface{ ErrorMessage() string })(nil); errors.As(err, &api) && api.ErrorMessage() != "" {
		return api.ErrorMessage()
	}
	if network := (*net.OpError)(nil); errors.As(err, &network) {
		return network.Error()
	}
	return err.Error()
}

// storeUse describes what a command does if the file of the embedded store does not exist.
type storeUse int

const (
	// useExisting returns an error, because the command only reads records.
	useExisting storeUse = iota
	// createStore creates the file.
	createStore
	// createStoreAndTable creates the file and the table.
	createStoreAndTable
)

// openStore opens the store for a command that reads or writes records. For an embedded store in
// memory, it returns an error: only the server's process can access the data.
func openStore(ctx context.Context, command string, use storeUse, env Environment) (*dynamo.Store, config.Config, error) {
	cfg, err := env.readConfig()
	if err != nil {
		return nil, cfg, err
	}
	isNew := false
	if cfg.Store == config.Embedded {
		if cfg.Data == "" {
			return nil, cfg, fmt.Errorf("%s requires DynamoDB or a file, because the embedded store in memory exists only while the server runs: set ORDERGRAPH_STORE=%s, or name the file with -data", command, config.DynamoDB)
		}
		_, err := os.Stat(cfg.Data)
		if isNew = errors.Is(err, fs.ErrNotExist); isNew && use == useExisting {
			return nil, cfg, fmt.Errorf("%s: the file %s does not exist: name an existing file with -data, or create the file with `ordergraph table create -data %[2]s`", command, cfg.Data)
		}
	}
	store, _, err := openConfiguredStore(ctx, cfg, env, nil)
	if err == nil && isNew && use == createStoreAndTable {
		err = store.CreateTable(ctx)
	}
	return store, cfg, err
}

// openConfiguredStore opens the configured store. It also returns the feed.Source that reports the
// changes in the store to subscriptions. The store writes its log messages to log. If log is nil,
// the caller is not a server: then the file of an embedded store is verified completely.
func openConfiguredStore(ctx context.Context, cfg config.Config, env Environment, log *slog.Logger) (*dynamo.Store, feed.Source, error) {
	opts := cfg.Table
	opts.Log = log
	if cfg.Store == config.Embedded {
		engine, err := openEmbeddedStore(cfg.Data, embedded.Options{Verify: log == nil}, env)
		if err != nil {
			return nil, nil, err
		}
		if log != nil {
			if err := serveBackups(engine, cfg.Data, env); err != nil {
				log.Warn("`ordergraph backup` does not work while the server runs", "error", err)
			}
		}
		store, err := dynamo.New(engine.Client(), opts)
		return store, feed.EngineSource(engine), err
	}
	db, streams, err := config.OpenDynamoDB(ctx)
	if err != nil {
		return nil, nil, err
	}
	store, err := dynamo.New(db, opts)
	return store, feed.StreamSource(streams, feed.StreamOptions{}), err
}

// openEmbeddedStore opens an embedded store in the file at path. If path is empty, the store is in
// memory. The store is closed when the command has ended.
func openEmbeddedStore(path string, options embedded.Options, env Environment) (*embedded.Store, error) {
	engine, err := embedded.Open(path, options)
	if err == nil {
		*env.closers = append(*env.closers, engine.Close)
	}
	return engine, err
}

// startTimeout limits the time for opening and checking the store before the server starts.
const startTimeout = 30 * time.Second

func serve(ctx context.Context, args []string, env Environment) error {
	sample := false
	err := parseArgs("serve", args, 0, func(set *flag.FlagSet) {
		defineSettingFlags(set, &env)
		set.BoolVar(&sample, "sample", false, "load the sample data if the file of the embedded store is new")
	}, nil)
	if err != nil {
		return err
	}
	cfg, err := env.readConfig()
	if err != nil {
		return err
	}
	if err := checkServeConfig(cfg); err != nil {
		return err
	}
	log := newLog(cfg, env)
	cfg.GCTuning.Memory = gctuning.ContainerMemory()
	cfg.GCTuning.HeapProfile = cfg.AdminAddr != ""
	defer gctuning.Start(cfg.GCTuning)()
	var metrics *telemetry.Metrics
	if cfg.AdminAddr != "" {
		metrics = telemetry.NewMetrics()
	}
	observers, err := openTelemetry(ctx, &cfg, metrics, log)
	if err != nil {
		return err
	}
	defer observers.Tracer.Close()
	defer observers.AccessLog.Close()
	cfg.Table.Attempts.Breaker = cfg.Breaker && cfg.Store == config.DynamoDB
	store, source, err := openForServing(ctx, cfg, sample || cfg.Data == "", env, log)
	if err != nil {
		return err
	}
	checkStream(ctx, cfg, store, log)
	pools := admission.New(cfg.PoolSizes)
	events := store.OpenFeed(source, feed.Options{Log: log, AcquireRead: pools.AcquireCatchUp})
	defer events.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // stops the periodic refresh of the JWKS
	handler, serving, err := newHandler(ctx, cfg, server.Options{Graph: graph.Options{Store: store, Feed: events}, Admission: pools, Shutdown: cfg.Shutdown, Log: log, Telemetry: observers}, env)
	if err != nil {
		return err
	}
	watchSecrets(ctx, cfg, serving, env)
	expireOrders(ctx, store, log, env)
	defer dispatchWebhooks(ctx, cfg, serving, log)()
	adminAddr, closeAdmin, err := listenAdmin(cfg, handler, serving)
	if err != nil {
		return err
	}
	defer closeAdmin()
	listener, err := net.Listen("tcp", cfg.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use by another program: choose another port with -addr or PORT", cfg.Addr)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", cfg.Addr, err)
	}
	printWelcome(env.Stdout, cfg, listener.Addr(), adminAddr)
	if env.OnListening != nil {
		env.OnListening(listener.Addr())
	}
	return server.Serve(ctx, listener, handler, serving)
}

// newLog returns the logger of a server, and logs the warnings about the configuration.
func newLog(cfg config.Config, env Environment) *slog.Logger {
	log := slog.New(telemetry.NewLogHandler(env.Stderr, cfg.LogFormat, cfg.LogLevel))
	for _, warning := range cfg.Warnings {
		log.Warn(warning)
	}
	if cfg.AuthFromAlias {
		log.Warn("AUTH is deprecated: set ORDERGRAPH_AUTH instead")
	}
	return log
}

// newHandler returns the HTTP handler and the options of a server. To get these options, it adds
// the settings in cfg to serving. The handler refreshes the JWKS until ctx ends.
func newHandler(ctx context.Context, cfg config.Config, serving server.Options, env Environment) (http.Handler, server.Options, error) {
	serving.Origins, serving.Hosts, serving.Proxies, serving.Limits, serving.Weights = cfg.Origins, cfg.Hosts, cfg.Proxies, cfg.ServerLimits, cfg.ShareWeights
	serving.Webhooks, serving.ConfirmPaid = slices.Collect(maps.Values(cfg.Webhooks)), cfg.ConfirmPaid
	opts := &serving.Graph
	opts.Cursors, opts.Limits, opts.Rates, opts.NoIntrospection = paging.NewCursorSigner(cfg.CursorKey), cfg.Limits, cfg.Rates, !cfg.Introspection
	opts.Extension = cfg.Extension
	opts.CheckWebhookURL = newWebhookSender(cfg).CheckURL
	serving.NoGraphiQL, serving.NoMCP = !cfg.GraphiQL, !cfg.MCP
	var err error
	if opts.Prices, err = readPrices(cfg); err != nil {
		return nil, serving, err
	}
	trusted, err := loadTrustedDocuments(cfg, opts, serving.Log)
	if err != nil {
		return nil, serving, err
	}
	if err := configureAuth(ctx, cfg, &serving, env); err != nil {
		return nil, serving, err
	}
	observeState(&serving)
	handler, err := server.New(serving)
	if err != nil {
		return nil, serving, err
	}
	return handler, serving, trusted()
}

// checkStream checks that the table has the DynamoDB stream that subscriptions need. If the table
// has no such stream, checkStream logs a warning.
func checkStream(ctx context.Context, cfg config.Config, store *dynamo.Store, log *slog.Logger) {
	if cfg.Store == config.Embedded {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// A missing stream is not an error, because the server can serve queries and mutations without it.
	// If the stream is enabled later, subscriptions work without a restart.
	if err := store.CheckStream(ctx); err != nil {
		log.Warn("subscriptions are not served", "table", cfg.Table.Table, "error", err)
	}
}

// openForServing opens the configured store and checks its table. If an embedded store has no
// table, openForServing creates the table. If sample is true, it loads the sample data into the new
// table.
func openForServing(ctx context.Context, cfg config.Config, sample bool, env Environment, log *slog.Logger) (*dynamo.Store, feed.Source, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	store, source, err := openConfiguredStore(ctx, cfg, env, log)
	if err != nil {
		return nil, nil, err
	}
	if cfg.Store == config.Embedded {
		err := store.CreateTable(ctx)
		if err == nil && sample {
			err = loadSample(ctx, store)
		}
		if !errors.Is(err, table.ErrTableExists) {
			return store, source, err
		}
	}
	if err := store.CheckTable(ctx); err != nil {
		return nil, nil, withTableName(cfg, err)
	}
	if shards := store.Shards(); shards != max(1, cfg.Table.Shards) {
		log.Warn("ORDERGRAPH_SHARDS differs from the layout of the table, which the server follows", "table", cfg.Table.Table, "ORDERGRAPH_SHARDS", max(1, cfg.Table.Shards), "shards", shards)
	}
	if err := store.InitOrderCounts(ctx); err != nil {
		log.Warn("cannot initialize the number of orders for each status", "table", cfg.Table.Table, "error", err)
	}
	if reason := store.FastPathDisabledBy(); reason != "" && cfg.Store == config.DynamoDB {
		log.Info("all requests to DynamoDB go through the AWS SDK, which costs more CPU time than the fast path", "reason", reason)
	}
	return store, source, nil
}

// loadSample loads the sample data into the store.
func loadSample(ctx context.Context, store *dynamo.Store) error {
	dataset, err := sampledata.Sample()
	if err != nil {
		return err
	}
	_, err = store.Load(ctx, dataset)
	return err
}

// printWelcome prints the addresses of the server, describes its store and its access control, and
// prints an example command.
func printWelcome(w io.Writer, cfg config.Config, addr, adminAddr net.Addr) {
	base := "http://" + browsableAddr(addr)
	fmt.Fprintf(w, "Ordergraph is ready.\n\n  GraphQL   %s%s\n", base, server.PathGraphQL)
	if cfg.GraphiQL {
		fmt.Fprintf(w, "  GraphiQL  %s/\n", base)
	}
	if cfg.MCP {
		fmt.Fprintf(w, "  MCP       %s%s\n", base, server.PathMCP)
	}
	fmt.Fprintf(w, "  Health    %s%s  %s%s\n", base, server.PathHealth, base, server.PathReady)
	if adminAddr != nil {
		fmt.Fprintf(w, "  Metrics   http://%s%s\n", browsableAddr(adminAddr), admin.PathMetrics)
	}
	switch {
	case cfg.Store == config.DynamoDB:
		fmt.Fprintf(w, "  Store     DynamoDB table %s\n", cfg.Table.Table)
	case cfg.Data != "":
		fmt.Fprintf(w, "  Store     file %s\n", cfg.Data)
	default:
		fmt.Fprint(w, "  Store     in memory, with sample data; all data is lost when the server stops\n")
	}
	bearer := ""
	if cfg.Auth == config.AuthJWT {
		bearer = "-H \"Authorization: Bearer $TOKEN\" "
		fmt.Fprintf(w, "  Access    requires a token from %s\n", cfg.JWT.Issuer)
		if cfg.Anonymous {
			fmt.Fprint(w, "            without a token, products only\n")
		}
	} else {
		fmt.Fprintf(w, "  Access    %s\n", describeAccess(addr))
	}
	if cfg.TrustedOnly {
		fmt.Fprintf(w, "  Documents only trusted documents from %s are executed\n", cfg.Documents)
		return // the server would reject the example query
	}
	fmt.Fprint(w, "\nTry:\n\n")
	if bearer != "" {
		key := " -key FILE" // FILE contains the private key that belongs to a public key in the JWKS
		if cfg.JWT.Secret != nil {
			key = ""
		}
		fmt.Fprintf(w, "  TOKEN=$(ordergraph token -role ADMIN%s)   # in development, with the server's ORDERGRAPH_AUTH and ORDERGRAPH_JWT variables\n", key)
	}
	fmt.Fprintf(w, `  curl -s %s%s %s-H 'Content-Type: application/json' -H '%s: true' \
    -d '{"query":"{ customer(id: \"cust_01\") { name orders(first: 10) { nodes { id status total { amount } items { nodes { name quantity } } } } } }"}'
`, base, server.PathGraphQL, bearer, server.ExplainHeader)
}

// describeAccess describes who can use a server without authentication.
func describeAccess(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return fmt.Sprintf("open to this machine only: every program on this machine can read and change everything; -addr :%d opens the server to other machines", tcp.Port)
	}
	return "open: everyone who reaches the server can read and change everything"
}

// browsableAddr returns the address at which a browser on this machine can reach the server.
func browsableAddr(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return fmt.Sprintf("localhost:%d", tcp.Port)
}

func tableCommand(ctx context.Context, args []string, env Environment) error {
	var words []string
	c := derivationCommand{opts: dynamo.DerivationOptions{Parallel: checkConcurrency}}
	err := parseMixedArgs("table", args, 2, func(set *flag.FlagSet) {
		defineStoreFlags(set, &env)
		set.Float64Var(&c.opts.UnitsPerSecond, "units-per-second", derivationUnitsPerSecond, fmt.Sprintf("with plan, apply or drop: maximum read and write units in a second (default: %d)", derivationUnitsPerSecond))
		set.IntVar(&c.opts.Parallel, "parallel", checkConcurrency, fmt.Sprintf("with plan, apply or drop: maximum number of parallel requests (default: %d)", checkConcurrency))
	}, &words)
	if err != nil {
		return err
	}
	if len(words) == 0 || !slices.Contains([]string{"create", "describe", "shards", "time-zone", "plan", "apply", "drop"}, words[0]) {
		return usageError{"table: expected create, describe, plan, shards with a number, time-zone with a name, or apply or drop with a name"}
	}
	isDerivation := slices.Contains([]string{"plan", "apply", "drop"}, words[0])
	switch {
	case words[0] == "shards" && len(words) < 2:
		return usageError{"table shards: expected the number of shards"}
	case words[0] == "time-zone" && len(words) < 2:
		return usageError{"table time-zone: expected the name of a time zone, such as Europe/Berlin"}
	case words[0] != "shards" && words[0] != "time-zone" && !isDerivation && len(words) > 1:
		return usageError{fmt.Sprintf("table: unexpected argument %q", words[1])}
	case !(c.opts.UnitsPerSecond > 0) || c.opts.Parallel < 1:
		return usageError{"table: -units-per-second and -parallel must be positive"}
	}
	use := useExisting
	switch {
	case words[0] == "create":
		use = createStore
	case words[0] == "plan" && len(words) == 1:
		model.AcceptUndeclared() // to list them
	}
	store, cfg, err := openStore(ctx, "table "+words[0], use, env)
	if err != nil {
		return err
	}
	if words[0] == "create" {
		err := createTable(ctx, store, cfg, env)
		if err != nil && ctx.Err() != nil {
			return errors.New("table create: interrupted; run it again")
		}
		return err
	}
	if isDerivation {
		c.store, c.cfg, c.env = store, cfg, env
		if len(words) > 1 || words[0] != "plan" {
			if err := c.find(words[0], strings.Join(words[1:], "")); err != nil {
				return usageError{fmt.Sprintf("table %s: %v", words[0], err)}
			}
		}
		return c.run(ctx, words[0])
	}
	if words[0] == "shards" {
		return setShards(ctx, store, cfg, words[1], env)
	}
	if words[0] == "time-zone" {
		return setTimeZone(ctx, store, cfg, words[1], env)
	}
	d, err := store.DescribeTable(ctx)
	if err != nil {
		return withTableName(cfg, err)
	}
	fmt.Fprintf(env.Stdout, "table    %s\nstatus   %s\nrecords  %d (DynamoDB's estimate)\nbytes    %d (DynamoDB's estimate)\n", d.Name, d.Status, d.Records, d.Bytes)
	if d.Expires {
		fmt.Fprint(env.Stdout, "expiry   on: DynamoDB deletes expired idempotency records\n")
	} else {
		fmt.Fprint(env.Stdout, "expiry   off: expired idempotency records remain; `ordergraph table create` turns expiry on\n")
	}
	if d.StreamErr == nil {
		fmt.Fprint(env.Stdout, "stream   on: subscriptions receive changes\n")
	} else {
		fmt.Fprintf(env.Stdout, "stream   off: no subscriptions (%v)\n", d.StreamErr)
	}
	if len(d.Layout) > 0 {
		fmt.Fprintf(env.Stdout, "shards   %s\n", d.Layout)
		describeDerivations(store, env)
	}
	err = d.Mismatch()
	if err != nil {
		fmt.Fprint(env.Stdout, "fits     no\n")
		return withTableName(cfg, err)
	}
	problems, err := store.KeyProblems(ctx)
	if errors.Is(err, table.ErrAccessDenied) {
		fmt.Fprint(env.Stdout, "keys     not compared with the data model, because scans are denied\n")
	} else if err != nil {
		return withTableName(cfg, err)
	}
	for _, p := range problems {
		more := ""
		if p.Records > 1 {
			more = fmt.Sprintf(" and %d more", p.Records-1)
		}
		fmt.Fprintf(env.Stdout, "keys     %s%s: %s\n", p.Example.Text(), more, p.Problem)
	}
	if len(problems) > 0 {
		fmt.Fprint(env.Stdout, "fits     no\n")
		return &exitStatusError{exitFailed, nil}
	}
	fmt.Fprint(env.Stdout, "fits     yes\n")
	return nil
}

// setShards changes the number of shards of the table while servers use it.
func setShards(ctx context.Context, store *dynamo.Store, cfg config.Config, text string, env Environment) error {
	shards, err := strconv.Atoi(text)
	if err != nil || shards < 1 || shards > model.MaxShards {
		return usageError{fmt.Sprintf("table shards: %q is not a number from 1 to %d", text, model.MaxShards)}
	}
	if err := store.CheckTable(ctx); err != nil {
		return withTableName(cfg, err)
	}
	from, err := store.SetShards(ctx, shards)
	if err != nil {
		return withTableName(cfg, err)
	}
	if !from.After(time.Now()) {
		fmt.Fprintf(env.Stdout, "Table %s already has this number of shards: %d.\n", cfg.Table.Table, shards)
		return nil
	}
	fmt.Fprintf(env.Stdout, "From %s, table %s spreads new orders and customers over this number of shards: %d. All servers follow; nothing needs to be restarted.\n", from.Format(time.RFC3339), cfg.Table.Table, shards)
	return nil
}

// setTimeZone changes the time zone of the sales by day while servers use the table.
func setTimeZone(ctx context.Context, store *dynamo.Store, cfg config.Config, name string, env Environment) error {
	if err := model.CheckTimeZone(name); err != nil {
		return usageError{"table time-zone: " + err.Error()}
	}
	if err := store.CheckTable(ctx); err != nil {
		return withTableName(cfg, err)
	}
	from, err := store.SetTimeZone(ctx, name)
	if err != nil {
		return withTableName(cfg, err)
	}
	since := "All its days"
	if !from.IsZero() {
		since = "From " + from.Format(time.RFC3339) + ", its days"
	}
	fmt.Fprintf(env.Stdout, "The sales of table %s use the time zone %s. %s begin at midnight there.\n", cfg.Table.Table, name, since)
	return nil
}

// createTable creates the table. If the table already exists and matches the data model,
// createTable enables the table's stream and its expiry of records. It prints which of the two it
// has enabled.
func createTable(ctx context.Context, store *dynamo.Store, cfg config.Config, env Environment) error {
	err := store.CreateTable(ctx)
	if errors.Is(err, table.ErrTableExists) {
		before, err := store.DescribeTable(ctx)
		if err == nil {
			err = before.Mismatch()
		}
		if err != nil {
			return withTableName(cfg, err)
		}
		if err := store.InitEmptyTable(ctx); err != nil {
			return withTableName(cfg, err)
		}
		if err := store.EnableExpiry(ctx); err != nil {
			return withTableName(cfg, err)
		}
		if err := store.EnableStream(ctx); err != nil {
			return withTableName(cfg, err)
		}
		fmt.Fprintf(env.Stdout, "Table %s already exists and matches the data model.\n", cfg.Table.Table)
		if !before.Expires {
			fmt.Fprint(env.Stdout, "Expiry is now enabled, so DynamoDB deletes expired idempotency records.\n")
		}
		if before.StreamErr != nil {
			fmt.Fprint(env.Stdout, "The stream is now enabled, so subscriptions receive changes.\n")
		}
		return nil
	}
	if err != nil {
		return withTableName(cfg, err)
	}
	fmt.Fprintf(env.Stdout, "Table %s is ready. Load the sample data with `ordergraph seed`.\n", cfg.Table.Table)
	return nil
}

func patternsCommand(_ context.Context, args []string, env Environment) error {
	asMarkdown := false
	err := parseArgs("patterns", args, 0, func(set *flag.FlagSet) {
		set.BoolVar(&asMarkdown, "markdown", false, "print the Markdown table of docs/data-model.md")
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
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", p.ID, p.Description, markdown.OperationAndIndex(p), markdown.DescribeKeys(p))
	}
	for _, p := range model.WritePatterns() {
		fmt.Fprintf(tab, "%s\t%s\tTransactWriteItems\t%s\n", p.ID, p.Mutation, markdown.WrittenEntities(p))
	}
	return tab.Flush()
}
