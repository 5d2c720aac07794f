package setting

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Limits returns a setting for each field of the struct that limits points to. An int field is read
// as a Limit, and a time.Duration as a Timeout. The field's tag has the rest:
//
//	Body int `env:"ORDERGRAPH_MAX_BODY" default:"131072" code:"BODY_TOO_LARGE (413)" meaning:"bytes of a request body"`
//
// The code is the error code that a client gets beyond the limit. The error's HTTP status follows
// the code if the error has a status of its own. If the client gets no error, the tag has the key
// exceeded, with the text of Setting.Exceeded, instead of a code. Tags cannot contain backquotes,
// so single quotes stand for them.
//
// Limits panics if a field has another type or an incomplete tag.
func Limits(limits any) (rows []Setting) {
	for field, value := range reflect.ValueOf(limits).Elem().Fields() {
		text := func(key string) string { return strings.ReplaceAll(field.Tag.Get(key), "'", "`") }
		row := Setting{Name: text("env"), Meaning: text("meaning"), Exceeded: text("exceeded")}
		if code, status, _ := strings.Cut(text("code"), " "); code != "" {
			row.Exceeded = strings.TrimSpace("`" + code + "` " + status)
		}
		switch target := value.Addr().Interface().(type) {
		case *int:
			row.Value = Limit(target, text("default"))
		case *time.Duration:
			row.Value = Timeout(target, text("default"))
		}
		if slices.Contains([]string{row.Name, row.Default, row.Exceeded, row.Meaning}, "") {
			panic(fmt.Sprintf("the limit %s %s needs the type int or time.Duration, and a tag with env, default, meaning, and code or exceeded", field.Name, field.Type))
		}
		rows = append(rows, row)
	}
	return rows
}

// OrDefaults returns limits with the default in each field that is zero. It panics if Limits does,
// or if a field does not accept its default.
func OrDefaults[T any](limits T) T {
	for i, row := range Limits(&limits) {
		if reflect.ValueOf(limits).Field(i).IsZero() {
			if err := row.Read(""); err != nil {
				panic(err)
			}
		}
	}
	return limits
}

// Codes returns the error codes in the tags of limits. T is a struct of strings that has these
// tags.
func Codes[T any]() (codes T) {
	for field, value := range reflect.ValueOf(&codes).Elem().Fields() {
		code, _, _ := strings.Cut(field.Tag.Get("code"), " ")
		value.SetString(code)
	}
	return codes
}
