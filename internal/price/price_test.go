package price_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/price"
)

// The standard price file is valid, and prices are computed without rounding.
func TestStandard(t *testing.T) {
	p := price.Standard()
	if p.Region != "us-east-1" || p.Since != "2024-11-01" || !strings.HasPrefix(p.Source, "https://aws.amazon.com/dynamodb/pricing/") {
		t.Errorf("the standard prices are %+v", p)
	}
	for _, c := range []struct {
		units price.Units
		times int64
		want  string
	}{
		{price.Units{Read: 1}, 1_000_000, "0.125"},
		{price.Units{Write: 1}, 1_000_000, "0.625"},
		{price.Units{Read: 0.5}, 1, "0.0000000625"},
		{price.Units{Read: 0.5, Write: 3}, 1e15, "1937500000.000"},
		{price.Units{}, 5, "0"},
	} {
		decimals := len(c.want) - 1 - strings.IndexByte(c.want+".", '.')
		if got := p.Dollars(c.units, c.times).FloatString(max(0, decimals)); got != c.want {
			t.Errorf("%+v, %d times, costs $%s, want $%s", c.units, c.times, got, c.want)
		}
	}
}

// PerMillion rounds to four significant digits and writes no exponent.
func TestPerMillion(t *testing.T) {
	for units, want := range map[price.Units]string{
		{}:                          "0",
		{Read: 0.5}:                 "0.0625",
		{Read: 33.5, Write: 289}:    "184.8",
		{Read: 157, Write: 968}:     "624.6",
		{Read: 3, Write: 7.5}:       "5.063",
		{Write: 16}:                 "10",
		{Write: 1.5}:                "0.9375",
		{Read: 1, Write: 1599.5}:    "999.8",
		{Read: 15.5, Write: 1599.5}: "1002",
		{Write: 40}:                 "25",
		{Read: 1e6, Write: 1e9}:     "625100000",
		{Read: 104.5, Write: 31.5}:  "32.75",
	} {
		if got := price.Standard().PerMillion(units); got.String() != want {
			t.Errorf("a million times %+v costs $%s, want $%s", units, got, want)
		}
	}
	tiny := strings.Replace(file, "0.1415", "1e-9", 1)
	p, err := price.Read(writeFile(t, tiny))
	if got := p.PerMillion(price.Units{Read: 1}); err != nil || got.String() != "0.000000001" {
		t.Errorf("a million reads cost $%s, %v, want $0.000000001", got, err)
	}
}

const file = `{"region": "eu-west-1", "capacityMode": "on-demand", "since": "2024-11-01", "source": "https://aws.amazon.com/",
	"dollarsPerMillion": {"readRequestUnits": 0.1415, "writeRequestUnits": 0.705}}`

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Prices are exact decimal numbers, although a price such as 0.1415 is not exact in binary.
func TestRead(t *testing.T) {
	p, err := price.Read(writeFile(t, file))
	if err != nil || p.Region != "eu-west-1" {
		t.Fatalf("%+v, %v", p, err)
	}
	if got := p.Dollars(price.Units{Read: 3, Write: 1}, 1_000_000).FloatString(20); got != "1.12950000000000000000" {
		t.Errorf("the price is $%s, want exactly $1.1295", got)
	}
}

func TestReadInvalidFiles(t *testing.T) {
	for change, problem := range map[string]string{
		`{"region": "eu-west-1"|{"region": ""`: `"region" is missing`,
		`"on-demand"|"provisioned"`:            `"capacityMode" must be "on-demand"`,
		`2024-11-01|last year`:                 `"since" is not a date`,
		`https://aws.amazon.com/|`:             `"source" is missing`,
		`0.1415|0`:                             `"readRequestUnits" in "dollarsPerMillion" must be`,
		`0.1415|-1`:                            `"readRequestUnits" in`,
		`0.705|1001`:                           `"writeRequestUnits" in`,
		`0.705|1e999999999`:                    `"writeRequestUnits" in`,
		`0.705|1e-999999999`:                   `"writeRequestUnits" in`,
		`0.705|"0.7"`:                          "",
		`0.705|"much"`:                         "invalid number literal",
		`, "writeRequestUnits": 0.705|`:        `"writeRequestUnits" in`,
		`"writeRequestUnits": 0.705|"writeRequestUnit": 0.705`:         `unknown field "writeRequestUnit"`,
		`"dollarsPerMillion": {|"discount": 1, "dollarsPerMillion": {`: `unknown field "discount"`,
		`0.705}}|0.705}} {}`: "other text follows the JSON object",
		`0.705}}|0.705}`:     "unexpected EOF",
	} {
		from, to, _ := strings.Cut(change, "|")
		name := writeFile(t, strings.Replace(file, from, to, 1))
		_, err := price.Read(name)
		if problem == "" {
			if err != nil {
				t.Errorf("%s: %v", change, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), problem) || !strings.Contains(err.Error(), name+" is not a price file") {
			t.Errorf("%s: the error is %v, want %q", change, err, problem)
		}
	}
	if _, err := price.Read("/nowhere/prices.json"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("the error is %v", err)
	}
}

func TestParseProfile(t *testing.T) {
	p, err := price.ParseUsageProfile([]byte(`{"operations": [
		{"name": "A", "requestsPerMonth": 5, "query": "{ a }", "variables": {"n": 12345678901234567890}, "setup": ["mutation { b }"]},
		{"name": "B", "document": "b1", "units": {"read": 0.5, "write": 3}}]}`))
	if err != nil || len(p.Operations) != 2 || *p.Operations[1].MeasuredUnits != (price.Units{Read: 0.5, Write: 3}) || p.Operations[0].RequestsPerMonth != 5 {
		t.Fatalf("%+v, %v", p, err)
	}
	for text, problem := range map[string]string{
		``:                                "EOF",
		`[]`:                              "cannot unmarshal array",
		`{}`:                              "list at least one operation",
		`{"operations": [{}]}`:            `operation 1 has no "name"`,
		`{"operations": [{"name": "A"}]}`: `operation A: the operation has no "query", "document" or "units"`,
		`{"operations": [{"name": "A", "query": "{ a }", "document": "a"}]}`:                      "remove one of them",
		`{"operations": [{"name": "A", "query": "{ a }", "requestsPerMonth": -1}]}`:               `"requestsPerMonth" must be`,
		`{"operations": [{"name": "A", "query": "{ a }", "requestsPerMonth": 1000000000000001}]}`: `"requestsPerMonth" must be`,
		`{"operations": [{"name": "A", "query": "{ a }", "requestsPerMonth": 1.5}]}`:              "requestsPerMonth",
		`{"operations": [{"name": "A", "query": "{ a }", "requests": 1}]}`:                        `unknown field "requests"`,
		`{"operations": [{"name": "A", "units": {"read": 0.3}}]}`:                                 "multiples of 0.5",
		`{"operations": [{"name": "A", "units": {"read": 1e10}}]}`:                                "multiples of 0.5",
		`{"operations": [{"name": "A", "units": {"write": -1}}]}`:                                 "multiples of 0.5",
		`{"operations": [{"name": "A", "query": "{ a }"}, {"name": "A", "query": "{ a }"}]}`:      "two operations have the name A",
	} {
		if _, err := price.ParseUsageProfile([]byte(text)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: the error is %v, want %q", text, err, problem)
		}
	}
}
