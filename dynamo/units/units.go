// Package units calculates what DynamoDB charges in read and write units. It follows the documented
// rules, because not every engine reports the units. It imports dynamo/model. Sources:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
package units

import (
	"math"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// ReadSize is the number of bytes per read unit. An eventually consistent read costs half a unit
// per ReadSize bytes.
const ReadSize = 4096

// Read returns the units of an eventually consistent read of this number of bytes. Reading nothing
// costs the minimum of half a unit.
func Read(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/ReadSize)) / 2
}

// Query returns the units of a Query that reads these records. The sum of their sizes is rounded
// up.
func Query(records []model.Reader) float64 { return Read(model.SizeOfAll(records)) }

// Batch returns the units of a BatchGetItem that finds these records for this number of keys. Each
// record is rounded up separately.
func Batch(records []model.Reader, keys int) float64 {
	units := Read(0) * float64(keys-len(records))
	for _, r := range records {
		units += Read(r.Size())
	}
	return units
}

// writeSize is the number of bytes per write unit. In a transaction each record costs twice as
// much, because it is prepared and committed. The asynchronous write to an index costs the normal
// price.
const writeSize = 1024

// writeUnits returns the units of a write of this number of bytes outside a transaction: at least
// 1.
func writeUnits(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/writeSize))
}

// Write returns the units of changing before to after in a transaction. Either record may be nil,
// and the larger one counts. An index entry costs one write if it is added, removed or changed, and
// two writes if its key changes. Further sources:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations.Writes
// and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-capacity-handling
func Write(before, after model.Record) float64 {
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

// MaxWrite returns the maximum units of a transaction's action on a record of at most this size.
// The key of an indexed record can change.
func MaxWrite(bytes int, indexed bool) float64 {
	if indexed {
		return 4 * writeUnits(bytes)
	}
	return 2 * writeUnits(bytes)
}

// Adjust returns the units of changing a number of an indexed record in a transaction. A nil record
// counts as small.
func Adjust(r model.Record) float64 { return 3 * writeUnits(model.SizeOf(r)) }

// Check returns the units of a condition check on a record in a transaction. A nil record counts as
// small.
func Check(r model.Record) float64 { return 2 * writeUnits(model.SizeOf(r)) }
