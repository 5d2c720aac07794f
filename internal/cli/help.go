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

// command is one form of a command: its name, its function and its help.
type command struct {
	name string
	run  func(context.Context, []string, Environment) error
	// usage are the arguments in the help.
	usage string
	// description is the description, of one or more lines.
	description string
}

// commands returns all commands in the order of the help. A command has several entries if the help
// describes its forms separately.
func commands() []command {
	return []command{
		{"serve", serve, "[serve] [-addr HOST:PORT] [-data FILE] [-sample]", "start the server (the default command); with -data, the embedded store\nis in FILE, and starts empty without -sample"},
		{"local", serveLocal, "local [-addr HOST:PORT] [-data FILE]", "serve the embedded store as a DynamoDB endpoint, for the AWS CLI and\nSDKs; by default on 127.0.0.1:8000 and in memory"},
		{"table", tableCommand, "table create", "create the table and its index"},
		{"table", tableCommand, "table describe", "report whether the table matches the model, and what differs"},
		{"seed", seed, "seed [FILE]", "load the dataset in FILE, or the sample data"},
		{"seed", seed, "seed -generate [-customers N] [-orders N] [-items N] [-products N] [-statuses LIST] [-seed N] [-from N]", "generate a dataset of any size, and load it"},
		{"export", exportTable, "export [-segments N] [-overwrite] FILE", "write all records to FILE (-: standard output), one JSON line each"},
		{"import", importTable, "import [-overwrite] [-dry-run] [-skip-unreadable] FILE", "write the records of FILE (-: standard input) to the table"},
		{"check", checkCommand, "check [-repair] [-json]", "find records that contradict each other, and repair them; exits with\n0 if the table is clean, 1 if drifts are left, 3 if the check is incomplete"},
		{"documents", documentsCommand, "documents check [-max-requests N] [-max-units N] [-shards N] [-json] MANIFEST", "validate a manifest of trusted documents (-: standard input), and print\nthe maximum DynamoDB requests and read units of each operation; exits\nwith 0 if all are fine, 1 if one is invalid or over the budget"},
		{"token", tokenCommand, "token -role ROLE [-customer ID] [-subject NAME] [-ttl TIME] [-key FILE]", "create a short-lived token for development, with the same\nORDERGRAPH_AUTH and ORDERGRAPH_JWT variables as the server"},
		{"token", tokenCommand, "token key FILE", "create a private key for such tokens, and FILE" + jwksSuffix + " for the server"},
		{"patterns", patternsCommand, "patterns [-markdown]", "print the access and write patterns, with their keys and records"},
		{"help", nil, "help [COMMAND]", "print this help, or a command's flags, as COMMAND -h does"},
	}
}

// helpRequest is the error of a command that was called with -h.
type helpRequest struct{ flags *flag.FlagSet }

func (h *helpRequest) Error() string { return "help requested" }

// printUsage prints all commands and environment variables.
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
	fmt.Fprint(w, "  AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, AWS_PROFILE and the other variables of the AWS SDK\n")
}

// descriptionColumn is the column where the descriptions begin.
const descriptionColumn = 41

func printCommand(w io.Writer, c command) {
	words := "  ordergraph " + c.usage
	if len(words) < descriptionColumn-1 {
		fmt.Fprint(w, words, strings.Repeat(" ", descriptionColumn-len(words)))
	} else {
		fmt.Fprint(w, words, "\n", strings.Repeat(" ", descriptionColumn))
	}
	fmt.Fprintln(w, strings.ReplaceAll(c.description, "\n", "\n"+strings.Repeat(" ", descriptionColumn)))
}

// printCommandHelp prints the description of a command and one line per flag.
func printCommandHelp(w io.Writer, set *flag.FlagSet) {
	for _, c := range commands() {
		if c.name == set.Name() {
			printCommand(w, c)
		}
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	set.VisitAll(func(f *flag.Flag) { fmt.Fprintf(tab, "  -%s\t%s\n", f.Name, f.Usage) })
	_ = tab.Flush()
	fmt.Fprint(w, "\n`ordergraph help` lists all commands and environment variables.\n")
}
