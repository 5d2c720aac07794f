package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// sources returns the flags and environment variables that settings are read from.
func (e *Environment) sources() config.Sources {
	return config.Sources{Getenv: e.Getenv, Environ: e.Environ, Flags: e.flags}
}

// readConfig reads the settings, and declares the custom fields of the schema extension. It returns the
// errors of config.ReadFrom and, if the schema extension is invalid, an error with all its mistakes.
func (e *Environment) readConfig() (config.Config, error) {
	cfg, err := config.ReadFrom(e.sources())
	if err != nil || cfg.SchemaExtension == "" {
		return cfg, err
	}
	text, err := os.ReadFile(cfg.SchemaExtension)
	if err != nil {
		return cfg, fmt.Errorf("ORDERGRAPH_SCHEMA_EXTENSION: %w", err)
	}
	if cfg.Extension, err = graph.ParseExtension(cfg.SchemaExtension, string(text)); err != nil {
		return cfg, fmt.Errorf("ORDERGRAPH_SCHEMA_EXTENSION: correct the file:\n%w", err)
	}
	cfg.Extension.Declare()
	return cfg, nil
}

// settingFlag is a flag that sets a setting.
type settingFlag struct {
	env *Environment
	// variable is the name of the environment variable that sets the same setting.
	variable string
	// inHelp reports whether the help of the command lists the flag.
	inHelp bool
}

// Set implements flag.Value.
func (f *settingFlag) Set(text string) error {
	if f.env.flags == nil {
		f.env.flags = map[string]string{}
	}
	f.env.flags[f.variable] = text
	return nil
}

// String implements flag.Value.
func (f *settingFlag) String() string { return "" }

// defineSettingFlags defines a flag for each setting. The help of the command lists only the most
// common flags.
func defineSettingFlags(set *flag.FlagSet, env *Environment) {
	for _, section := range config.Sections() {
		for _, s := range section.Settings {
			defineSettingFlag(set, env, s, "ORDERGRAPH_ADDR", "ORDERGRAPH_CONFIG", "ORDERGRAPH_DATA", "ORDERGRAPH_SCHEMA_EXTENSION")
		}
	}
}

// defineStoreFlags defines the flags -config, -data and -schema. Every command that opens the store has
// these flags.
func defineStoreFlags(set *flag.FlagSet, env *Environment) {
	for _, section := range config.Sections() {
		for _, s := range section.Settings {
			if s.Name == "ORDERGRAPH_CONFIG" || s.Name == "ORDERGRAPH_DATA" || s.Name == "ORDERGRAPH_SCHEMA_EXTENSION" {
				defineSettingFlag(set, env, s, s.Name)
			}
		}
	}
}

// defineSettingFlag defines the flag of one setting. If inHelp contains the name of the setting,
// the help of the command shows the flag.
func defineSettingFlag(set *flag.FlagSet, env *Environment, s setting.Setting, inHelp ...string) {
	if name := s.Flag(); name != "" {
		variables := s.Variables()
		variable := variables[len(variables)-1] // the flag of a secret has the same meaning as its _FILE variable
		set.Var(&settingFlag{env, variable, slices.Contains(inHelp, s.Name)}, name, fmt.Sprintf("%s (%s)", s.PlainMeaning(), variable))
	}
}

const configCommandName = "config"

// configCommand prints the settings. It accepts the flags of the command serve.
func configCommand(_ context.Context, args []string, env Environment) error {
	asJSON := false
	err := parseArgs(configCommandName, args, 0, func(set *flag.FlagSet) {
		set.BoolVar(&asJSON, "json", false, "print one JSON object")
		defineSettingFlags(set, &env)
		set.Bool("sample", false, "no effect: the command config accepts all flags of the command serve")
	}, nil)
	if err != nil {
		return err
	}
	cfg, err := env.readConfig()
	if err == nil {
		err = checkServeConfig(cfg)
	}
	problems := []string{}
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		problems = invalid.Problems
	} else if err != nil {
		problems = append(problems, err.Error())
	}
	if asJSON {
		encoder := json.NewEncoder(env.Stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		writeErr := encoder.Encode(struct {
			Settings []config.EffectiveSetting `json:"settings"`
			Problems []string                  `json:"problems"`
			Warnings []string                  `json:"warnings"`
		}{cfg.Effective, problems, append([]string{}, cfg.Warnings...)})
		if writeErr != nil {
			return writeErr
		}
	} else {
		if err := config.WriteEffective(env.Stdout, cfg); err != nil {
			return err
		}
		for _, warning := range cfg.Warnings {
			fmt.Fprintf(env.Stderr, "warning: %s\n", warning)
		}
	}
	if err != nil {
		return &exitStatusError{exitFailed, err}
	}
	return nil
}
