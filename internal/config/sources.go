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

// Source identifies where the value of a setting comes from. If several sources set a setting, the
// greatest Source takes precedence.
type Source int

// The sources of a value, from the lowest to the highest precedence.
const (
	SourceDefault Source = iota
	SourceFile
	SourceEnvironment
	SourceFlag
)

// defaultSourceText is the value of EffectiveSetting.Source for SourceDefault.
const defaultSourceText = "default"

// Sources contains the flags and the environment variables that ReadFrom reads.
type Sources struct {
	// Getenv returns the value of an environment variable.
	Getenv func(name string) string
	// Environ returns all environment variables in the form NAME=value. ReadFrom uses it to warn about
	// misspelled settings. If Environ is nil, there are no warnings.
	Environ func() []string
	// Flags maps the name of a setting's environment variable to the value of the setting's flag.
	Flags map[string]string
}

// Getenv returns an environment variable of this process.
func Getenv(name string) string { return os.Getenv(name) }

// Environ returns the environment variables of this process in the form NAME=value.
func Environ() []string { return os.Environ() }

// fileSettingName is the name of the setting that contains the path of the configuration file.
const fileSettingName = "ORDERGRAPH_CONFIG"

// sourceLayer reads the values of settings from one source.
type sourceLayer struct {
	source Source
	// get returns the text of a variable, and a description of the source, such as "flag", for
	// messages. The result ok is false if the source does not set the variable. An empty text counts
	// as not set, except in a flag.
	get func(name string) (text, place string, ok bool)
}

// layers returns the sourceLayers of the flags, the environment and the configuration file, in this
// order of precedence. It omits the file if none is configured. layers also returns the problems in
// the file.
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

// SettingText returns the unvalidated text of a setting that is not a secret. If no source sets the
// setting, the text is empty. The error describes problems of the configuration file.
func (s Sources) SettingText(name string) (string, error) {
	layers, problems := s.layers()
	for _, l := range layers {
		if text, _, ok := l.get(name); ok {
			return text, newInvalidError(problems, false)
		}
	}
	return "", newInvalidError(problems, false)
}

// foundText is the text of a setting, and where it comes from.
type foundText struct {
	text   string
	source Source
	// place describes the source, such as "environment". It is also the value of
	// EffectiveSetting.Source. label names the setting in error messages, in the form that the
	// operator used, such as -max-body.
	place, label string
	// secretFile is the path of the file that contained the secret. It is empty if the text does not
	// come from such a file.
	secretFile string
}

// findText returns the text of a setting from the first source in layers that sets it. If this
// source sets a secret and also a file with the secret, findText returns an error. An unreadable
// file is an error, too.
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

// settingVariables returns the names of the environment variables of all settings.
func settingVariables() (names []string) {
	for _, section := range Sections() {
		for _, s := range section.Settings {
			names = append(names, s.Variables()...)
		}
	}
	return names
}

// kubernetesVariablePattern matches the environment variables that Kubernetes sets for each
// Service. If a Service's name begins with ordergraph, its variables begin with ORDERGRAPH_, but
// are not settings.
var kubernetesVariablePattern = regexp.MustCompile(`^[A-Z0-9_]+(_SERVICE_HOST|_SERVICE_PORT|_SERVICE_PORT_[A-Z0-9_]+|_PORT_[0-9]+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?|_PORT=(tcp|udp|sctp)://.*)(=|$)`)

// misspellingWarnings returns a warning for each environment variable that begins with ORDERGRAPH_
// but is not a setting. It ignores variables that begin with ORDERGRAPH_TEST_, and variables that
// Kubernetes sets.
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
	if similar := Similar(name, settingVariables()); similar != "" {
		return name + " is not a setting: did you mean " + similar + "?"
	}
	return name + " is not a setting: `ordergraph help config` lists the settings"
}

// Similar returns the known name that an operator who wrote name probably meant. If no known name
// is similar, it returns an empty string.
func Similar(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	nearest := slices.MinFunc(known, func(a, b string) int {
		return cmp.Compare(levenshtein.ComputeDistance(name, a), levenshtein.ComputeDistance(name, b))
	})
	if levenshtein.ComputeDistance(name, nearest) > (len(name)+2)/3 {
		return ""
	}
	return nearest
}
