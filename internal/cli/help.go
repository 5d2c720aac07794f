package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/sampledata"
)

// commandHelp is what help says about a command.
type commandHelp struct {
	name, words string
	// does is a line or more.
	does string
	// flags are what its flags mean, by name.
	flags map[string]string
}

// commands are all that there are, in the order of help.
func commands() []commandHelp {
	return []commandHelp{
		{"serve", "[serve] [-addr HOST:PORT]", "serve it (the default)", map[string]string{
			"addr": "the address to listen on, such as :8080 for all addresses of the machine; without it PORT says the port",
		}},
		{"table", "table create", "make the table and its index", nil},
		{"table", "table describe", "tell whether the table fits the model, and what differs", nil},
		{"seed", "seed [FILE]", "load an order book, the sample one without FILE", nil},
		{"seed", "seed -generate [-customers N] [-orders N] [-items N] [-products N] [-statuses LIST] [-seed N] [-from N]", "make up an order book of any size, and load it", generateFlags()},
		{"export", "export [-segments N] [-overwrite] FILE", "write every record to FILE (-: standard output), a line of JSON each", map[string]string{
			"segments":  fmt.Sprintf("in how many parts the table is read at once, 1 to %d (4 without it)", bulk.MaxSegments),
			"overwrite": "replace FILE where it is there, as soon as the new export is complete",
		}},
		{"import", "import [-overwrite] [-dry-run] [-skip-unreadable] FILE", "put the records of FILE (-: standard input) into the table", map[string]string{
			"overwrite":       "replace records that are there and differ; without it they are kept",
			"dry-run":         "tell what an import would do, and write nothing",
			"skip-unreadable": "leave out lines that cannot be imported; without it the first one ends the import",
		}},
		{"check", "check [-repair] [-json]", "find records that disagree, and repair them; exits with\n0 if none is left, 1 if some are, 3 if it could not tell", map[string]string{
			"repair": "put right what can be put right",
			"json":   "write a line of JSON for each drift, and one for the summary",
		}},
		{"documents", "documents check [-max-requests N] [-max-units N] [-shards N] [-json] MANIFEST", "validate a manifest of trusted documents (-: standard input), and print\nthe most that each operation can ask of DynamoDB; exits with 0 if all\nare fine, 1 if one is invalid or over the budget", map[string]string{
			"max-requests": "how many requests to DynamoDB each operation may make at most; without it, any number",
			"max-units":    "how many read units each operation may use at most; without it, any number",
			"shards":       "over how many partition keys the table spreads each busy list; without it, ORDERGRAPH_SHARDS",
			"json":         "write a line of JSON for each operation, and one for the summary",
		}},
		{"token", "token -role ROLE [-customer ID] [-subject NAME] [-ttl TIME] [-key FILE]", "make a short-lived token for development, for a server with the same\nORDERGRAPH_AUTH and ORDERGRAPH_JWT variables", map[string]string{
			"role":     "CUSTOMER, STAFF, ADMIN or SERVICE",
			"customer": "the id of the customer whose token it is",
			"subject":  "whom the token is about; without it the customer's id, or a name made of the role",
			"ttl":      fmt.Sprintf("how long it lives, such as 5m, up to %s (15m without it)", maxTTL),
			"key":      "a private key in PEM (PKCS #8); without it ORDERGRAPH_JWT_SECRET signs",
		}},
		{"token", "token key FILE", "make a private key for such tokens, and FILE" + jwksSuffix + " for the server", nil},
		{"patterns", "patterns [-markdown]", "print the access and write patterns, with their keys and records", map[string]string{
			"markdown": "as the table in docs/data-model.md",
		}},
		{"help", "help [COMMAND]", "print this, or the flags of a command; so does COMMAND -h", nil},
	}
}

// generateFlags are what the flags of seed mean.
func generateFlags() map[string]string {
	d := sampledata.DefaultShape()
	return map[string]string{
		"generate":  "make up an order book; the same flags make the same one, and another one has other ids",
		"customers": fmt.Sprintf("how many customers (%d without it)", d.Customers),
		"orders":    fmt.Sprintf("how many orders (%d without it)", d.Orders),
		"items":     fmt.Sprintf("how many items an order has, such as 3, or a range (%d-%d without it), up to %d", d.FewestItems, d.MostItems, commerce.MaxLines),
		"products":  fmt.Sprintf("how many products (%d without it)", d.Products),
		"statuses":  fmt.Sprintf("how often each status is met (%s without it)", d.Statuses),
		"seed":      fmt.Sprintf("a number that makes another book of the same size (%d without it)", d.Seed),
		"from":      "how many orders are loaded already, as a run says that was interrupted",
	}
}

// helpWanted ends a command whose help is asked for.
type helpWanted struct{ set *flag.FlagSet }

func (h *helpWanted) Error() string { return "help is wanted" }

// printUsage prints what a person needs to begin.
func printUsage(w io.Writer) {
	fmt.Fprint(w, "Ordergraph serves an e-commerce order book as GraphQL from one DynamoDB table.\n\n")
	for _, c := range commands() {
		printCommand(w, c)
	}
	fmt.Fprint(w, "\nEnvironment:\n")
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, section := range config.Sections() {
		for _, s := range section.Settings {
			fmt.Fprintf(tab, "  %s\t%s\t%s\n", s.Name, s.Default, strings.ReplaceAll(s.Meaning, "`", ""))
		}
	}
	_ = tab.Flush()
	fmt.Fprint(w, "  AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, AWS_PROFILE and the rest of the AWS SDK's\n")
}

// usageColumn is where it says what a command does.
const usageColumn = 41

func printCommand(w io.Writer, c commandHelp) {
	words := "  ordergraph " + c.words
	if len(words) < usageColumn-1 {
		fmt.Fprint(w, words, strings.Repeat(" ", usageColumn-len(words)))
	} else {
		fmt.Fprint(w, words, "\n", strings.Repeat(" ", usageColumn))
	}
	fmt.Fprintln(w, strings.ReplaceAll(c.does, "\n", "\n"+strings.Repeat(" ", usageColumn)))
}

// printCommandHelp prints what a command does, and a line for each of its flags.
func printCommandHelp(w io.Writer, set *flag.FlagSet) {
	var flags map[string]string
	for _, c := range commands() {
		if c.name == set.Name() {
			printCommand(w, c)
			if c.flags != nil {
				flags = c.flags
			}
		}
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	set.VisitAll(func(f *flag.Flag) { fmt.Fprintf(tab, "  -%s\t%s\n", f.Name, flags[f.Name]) })
	_ = tab.Flush()
	fmt.Fprint(w, "\n`ordergraph help` lists all commands, and the environment.\n")
}
