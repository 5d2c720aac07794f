// Package dynamo keeps the order book in one DynamoDB table with one global secondary index (GSI).
// It reads records and puts the packages below it together in Store.
//
// The nouns:
//
//   - A record is a DynamoDB item: attributes under a partition key (pk) and a sort key (sk). An
//     order's item is a commerce.LineItem.
//   - An item collection is all records of one partition key: an order with its items and events,
//     or a product with its inventory levels.
//   - An entity is a kind of record. Its keys are templates: CUSTOMER#{customerId}.
//   - An edge is a record that exists for one list. It carries the attributes which that list
//     needs, so that no list does a second read: an employee's NAME edge, a customer's REP edge.
//   - An access pattern is one way to read, with an ID such as AP28. The ID is its name in code, in
//     the explain output and in the docs.
//   - A write pattern is one kind of change, with the records that it writes and checks, and an ID
//     such as WP4.
//   - A change is one mutation in progress. It reads what it needs, plans each record, and is made
//     as one transaction, or planned again after a conflict.
//   - An event is an entry in the timeline of an order. A copy of a customer's last event stands in
//     the customer's partition. All events of a customer are committed in the order of their IDs.
//   - A shard is one of several partition keys that a busy list is spread over:
//     STATUS#pending#3. The table's stream has shards too, which are DynamoDB's.
//   - The change feed delivers changes to subscribers: from the stream, and from the timelines
//     after a gap.
//   - A drift is a record that disagrees with another or with the model. Its class says what
//     repairs it.
//
// Caveats:
//
//   - Reads for queries are eventually consistent: a record written a moment ago may not be seen
//     yet. What a change reads, a mutation's payload and an export are consistent.
//   - An order stands in the table twice, under its own key and in its customer's partition. Both
//     records carry the same attributes. The ITEM records are the truth about an order's items; the
//     list that both order records carry is a copy for speed.
//   - Records of other software are read as they are: without entity, version, itemCount or
//     embedded items.
//   - Sort keys compare by the bytes of their UTF-8.
package dynamo
