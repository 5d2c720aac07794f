package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"

	"github.com/ordergraph/ordergraph/internal/version"
)

// versionCommand prints the version of this program.
func versionCommand(_ context.Context, args []string, env Environment) error {
	asJSON := false
	err := parseArgs("version", args, 0, func(set *flag.FlagSet) {
		set.BoolVar(&asJSON, "json", false, "print one JSON object")
	}, nil)
	if err != nil {
		return err
	}
	info := version.Get()
	if asJSON {
		return json.NewEncoder(env.Stdout).Encode(info)
	}
	details := []string{info.Go, info.Platform}
	if info.Commit != "" {
		details = append([]string{"commit " + info.Commit, info.Time}, details...)
	}
	fmt.Fprintf(env.Stdout, "ordergraph %s (%s)\n", info.Version, strings.Join(details, ", "))
	return nil
}
