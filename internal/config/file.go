package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFileBytes is the maximum size in bytes of a configuration file or of a file with a secret.
const maxFileBytes = 1 << 20

// variableNamePattern matches the variable names that a configuration file can contain.
var variableNamePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,99}$`)

// fileLine is a line of a configuration file, in the form NAME=value.
type fileLine struct {
	number      int
	name, value string
}

// parseFile parses a configuration file. A value must not be in quotes or contain a backslash,
// because systemd and Docker interpret quotes and backslashes differently. The messages in problems
// contain no values, because a value may be a secret.
func parseFile(text string) (lines []fileLine, problems []string) {
	seen := map[string]int{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		trimmed := strings.TrimSpace(line)
		name, value, assigns := strings.Cut(strings.TrimLeft(line, " \t"), "=")
		problem := ""
		switch {
		case strings.HasSuffix(line, `\`):
			problem = "the line ends with a backslash, but cannot continue on the next line: remove the backslash"
		case trimmed == "" || trimmed[0] == '#':
			continue
		case !assigns:
			problem = "the line is not an assignment: write NAME=value, or start a comment with #"
		case !variableNamePattern.MatchString(name):
			problem = "the name before = must consist of A-Z, 0-9 and _, without spaces and without the word export"
		case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
			problem = name + " has a value with a control character or invalid UTF-8"
		case strings.TrimSpace(value) != value:
			problem = name + " has a value with spaces around it: remove the spaces"
		case strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "'"):
			problem = name + " has a value in quotes: remove the quotes"
		case strings.Contains(value, `\`):
			problem = name + " has a value with a backslash: remove the backslash"
		case seen[name] > 0:
			problem = fmt.Sprintf("%s is already set in line %d", name, seen[name])
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("line %d: %s", number, problem))
			continue
		}
		seen[name] = number
		lines = append(lines, fileLine{number, name, value})
	}
	return lines, problems
}

// readFile returns the content of a file of at most maxFileBytes bytes. The errors of readFile do
// not contain the path, because the path may be a secret that an operator configured by mistake.
func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", withoutPath(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(text) > maxFileBytes {
		err = fmt.Errorf("it exceeds %d bytes", maxFileBytes)
	}
	return string(text), withoutPath(err)
}

// withoutPath removes the path from a file system error.
func withoutPath(err error) error {
	if wrapped, ok := errors.AsType[*fs.PathError](err); ok {
		return wrapped.Err
	}
	return err
}

// loadFile reads the configuration file at path. It returns the values in the file as a
// sourceLayer. It also returns a message for each invalid line and for each name that is not a
// setting.
func loadFile(path string) (sourceLayer, []string) {
	text, err := readFile(path)
	if err != nil {
		return sourceLayer{}, []string{fmt.Sprintf("%s names the file %s, which cannot be read: %v", fileSettingName, path, err)}
	}
	lines, problems := parseFile(text)
	known := settingVariables()
	for i, p := range problems {
		problems[i] = path + ": " + p
	}
	for _, l := range lines {
		switch {
		case l.name == fileSettingName:
			problems = append(problems, fmt.Sprintf("%s: line %d: %s cannot be set in the file itself", path, l.number, l.name))
		case strings.HasPrefix(l.name, "AWS_") || strings.HasPrefix(l.name, "OTEL_"):
			problems = append(problems, fmt.Sprintf("%s: line %d: %s cannot be set in this file: set the environment variable instead", path, l.number, l.name))
		case slices.Contains(known, l.name):
		default:
			problems = append(problems, fmt.Sprintf("%s: line %d: %s", path, l.number, describeUnknown(l.name)))
		}
	}
	return sourceLayer{source: SourceFile, get: func(name string) (string, string, bool) {
		i := slices.IndexFunc(lines, func(l fileLine) bool { return l.name == name })
		if i < 0 {
			return "", "", false
		}
		return lines[i].value, fmt.Sprintf("%s:%d", path, lines[i].number), lines[i].value != ""
	}}, problems
}
