package enginetest

// Minidyn returns the cases that the built-in store is known to fail. The store is
// github.com/truora/minidyn v0.8.2 behind package internal/embedded. That package corrects writes
// of single records, transactions and scans. Minidyn is a function so that the list cannot be
// modified.
//
// Code that must also run on the built-in store follows these rules:
//
//   - Update only top-level attributes, by SET, REMOVE, and ADD of numbers. UpdateItem passes other
//     expressions to minidyn, which removes nothing, turns all numbers of the record into floats,
//     and loses records from the index. Transactions reject such expressions.
//   - In a batch, write a record only if it keeps all its index keys. A put, an update or a
//     transaction may remove index keys.
//   - Conditions compare numbers as float64. Whole numbers up to 2^53 are distinct. Store amounts
//     as whole numbers of the smallest unit, or as text.
//   - Conditions must not compare an attribute with a value of another type. The comparison is an
//     error instead of false.
//   - Do not store empty bytes. They make every condition on their record fail.
//   - Do not continue a query after a key that may have been deleted. Put the position into the key
//     condition.
//   - Check for duplicates in a batch before sending it.
//   - Partition key + "." + sort key must be unique.
//   - Every query reads all records of the table, so keep the table small.
func Minidyn() Differences {
	const lenient = "minidyn does not check for this"
	return Differences{
		"BatchGetDuplicates":                            lenient,
		"BatchWriteDuplicates":                          lenient,
		"BatchWriteRefusedWhole":                        "minidyn writes the records of a batch up to the first invalid one",
		"Condition/attribute_exists(m.l[2])_is_false":   "minidyn panics on a list index out of range",
		"Condition/n_<_10.00000000000000000001_is_true": "minidyn compares numbers as float64",
		"Condition/n_=_'10'_is_false":                   "minidyn rejects comparisons of different types",
		"ConditionBesideEmptyBytes":                     "minidyn rejects all conditions on a record with empty bytes",
		"DescribeTable":                                 "minidyn reports neither the table's status nor its attribute definitions",
		"KeysWithSeparators/dot":                        "minidyn joins partition and sort key with a dot",
		"NumberRefused":                                 lenient,
		"NumberSpelling":                                "minidyn does not normalize numbers",
		"QueryAfterDeletedKey":                          "minidyn cannot find a deleted start key and returns no more records",
		"QueryFilterPages":                              "minidyn counts records of other partitions towards the limit and returns no ScannedCount",
		"Refuses/put_of_more_than_400_KB":               lenient,
		"Refuses/query_by_inequality":                   lenient,
		"Refuses/query_by_other_attribute":              lenient,
		"Refuses/query_of_range_of_partitions":          lenient,
		"Refuses/query_of_reversed_range":               lenient,
		"Refuses/query_without_partition_key":           lenient,
		"UpdateRemove":                                  "minidyn's REMOVE ignores elements of lists, and attributes in the same clause",
	}
}
