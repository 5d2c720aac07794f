package bulk

import (
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// A mapping that is accepted matches the keys built from its own templates, and an error is one line.
func FuzzParseMapping(f *testing.F) {
	for _, seed := range []string{
		`{"pk": "PK", "sk": "SK", "ignore": ["type"], "entities": {"customer": {"pk": "CUST#{customerId}", "sk": "METADATA", "attributes": {"name": "fullName"}, "values": {"name": {"a": "b"}}}}}`,
		`{"pk": "p", "sk": "s", "entities": {"orderItem": {"pk": "order#{orderId}", "sk": "{createdAt}#item#{productId}", "defaults": {"currency": "EUR"}}}}`,
		`{"pk": "p", "sk": "s", "entities": {"order": {"pk": "{orderId}", "sk": "}{"}, "product": null}}`,
		`{"pk": "pk", "sk": "sk", "entities": {"customer": {"pk": "$shop#customerid_{customerId}", "sk": "$customer_1"}}}`,
		"{\"entities\":\n[1]}", `{"pk": 1}`, `null`, `[`, `{"pk":"\ud800"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMapping([]byte(text))
		if err != nil {
			if message := err.Error(); message == "" || strings.Contains(message, "\n") {
				t.Errorf("the error of %q is %q", text, message)
			}
			return
		}
		for _, e := range m.Entities {
			build := func(template model.KeyTemplate) string {
				key := string(template)
				for _, name := range template.Placeholders() {
					key = strings.ReplaceAll(key, "{"+name+"}", "x-"+name)
				}
				return key
			}
			found, values := m.match(model.Keys{PK: build(e.PK), SK: build(e.SK)})
			if found == nil {
				t.Fatalf("%q does not match its own keys", text)
			}
			for name, value := range values {
				if found.entity == e.entity && value != "x-"+name {
					t.Errorf("%q reads {%s} as %q", text, name, value)
				}
			}
			m.attributesOf(found, model.Record{"name": model.Str("a")}, values)
		}
	})
}
