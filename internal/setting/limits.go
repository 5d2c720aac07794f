package setting

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Limits returns a setting for each field of a struct. The argument must be a pointer to the
// struct. If a field has an incomplete tag, or a type other than int and time.Duration, Limits
// panics. Example:
//
//	Body int `env:"ORDERGRAPH_MAX_BODY" default:"131072" code:"BODY_TOO_LARGE (413)" meaning:"bytes of a request body"`
func Limits(limits any) (rows []Setting) {
	for field, value := range reflect.ValueOf(limits).Elem().Fields() {
		// Tags cannot contain backquotes, so they contain single quotes instead.
		text := func(key string) string { return strings.ReplaceAll(field.Tag.Get(key), "'", "`") }
		row := Setting{Name: text("env"), Meaning: text("meaning"), Exceeded: text("exceeded")}
		// "code" contains the error code and its HTTP status. If the client receives no error, the tag
		// contains "exceeded" instead.
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
			panic(fmt.Sprintf("the field %s of type %s is not a valid limit: it needs the type int or time.Duration, and a tag with env, default, meaning, and either code or exceeded", field.Name, field.Type))
		}
		rows = append(rows, row)
	}
	return rows
}

// OrDefaults returns a copy of limits in which each zero field is set to its default. It panics if
// Limits panics, or if a default is invalid.
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

// ErrorCodes returns a struct that contains an error code in each field. The error code of a field
// comes from the field's struct tag. T must be a struct whose fields are strings.
func ErrorCodes[T any]() (codes T) {
	for field, value := range reflect.ValueOf(&codes).Elem().Fields() {
		code, _, _ := strings.Cut(field.Tag.Get("code"), " ")
		value.SetString(code)
	}
	return codes
}
