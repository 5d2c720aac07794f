package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/setting"
	"github.com/ordergraph/ordergraph/internal/test/golden"
)

// root is the root directory of the repository.
const root = "../../"

// The tables of settings in the docs are generated. Limits, which have Exceeded, are in
// docs/limits.md, where a separate table has the pools. All other settings are in
// docs/configuration.md.
func TestGoldenSettingDocs(t *testing.T) {
	var reference string
	limits := "| variable | default | meaning | if exceeded |\n|---|---|---|---|\n"
	const head = "| variable | default | meaning |\n|---|---|---|\n"
	pools := new(admission.Sizes).Settings()
	for _, section := range config.Sections() {
		var rows string
		for _, s := range section.Settings {
			if slices.ContainsFunc(pools, func(p setting.Setting) bool { return p.Name == s.Name }) {
				continue
			}
			if s.Exceeded != "" {
				limits += row(s) + " " + s.Exceeded + " |\n"
				continue
			}
			rows += row(s) + "\n"
		}
		if rows != "" {
			reference += "## " + section.Title + "\n\n" + head + rows + "\n"
		}
	}
	for file, table := range map[string]string{"docs/configuration.md": "\n" + reference, "docs/limits.md": limits} {
		golden.CheckSection(t, root+file, "settings", table)
	}
}

// row returns a setting's table row without the cell for Exceeded.
func row(s setting.Setting) string {
	preset := " "
	if s.Default != "" {
		preset = " `" + s.Default + "` "
	}
	return "| `" + s.Name + "` |" + preset + "| " + s.Meaning + " |"
}

// All variables in messages, docs and deployment files are declared. The changelog and the decision
// records may mention removed ones.
func TestMentionedVariablesAreDeclared(t *testing.T) {
	declared := settings()
	name := regexp.MustCompile(`\bORDERGRAPH_[A-Z0-9_]*[A-Z0-9]`)
	mentions := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		base := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "node_modules", "adr", "e2e"}, base):
			return fs.SkipDir
		case entry.IsDir() || base == "CHANGELOG.md" || strings.HasSuffix(base, "_test.go"):
			return nil
		case base != "Dockerfile" && !slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".json", ".graphqls"}, filepath.Ext(base)):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, mentioned := range name.FindAllString(string(text), -1) {
			mentions++
			if strings.HasPrefix(mentioned, "ORDERGRAPH_TEST") {
				continue // a variable of the tests
			}
			// A prefix such as ORDERGRAPH_JWT means all variables that begin with it.
			if !slices.ContainsFunc(declared, func(s setting.Setting) bool {
				return slices.Contains(s.Variables(), mentioned) || strings.HasPrefix(s.Name, mentioned+"_")
			}) {
				t.Errorf("%s mentions %s, which is not declared", path, mentioned)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if mentions < len(declared) {
		t.Errorf("%d mentions of %d variables were found", mentions, len(declared))
	}
}
