package model_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Numbers with the same value are equal in any notation.
func TestNumbersAreEqualInAnyNotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.StringMatching(`-?[1-9][0-9]{0,37}`).Draw(t, "whole")
		zeros := rapid.IntRange(0, 20).Draw(t, "zeros")
		plain, ok := model.ParseNumber(whole)
		for _, spelled := range []string{
			whole + "." + strings.Repeat("0", zeros),
			whole + strings.Repeat("0", zeros) + fmt.Sprintf("e-%d", zeros),
			fmt.Sprintf("%sE+%d", whole, 0),
		} {
			if n, also := model.ParseNumber(spelled); n != plain || !ok || !also {
				t.Fatalf("%s is %v, %s is %v", whole, plain, spelled, n)
			}
		}
		if n, ok := model.ParseNumber(whole + "1"); ok && n == plain {
			t.Fatalf("%s1 is worth %s", whole, whole)
		}
	})
	for text, fits := range map[string]bool{
		"9.9999999999999999999999999999999999999E+125": true, "1E-130": true, "0.1E-130": false, "10E125": false, ".5": true, "5.": true, "0e1000": true,
		"0." + strings.Repeat("0", 129) + "1": true, "1" + strings.Repeat("0", 125): true, "1" + strings.Repeat("0", 126): false,
	} {
		if _, ok := model.ParseNumber(text); ok != fits {
			t.Errorf("%s: %t, want %t", text, ok, fits)
		}
	}
}

// Numbers in keys sort numerically. A template needs only the name of the attribute.
func TestNumbersInKeysSort(t *testing.T) {
	number := rapid.StringMatching(`(0|-?[1-9][0-9]{0,18})|-?(0|[1-9][0-9]{0,3})\.[0-9]?[1-9]`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		if got := strings.Compare(model.SortableNumber(a), model.SortableNumber(b)); got != x.Cmp(y) {
			t.Fatalf("comparing the keys %s and %s returns %d, which is not the order of the numbers", model.SortableNumber(a), model.SortableNumber(b), got)
		}
	})
	for n, key := range map[string]string{"0": "0000000000000000000", "7.5": "0000000000000000007.5", "-7": "-9999999999999999992~", "9223372036854775807": "9223372036854775807"} {
		if got := model.SortableNumber(n); got != key {
			t.Errorf("the key of the number %s is %s, want %s", n, got, key)
		}
	}
}
