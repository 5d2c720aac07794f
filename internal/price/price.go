// Package price computes the price of DynamoDB read and write units, from the prices in a price
// file. It also reads profiles, which list the GraphQL operations that clients execute in a month.
// The package imports no other package of the module.
package price

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"time"
)

//go:embed prices.json
var standardPricesJSON []byte

// Prices contains the prices of DynamoDB's on-demand capacity in one AWS region.
type Prices struct {
	// Region is the AWS region. Since is the first day on which the prices apply. Source is the URL of
	// the page that lists the prices.
	Region, Since, Source string

	// read is the exact price of one DynamoDB read request unit in dollars. write is the exact price
	// of one write request unit.
	read, write *big.Rat
}

// unitsPerPrice is the number of DynamoDB request units that a price in a price file pays for.
const unitsPerPrice = 1_000_000

// Standard returns the prices of the AWS region us-east-1 since November 2024. The prices are
// compiled into the program.
func Standard() Prices {
	p, err := parsePrices(standardPricesJSON)
	if err != nil {
		panic(err) // the embedded price file is invalid
	}
	return p
}

// Read reads a price file. If the content of the file is invalid, the error describes the problem.
func Read(name string) (Prices, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Prices{}, err
	}
	p, err := parsePrices(text)
	if err != nil {
		return Prices{}, fmt.Errorf("%s is not a price file: %w", name, err)
	}
	return p, nil
}

// maxPrice is the maximum price in dollars of a million DynamoDB request units. Read rejects a
// higher price, because it is probably a mistake.
const maxPrice = 1000

func parsePrices(text []byte) (Prices, error) {
	var file struct {
		Region       string `json:"region"`
		CapacityMode string `json:"capacityMode"`
		Since        string `json:"since"`
		Source       string `json:"source"`
		Dollars      struct {
			Read  json.Number `json:"readRequestUnits"`
			Write json.Number `json:"writeRequestUnits"`
		} `json:"dollarsPerMillion"`
	}
	if err := decode(text, &file); err != nil {
		return Prices{}, err
	}
	p := Prices{Region: file.Region, Since: file.Since, Source: file.Source}
	_, err := time.Parse(time.DateOnly, file.Since)
	switch {
	case file.Region == "":
		return p, errors.New(`"region" is missing: set it to the AWS region, such as us-east-1`)
	case file.CapacityMode != "on-demand":
		return p, errors.New(`"capacityMode" must be "on-demand", because only on-demand capacity has a price per unit`)
	case err != nil:
		return p, errors.New(`"since" is not a date: set it to the first day on which the prices apply, such as 2024-11-01`)
	case file.Source == "":
		return p, errors.New(`"source" is missing: set it to the URL of the page that lists the prices`)
	}
	if p.read, err = perUnit("readRequestUnits", file.Dollars.Read); err != nil {
		return p, err
	}
	p.write, err = perUnit("writeRequestUnits", file.Dollars.Write)
	return p, err
}

// perUnit returns the exact price in dollars of one DynamoDB request unit. million is the price of
// a million request units.
func perUnit(member string, million json.Number) (*big.Rat, error) {
	// Parse the price as a float first, because a float has a limited exponent. To parse a number such
	// as 1e999999999 exactly, the program would need gigabytes of memory.
	dollars, err := million.Float64()
	if err != nil || dollars <= 0 || dollars > maxPrice {
		return nil, fmt.Errorf("%q in \"dollarsPerMillion\" must be the price in dollars of a million DynamoDB request units, above 0 and at most %d", member, maxPrice)
	}
	exact, ok := new(big.Rat).SetString(strconv.FormatFloat(dollars, 'f', -1, 64))
	if !ok {
		return nil, fmt.Errorf("%q in \"dollarsPerMillion\" is not a number", member)
	}
	return exact.Quo(exact, big.NewRat(unitsPerPrice, 1)), nil
}

// decode decodes text, which must consist of a single JSON object. It rejects unknown members, and
// text after the object.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("other text follows the JSON object: remove this text")
	}
	return nil
}

// Units is an amount of DynamoDB capacity, in read units and write units. Both numbers are
// multiples of 0.5.
type Units struct {
	Read  float64 `json:"read"`
	Write float64 `json:"write"`
}

// Dollars returns the exact price in dollars of executing an operation the given number of times. u
// is the capacity that one execution consumes.
func (p Prices) Dollars(u Units, times int64) *big.Rat {
	read := new(big.Rat).Mul(p.read, new(big.Rat).SetFloat64(u.Read))
	write := new(big.Rat).Mul(p.write, new(big.Rat).SetFloat64(u.Write))
	sum := read.Add(read, write)
	return sum.Mul(sum, new(big.Rat).SetInt64(times))
}

// significantDigits is the number of significant digits that PerMillion returns.
const significantDigits = 4

// PerMillion returns the price in dollars of a million operations that each consume u. The result
// has at most four significant digits and no exponent.
func (p Prices) PerMillion(u Units) json.Number {
	exact := p.Dollars(u, 1_000_000)
	if exact.Sign() == 0 {
		return "0"
	}
	// last is the place of the last significant digit, as an exponent of ten. For example, -2 means
	// hundredths.
	approximate, _ := exact.Float64()
	last := int(math.Floor(math.Log10(approximate))) + 1 - significantDigits
	text := new(big.Rat).Quo(exact, powerOfTen(last)).FloatString(0)
	rounded, _ := new(big.Rat).SetString(text)
	rounded.Mul(rounded, powerOfTen(last))
	if last >= 0 {
		return json.Number(rounded.FloatString(0))
	}
	return json.Number(strings.TrimSuffix(strings.TrimRight(rounded.FloatString(-last), "0"), "."))
}

// powerOfTen returns ten to the power of n.
func powerOfTen(n int) *big.Rat {
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil))
	if n < 0 {
		power.Inv(power)
	}
	return power
}
