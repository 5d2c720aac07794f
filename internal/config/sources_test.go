package config_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// write writes a file and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// effective returns the effective value of a setting.
func effective(t *testing.T, c config.Config, name string) config.EffectiveSetting {
	t.Helper()
	i := slices.IndexFunc(c.Effective, func(e config.EffectiveSetting) bool { return e.Name == name })
	if i < 0 {
		t.Fatalf("no effective value of %s", name)
	}
	return c.Effective[i]
}

// validText returns a text that is valid for the setting and differs from its default.
func validText(t *testing.T, s setting.Setting) string {
	t.Helper()
	for _, text := range []string{"a secret of more than thirty-two letters", "7", "7s", "on", "off", "none", "debug", "dynamodb", "catalog", ":7", "EUR", "https://a.example", "host.example", "whsec_c2VjcmV0IG9mIGEgd2ViaG9vaw==", "10.0.0.0/8", "ADMIN=2", "text", "json", "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="} {
		if text != s.Default && s.Set(text) == nil {
			return text
		}
	}
	t.Fatalf("no text of the list is valid for %s: add one", s.Name)
	return ""
}

// places returns all ways to set a variable to a text. The key is the Effective.Source of the
// value.
func places(t *testing.T, s setting.Setting, variable, text string) map[string]config.Sources {
	t.Helper()
	file := write(t, "# settings\n"+variable+"="+text+"\n")
	all := map[string]config.Sources{
		"environment": {Getenv: environment(variable + "=" + text)},
		"flag":        {Getenv: environment(), Flags: map[string]string{variable: text}},
		// Effective.Source contains the path of the configuration file and the number of the line.
		"file " + file + ":2": {Getenv: environment(), Flags: map[string]string{"ORDERGRAPH_CONFIG": file}},
	}
	if s.Flag() == "" {
		delete(all, "flag")
	}
	return all
}

// Every setting can be set in every source. If the value of a limit is invalid, the error names the
// setting and the place of the value.
func TestSources(t *testing.T) {
	flags := map[string]bool{}
	for _, s := range settings() {
		if s.Name == "ORDERGRAPH_CONFIG" {
			continue
		}
		if flag := s.Flag(); flag != "" && flags[flag] || flag == "" && s.AliasOf == "" && !s.EnvironmentOnly {
			t.Errorf("the flag of %s is %q, which is empty or the flag of another setting", s.Name, flag)
		} else {
			flags[flag] = true
		}
		text := validText(t, s)
		for _, variable := range s.Variables() {
			given, want := text, config.EffectiveSetting{Name: s.Name, Value: text}
			if s.Secret {
				want.Value = "********"
			}
			if variable != s.Name {
				given = write(t, text+"\n")
				want.SecretFile = given
			}
			for place, sources := range places(t, s, variable, given) {
				want.Source = place
				c, _ := config.ReadFrom(sources) // some settings require others
				if got := effective(t, c, s.Name); got != want {
					t.Errorf("%s from the %s is %+v, want %+v", variable, place, got, want)
				}
			}
		}
		if s.Exceeded == "" {
			continue
		}
		for place, sources := range places(t, s, s.Name, "none") {
			label := s.Name
			if path, ok := strings.CutPrefix(place, "file "); ok {
				label = path + ": " + s.Name
			} else if place == "flag" {
				label = "-" + s.Flag()
			}
			c, err := config.ReadFrom(sources)
			invalid, ok := errors.AsType[*config.InvalidError](err)
			if !ok || !strings.HasPrefix(err.Error(), label+` is "none": set it to `) || invalid.FromFlag != (place == "flag") {
				t.Errorf("%s=none from the %s: %v, want an error that begins with %s", s.Name, place, err, label)
			}
			if got := effective(t, c, s.Name); got.Problem != err.Error() || got.Value != "none" || got.Source != place {
				t.Errorf("the effective value is %+v, want the problem %v", got, err)
			}
		}
	}
}

