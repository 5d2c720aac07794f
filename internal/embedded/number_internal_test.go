package embedded

import (
	"math/big"
	"strings"
	"testing"
)

func TestSum(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for _, c := range []struct {
		a, b  string
		minus bool
		want  string // "" if sum returns an error
	}{
		{"0.1", "0.2", false, "0.3"},
		{"1", "2", true, "-1"},
		{"6", "1.50", false, "7.5"},
		{"1e3", "-1E3", false, "0"},
		{"-0", "0", false, "0"},
		{"010", "+1.", false, "11"},
		{"9007199254740993", "1", false, "9007199254740994"},
		{"0.00000000000000000001", "1", false, "1.00000000000000000001"},
		{"1e-130", "1e-130", false, "0." + strings.Repeat("0", 129) + "2"},
		{nines, "1", false, "1" + strings.Repeat("0", 38)},
		{nines, "0.1", false, ""},
		{nines, "2", false, ""},
		{"9.9e125", "9.9e125", false, ""},
		{"", "1", false, ""},
		{"x", "1", false, ""},
		{"1/2", "1", false, ""},
		{"0x10", "1", false, ""},
		{"1_000", "1", false, ""},
		{"Inf", "1", false, ""},
		{"1", "1e999999999", false, ""},
	} {
		got, err := sum(c.a, c.b, c.minus)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s and %s (minus: %v): got %q, %v, want %q", c.a, c.b, c.minus, got, err, c.want)
		}
	}
}

func FuzzSum(f *testing.F) {
	f.Add("0.1", "-2e3")
	f.Add("1e-130", "1e125")
	f.Fuzz(func(t *testing.T, a, b string) {
		got, err := sum(a, b, false)
		if err != nil {
			return
		}
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		z, ok := new(big.Rat).SetString(got)
		if !ok || z.Cmp(x.Add(x, y)) != 0 {
			t.Errorf("%s + %s is not %s", a, b, got)
		}
		if again, err := sum(got, "0", true); err != nil || again != got {
			t.Errorf("%s minus 0 is %s, %v, want the same text", got, again, err)
		}
	})
}
