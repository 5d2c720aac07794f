// Package units calculates the read and write units that DynamoDB charges. The calculation is
// necessary, because local replacements for DynamoDB may report wrong units. The package imports
// dynamo/model. The calculation follows the documentation of AWS:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
package units

import (
	"math"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// BytesPerReadUnit is the number of bytes that a strongly consistent read can return for one read
// unit. An eventually consistent read of this number of bytes costs half a unit.
const BytesPerReadUnit = 4096

// ForRead returns the read units of an eventually consistent read of the given number of bytes. A
// read costs at least half a unit, even if it finds no record.
func ForRead(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/BytesPerReadUnit)) / 2
}

// ForQuery returns the read units of an eventually consistent Query that reads the given records.
// DynamoDB adds up the sizes of the records and rounds up the sum.
func ForQuery(records []model.Reader) float64 { return ForRead(model.SizeOfAll(records)) }

// ForBatchGet returns the read units of an eventually consistent BatchGetItem. keys is the number
// of requested keys, and records are the records that were found. DynamoDB rounds up the size of
// each record separately.
func ForBatchGet(records []model.Reader, keys int) float64 {
	units := ForRead(0) * float64(keys-len(records))
	for _, r := range records {
		units += ForRead(r.Size())
	}
	return units
}

// bytesPerWriteUnit is the number of bytes that can be written for one write unit. In a
// transaction, the write of a record costs twice the units, but the writes of its index entry do
// not.
const bytesPerWriteUnit = 1024

// writeUnits returns the cost of writing the given number of bytes outside a transaction. A write
// costs at least one unit.
func writeUnits(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/bytesPerWriteUnit))
}

// ForTransactWrite returns the write units that a transaction consumes to change a record. If
// before is nil, the record is new. If after is nil, the record is deleted. Sources:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations.Writes
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-capacity-handling
func ForTransactWrite(before, after model.Record) float64 {
	oldSize, newSize := model.SizeOf(before), model.SizeOf(after)
	units := 2 * writeUnits(max(oldSize, newSize))
	_, wasIndexed := before[model.AttrIndexPK]
	_, isIndexed := after[model.AttrIndexPK]
	// An index entry costs one write, or two writes if its key changes. DynamoDB writes index entries
	// outside the transaction.
	switch {
	case wasIndexed && isIndexed && model.EqualValues(before[model.AttrIndexPK], after[model.AttrIndexPK]) && model.EqualValues(before[model.AttrIndexSK], after[model.AttrIndexSK]):
		units += writeUnits(max(oldSize, newSize))
	case wasIndexed && isIndexed:
		units += writeUnits(oldSize) + writeUnits(newSize)
	case wasIndexed:
		units += writeUnits(oldSize)
	case isIndexed:
		units += writeUnits(newSize)
	}
	return units
}

// MaxForTransactWrite returns the maximum write units that a transaction consumes to write one
// record of the given size. If indexed is true, the result includes two index writes, because
// DynamoDB may have to replace the record's index entry.
func MaxForTransactWrite(bytes int, indexed bool) float64 {
	if indexed {
		return 4 * writeUnits(bytes)
	}
	return 2 * writeUnits(bytes)
}

// ForCounterUpdate returns the write units that a transaction consumes to change a counter of an
// indexed record. If r is nil, the record's size is assumed to be 1 KB.
func ForCounterUpdate(r model.Record) float64 { return 3 * writeUnits(model.SizeOf(r)) }

// ForConditionCheck returns the write units that a transaction consumes to check a condition on a
// record. If r is nil, the size of the record is assumed to be 1 KB.
func ForConditionCheck(r model.Record) float64 { return 2 * writeUnits(model.SizeOf(r)) }
