package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The OCI image of a release has the same settings as the Dockerfile.
func TestImageMatchesDockerfile(t *testing.T) {
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	c := imageConfig()
	for _, line := range []string{"ENV " + strings.Join(c.Env, " "), "USER " + c.User, `ENTRYPOINT ["` + strings.Join(c.Entrypoint, " ") + `"]`, "EXPOSE 8080"} {
		if !strings.Contains(string(dockerfile), "\n"+line+"\n") {
			t.Errorf("the Dockerfile lacks %s", line)
		}
	}
}

// The Dockerfile builds from the same files as a clone: Docker ignores the files that Git ignores,
// and no others.
func TestDockerBuildsFromAllFiles(t *testing.T) {
	patterns := func(file string) []string {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		var patterns []string
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(strings.TrimSpace(line), "/")
			switch {
			case strings.HasPrefix(line, "#"):
				continue
			case file == ".gitignore" && !strings.Contains(line, "/"):
				line = "**/" + line // Git ignores such names in all directories, but Docker only in the first
			}
			patterns = append(patterns, line)
		}
		return patterns
	}
	if got, want := patterns(".dockerignore"), patterns(".gitignore"); !slices.Equal(got, want) {
		t.Errorf("Docker ignores %q, and Git ignores %q", got, want)
	}
}

func TestLicensesAreChecked(t *testing.T) {
	module := func(name string, ids ...string) component {
		c := component{Name: name}
		for _, id := range ids {
			c.Evidence.Licenses = append(c.Evidence.Licenses, struct{ License struct{ ID string } }{struct{ ID string }{id}})
		}
		return c
	}
	if err := checkLicenses([]component{module(standardLibrary), module("a", "MIT"), module("b", "ISC", "Apache-2.0")}); err != nil {
		t.Error(err)
	}
	for name, modules := range map[string][]component{"none": {module("a")}, "another": {module("a", "MIT", "GPL-3.0-only")}, "no modules": nil} {
		if checkLicenses(modules) == nil {
			t.Errorf("%s: allowed", name)
		}
	}
}
