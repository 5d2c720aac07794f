package dynamo

import (
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Read units are counted by DynamoDB's documented rules where the engine reports none. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html

// readUnitSize is how many bytes a read unit covers; an eventually consistent read costs half a unit for each.
const readUnitSize = 4096

// readUnits is what an eventually consistent read of so many bytes at once costs. Reading nothing costs as
// much as reading a little.
func readUnits(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/readUnitSize)) / 2
}

// queryUnits is what a Query costs that read these records: the sum of their sizes is rounded, not each.
func queryUnits(records []map[string]types.AttributeValue) float64 {
	bytes := 0
	for _, r := range records {
		bytes += sizeOf(r)
	}
	return readUnits(bytes)
}

// batchUnits is what a BatchGetItem costs that found these records of so many keys: each is rounded by itself.
func batchUnits(records []map[string]types.AttributeValue, keys int) float64 {
	units := readUnits(0) * float64(keys-len(records))
	for _, r := range records {
		units += readUnits(sizeOf(r))
	}
	return units
}

// sizeOf is a record's size in bytes: names and values.
func sizeOf(r record) int {
	bytes := 0
	for name, v := range r {
		bytes += len(name) + sizeOfValue(v)
	}
	return bytes
}

func sizeOfValue(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return sizeOfNumber(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	case *types.AttributeValueMemberSS:
		bytes := 0
		for _, s := range v.Value {
			bytes += len(s)
		}
		return bytes
	case *types.AttributeValueMemberNS:
		bytes := 0
		for _, n := range v.Value {
			bytes += sizeOfNumber(n)
		}
		return bytes
	case *types.AttributeValueMemberBS:
		bytes := 0
		for _, b := range v.Value {
			bytes += len(b)
		}
		return bytes
	case *types.AttributeValueMemberL:
		// A list or map has 3 bytes of its own and 1 for each element.
		bytes := 3
		for _, e := range v.Value {
			bytes += 1 + sizeOfValue(e)
		}
		return bytes
	case *types.AttributeValueMemberM:
		bytes := 3
		for name, e := range v.Value {
			bytes += 1 + len(name) + sizeOfValue(e)
		}
		return bytes
	}
	return 0
}

// sizeOfNumber is about one byte for two significant digits, and one more.
func sizeOfNumber(n string) int {
	digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(n), "0")
	size := (len(digits)+1)/2 + 1
	if strings.HasPrefix(n, "-") {
		size++
	}
	return size
}
