package enginetest

// Minidyn returns the cases github.com/truora/minidyn v0.8.2, the store that is built in, is known to fail. It is a
// function because a list anybody could change would be no list of facts.
//
// What follows for code that has to run on it as well:
//
//   - Do not use REMOVE for attributes: it does nothing. Put the whole record.
//   - A record gets its index keys when it is put (a put may also add them later), never by an update. An update
//     may change those that are there.
//   - A record leaves the index by being deleted, and put again if it is to stay. A put without the index keys
//     looks right, until the record is deleted: then the index loses others, or all.
//   - A record's numbers survive an update only if they are exact as float64: whole ones up to 2^53. Store
//     amounts as whole numbers of the smallest unit, or as text.
//   - Do not store empty lists, maps or bytes.
//   - Do not continue a query after a key that may be gone; put the position into the key condition.
//   - Check for duplicates in a batch before it is sent.
//   - Read a record that a failed put or delete met, as the error does not bring it. Failed updates bring it.
//   - A put answers with the new record whatever ReturnValues says.
//   - Partition key + "." + sort key has to be different for different records.
//   - Every transaction copies its whole tables first, and every query looks at all records of the table: keep it small.
func Minidyn() Differences {
	const (
		index    = "minidyn keeps an index as two lists, which such a write leaves at odds with each other"
		remove   = "minidyn's REMOVE removes no attributes"
		noOld    = "minidyn returns the old record of a failed condition for updates and checks only"
		float    = "minidyn rewrites all numbers of an updated record as float64"
		lenient  = "minidyn does not check for this"
		dropped  = "minidyn's protocol types leave out what is empty"
		restored = "minidyn undoes a transaction with copies of all records that leave out what is empty"
	)
	return Differences{
		"BatchGetDuplicates":                          lenient,
		"BatchWriteDuplicates":                        lenient,
		"BatchWriteRefusedWhole":                      "minidyn writes a batch's records up to the first bad one",
		"Condition/attribute_exists(m.l[2])_is_false": "minidyn panics on a list index beyond the end",
		"Condition/n_=_'10'_is_false":                 "minidyn refuses to compare values of different types",
		"DeleteIfReturnsOld":                          noOld,
		"DescribeTable":                               "minidyn tells neither the table's status nor its attribute definitions",
		"EmptyLists":                                  dropped,
		"IndexChurn":                                  index,
		"IndexDeleteAfterLeaving":                     index,
		"IndexGainsOnUpdate":                          index,
		"IndexLosesOnRemove":                          remove,
		"IndexOfEqualKeysLoses":                       remove,
		"IndexOfNewRecordByUpdate":                    index,
		"KeysDoNotRunTogether/dot":                    "minidyn joins partition and sort key with a dot",
		"NumberRefused":                               lenient,
		"NumberSpelling":                              "minidyn stores numbers as they are spelled",
		"PutIfAbsentReturnsOld":                       noOld,
		"PutReturnsOld":                               "minidyn always returns the new record",
		"QueryAfterAKeyThatIsGone":                    "minidyn looks for the very record to continue after, and finds the end of the table",
		"QueryFilterPages":                            "minidyn counts records of other partitions towards the limit, and has no ScannedCount",
		"Refuses/put_of_more_than_400_KB":             lenient,
		"Refuses/put_with_empty_index_key":            lenient,
		"Refuses/put_with_empty_key":                  lenient,
		"Refuses/query_by_inequality":                 lenient,
		"Refuses/query_by_other_attribute":            lenient,
		"Refuses/query_of_range_of_partitions":        lenient,
		"Refuses/query_of_reversed_range":             lenient,
		"Refuses/query_without_partition_key":         lenient,
		"Refuses/update_of_one_path_twice":            lenient,
		"Refuses/value_not_given":                     lenient,
		"ScanSegments":                                "minidyn does not know segments: each has everything",
		"TransactCancelledByPutReturnsOld":            noOld,
		"TransactCancelledKeepsEverything":            restored,
		"TransactCancelledTwice":                      "minidyn stops at the first action that fails, and reports that one only",
		"TransactToken":                               "minidyn does not know tokens: a repeated transaction happens again",
		"TransactTooMany":                             lenient,
		"UpdateAddsDecimals":                          float,
		"UpdateLeavesOtherNumbers":                    float,
		"UpdateReadsBeforeItWrites":                   "minidyn's SET sees what the same expression has set before",
		"UpdateRemove":                                remove,
	}
}
