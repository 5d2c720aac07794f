// Package units calculates the read and write units that DynamoDB charges, because not every
// DynamoDB engine reports them. It imports dynamo/model. The calculation follows AWS's
// documentation:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
package units

import (
	"math"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// BytesPerReadUnit is the number of bytes per read unit of a strongly consistent read. An
// eventually consistent read costs half a unit per BytesPerReadUnit bytes.
const BytesPerReadUnit = 4096

// ForRead returns the read units of an eventually consistent read of the given number of bytes. The
// minimum is half a unit, even if no record is found.
func ForRead(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/BytesPerReadUnit)) / 2
}

// ForQuery returns the read units of a Query that reads the given records. DynamoDB rounds up the sum
// of their sizes.
func ForQuery(records []model.Reader) float64 { return ForRead(model.SizeOfAll(records)) }

// ForBatchGet returns the read units of a BatchGetItem with the given number of keys that finds the given
// records. DynamoDB rounds up the size of each record separately.
func ForBatchGet(records []model.Reader, keys int) float64 {
	units := ForRead(0) * float64(keys-len(records))
	for _, r := range records {
		units += ForRead(r.Size())
	}
	return units
}

// bytesPerWriteUnit is the number of bytes per write unit. A write in a transaction costs twice the
// units, because DynamoDB prepares and commits each write. The asynchronous write to an index costs
// the normal number of units.
const bytesPerWriteUnit = 1024

// writeUnits returns the write units of writing the given number of bytes outside a transaction.
// The minimum is 1.
func writeUnits(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/bytesPerWriteUnit))
}

// ForTransactWrite returns the write units that a transaction consumes to change the record before to the
// record after. before is nil for a new record, and after is nil for a deleted record. The larger
// record determines the units.
//
// Adding, removing or changing an index entry costs one write. Changing the key of an index entry
// costs two writes. Sources:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations.Writes
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-capacity-handling
func ForTransactWrite(before, after model.Record) float64 {
	oldSize, newSize := model.SizeOf(before), model.SizeOf(after)
	units := 2 * writeUnits(max(oldSize, newSize))
	_, wasIndexed := before[model.AttrIndexPK]
	_, isIndexed := after[model.AttrIndexPK]
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

// MaxForTransactWrite returns the maximum write units that a transaction consumes to write one record. bytes
// is the maximum size of the record. If indexed is true, the result includes a change of the
// record's index key.
func MaxForTransactWrite(bytes int, indexed bool) float64 {
	if indexed {
		return 4 * writeUnits(bytes)
	}
	return 2 * writeUnits(bytes)
}

// ForCounterUpdate returns the write units that a transaction consumes to change a number attribute of
// an indexed record. The size of a nil record is taken as 1 KB.
func ForCounterUpdate(r model.Record) float64 { return 3 * writeUnits(model.SizeOf(r)) }

// ForConditionCheck returns the write units that a transaction consumes to check a condition on a
// record. The size of a nil record is taken as 1 KB.
func ForConditionCheck(r model.Record) float64 { return 2 * writeUnits(model.SizeOf(r)) }
