package golden_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The diffs in ARCHITECTURE.md are lines of the files that they name.
func TestArchitectureExamplesAreInTheCode(t *testing.T) {
	const root = "../../.."
	doc, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	// gofmt aligns lines with their neighbors, so white space is ignored.
	normalize := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	lines, name, file := 0, "", ""
	for i, block := range strings.Split(string(doc), "```") {
		diff, ok := strings.CutPrefix(block, "diff\n")
		if i%2 == 0 || !ok {
			continue
		}
		for line := range strings.Lines(diff) {
			added, ok := strings.CutPrefix(line, "+")
			if !ok {
				name = strings.TrimRight(strings.Fields(line)[0], ",:")
				text, err := os.ReadFile(filepath.Join(root, name))
				if err != nil {
					t.Fatalf("ARCHITECTURE.md shows a change of %s: %v", name, err)
				}
				file = normalize(string(text))
				continue
			}
			lines++
			if !strings.Contains(file, normalize(added)) {
				t.Errorf("ARCHITECTURE.md shows a line that is not in %s:\n%s", name, added)
			}
		}
	}
	if lines < 20 {
		t.Errorf("ARCHITECTURE.md shows %d lines of code: the test does not find its diffs", lines)
	}
}

// All files that ARCHITECTURE.md names exist.
func TestArchitectureFilesExist(t *testing.T) {
	const root = "../../.."
	doc, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-zA-Z0-9_/]+\\.go)`").FindAllStringSubmatch(string(doc), -1)
	if len(named) == 0 {
		t.Fatal("ARCHITECTURE.md names no files")
	}
	for _, name := range named {
		found := false
		for _, pattern := range []string{"", "*/", "*/*/"} {
			files, err := filepath.Glob(filepath.Join(root, pattern, name[1]))
			if err != nil {
				t.Fatal(err)
			}
			found = found || len(files) > 0
		}
		if !found {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", name[1])
		}
	}
}

// All packages in the test commands of CONTRIBUTING.md exist.
func TestPackagesOfTestCommandsExist(t *testing.T) {
	const root = "../../.."
	doc, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\./([\w/]+)(?:\{([\w,]+)\})?`).FindAllStringSubmatch(string(doc), -1)
	if len(named) < 10 {
		t.Fatalf("CONTRIBUTING.md names %d packages", len(named))
	}
	for _, name := range named {
		for last := range strings.SplitSeq(name[2], ",") {
			if info, err := os.Stat(filepath.Join(root, name[1]+last)); err != nil || !info.IsDir() {
				t.Errorf("CONTRIBUTING.md names the package %s, which does not exist", name[1]+last)
			}
		}
	}
}