// A flag takes precedence over the environment, and the environment over the file.
func TestPrecedence(t *testing.T) {
	file := write(t, "ORDERGRAPH_TABLE=from-file\nORDERGRAPH_SHARDS=\n")
	variables := []string{"ORDERGRAPH_CONFIG=" + file, "ORDERGRAPH_TABLE=from-environment"}
	for _, c := range []struct {
		sources       config.Sources
		table, source string
	}{
		{config.Sources{Getenv: environment(variables...), Flags: map[string]string{"ORDERGRAPH_TABLE": "from-flag"}}, "from-flag", "flag"},
		{config.Sources{Getenv: environment(variables...), Flags: map[string]string{"ORDERGRAPH_TABLE": ""}}, "ordergraph", "flag"},
		{config.Sources{Getenv: environment(variables...)}, "from-environment", "environment"},
		{config.Sources{Getenv: environment(variables[0], "ORDERGRAPH_TABLE=")}, "from-file", "file " + file + ":1"},
		{config.Sources{Getenv: environment(variables[0]), Flags: map[string]string{"ORDERGRAPH_CONFIG": ""}}, "ordergraph", "default"},
		{config.Sources{Getenv: environment()}, "ordergraph", "default"},
	} {
		got, err := config.ReadFrom(c.sources)
		if e := effective(t, got, "ORDERGRAPH_TABLE"); err != nil || got.Table.Table != c.table || e.Value != c.table || e.Source != c.source {
			t.Errorf("the table is %s, %+v, %v, want %s from %s", got.Table.Table, e, err, c.table, c.source)
		}
		if e := effective(t, got, "ORDERGRAPH_SHARDS"); e.Source != "default" {
			t.Errorf("the empty line of the file sets %+v", e)
		}
		text, err := c.sources.SettingText("ORDERGRAPH_TABLE")
		if err != nil || text != c.table && c.table != "ordergraph" || text != "" && c.table == "ordergraph" {
			t.Errorf("Text returns %q, %v", text, err)
		}
	}
}

// ORDERGRAPH_ADDR takes precedence over PORT, unless PORT is set in a source of higher precedence.
func TestAddressAndPort(t *testing.T) {
	for _, c := range []struct {
		variables []string
		flags     map[string]string
		addr      string
		source    string
	}{
		{[]string{"PORT=1", "ORDERGRAPH_ADDR=:2"}, nil, ":2", "environment"},
		{[]string{"PORT=1"}, map[string]string{"ORDERGRAPH_ADDR": ":2"}, ":2", "flag"},
		{[]string{"ORDERGRAPH_ADDR=:2"}, map[string]string{"PORT": "1"}, "127.0.0.1:1", "flag"},
		{[]string{"PORT=1"}, nil, "127.0.0.1:1", "environment"},
		{nil, nil, "127.0.0.1:8080", "default"},
	} {
		got, err := config.ReadFrom(config.Sources{Getenv: environment(c.variables...), Flags: c.flags})
		if e := effective(t, got, "ORDERGRAPH_ADDR"); err != nil || got.Addr != c.addr || e.Value != c.addr || e.Source != c.source {
			t.Errorf("%v %v: the address is %s, %+v, %v, want %s from %s", c.variables, c.flags, got.Addr, e, err, c.addr, c.source)
		}
	}
}

// Effective contains the final values of settings that depend on other settings.
func TestDerivedValues(t *testing.T) {
	c, err := config.ReadFrom(config.Sources{Getenv: environment("AUTH=none")})
	if got := effective(t, c, "ORDERGRAPH_AUTH"); err != nil || got.Value != "none" || got.Source != "environment" {
		t.Errorf("ORDERGRAPH_AUTH is %+v, %v", got, err)
	}
	c, err = config.ReadFrom(config.Sources{Getenv: environment(secretVariables()...)})
	if got := effective(t, c, "ORDERGRAPH_RATE_BURST"); err != nil || got.Value != "200000" || got.Source != "default" {
		t.Errorf("ORDERGRAPH_RATE_BURST is %+v, %v", got, err)
	}
	c, err = config.ReadFrom(config.Sources{Getenv: environment()})
	if got := effective(t, c, "ORDERGRAPH_CURSOR_KEY"); err != nil || got.Value != "derived from the table's name" || got.Source != "default" {
		t.Errorf("ORDERGRAPH_CURSOR_KEY is %+v, %v", got, err)
	}
}

