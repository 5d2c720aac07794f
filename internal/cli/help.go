package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ordergraph/ordergraph/internal/config"
)

// command is an entry in the list of commands, which Run and the help use. A command with several
// forms, such as `table create` and `table describe`, has one entry for each form.
type command struct {
	name string
	run  func(context.Context, []string, Environment) error
	// usage is the syntax of the command in the help, without the name of the program.
	usage string
	// description describes the command in the help. It can have several lines.
	description string
}

// commands returns the entries of all commands, in the order in which the help lists them.
func commands() []command {
	return []command{
		{"serve", serve, "[serve] [-addr HOST:PORT] [-data FILE] [-sample]", "start the server (the default command); with -data, the embedded store\nkeeps its data in FILE; -sample loads the sample data into a new FILE;\na setting can also be a flag, such as -max-body 65536"},
		{"lambda", serveLambda, "lambda", "serve queries and mutations in AWS Lambda (the default command in Lambda)"},
		{"local", serveLocal, "local [-addr HOST:PORT] [-data FILE] [-ttl-interval TIME]", "serve the embedded store as a DynamoDB endpoint, for the AWS CLI and\nSDKs; by default on 127.0.0.1:8000 and in memory"},
		{"table", tableCommand, "table create", "create the table and its index"},
		{"table", tableCommand, "table shards N", "change the number of shards for new records, while servers run"},
		{"table", tableCommand, "table time-zone NAME", "set the time zone of the days in the sales"},
		{"table", tableCommand, "table plan [-units-per-second N] [NAME]", "print what it costs to add the list or number NAME to the table;\nwithout NAME, print the state of all lists and numbers"},
		{"table", tableCommand, "table apply [-units-per-second N] [-parallel N] NAME", "add the list or number NAME to the table, while servers run;\nafter an interruption, run it again"},
		{"table", tableCommand, "table drop [-units-per-second N] [-parallel N] NAME", "remove the list or number NAME from the table, while servers run"},
		{"table", tableCommand, "table describe", "report whether the table matches the data model, and list the differences"},
		{"seed", seed, "seed [FILE]", "load the dataset in FILE, or the sample data"},
		{"seed", seed, "seed -generate [-customers N] [-orders N] [-items N] [-products N] [-statuses LIST] [-seed N] [-from N]", "generate a dataset of any size, and load it"},
		{"export", exportTable, "export [-segments N] [-overwrite] FILE", "write all records to FILE (- for standard output), one line of JSON each"},
		{"import", importTable, "import [-overwrite] [-dry-run] [-skip-unreadable] FILE", "write the records of FILE (- for standard input) to the table"},
		{"import", importTable, "import -from MAPPING [-overwrite] [-dry-run] FILE", "convert an export of another table, with other keys and attribute names,\nand write its records; MAPPING is a JSON file that describes them"},
		{"backup", backupCommand, "backup [-overwrite] FILE", "copy the file of the embedded store to FILE, also while the server runs"},
		{"upgrade-data", upgradeDataCommand, "upgrade-data", "upgrade the file of the embedded store to the format of this version"},
		{"check", checkCommand, "check [-repair [-restore]] [-json]", "find records that contradict each other; -repair repairs them; the exit status is\n0 if all are consistent, 1 if inconsistencies remain, 3 if the check is incomplete"},
		{"expire", expireCommand, "expire", "cancel the unpaid orders that have expired; servers do this themselves,\nbut not AWS Lambda"},
		{"documents", documentsCommand, "documents check [-max-requests N] [-max-units N] [-shards N] [-json] MANIFEST", "validate a manifest of trusted documents (- for standard input), and print\nthe maximum DynamoDB requests and read units of each operation; the exit\nstatus is 1 if an operation is invalid or exceeds -max-requests or -max-units, else 0"},
		{"price", priceCommand, "price [-dataset FILE] PROFILE", "print the monthly DynamoDB price of the operations in PROFILE (- for standard\ninput); PROFILE contains the number of requests per month of each operation;\nORDERGRAPH_DOCUMENTS names the manifest of trusted documents"},
		{"token", tokenCommand, "token -role ROLE [-customer ID] [-subject NAME] [-ttl TIME] [-key FILE]", "create a short-lived token for development; set the same\nORDERGRAPH_AUTH and ORDERGRAPH_JWT variables as for the server"},
		{"token", tokenCommand, "token key FILE", "write a private key for development tokens to FILE, and its public key to FILE" + jwksSuffix},
		{"patterns", patternsCommand, "patterns [-markdown]", "print all access patterns and write patterns, with their keys and records"},
		{"config", configCommand, "config [-json] [FLAGS OF serve]", "print the value and the source of each setting, and problems with them;\nsecrets are masked; the exit status is 1 if a setting is invalid, else 0"},
		{"version", versionCommand, "version [-json]", "print the version and the commit (same as --version)"},
		{"help", nil, "help [COMMAND]", "print this help, or the flags of a command (same as COMMAND -h)"},
	}
}

