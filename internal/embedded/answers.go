package embedded

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/truora/minidyn/server"
)

// spelled converts a response to values that encode to DynamoDB's JSON, including empty lists, maps
// and bytes. The engine's own types omit empty values, and the SDK then decodes the value as the
// type of the value before it.
func spelled(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		switch {
		case v.IsNil():
			return nil
		case v.Type() == reflect.TypeFor[*server.AttributeValue]():
			// Most values are texts and numbers: they are encoded without reflection.
			switch a := v.Interface().(*server.AttributeValue); {
			case a.S != nil:
				return map[string]*string{"S": a.S}
			case a.N != nil:
				return map[string]*string{"N": a.N}
			}
			return fields(v.Elem(), func(f reflect.Value) bool { return f.IsNil() })
		}
		return spelled(v.Elem())
	case reflect.Struct:
		return fields(v, func(f reflect.Value) bool {
			// An empty LastEvaluatedKey would mean that more pages follow.
			return f.IsZero() || f.Kind() == reflect.Map && f.Len() == 0
		})
	case reflect.Map:
		values := make(map[string]any, v.Len())
		for name, value := range v.Seq2() {
			if a, ok := value.Interface().(*server.AttributeValue); ok && emptied(a) {
				continue
			}
			values[name.String()] = spelled(value)
		}
		return values
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[[]byte]() {
			return v.Interface()
		}
		values := make([]any, v.Len())
		for i := range values {
			values[i] = spelled(v.Index(i))
		}
		return values
	default:
		return v.Interface()
	}
}

// fields returns a struct's fields by their JSON names, except the fields that are omitted.
func fields(v reflect.Value, leftOut func(reflect.Value) bool) map[string]any {
	values := map[string]any{}
	for field, value := range v.Fields() {
		if !leftOut(value) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			values[cmp.Or(name, field.Name)] = spelled(value)
		}
	}
	return values
}

// emptied reports whether a value is an empty set. DynamoDB removes such an attribute.
func emptied(a *server.AttributeValue) bool {
	return a.SS != nil && len(a.SS) == 0 || a.NS != nil && len(a.NS) == 0 || a.BS != nil && len(a.BS) == 0
}
