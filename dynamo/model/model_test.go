package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Every pattern uses the partition key of an entity. Its sort key, or the prefix of a Query,
// matches the entity's sort key.
func TestPatternsMatchKeysOfEntities(t *testing.T) {
	for _, p := range model.AccessPatterns() {
		t.Run(p.ID, func(t *testing.T) {
			for _, e := range model.Entities() {
				pk, sk := e.PK, e.SK
				if p.Index != "" {
					pk, sk = e.IndexPK, e.IndexSK
				}
				whole := p.Direction == "" && p.SK == sk
				begins := p.Direction != "" && strings.HasPrefix(string(sk), string(p.SK))
				if p.PK == pk && (whole || begins) {
					return
				}
			}
			t.Errorf("no entity writes the keys %s %s", p.PK, p.SK)
		})
	}
}

func TestPatternIDsAndDescriptions(t *testing.T) {
	last := 0
	for _, p := range model.AccessPatterns() {
		if want := fmt.Sprintf("AP%d", p.Number()); p.ID != want || p.Number() <= last {
			t.Errorf("the pattern after number %d has the ID %s, want %s", last, p.ID, want)
		}
		last = p.Number()
		if p.Description == "" || p.Operation == "" {
			t.Errorf("%s lacks a description or an operation: %+v", p.ID, p)
		}
	}
}

// Lists with the same index partition must not contain each other's records.
func TestListsInOnePartitionHaveDistinctPrefixes(t *testing.T) {
	for _, p := range model.AccessPatterns() {
		if p.Direction == "" || p.SK == "" {
			continue
		}
		matching := 0
		for _, e := range model.Entities() {
			pk, sk := e.PK, e.SK
			if p.Index != "" {
				pk, sk = e.IndexPK, e.IndexSK
			}
			if p.PK == pk && strings.HasPrefix(string(sk), string(p.SK)) {
				matching++
			}
		}
		if matching != 1 {
			t.Errorf("%s (%s %s) lists records of %d entities, want 1", p.ID, p.PK, p.SK, matching)
		}
	}
}

func TestTemplatesRejectInvalidValues(t *testing.T) {
	template := model.KeyTemplate("CUSTOMER#{customerId}")
	for _, value := range []string{"", "#", "a#b", "#METADATA", "a#"} {
		if key, err := template.Build(value); err == nil {
			t.Errorf("Key(%q) = %q, want an error", value, key)
		}
	}
	if key, err := template.Build(); err == nil {
		t.Errorf("Key() = %q without a value, want an error", key)
	}
	if key, err := template.Build("a", "b"); err == nil {
		t.Errorf("Key(a, b) = %q with too many values, want an error", key)
	}
}

// Values returns the values that Key received, for every template of the model.
func TestTemplateRoundTrip(t *testing.T) {
	value := rapid.StringN(1, 20, -1).Filter(func(s string) bool { return !strings.Contains(s, "#") })
	for _, e := range model.Entities() {
		for _, template := range []model.KeyTemplate{e.PK, e.SK, e.IndexPK, e.IndexSK} {
			rapid.Check(t, func(t *rapid.T) {
				values := rapid.SliceOfN(value, strings.Count(string(template), "{"), strings.Count(string(template), "{")).Draw(t, "values")
				key, err := template.Build(values...)
				if err != nil {
					t.Fatalf("%s.Key(%q): %v", template, values, err)
				}
				back, ok := template.Values(key)
				if !ok || strings.Join(back, "#") != strings.Join(values, "#") {
					t.Fatalf("%s.Values(%q) = %q, %v, want %q", template, key, back, ok, values)
				}
			})
		}
	}
}

// If Values accepts a text, Key builds the same text from the values.
func FuzzTemplateValues(f *testing.F) {
	for _, seed := range []string{"CUSTOMER#c1", "CUSTOMER#", "#METADATA", "ORDER#01HVMK3P2Q0000000000000001", "2026-01-01T00:00:00.000Z#c1", "a##b", "#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for _, e := range model.Entities() {
			for _, template := range []model.KeyTemplate{e.PK, e.SK, e.IndexPK, e.IndexSK} {
				values, ok := template.Values(key)
				if !ok {
					continue
				}
				if again, err := template.Build(values...); err != nil || again != key {
					t.Errorf("%s: the key %q has the values %q, but these values build the key %q, %v", template, key, values, again, err)
				}
			}
		}
	})
}

// An access pattern whose partition key contains a customer declares who may read the records.
// Otherwise, a customer could read the records of another customer.
func TestRecordsOfCustomersHaveAnOwner(t *testing.T) {
	for _, p := range model.AccessPatterns() {
		if owned := slices.Contains(p.PK.Placeholders(), "customerId"); owned != (p.Owner != 0) {
			t.Errorf("%s (%s) has the owner permission %v", p.ID, p.PK, p.Owner)
		}
	}
	if owner := model.CustomerOrder.OwnerOf(model.CustomerOrderKey{Customer: "c1", Order: "01HVMK3P2Q0000000000000001"}); owner != "c1" {
		t.Errorf("the owner is %q", owner)
	}
	if owner := model.CustomerByID.OwnerOf("a#b"); owner != "" {
		t.Errorf("the owner of an invalid key is %q", owner)
	}
}
