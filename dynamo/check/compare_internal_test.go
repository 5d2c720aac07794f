package check

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

func TestNumbersThatAgree(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"0.10", "0.1", true}, {"1E-1", "0.1", true}, {"1e1", "10", true}, {"-0", "0", true}, {"5.0", "5", true},
		{"12345678901234567890123456789012345678", "12345678901234567890123456789012345679", false},
		{"0.1", "0.2", false}, {"x", "1", false}, {"1", "x", false},
		// Numbers beyond DynamoDB's range must not exhaust the memory.
		{"1E999999999", "1", false}, {"1", "1E-999999999", false}, {"1Ex", "1", false},
	} {
		if got := model.EqualNumbers(c.a, c.b); got != c.same {
			t.Errorf("%s and %s: %v, want %v", c.a, c.b, got, c.same)
		}
	}
}

func TestValuesThatAgree(t *testing.T) {
	l := func(texts ...string) types.AttributeValue {
		values := make([]types.AttributeValue, len(texts))
		for i, s := range texts {
			values[i] = model.Str(s)
		}
		return model.ListValue(values...)
	}
	m := func(r model.Record) types.AttributeValue { return &types.AttributeValueMemberM{Value: r} }
	for name, c := range map[string]struct {
		have, want types.AttributeValue
		agree      bool
	}{
		"texts":                         {model.Str("a"), model.Str("a"), true},
		"other texts":                   {model.Str("a"), model.Str("b"), false},
		"a number for a text":           {model.Num(1), model.Str("1"), false},
		"a text for a number":           {model.Str("1"), model.Num(1), false},
		"lists":                         {l("a", "b"), l("a", "b"), true},
		"lists in another order":        {l("b", "a"), l("a", "b"), false},
		"a shorter list":                {l("a"), l("a", "b"), false},
		"a set for a list":              {&types.AttributeValueMemberSS{Value: []string{"b", "a"}}, l("a", "b"), true},
		"another set":                   {&types.AttributeValueMemberSS{Value: []string{"b", "c"}}, l("a", "b"), false},
		"a text for a list":             {model.Str("a"), l("a"), false},
		"maps with what is unknown":     {m(model.Record{"a": model.Str("1"), "b": model.Str("2")}), m(model.Record{"a": model.Str("1")}), true},
		"maps without what is empty":    {m(model.Record{"a": model.Str("1")}), m(model.Record{"a": model.Str("1"), "b": model.Str("")}), true},
		"maps without what is there":    {m(model.Record{"a": model.Str("1")}), m(model.Record{"a": model.Str("1"), "b": model.Str("2")}), false},
		"maps with something else":      {m(model.Record{"a": model.Str("1")}), m(model.Record{"a": model.Str("2")}), false},
		"a text for a map":              {model.Str("a"), m(model.Record{}), false},
		"flags":                         {model.Bool(true), model.Bool(true), true},
		"other flags":                   {model.Bool(true), model.Bool(false), false},
		"a text for a flag":             {model.Str("true"), model.Bool(true), false},
		"maps without what is false":    {m(model.Record{}), m(model.Record{"a": model.Bool(false)}), true},
		"what the model never writes":   {&types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberNULL{Value: true}, false},
		"a map of maps that is deeper":  {m(model.Record{"a": m(model.Record{"b": model.Num(1)})}), m(model.Record{"a": m(model.Record{"b": model.Num(1)})}), true},
		"a map of maps that is another": {m(model.Record{"a": m(model.Record{"b": model.Num(1)})}), m(model.Record{"a": m(model.Record{"b": model.Num(2)})}), false},
	} {
		if got := equivalent(c.have, c.want); got != c.agree {
			t.Errorf("%s: %v, want %v", name, got, c.agree)
		}
	}
}

// A check of one number counts it again with a recordsVerifier. So an added number must be in a record
// that its declaration alone verifies, and be the number of a sum that a scan compares.
func TestAddedNumbersCanBeCountedAgain(t *testing.T) {
	for _, d := range model.Derivations() {
		if d.IsRecord() || d.Feature || d.Entity.Kind == model.Share || d.Entity == &model.EntityDailySales { // nothing needs a backfill before products have buckets
			continue
		}
		declared := slices.ContainsFunc(scanTotals(d.Entity), func(s *derive.Sum) bool { return s.Optional && slices.Contains(s.Attributes, d.Attribute) })
		if !verifiesAlone(d.Entity) || !declared {
			t.Errorf("a backfill cannot count %s", d.Name)
		}
	}
	for _, e := range model.Entities() {
		if e.Added && !e.IsEdge() && e != &model.EntityDailySales {
			t.Errorf("only an edge or the sales can be added to a table, and not %s", e.Name)
		}
	}
}
