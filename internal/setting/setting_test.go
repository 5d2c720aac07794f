package setting_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/setting"
)

func TestOrDefaults(t *testing.T) {
	type limits struct {
		Set     int           `env:"SET" default:"5" code:"TOO_MANY (503)" meaning:"maximum 'set'"`
		Unset   int           `env:"UNSET" default:"5" code:"TOO_MANY" meaning:"maximum unset"`
		Timeout time.Duration `env:"TIMEOUT" default:"1s" exceeded:"no error" meaning:"maximum time"`
	}
	given := limits{Set: 3}
	if got, want := setting.OrDefaults(given), (limits{3, 5, time.Second}); got != want || given.Unset != 0 {
		t.Errorf("the limits are %v, want %v, and the argument unchanged: %v", got, want, given)
	}
	rows := setting.Limits(&given)
	for i, want := range []setting.Setting{
		{Name: "SET", Exceeded: "`TOO_MANY` (503)", Meaning: "maximum `set`"},
		{Name: "UNSET", Exceeded: "`TOO_MANY`", Meaning: "maximum unset"},
		{Name: "TIMEOUT", Exceeded: "no error", Meaning: "maximum time"},
	} {
		if got := rows[i]; got.Name != want.Name || got.Exceeded != want.Exceeded || got.Meaning != want.Meaning {
			t.Errorf("row %d is %+v, want %+v", i, got, want)
		}
	}
}

func TestCodes(t *testing.T) {
	type codes struct {
		A string `code:"TOO_MANY (503)"`
		B string `code:"TOO_DEEP"`
	}
	if got, want := setting.ErrorCodes[codes](), (codes{"TOO_MANY", "TOO_DEEP"}); got != want {
		t.Errorf("the codes are %q, want %q", got, want)
	}
}

func TestMalformedLimitsPanic(t *testing.T) {
	const complete = `env:"A" default:"1" code:"B" meaning:"C"`
	for name, field := range map[string]reflect.StructField{
		"wrong type":     {Type: reflect.TypeFor[string](), Tag: complete},
		"no variable":    {Type: reflect.TypeFor[int](), Tag: `default:"1" code:"B" meaning:"C"`},
		"no default":     {Type: reflect.TypeFor[int](), Tag: `env:"A" code:"B" meaning:"C"`},
		"no code":        {Type: reflect.TypeFor[int](), Tag: `env:"A" default:"1" meaning:"C"`},
		"no meaning":     {Type: reflect.TypeFor[int](), Tag: `env:"A" default:"1" code:"B"`},
		"missing quotes": {Type: reflect.TypeFor[int](), Tag: `env:A default:"1" code:"B" meaning:"C"`},
	} {
		field.Name = "Field"
		if !panics(func() { setting.Limits(reflect.New(reflect.StructOf([]reflect.StructField{field})).Interface()) }) {
			t.Errorf("%s: no panic", name)
		}
	}
	type zero struct {
		Field int `env:"A" default:"0" code:"B" meaning:"C"`
	}
	if !panics(func() { setting.OrDefaults(zero{}) }) {
		t.Error("a default of 0 did not panic")
	}
	type good struct {
		Field int `env:"A" default:"1" code:"B" meaning:"C"`
	}
	if panics(func() { setting.OrDefaults(good{}) }) {
		t.Error("a valid limit panics")
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

func TestNames(t *testing.T) {
	var secret []byte
	for _, c := range []struct {
		setting   setting.Setting
		flag      string
		variables []string
	}{
		{setting.Setting{Name: "ORDERGRAPH_MAX_BODY"}, "max-body", []string{"ORDERGRAPH_MAX_BODY"}},
		{setting.Setting{Name: "PORT"}, "port", []string{"PORT"}},
		{setting.Setting{Name: "AUTH", AliasOf: "ORDERGRAPH_AUTH"}, "", []string{"AUTH"}},
		{setting.Setting{Name: "ORDERGRAPH_KEY", Value: setting.Secret(&secret, 1)}, "key-file", []string{"ORDERGRAPH_KEY", "ORDERGRAPH_KEY_FILE"}},
	} {
		if flag, variables := c.setting.Flag(), c.setting.Variables(); flag != c.flag || !reflect.DeepEqual(variables, c.variables) {
			t.Errorf("%s has the flag %q and the variables %q, want %q and %q", c.setting.Name, flag, variables, c.flag, c.variables)
		}
	}
}

func TestPlainMeaning(t *testing.T) {
	s := setting.Setting{Meaning: "the [Go `x`](https://go.dev/a#b) and [shares](limits.md#shares); `on` or [1]"}
	if got, want := s.PlainMeaning(), "the Go x and shares; on or [1]"; got != want {
		t.Errorf("the meaning is %q, want %q", got, want)
	}
}
