package enginetest

// Minidyn returns the cases that the store that is built in is known to fail:
// github.com/truora/minidyn v0.8.2 behind package internal/embedded, which mends what writes of
// single records, transactions and scans do wrong. It is a function because a list anybody could
// change would be no list of facts.
//
// What follows for code that has to run on it as well:
//
//   - Update top-level attributes only, by SET, REMOVE, and ADD of numbers. UpdateItem leaves other expressions to minidyn, which
//     removes nothing, makes floats of all the record's numbers, and loses records from the index. Transactions refuse them.
//   - Write a record in a batch only where it has all the index keys that it had before. A put, an update or a transaction may
//     take them away.
//   - Conditions compare numbers as float64: whole ones up to 2^53 are told apart. Store amounts as whole numbers of the smallest
//     unit, or as text.
//   - Do not let a condition compare an attribute with a value of another type: it is an error, and not false.
//   - Do not store empty bytes: they make every condition on their record fail.
//   - Do not continue a query after a key that may be gone; put the position into the key condition.
//   - Check for duplicates in a batch before it is sent.
//   - Partition key + "." + sort key has to be different for different records.
//   - Every query looks at all records of the table: keep it small.
func Minidyn() Differences {
	const lenient = "minidyn does not check for this"
	return Differences{
		"BatchGetDuplicates":                            lenient,
		"BatchWriteDuplicates":                          lenient,
		"BatchWriteRefusedWhole":                        "minidyn writes a batch's records up to the first bad one",
		"Condition/attribute_exists(m.l[2])_is_false":   "minidyn panics on a list index beyond the end",
		"Condition/n_<_10.00000000000000000001_is_true": "minidyn compares numbers as float64",
		"Condition/n_=_'10'_is_false":                   "minidyn refuses to compare values of different types",
		"ConditionBesideEmptyBytes":                     "minidyn refuses all conditions on a record with empty bytes",
		"DescribeTable":                                 "minidyn tells neither the table's status nor its attribute definitions",
		"KeysDoNotRunTogether/dot":                      "minidyn joins partition and sort key with a dot",
		"NumberRefused":                                 lenient,
		"NumberSpelling":                                "minidyn stores numbers as they are spelled",
		"QueryAfterAKeyThatIsGone":                      "minidyn looks for the very record to continue after, and finds the end of the table",
		"QueryFilterPages":                              "minidyn counts records of other partitions towards the limit, and has no ScannedCount",
		"Refuses/put_of_more_than_400_KB":               lenient,
		"Refuses/query_by_inequality":                   lenient,
		"Refuses/query_by_other_attribute":              lenient,
		"Refuses/query_of_range_of_partitions":          lenient,
		"Refuses/query_of_reversed_range":               lenient,
		"Refuses/query_without_partition_key":           lenient,
		"UpdateRemove":                                  "minidyn's REMOVE removes no elements of lists, and no attributes beside them",
	}
}
