// Package enginetest is a conformance suite: it tests the behaviour of DynamoDB that Ordergraph
// relies on. Ordergraph runs on three engines: Amazon DynamoDB, DynamoDB Local, and the embedded
// store. The suite finds code that is right on one engine and wrong on another.
//
// The suite uses only the SDK's client and knows nothing about Ordergraph's records. It has its own
// attribute names, creates one table per test, and deletes the table afterwards.
//
// The package's own tests also send random requests to the embedded store and DynamoDB Local, and
// compare the responses: see TestDifferential.
//
// The suite does not test behaviour in which engines may differ:
//
//   - The order of records with equal index keys. Code can rely only on this: every page continues
//     where the previous page ended.
//   - The order of Scan.
//   - The notation of a number inside a list or a map. DynamoDB Local changes the attribute 0.10 to
//     0.1, but not in a list, and adds 1.50 to 6 to get 7.50. Code that needs the trailing zero
//     must store text. Code that compares numbers must compare values.
//   - The order of a binary set. Amazon DynamoDB sorts the elements by their bytes. DynamoDB Local
//     sorts them too, but bytes above 127 come first.
//   - Numbers with exponents beyond the supported range. DynamoDB Local accepts 0e126.
//   - The response to an update in a transaction that is invalid for its record, such as adding to
//     a string or changing a key. It can be an error or the reason of a cancelled transaction.
//     Amazon documents the latter; DynamoDB Local cancels in some cases.
//   - An update (not a put) that sets an index key to another type. DynamoDB Local accepts it and
//     leaves the record out of the index.
//   - A Scan of an index whose filter names an attribute that the index does not project. DynamoDB
//     Local filters the complete records.
//   - The read units of a Scan, and of a local secondary index whose projection has all attributes
//     that a projection expression names. DynamoDB Local counts the complete records.
//   - Whether DynamoDB returns item collection metrics. DynamoDB Local never does.
//   - Whether a Query with Select COUNT also returns records. The count is right.
//   - The wording of messages. The suite tests codes and types of errors, but not texts.
package enginetest
