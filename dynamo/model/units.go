package model

import "math"

// This file calculates the read and write units that DynamoDB charges. The calculation is
// necessary, because local replacements for DynamoDB may report wrong units. It follows the
// documentation of AWS:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html

// BytesPerReadUnit is the number of bytes that a strongly consistent read can return for one read
// unit. An eventually consistent read of this number of bytes costs half a unit.
const BytesPerReadUnit = 4096

// ReadUnits returns the read units of an eventually consistent read of the given number of bytes. A
// read costs at least half a unit, even if it finds no record.
func ReadUnits(bytes int) float64 {
	return math.Max(1, math.Ceil(float64(bytes)/BytesPerReadUnit)) / 2
}

// QueryUnits returns the read units of an eventually consistent Query that reads the given records.
// DynamoDB adds up the sizes of the records and rounds up the sum.
func QueryUnits(records []Reader) float64 { return ReadUnits(SizeOfAll(records)) }

// BatchGetUnits returns the read units of an eventually consistent BatchGetItem. keys is the number
// of requested keys, and records are the records that were found. DynamoDB rounds up the size of
// each record separately.
func BatchGetUnits(records []Reader, keys int) float64 {
	units := ReadUnits(0) * float64(keys-len(records))
	for _, r := range records {
		units += ReadUnits(r.Size())
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

// TransactWriteUnits returns the write units that a transaction consumes to change a record. If
// before is nil, the record is new. If after is nil, the record is deleted. Sources:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations.Writes
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-capacity-handling
func TransactWriteUnits(before, after Record) float64 {
	oldSize, newSize := SizeOf(before), SizeOf(after)
	units := 2 * writeUnits(max(oldSize, newSize))
	_, wasIndexed := before[AttrIndexPK]
	_, isIndexed := after[AttrIndexPK]
	// An index entry costs one write, or two writes if its key changes. DynamoDB writes index entries
	// outside the transaction.
	switch {
	case wasIndexed && isIndexed && EqualValues(before[AttrIndexPK], after[AttrIndexPK]) && EqualValues(before[AttrIndexSK], after[AttrIndexSK]):
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

// MaxTransactWriteUnits returns the maximum write units that a transaction consumes to write one
// record of the given size. If indexed is true, the result includes two index writes, because
// DynamoDB may have to replace the record's index entry.
func MaxTransactWriteUnits(bytes int, indexed bool) float64 {
	if indexed {
		return 4 * writeUnits(bytes)
	}
	return 2 * writeUnits(bytes)
}

// CounterUpdateUnits returns the write units that a transaction consumes to change a counter in a
// record of the entity e. If r is nil, the record's size is assumed to be 1 KB.
func CounterUpdateUnits(e *Entity, r Record) float64 {
	if e.IndexPK == "" {
		return 2 * writeUnits(SizeOf(r))
	}
	return 3 * writeUnits(SizeOf(r))
}

// ConditionCheckUnits returns the write units that a transaction consumes to check a condition on a
// record. If r is nil, the size of the record is assumed to be 1 KB.
func ConditionCheckUnits(r Record) float64 { return 2 * writeUnits(SizeOf(r)) }
