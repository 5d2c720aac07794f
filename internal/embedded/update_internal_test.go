package embedded

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/truora/minidyn/server"
)

// FuzzUpdate verifies that no expression makes the store panic. An update must not change the
// record that it reads, the key, or attributes that it does not name.
func FuzzUpdate(f *testing.F) {
	for _, e := range []string{
		"SET n = n + :d, v = if_not_exists(v, :s) REMOVE #x ADD m :d",
		"set n = n - :d",
		"SET a = if_not_exists(a, if_not_exists(b, :d)) - n",
		"SET m.a[0] = :d REMOVE l[1]",
		"SET l = list_append(l, :s)",
		"DELETE s :d",
		"SET", "REMOVE SET n = :d", "SET n = (n + :d)", "SET n = n + n + n", "SET n = if_not_exists(n", "SET n = )(", "ADD n -1", "SET k = :d", "((", "", "SET n = n.", "SET n[",
	} {
		f.Add(e)
	}
	number := func(n string) *server.AttributeValue { return &server.AttributeValue{N: aws.String(n)} }
	text := func(s string) *server.AttributeValue { return &server.AttributeValue{S: aws.String(s)} }
	f.Fuzz(func(t *testing.T, expression string) {
		old := func() record { return record{"k": text("k"), "n": number("5"), "x": text("x"), "keep": text("it")} }
		names, values := map[string]string{"#x": "x"}, record{":d": number("1.5"), ":s": text("s")}
		if checkPlaceholders(usedIn(&expression, names), usedIn(&expression, values), &expression) != nil {
			return
		}
		u := &update{names: names, values: values, old: old()}
		err := u.apply(expression, record{"k": text("k")})
		if !reflect.DeepEqual(u.old, old()) {
			t.Errorf("the update changed the old record to %v", u.old)
		}
		if _, ok := errors.AsType[*failure](err); err != nil && !ok && !errors.Is(err, errBeyond) {
			t.Errorf("the error is neither a failure nor errBeyond: %v", err)
		}
		if err != nil {
			return
		}
		for name, was := range old() {
			if !slices.Contains(u.touched, name) && !reflect.DeepEqual(u.next[name], was) || u.next["k"] == nil {
				t.Errorf("%s is now %v", name, u.next[name])
			}
		}
	})
}