// A secret is the content of its file without one newline at the end. Only one of NAME and
// NAME_FILE can be set in one source. If they are set in different sources, the source of higher
// precedence applies.
func TestSecretFiles(t *testing.T) {
	const name = "ORDERGRAPH_CURSOR_KEY"
	for text, want := range map[string]string{"sixteen letters!": "sixteen letters!", "sixteen letters!\n": "sixteen letters!", "sixteen letters!\r\n": "sixteen letters!", "sixteen letters!\n\n": "sixteen letters!\n", " sixteen letters ": " sixteen letters "} {
		if got := read(t, name+"_FILE="+write(t, text)).CursorKey; string(got) != want {
			t.Errorf("the key in the file %q is %q, want %q", text, got, want)
		}
	}
	path := write(t, "the key in the file")
	file := write(t, name+"_FILE="+path)
	if got := read(t, "ORDERGRAPH_CONFIG="+file, name+"=the key in the environment").CursorKey; string(got) != "the key in the environment" {
		t.Errorf("the key is %q, want the variable", got)
	}
	file = write(t, name+"=the key in the configuration")
	if got := read(t, "ORDERGRAPH_CONFIG="+file, name+"_FILE="+path).CursorKey; string(got) != "the key in the file" {
		t.Errorf("the key is %q, want the file", got)
	}
	for want, variables := range map[string][]string{
		"ORDERGRAPH_CURSOR_KEY and ORDERGRAPH_CURSOR_KEY_FILE are both set": {name + "=the key itself", name + "_FILE=" + path},
		"ORDERGRAPH_CURSOR_KEY_FILE does not name a readable file (no such": {name + "_FILE=/nowhere/key"},
		"(is a directory)": {name + "_FILE=" + t.TempDir()},
		"(it is empty)":    {name + "_FILE=" + write(t, "\n")},
		"(it exceeds":      {name + "_FILE=" + write(t, strings.Repeat("x", 1<<20+1))},
		"has 5 characters": {name + "_FILE=" + write(t, "short\n")},
	} {
		if _, err := config.Read(environment(variables...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// Messages and effective values do not contain secrets.
func TestSecretsAreNotPrinted(t *testing.T) {
	const marker = "MARKER"
	const long = marker + " of more than thirty-two letters"
	path := write(t, long)
	var sources []config.Sources
	for _, s := range settings() {
		if !s.Secret {
			continue
		}
		for _, text := range []string{long, marker} {
			for _, in := range places(t, s, s.Name, text) {
				sources = append(sources, in)
			}
			for _, in := range places(t, s, s.Name+"_FILE", write(t, text)) {
				sources = append(sources, in)
			}
		}
		// By mistake, the operator sets the variable for the path of the file to the secret itself.
		for _, in := range places(t, s, s.Name+"_FILE", long) {
			sources = append(sources, in)
		}
		sources = append(sources, config.Sources{Getenv: environment(s.Name+"="+long, s.Name+"_FILE="+path)})
		misspelled := s.Name + "X=" + long
		sources = append(sources, config.Sources{Getenv: environment(), Environ: func() []string { return []string{misspelled} }})
	}
	for _, line := range []string{"ORDERGRAPH_CURSOR_KEYS=" + long, long, "export ORDERGRAPH_CURSOR_KEY=" + long, "ORDERGRAPH_CURSOR_KEY='" + long + "'", "ORDERGRAPH_CURSOR_KEY=" + long + `\` + "\n" + long, long + "=", "ORDERGRAPH_CURSOR_KEY: " + long} {
		sources = append(sources, config.Sources{Getenv: environment("ORDERGRAPH_CONFIG=" + write(t, line))})
	}
	for _, location := range []string{"https://MARKER:MARKER@id.example/keys", "https://MARKER@id.example/keys", "https://id.example/keys?token=MARKER", "https://id.example/keys#MARKER", "https://%zz/MARKER", "https://a@MARKER@id.example/"} {
		sources = append(sources, config.Sources{Getenv: environment("ORDERGRAPH_AUTH=jwt", "ORDERGRAPH_JWT_ISSUER=i", "ORDERGRAPH_JWT_AUDIENCE=a", "ORDERGRAPH_JWT_JWKS="+location)})
	}
	for i, in := range sources {
		c, err := config.ReadFrom(in)
		var text strings.Builder
		if err := config.WriteEffective(&text, c); err != nil {
			t.Fatal(err)
		}
		asJSON, jsonErr := json.Marshal(c.Effective)
		if jsonErr != nil {
			t.Fatal(jsonErr)
		}
		if err != nil {
			text.WriteString(err.Error())
		}
		if printed := text.String() + string(asJSON) + strings.Join(c.Warnings, "\n"); strings.Contains(printed, marker) {
			t.Errorf("source %d: a secret is printed: %s", i, printed)
		}
	}
}

// For each invalid line of the configuration file, the error contains the number of the line. The
// same error also reports invalid settings.
func TestMalformedFiles(t *testing.T) {
	for line, want := range map[string]string{
		"ORDERGRAPH_MAX_BODDY=5":          "ORDERGRAPH_MAX_BODDY is not a setting: did you mean ORDERGRAPH_MAX_BODY?",
		"ORDERGRAPH_CURSOR_KEYFILE=5":     "did you mean ORDERGRAPH_CURSOR_KEY_FILE?",
		"MAX_BODY=5":                      "MAX_BODY is not a setting: `ordergraph help config` lists the settings",
		"AWS_REGION=us-east-1":            "AWS_REGION cannot be set in this file",
		"OTEL_SERVICE_NAME=x":             "OTEL_SERVICE_NAME cannot be set in this file",
		"ORDERGRAPH_CONFIG=x":             "ORDERGRAPH_CONFIG cannot be set in the file itself",
		"ORDERGRAPH_TABLE":                "write NAME=value",
		"; a comment of systemd":          "write NAME=value",
		"ORDERGRAPH_TABLE = orders":       "must consist of A-Z",
		"export ORDERGRAPH_TABLE=orders":  "without the word export",
		"ordergraph_table=orders":         "must consist of A-Z",
		"=orders":                         "must consist of A-Z",
		"\ufeffORDERGRAPH_TABLE=orders":   "must consist of A-Z",
		"ORDERGRAPH_TABLE= orders":        "ORDERGRAPH_TABLE has a value with spaces around it",
		"ORDERGRAPH_TABLE=orders ":        "remove the spaces",
		`ORDERGRAPH_TABLE="orders"`:       "remove the quotes",
		"ORDERGRAPH_TABLE='orders'":       "remove the quotes",
		`ORDERGRAPH_TABLE=or\ders`:        "remove the backslash",
		`ORDERGRAPH_TABLE=orders\`:        "cannot continue on the next line",
		`# a comment \`:                   "cannot continue on the next line",
		"ORDERGRAPH_TABLE=or\x00ders":     "control character",
		"ORDERGRAPH_TABLE=or\xffders":     "invalid UTF-8",
		"ORDERGRAPH_LOG=debug":            "ORDERGRAPH_LOG is already set in line 3",
		"ORDERGRAPH_MAX_COST=many":        `ORDERGRAPH_MAX_COST is "many"`,
		"ORDERGRAPH_CURSOR_KEY_FILE=/x/y": "does not name a readable file",
	} {
		path := write(t, "\r\n # a comment\nORDERGRAPH_LOG=info\r\n"+line+"\nORDERGRAPH_SHARDS=129")
		_, err := config.ReadFrom(config.Sources{Getenv: environment("ORDERGRAPH_CONFIG=" + path)})
		invalid, ok := errors.AsType[*config.InvalidError](err)
		if !ok || len(invalid.Problems) != 2 || !slices.ContainsFunc(invalid.Problems, func(p string) bool {
			return strings.Contains(p, want) && (strings.HasPrefix(p, path+": line 4: ") || strings.HasPrefix(p, path+":4: "))
		}) {
			t.Errorf("%q: the error is %v, want %s in line 4", line, err, want)
			continue
		}
		if message := err.Error(); !strings.HasPrefix(message, "the settings have 2 problems:\n") || !strings.Contains(message, `:5: ORDERGRAPH_SHARDS is "129"`) {
			t.Errorf("%q: the error is %q, want both problems", line, message)
		}
	}
	if _, err := config.Read(environment("ORDERGRAPH_CONFIG=/nowhere/file")); err == nil || !strings.Contains(err.Error(), "/nowhere/file, which cannot be read: no such file") {
		t.Errorf("a missing file: %v", err)
	}
}

// parseFile keeps values as they are written. It does not expand variables or remove comments in a
// value.
func TestFileValues(t *testing.T) {
	path := write(t, "# comment\n\nORDERGRAPH_TABLE=orders\r\n  ORDERGRAPH_SHARDS=4\nORDERGRAPH_DATA=/a=b c#d $HOME it's.db\nORDERGRAPH_DOCUMENTS=")
	got := read(t, "ORDERGRAPH_CONFIG="+path)
	if got.Table.Table != "orders" || got.Table.Shards != 4 || got.Data != "/a=b c#d $HOME it's.db" || got.Documents != "" {
		t.Errorf("the configuration is %+v", got)
	}
}

// One error reports the problems of all checks that compare several settings.
func TestAllProblemsAtOnce(t *testing.T) {
	_, err := config.Read(environment("ORDERGRAPH_STORE=dynamodb", "ORDERGRAPH_DATA=x", "ORDERGRAPH_TRUSTED_ONLY=on", "ORDERGRAPH_RATE_BURST=1"))
	invalid, ok := errors.AsType[*config.InvalidError](err)
	if !ok || len(invalid.Problems) != 3 {
		t.Errorf("the error is %v, want 3 problems", err)
	}
}

// A misspelled environment variable causes a warning. Environment variables that Kubernetes sets do
// not.
func TestUnknownEnvironmentVariables(t *testing.T) {
	c, err := config.ReadFrom(config.Sources{Getenv: environment(), Environ: func() []string {
		return []string{"ORDERGRAPH_MAX_BODDY=7", "ORDERGRAPH_PORT=80", "ORDERGRAPH_TABLE=orders", "ORDERGRAPH_CURSOR_KEY_FILE=x", "PATH=/bin", "MAX_BODY=5", "ORDERGRAPH_TEST_LONG=1", "ORDERGRAPH_SOMETHING_DIFFERENT=1",
			"ORDERGRAPH_SERVICE_HOST=10.0.0.1", "ORDERGRAPH_SERVICE_PORT=8080", "ORDERGRAPH_SERVICE_PORT_HTTP=8080", "ORDERGRAPH_ADMIN_PORT=tcp://10.0.0.1:8080",
			"ORDERGRAPH_PORT_8080_TCP=tcp://10.0.0.1:8080", "ORDERGRAPH_PORT_8080_TCP_PROTO=tcp", "ORDERGRAPH_PORT_8080_TCP_PORT=8080", "ORDERGRAPH_PORT_8080_TCP_ADDR=10.0.0.1"}
	}})
	const want = "the environment variable ORDERGRAPH_MAX_BODDY is not a setting: did you mean ORDERGRAPH_MAX_BODY?"
	if err != nil || len(c.Warnings) != 3 || c.Warnings[0] != want || !strings.Contains(c.Warnings[1], "ORDERGRAPH_PORT ") || !strings.Contains(c.Warnings[2], "ORDERGRAPH_SOMETHING_DIFFERENT is not a setting: `ordergraph help config`") {
		t.Errorf("the warnings are %q, %v", c.Warnings, err)
	}
}
