package cli

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/config"
)

// serveBackups lets the command backup copy the store until this command has ended. A store in
// memory, whose path is empty, offers no copies.
func serveBackups(engine *embedded.Store, path string, env Environment) error {
	if path == "" {
		return nil
	}
	stop, err := engine.ServeBackups()
	if err == nil {
		*env.closers = append(*env.closers, stop)
	}
	return err
}

// dataFile returns the file of the embedded store that a command works on.
func dataFile(command string, env Environment) (string, error) {
	cfg, err := env.readConfig()
	if err != nil {
		return "", err
	}
	if cfg.Store != config.Embedded || cfg.Data == "" {
		return "", fmt.Errorf("%s requires the file of an embedded store: name it with -data", command)
	}
	return cfg.Data, nil
}

// backupCommand copies the file of the embedded store.
func backupCommand(ctx context.Context, args []string, env Environment) error {
	overwrite := false
	target, err := fileArgument("backup", args, func(set *flag.FlagSet) {
		defineStoreFlags(set, &env)
		set.BoolVar(&overwrite, "overwrite", false, "replace FILE if it exists, but only when the new copy is complete and verified")
	})
	if err != nil {
		return err
	}
	if target == standardStream {
		return usageError{"backup: FILE must be the name of a file, because the copy is verified"}
	}
	path, err := dataFile("backup", env)
	if err != nil {
		return err
	}
	if err := embedded.Backup(ctx, path, target, overwrite); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "Copied %s to %s: %s, verified.\n", path, target, formatBytes(info.Size()))
	return nil
}

// upgradeDataCommand upgrades the file of the embedded store.
func upgradeDataCommand(_ context.Context, args []string, env Environment) error {
	if err := parseArgs("upgrade-data", args, 0, func(set *flag.FlagSet) { defineStoreFlags(set, &env) }, nil); err != nil {
		return err
	}
	path, err := dataFile("upgrade-data", env)
	if err != nil {
		return err
	}
	upgraded, err := embedded.Upgrade(path)
	if err != nil {
		return err
	}
	if !upgraded {
		fmt.Fprintf(env.Stdout, "%s already has the format of this version.\n", path)
		return nil
	}
	fmt.Fprintf(env.Stdout, "Upgraded %s. Earlier versions of the program cannot open it.\n", path)
	return nil
}
