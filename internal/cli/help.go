package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ordergraph/ordergraph/internal/config"
)

// command is a form of a command: its name, what runs it, and what help says about it.
type command struct {
	name string
	run  func(context.Context, []string, Environment) error
	// words are the command line, and does is a line or more.
	words, does string
}

// commands are all that there are, in the order of help. A command has several forms where help
// tells them apart.
func commands() []command {
	return []command{
		{"serve", serve, "[serve] [-addr HOST:PORT]", "serve it (the default)"},
		{"table", tableCommand, "table create", "make the table and its index"},
		{"table", tableCommand, "table describe", "tell whether the table fits the model, and what differs"},
		{"seed", seed, "seed [FILE]", "load an order book, the sample one without FILE"},
		{"seed", seed, "seed -generate [-customers N] [-orders N] [-items N] [-products N] [-statuses LIST] [-seed N] [-from N]", "make up an order book of any size, and load it"},
		{"export", exportTable, "export [-segments N] [-overwrite] FILE", "write every record to FILE (-: standard output), a line of JSON each"},
		{"import", importTable, "import [-overwrite] [-dry-run] [-skip-unreadable] FILE", "put the records of FILE (-: standard input) into the table"},
		{"check", checkCommand, "check [-repair] [-json]", "find records that disagree, and repair them; exits with\n0 if none is left, 1 if some are, 3 if it could not tell"},
		{"documents", documents, "documents check [-max-requests N] [-max-units N] [-shards N] [-json] MANIFEST", "validate a manifest of trusted documents (-: standard input), and print\nthe most that each operation can ask of DynamoDB; exits with 0 if all\nare fine, 1 if one is invalid or over the budget"},
		{"token", token, "token -role ROLE [-customer ID] [-subject NAME] [-ttl TIME] [-key FILE]", "make a short-lived token for development, for a server with the same\nORDERGRAPH_AUTH and ORDERGRAPH_JWT variables"},
		{"token", token, "token key FILE", "make a private key for such tokens, and FILE" + jwksSuffix + " for the server"},
		{"patterns", patterns, "patterns [-markdown]", "print the access and write patterns, with their keys and records"},
		{"help", nil, "help [COMMAND]", "print this, or the flags of a command; so does COMMAND -h"},
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

func printCommand(w io.Writer, c command) {
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
	for _, c := range commands() {
		if c.name == set.Name() {
			printCommand(w, c)
		}
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	set.VisitAll(func(f *flag.Flag) { fmt.Fprintf(tab, "  -%s\t%s\n", f.Name, f.Usage) })
	_ = tab.Flush()
	fmt.Fprint(w, "\n`ordergraph help` lists all commands, and the environment.\n")
}
