// Package units says what DynamoDB charges: read and write units, counted by its documented rules
// where the engine reports none. It imports dynamo/model. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
package units

import (
	"math"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// ReadSize is how many bytes a read unit covers; an eventually consistent read costs half a unit
// for each.
const ReadSize = 4096

// Read is what an eventually consistent read of so many bytes at once costs. Reading nothing costs
// as much as reading a little.
func Read(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/ReadSize)) / 2
}

// Query is what a Query costs that read these records: the sum of their sizes is rounded, not each.
func Query(records []model.Reader) float64 { return Read(model.SizeOfAll(records)) }

// Batch is what a BatchGetItem costs that found these records of so many keys: each is rounded by
// itself.
func Batch(records []model.Reader, keys int) float64 {
	units := Read(0) * float64(keys-len(records))
	for _, r := range records {
		units += Read(r.Size())
	}
	return units
}

// writeSize is how many bytes a write unit covers. In a transaction each record costs twice as
// much, as it is prepared and committed; its entry in an index, which follows later, does not.
const writeSize = 1024

// kilobytes is what a plain write of so many bytes costs: at least 1.
func kilobytes(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/writeSize))
}

// Write is what it costs, in a transaction, to make after of before, either of which may be nil:
// the larger of the two counts. An index entry costs one write where it comes, goes or changes, and
// two where its key changes. Source, beside those above:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations.Writes
// and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-capacity-handling
func Write(before, after model.Record) float64 {
	was, is := model.SizeOf(before), model.SizeOf(after)
	units := 2 * kilobytes(max(was, is))
	_, wasListed := before[model.AttrIndexPK]
	_, isListed := after[model.AttrIndexPK]
	switch {
	case wasListed && isListed && model.SameValue(before[model.AttrIndexPK], after[model.AttrIndexPK]) && model.SameValue(before[model.AttrIndexSK], after[model.AttrIndexSK]):
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

// MostWrite is the most that any action of a transaction costs on a record of at most so many
// bytes: one that is in the index can get another key there.
func MostWrite(bytes int, indexed bool) float64 {
	if indexed {
		return 4 * kilobytes(bytes)
	}
	return 2 * kilobytes(bytes)
}

// Adjust is what it costs, in a transaction, to change a number of a record that is in the index;
// nil is a small one.
func Adjust(r model.Record) float64 { return 3 * kilobytes(model.SizeOf(r)) }

// Check is what it costs, in a transaction, to check a condition on a record; nil is a small one.
func Check(r model.Record) float64 { return 2 * kilobytes(model.SizeOf(r)) }
