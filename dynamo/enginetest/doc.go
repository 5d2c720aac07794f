// Package enginetest is a conformance suite: it tests the behaviour of DynamoDB that Ordergraph
// relies on. Ordergraph runs on three engines: Amazon DynamoDB, DynamoDB Local, and the embedded
// store. The suite finds code that works on one engine but not on another.
//
// The suite uses only the SDK's client and knows nothing about Ordergraph's records. It has its own
// attribute names, creates one table per test, and deletes the table afterwards.
//
// The package's own tests also send random requests to the embedded store and DynamoDB Local, and
// compare the responses: see TestDifferential.
//
// The suite does not test the following behaviour, because engines may differ:
//
//   - The order of records with equal index keys. Code can rely only on this: every page continues
//     where the previous page ended.
//   - The order of the records in the response to a Scan.
//   - The trailing zeros of a number. DynamoDB Local stores the attribute 0.10 as 0.1, but keeps
//     0.10 in a list, and computes 1.50 + 6 as 7.50. Code that requires trailing zeros must store
//     text. Code that compares numbers must compare their values.
//   - The order of the elements in a binary set. Amazon DynamoDB sorts the elements by their bytes.
//     DynamoDB Local also sorts them, but puts bytes above 127 first.
//   - Numbers with exponents beyond the supported range. DynamoDB Local accepts 0e126.
//   - The response to a transaction with an update that the record does not allow, such as adding a
//     number to a string. According to Amazon's documentation, DynamoDB cancels the transaction.
//     DynamoDB Local does so only in some cases, and otherwise returns another error.
//   - An UpdateItem that sets an index key to a value of the wrong type. DynamoDB Local accepts the
//     update and omits the record from the index.
//   - A Scan of an index with a filter on an attribute that the index does not project. DynamoDB
//     Local applies the filter to the complete records.
//   - The read units of a Scan, and of reading a local secondary index that contains all attributes
//     in the projection expression. DynamoDB Local charges for the complete records.
//   - Whether DynamoDB returns item collection metrics. DynamoDB Local never does.
//   - Whether a Query with Select COUNT also returns records. The suite tests only the count.
//   - The wording of messages. The suite tests codes and types of errors, but not texts.
package enginetest
