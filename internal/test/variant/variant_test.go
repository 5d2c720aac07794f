package variant_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/variant"
)

// One binary passes without the variant and fails with it.
func TestRun(t *testing.T) {
	variants, files := variant.Read(t, "testdata/variants")
	if len(variants) != 1 || variants[0].Name != "always_long" || variants[0].Area != "tests" {
		t.Fatalf("Read returns %+v", variants)
	}
	binary := variant.Build(t, files, "./internal/test/longtest")
	if r := variant.Run(t, binary, "", time.Minute, "-test.run=^TestSize$"); r.Failed || r.CPU <= 0 {
		t.Errorf("without a variant, the test uses %s and fails:\n%s", r.CPU, r.Output)
	}
	if r := variant.Run(t, binary, "always_long", time.Minute, "-test.run=^TestSize$"); !r.Failed || !strings.Contains(r.Output, "by default the size is 30, want 2") {
		t.Errorf("with the variant, the test passes or fails for another reason:\n%s", r.Output)
	}
}

// patch returns a file of patches with a variant.
func patch(name, file, old, text string) string {
	return "=== " + name + "\nabout: a bug\narea: tests\nfile: " + file + "\n---\n" + old + "+++\n" + text
}

func TestApply(t *testing.T) {
	const good = "if variant(\"a\") {\n"
	for name, test := range map[string]struct{ patches, err string }{
		"no name":           {"about: a bug\n", "the first line must be === NAME"},
		"another line":      {"=== a\nabut: a bug\n", "2: \"abut: a bug\\n\" is neither a text"},
		"no edit":           {"=== a\nabout: a bug\narea: tests\n", "has no name, about, area or file"},
		"the same name":     {patch("a", "f.go", "one\n", good) + patch("a", "f.go", "two\n", good), `variant "a" is listed twice`},
		"no switch":         {patch("a", "f.go", "one\n", "two\n"), `no new text calls variant("a")`},
		"no file":           {patch("a", "g.go", "one\n", good), "g.go: file does not exist"},
		"another text":      {patch("a", "f.go", "three\n", good), "the old text must occur exactly once in f.go"},
		"part of a line":    {patch("a", "f.go", "ne\n", good), "the old text must occur exactly once in f.go"},
		"ambiguous":         {patch("a", "f.go", "both\n", good), "the old text must occur exactly once in f.go"},
		"overlapping edits": {patch("a", "f.go", "one\nboth\n", good) + patch("b", "f.go", "both\ntwo\n", "variant(\"b\")\n"), `variants "a" and "b" edit the same lines of f.go`},
	} {
		variants, err := variant.Parse(fstest.MapFS{"x.txt": {Data: []byte(test.patches)}})
		if err == nil {
			_, err = variant.Apply(fstest.MapFS{"f.go": {Data: []byte("one\nboth\ntwo\nboth\n")}}, variants)
		}
		if err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, want %q", name, err, test.err)
		}
	}
	variants, err := variant.Parse(fstest.MapFS{
		"x.txt": {Data: []byte(patch("b", "f.go", "two\n", "variant(\"b\")\n"))},
		"y.txt": {Data: []byte(patch("a", "f.go", "one\n", good+"one\n"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := variant.Apply(fstest.MapFS{"f.go": {Data: []byte("one\nboth\ntwo\nboth\n")}}, variants)
	if want := good + "one\nboth\nvariant(\"b\")\nboth\n"; err != nil || files["f.go"] != want {
		t.Errorf("Apply returns %q, %v, want %q", files["f.go"], err, want)
	}
}
