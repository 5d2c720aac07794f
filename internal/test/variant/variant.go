// Package variant builds test binaries that contain deliberately broken code, so that a test can show
// that a suite of tests finds bugs. A variant is a patch of the module's code with a switch, so one
// binary contains all variants and is compiled once. The package imports no other package of the
// module.
//
// A file of patches contains any number of variants. The new text of a variant contains the correct
// code and the broken code, which runs if variant("NAME") is true:
//
//	=== oversell
//	about: a transaction does not require enough stock
//	area: mutations
//	file: dynamo/change/stock.go
//	---
//	if level.Quantity >= needed {
//	+++
//	if variant("oversell") || level.Quantity >= needed {
//
// The line "file:" begins an edit, and a variant can contain several edits. Texts consist of whole
// lines, and the old text must occur exactly once in the file. Variants must not edit the same lines.
package variant

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Environment is the environment variable that contains the name of the active variant.
const Environment = "ORDERGRAPH_TEST_VARIANT"

// Variant is a deliberate bug.
type Variant struct {
	Name, About, Area string
	Edits             []Edit
}

// Edit replaces lines of a file. File is a path in the module.
type Edit struct{ File, Old, New string }

// Read parses the variants in the *.txt files of a directory and applies them to the module's files.
// It returns the variants and the changed files by their path in the module. The test fails if a
// variant is malformed or does not apply.
func Read(t testing.TB, dir string) ([]Variant, map[string]string) {
	t.Helper()
	variants, err := Parse(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Apply(os.DirFS(moduleRoot(t)), variants)
	if err != nil {
		t.Fatal(err)
	}
	return variants, files
}

// Parse returns the variants in the *.txt files of a directory, ordered by file.
func Parse(dir fs.FS) ([]Variant, error) {
	names, err := fs.Glob(dir, "*.txt")
	if err != nil {
		return nil, err
	}
	var all []Variant
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		variants, err := parseFile(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
		all = append(all, variants...)
	}
	seen := map[string]bool{}
	for _, v := range all {
		if seen[v.Name] || v.Name == "" || v.About == "" || v.Area == "" || len(v.Edits) == 0 {
			return nil, fmt.Errorf("variant %q is listed twice, or has no name, about, area or file", v.Name)
		}
		seen[v.Name] = true
		switched := func(e Edit) bool { return strings.Contains(e.New, "variant("+strconv.Quote(v.Name)+")") }
		if slices.ContainsFunc(v.Edits, func(e Edit) bool { return e.Old == "" }) || !slices.ContainsFunc(v.Edits, switched) {
			return nil, fmt.Errorf("variant %q: an edit has no old text, or no new text calls variant(%[1]q)", v.Name)
		}
	}
	return all, nil
}

// parseFile parses a file of patches. Errors begin with the number of a line.
func parseFile(text string) ([]Variant, error) {
	var variants []Variant
	var v *Variant
	var into *string // the old or new text that continues
	number := 0
	for line := range strings.Lines(text) {
		number++
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch {
		case key == "===":
			variants = append(variants, Variant{Name: value})
			v, into = &variants[len(variants)-1], nil
		case v == nil:
			return nil, fmt.Errorf("%d: the first line must be === NAME", number)
		case key == "file:":
			v.Edits, into = append(v.Edits, Edit{File: value}), nil
		case key == "---" && len(v.Edits) > 0:
			into = &v.Edits[len(v.Edits)-1].Old
		case key == "+++" && len(v.Edits) > 0:
			into = &v.Edits[len(v.Edits)-1].New
		case into != nil:
			*into += line
		case key == "about:":
			v.About = value
		case key == "area:":
			v.Area = value
		default:
			return nil, fmt.Errorf("%d: %q is neither a text nor about:, area:, file:, --- or +++", number, line)
		}
	}
	return variants, nil
}

// Apply returns the files of the module that the variants change, with all variants.
func Apply(module fs.FS, variants []Variant) (map[string]string, error) {
	type place struct {
		at   int
		name string
		Edit
	}
	places := map[string][]place{}
	files := map[string]string{}
	for _, v := range variants {
		for _, e := range v.Edits {
			text, err := fs.ReadFile(module, e.File)
			if err != nil {
				return nil, fmt.Errorf("variant %q: %w", v.Name, err)
			}
			files[e.File] = string(text)
			// A line break before the text makes sure that the text begins with a whole line.
			at := strings.Index("\n"+files[e.File], "\n"+e.Old)
			if at < 0 || at != strings.LastIndex("\n"+files[e.File], "\n"+e.Old) {
				return nil, fmt.Errorf("variant %q: the old text must occur exactly once in %s:\n%s", v.Name, e.File, e.Old)
			}
			places[e.File] = append(places[e.File], place{at, v.Name, e})
		}
	}
	for file, all := range places {
		slices.SortFunc(all, func(a, b place) int { return a.at - b.at })
		var patched strings.Builder
		end := 0
		for i, p := range all {
			if p.at < end {
				return nil, fmt.Errorf("variants %q and %q edit the same lines of %s", all[i-1].name, p.name, file)
			}
			patched.WriteString(files[file][end:p.at] + p.New)
			end = p.at + len(p.Old)
		}
		files[file] = patched.String() + files[file][end:]
	}
	return files, nil
}

// writeOverlay writes the changed files, and for each package a file with the function variant. It
// returns the name of a file for the flag -overlay of the go command.
func writeOverlay(t testing.TB, root, dir string, files map[string]string) string {
	t.Helper()
	replace := map[string]string{}
	add := func(path, text string) {
		replace[filepath.Join(root, path)] = filepath.Join(dir, strings.ReplaceAll(path, "/", "+"))
		if err := os.WriteFile(replace[filepath.Join(root, path)], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range files {
		_, clause, _ := strings.Cut("\n"+text, "\npackage ")
		clause, _, _ = strings.Cut(clause, "\n")
		add(path, text)
		add(filepath.ToSlash(filepath.Join(filepath.Dir(path), "variant_active.go")), "package "+clause+`

import "os"

var activeVariant = os.Getenv("`+Environment+`")

func variant(name string) bool { return name == activeVariant }
`)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