// helpRequestedError is the error that a command returns if it is called with -h. Run then prints
// the help of the command.
type helpRequestedError struct{ flags *flag.FlagSet }

func (h *helpRequestedError) Error() string { return "help requested" }

// printUsage prints the syntax and the description of all commands.
func printUsage(w io.Writer) {
	fmt.Fprint(w, "Ordergraph serves an e-commerce order book as GraphQL from one DynamoDB table.\n\n")
	for _, c := range commands() {
		printCommand(w, c)
	}
	fmt.Fprint(w, "\nEach setting is an environment variable, a flag of serve, or a line of a file.\n`ordergraph help config` lists all settings.\n")
}

// descriptionColumn is the column in which the descriptions of commands begin.
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

// printCommandHelp prints the description of a command and its flags. For the command config, it
// also describes all settings.
func printCommandHelp(w io.Writer, set *flag.FlagSet) {
	for _, c := range commands() {
		if c.name == set.Name() {
			printCommand(w, c)
		}
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	set.VisitAll(func(f *flag.Flag) {
		if s, ok := f.Value.(*settingFlag); !ok || s.inHelp {
			fmt.Fprintf(tab, "  -%s\t%s\n", f.Name, f.Usage)
		}
	})
	_ = tab.Flush()
	if set.Name() == configCommandName {
		printSettings(w)
		return
	}
	fmt.Fprint(w, "\n`ordergraph help` lists all commands, and `ordergraph help config` lists all settings.\n")
}

// helpWidth is the maximum number of characters in a line of a setting's description.
const helpWidth = 92

// printSettings prints the descriptions of all settings.
func printSettings(w io.Writer) {
	fmt.Fprint(w, `
A setting is an environment variable (ORDERGRAPH_MAX_BODY=65536), a flag (-max-body 65536), or a
line NAME=value in the file ORDERGRAPH_CONFIG. A flag takes precedence over the environment, and the
environment over the file. A variable that ends with _FILE contains the path of a file with a secret.
`)
	for _, section := range config.Sections() {
		fmt.Fprintf(w, "\n%s\n", section.Title)
		for _, s := range section.Settings {
			names := slices.Clone(s.Variables())
			if name := s.Flag(); name != "" {
				names = append(names, "-"+name)
			}
			line := "  " + strings.Join(names, ", ")
			if s.Default != "" {
				line += " (default " + s.Default + ")"
			}
			fmt.Fprintln(w, line)
			printWrapped(w, "      ", s.PlainMeaning())
		}
	}
	fmt.Fprint(w, "\nThe AWS SDK reads AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, AWS_PROFILE and its other variables from the\nenvironment.\n")
}

// printWrapped prints text in lines that begin with indent and have up to helpWidth more
// characters.
func printWrapped(w io.Writer, indent, text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > helpWidth {
			fmt.Fprintln(w, indent+line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	fmt.Fprintln(w, indent+line)
}
