package deploy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A release has the same tags and linker flags as `make build`.
func TestReleaseBuildsAsMake(t *testing.T) {
	flags := func(file, pattern string) []string {
		match := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
		if match == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return strings.FieldsFunc(match[1], func(r rune) bool { return r == ',' || r == ' ' })
	}
	for makefile, goreleaser := range map[string]string{`-tags (\S+)`: `tags: \[(.*)\]`, `-ldflags='(.*)'`: `ldflags: \[(.*)\]`} {
		if got, want := flags("../.goreleaser.yaml", goreleaser), flags("../Makefile", makefile); !slices.Equal(got, want) {
			t.Errorf("a release has the flags %q, and make build has %q", got, want)
		}
	}
}

// The Dockerfile builds from the same files as a clone: Docker ignores the files that Git ignores,
// and no others.
func TestDockerBuildsFromAllFiles(t *testing.T) {
	patterns := func(file string) []string {
		var patterns []string
		for line := range strings.Lines(read(t, "../"+file)) {
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
