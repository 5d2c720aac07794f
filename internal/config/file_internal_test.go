package config

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzParseFile checks that parseFile accepts, reports or ignores each line, and that problems
// contain no values. A file of the accepted lines must parse to the same settings.
func FuzzParseFile(f *testing.F) {
	for _, text := range []string{"", "A=b", "A=b\nA=c\n", "# x\\\n", "A='b'\r\n;\n =", "\ufeffA=b", "A= b\n\n  B=c=d#e", "A=\x00\xff\\"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, problems := parseFile(text)
		if total := strings.Count(text, "\n") + 1; len(lines)+len(problems) > total {
			t.Fatalf("%d settings and %d problems in %d lines", len(lines), len(problems), total)
		}
		all := strings.Split(text, "\n")
		var again strings.Builder
		for _, l := range lines {
			if source := strings.TrimSuffix(all[l.number-1], "\r"); strings.TrimLeft(source, " \t") != l.name+"="+l.value {
				t.Fatalf("line %d is %q, and was parsed to %s=%s", l.number, source, l.name, l.value)
			}
			fmt.Fprintf(&again, "%s=%s\n", l.name, l.value)
		}
		for _, p := range problems {
			var number int
			if _, err := fmt.Sscanf(p, "line %d: ", &number); err != nil || number < 1 || number > len(all) {
				t.Fatalf("the problem %q has no valid line number", p)
			}
		}
		reparsed, problems := parseFile(again.String())
		if len(reparsed) != len(lines) || len(problems) > 0 {
			t.Fatalf("%q is parsed to %v, %q, want %v", again.String(), reparsed, problems, lines)
		}
		for i, l := range reparsed {
			if l.name != lines[i].name || l.value != lines[i].value {
				t.Fatalf("setting %d is %v, want %v", i, l, lines[i])
			}
		}
	})
}
