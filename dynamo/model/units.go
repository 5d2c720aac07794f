package model

import (
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Read and write units are counted by DynamoDB's documented rules where the engine reports none.
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html

// ReadUnitSize is how many bytes a read unit covers; an eventually consistent read costs half a
// unit for each.
const ReadUnitSize = 4096

// ReadUnits is what an eventually consistent read of so many bytes at once costs. Reading nothing
// costs as much as reading a little.
func ReadUnits(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/ReadUnitSize)) / 2
}

// QueryUnits is what a Query costs that read these records: the sum of their sizes is rounded, not
// each.
func QueryUnits(records []Reader) float64 { return ReadUnits(SizeOfAll(records)) }

// BatchUnits is what a BatchGetItem costs that found these records of so many keys: each is rounded
// by itself.
func BatchUnits(records []Reader, keys int) float64 {
	units := ReadUnits(0) * float64(keys-len(records))
	for _, r := range records {
		units += ReadUnits(r.Size())
	}
	return units
}

// SizeOfAll is the size of several records in bytes.
func SizeOfAll(records []Reader) int {
	bytes := 0
	for _, r := range records {
		bytes += r.Size()
	}
	return bytes
}

// writeUnitSize is how many bytes a write unit covers. In a transaction each record costs twice as
// much, as it is prepared and committed; its entry in an index, which follows later, does not.
const writeUnitSize = 1024

// kilobytes is what a plain write of so many bytes costs: at least 1.
func kilobytes(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/writeUnitSize))
}

// WriteUnits is what it costs, in a transaction, to make after of before, either of which may be
// nil: the larger of the two counts. An index entry costs one write where it comes, goes or
// changes, and two where its key changes. Source, beside those above:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations.Writes
// and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-capacity-handling
func WriteUnits(before, after Record) float64 {
	was, is := SizeOf(before), SizeOf(after)
	units := 2 * kilobytes(max(was, is))
	_, wasListed := before[AttrIndexPK]
	_, isListed := after[AttrIndexPK]
	switch {
	case wasListed && isListed && SameValue(before[AttrIndexPK], after[AttrIndexPK]) && SameValue(before[AttrIndexSK], after[AttrIndexSK]):
		units += kilobytes(max(was, is))
	case wasListed && isListed:
		units += kilobytes(was) + kilobytes(is)
	case wasListed:
		units += kilobytes(was)
	case isListed:
		units += kilobytes(is)
	}
	return units
}

// AdjustUnits is what it costs, in a transaction, to change a number of a record that is in the
// index; nil is a small one.
func AdjustUnits(r Record) float64 { return 3 * kilobytes(SizeOf(r)) }

// CheckUnits is what it costs, in a transaction, to check a condition on a record; nil is a small
// one.
func CheckUnits(r Record) float64 { return 2 * kilobytes(SizeOf(r)) }

// SizeOf is a record's size in bytes: names and values.
func SizeOf(r Record) int {
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
	digits, significant := 0, 0
	for i := range len(n) {
		switch c := n[i]; {
		case c == '-' || c == '.' || c == '0' && digits == 0:
		case c == '0':
			digits++
		default:
			digits++
			significant = digits
		}
	}
	size := (significant+1)/2 + 1
	if strings.HasPrefix(n, "-") {
		size++
	}
	return size
}
