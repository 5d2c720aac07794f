// Package enginetest tests the behaviour of DynamoDB on which Ordergraph relies. Ordergraph runs on
// three engines: Amazon DynamoDB, DynamoDB Local, and the embedded store. The same tests run on all
// engines, to find code that works on one engine but not on another.
//
// The tests use only the client of the AWS SDK and do not depend on Ordergraph's records. Each test
// creates its own table with its own attribute names, and deletes the table afterwards.
//
// TestDifferential also sends random requests to the embedded store and to DynamoDB Local, and
// compares the responses.
//
// The package does not test the following behaviour, because engines may differ:
//
//   - The order of records with equal index keys. Code can rely only on this: every page continues
//     where the previous page ended.
//   - The order of the records in the response to a Scan.
//   - The trailing zeros of a number. DynamoDB Local stores the attribute 0.10 as 0.1, but keeps
//     0.10 in a list, and computes 1.50 + 6 as 7.50. Code that requires trailing zeros must store
//     text. Code that compares numbers must compare their values.
//   - The order of the elements in a binary set. Amazon DynamoDB sorts the elements by their bytes.
//     DynamoDB Local also sorts them, but puts bytes above 127 first.
//   - Numbers with exponents beyond the supported range. For example, DynamoDB Local accepts 0e126.
//   - The response to a transaction with an update that does not fit the record, such as adding a
//     number to a string. According to Amazon's documentation, DynamoDB cancels the transaction. In
//     some cases, DynamoDB Local returns another error instead.
//   - An UpdateItem that sets an index key to a value of the wrong type. DynamoDB Local accepts the
//     update and omits the record from the index.
//   - A Scan of an index with a filter on an attribute that the index does not contain. DynamoDB
//     Local applies the filter to the complete records.
//   - The read units of a Scan. DynamoDB Local charges for the complete records.
//   - The read units of a Query of a local secondary index, if the index contains all requested
//     attributes. DynamoDB Local charges for the complete records.
//   - Whether DynamoDB returns item collection metrics. DynamoDB Local never returns them.
//   - Whether a Query with Select COUNT also returns records. The tests check only the count.
//   - The text of error messages. The tests check only the codes and types of errors.
package enginetest
