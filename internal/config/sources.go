package config

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/ordergraph/ordergraph/internal/setting"
)

// Source identifies where the value of a setting comes from. A greater Source takes precedence.
type Source int

// The sources of a value, from the lowest to the highest precedence.
const (
	SourceDefault Source = iota
	SourceFile
	SourceEnvironment
	SourceFlag
)

// defaultSourceText is the text for SourceDefault in Effective.Source.
const defaultSourceText = "default"

// Sources contains the inputs that ReadFrom reads.
type Sources struct {
	// Getenv returns the value of an environment variable.
	Getenv func(name string) string
	// Environ returns all environment variables in the form NAME=value. ReadFrom returns a warning for
	// each misspelled setting among them. If Environ is nil, there are no warnings.
	Environ func() []string
	// Flags contains the values of flags, by the name of the environment variable with the same
	// meaning.
	Flags map[string]string
}

// Getenv returns an environment variable of this process.
func Getenv(name string) string { return os.Getenv(name) }

// Environ returns the environment variables of this process in the form NAME=value.
func Environ() []string { return os.Environ() }

// fileSettingName is the name of the setting that contains the path of the configuration file.
const fileSettingName = "ORDERGRAPH_CONFIG"

// sourceLayer is a source of values. get returns the text of a variable and reports whether the variable
// is set. place describes where the text is, for messages. An empty environment variable or an
// empty value in the file counts as not set.
type sourceLayer struct {
	source Source
	get    func(name string) (text, place string, ok bool)
}

// layers returns the layers of the flags, the environment and the configuration file (if any), in
// this order of precedence. layers also returns the problems of the file.
func (s Sources) layers() ([]sourceLayer, []string) {
	all := []sourceLayer{
		{SourceFlag, func(name string) (string, string, bool) {
			text, ok := s.Flags[name]
			return text, "flag", ok
		}},
		{SourceEnvironment, func(name string) (string, string, bool) {
			text := s.Getenv(name)
			return text, "environment", text != ""
		}},
	}
	path, ok := s.Flags[fileSettingName]
	if !ok {
		path = s.Getenv(fileSettingName)
	}
	if path == "" {
		return all, nil
	}
	file, problems := loadFile(path)
	if file.get != nil {
		all = append(all, file)
	}
	return all, problems
}

// SettingText returns the text of one setting, which must not be a secret. The text is empty if no source
// sets the setting. Text does not validate other settings.
func (s Sources) SettingText(name string) (string, error) {
	layers, problems := s.layers()
	for _, l := range layers {
		if text, _, ok := l.get(name); ok {
			return text, newInvalidError(problems, false)
		}
	}
	return "", newInvalidError(problems, false)
}

// foundText is the text of a setting.
type foundText struct {
	text   string
	source Source
	// place describes the source in messages and in Effective.Source. label names the setting in error
	// messages, as the operator wrote it.
	place, label string
	// secretFile is the path of the file that contained the text.
	secretFile string
}

// findText returns the text of a setting from the first layer that sets it. It returns an error if this
// layer sets both the secret and the file of the secret, or if the file is unreadable.
func findText(s setting.Setting, layers []sourceLayer) (foundText, error) {
	for _, l := range layers {
		for _, name := range slices.Backward(s.Variables()) {
			text, place, ok := l.get(name)
			if !ok {
				continue
			}
			f := foundText{text: text, source: l.source, place: place, label: name}
			switch l.source {
			case SourceFlag:
				f.label = "-" + s.Flag()
			case SourceFile:
				f.label = place + ": " + name
				f.place = "file " + place
			}
			if name == s.Name {
				return f, nil
			}
			if _, _, both := l.get(s.Name); both {
				return f, fmt.Errorf("%s and %s are both set: unset one of them", s.Name, name)
			}
			secret, err := readSecret(text)
			if err != nil {
				return f, fmt.Errorf("%s does not name a readable file (%w): set it to the path of a file that contains the secret", f.label, err)
			}
			f.text, f.secretFile = secret, text
			return f, nil
		}
	}
	return foundText{place: defaultSourceText, label: s.Name}, nil
}

// settingVariables returns the names of all environment variables that set a setting.
func settingVariables() (names []string) {
	for _, section := range Sections() {
		for _, s := range section.Settings {
			names = append(names, s.Variables()...)
		}
	}
	return names
}

// kubernetesVariablePattern matches the environment variables that Kubernetes sets in each Pod for each
// Service. If the name of a Service begins with ordergraph, the names of its variables begin with
// ORDERGRAPH_.
var kubernetesVariablePattern = regexp.MustCompile(`^[A-Z0-9_]+(_SERVICE_HOST|_SERVICE_PORT|_SERVICE_PORT_[A-Z0-9_]+|_PORT_[0-9]+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?|_PORT=(tcp|udp|sctp)://.*)(=|$)`)

// misspellingWarnings returns a warning for each environment variable that begins with ORDERGRAPH_ and is
// not a setting. It ignores variables for tests, and variables that Kubernetes sets.
func (s Sources) misspellingWarnings() (warnings []string) {
	if s.Environ == nil {
		return nil
	}
	known := settingVariables()
	for _, v := range s.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "ORDERGRAPH_") && !strings.HasPrefix(name, "ORDERGRAPH_TEST_") && !slices.Contains(known, name) && !kubernetesVariablePattern.MatchString(v) {
			warnings = append(warnings, "the environment variable "+describeUnknown(name))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// describeUnknown returns a message for a name that is not a setting. If a setting has a similar
// name, the message suggests that setting.
func describeUnknown(name string) string {
	known := settingVariables()
	nearest := slices.MinFunc(known, func(a, b string) int {
		return cmp.Compare(levenshtein.ComputeDistance(name, a), levenshtein.ComputeDistance(name, b))
	})
	if levenshtein.ComputeDistance(name, nearest) > len(name)/3 {
		return name + " is not a setting: `ordergraph help config` lists the settings"
	}
	return name + " is not a setting: did you mean " + nearest + "?"
}
