// Package price computes the price of DynamoDB's read and write units from a price file. It also
// reads profiles, which list the GraphQL operations of a month. It imports no other package of the
// module.
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

// The prices in a price file are in dollars per unitsPerPrice DynamoDB request units.
const unitsPerPrice = 1_000_000

// Standard returns the prices of us-east-1 since November 2024. They are compiled into the program.
func Standard() Prices {
	p, err := parsePrices(standardPricesJSON)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return p
}

// Read reads a price file. If the file is invalid, the error describes the required change.
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

// maxPrice is the maximum price of a million DynamoDB request units, in dollars. Read rejects a
// higher price as a mistake.
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
		return p, errors.New(`set "region" to the AWS region, such as us-east-1`)
	case file.CapacityMode != "on-demand":
		return p, errors.New(`set "capacityMode" to "on-demand", because only on-demand capacity has a price per unit`)
	case err != nil:
		return p, errors.New(`set "since" to the first day of the prices, such as 2024-11-01`)
	case file.Source == "":
		return p, errors.New(`set "source" to the URL of the page that lists the prices`)
	}
	if p.read, err = perUnit("readRequestUnits", file.Dollars.Read); err != nil {
		return p, err
	}
	p.write, err = perUnit("writeRequestUnits", file.Dollars.Write)
	return p, err
}

// perUnit returns the exact price of one DynamoDB request unit in dollars. million is the price of
// a million request units.
func perUnit(member string, million json.Number) (*big.Rat, error) {
	// The price is parsed as a float first, because an exact number with a large exponent would need
	// gigabytes of memory.
	dollars, err := million.Float64()
	if err != nil || dollars <= 0 || dollars > maxPrice {
		return nil, fmt.Errorf("set %q in \"dollarsPerMillion\" to the price of a million DynamoDB request units in dollars: a number above 0, up to %d", member, maxPrice)
	}
	exact, ok := new(big.Rat).SetString(strconv.FormatFloat(dollars, 'f', -1, 64))
	if !ok {
		return nil, fmt.Errorf("%q in \"dollarsPerMillion\" is not a number", member)
	}
	return exact.Quo(exact, big.NewRat(unitsPerPrice, 1)), nil
}

// decode decodes the JSON object in a file. It rejects unknown members and text after the object.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("remove the text after the JSON object")
	}
	return nil
}

// Units is an amount of DynamoDB read units and write units. Both numbers are multiples of 0.5.
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

// PerMillion returns the price in dollars of executing an operation a million times, rounded to
// four significant digits. u is the capacity that one execution consumes. The result is a JSON
// number without an exponent.
func (p Prices) PerMillion(u Units) json.Number {
	exact := p.Dollars(u, 1_000_000)
	if exact.Sign() == 0 {
		return "0"
	}
	// last is the exponent of the last significant digit.
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
