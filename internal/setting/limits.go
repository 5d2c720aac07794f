package setting

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Limits returns a row for each field of the struct that limits points to. A field is an int, read
// as a Limit, or a time.Duration, read as a Timeout. Its tag has the rest:
//
//	Body int `env:"ORDERGRAPH_MAX_BODY" default:"131072" code:"BODY_TOO_LARGE (413)" meaning:"bytes of a request body"`
//
// The code is the error code that a client gets beyond the limit, and the HTTP status if it has one
// of its own. Where a client gets no error, the tag has Setting.Exceeded instead, as exceeded. Tags
// cannot contain backquotes, so single quotes stand for them.
//
// Limits panics if a field has another type or an incomplete tag.
func Limits(limits any) (rows []Setting) {
	for field, value := range reflect.ValueOf(limits).Elem().Fields() {
		text := func(key string) string { return strings.ReplaceAll(field.Tag.Get(key), "'", "`") }
		row := Setting{Name: text("env"), Meaning: text("meaning"), Exceeded: text("exceeded")}
		if code, status, _ := strings.Cut(text("code"), " "); code != "" {
			row.Exceeded = strings.TrimSpace("`" + code + "` " + status)
		}
		switch to := value.Addr().Interface().(type) {
		case *int:
			row.Value = Limit(to, text("default"))
		case *time.Duration:
			row.Value = Timeout(to, text("default"))
		}
		if slices.Contains([]string{row.Name, row.Default, row.Exceeded, row.Meaning}, "") {
			panic(fmt.Sprintf("the limit %s %s needs the type int or time.Duration, and a tag with env, default, meaning, and code or exceeded", field.Name, field.Type))
		}
		rows = append(rows, row)
	}
	return rows
}

// OrDefaults returns limits with the default of each field that is zero. It panics if Limits does,
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

// Codes returns the error codes in the tags of limits, in a struct of strings that has these tags.
func Codes[T any]() (codes T) {
	for field, value := range reflect.ValueOf(&codes).Elem().Fields() {
		code, _, _ := strings.Cut(field.Tag.Get("code"), " ")
		value.SetString(code)
	}
	return codes
}
