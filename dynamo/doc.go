// Package dynamo stores the order book in one DynamoDB table with one global secondary index (GSI).
// Store reads records and combines the packages below it.
//
// The nouns:
//
//   - A record is a DynamoDB item: attributes under a partition key (pk) and a sort key (sk). The
//     word item means a line item of an order: commerce.LineItem.
//   - An item collection is all records of one partition key: an order with its items and events,
//     or a product with its inventory levels.
//   - An entity is a kind of record. Its keys are templates: CUSTOMER#{customerId}.
//   - An edge is a record that exists for one list. It repeats the attributes that the list needs,
//     so that the list needs no second read. Examples: an employee's NAME edge, a customer's REP
//     edge.
//   - An access pattern is one way to read, with an ID such as AP28. The code, the explain output
//     and the docs refer to it by this ID.
//   - A write pattern declares the records that one mutation writes and checks, with an ID such as
//     WP4.
//   - A change is one mutation in progress. It reads records, plans the writes, and commits them in
//     one transaction. After a conflict it reads and plans again.
//   - An event is an entry in the timeline of an order. A copy of a customer's last event is stored
//     in the customer's partition. All events of a customer are committed in the order of their
//     IDs.
//   - A shard is one of several partition keys that a busy list is spread over: STATUS#pending#3.
//     The shards of DynamoDB Streams are a different thing.
//   - The change feed delivers events to subscribers: new events from the stream, and missed events
//     from the timelines.
//   - A drift is a record that disagrees with another record or with the model. Its kind determines
//     the repair.
//
// Caveats:
//
//   - Reads for queries are eventually consistent: a record that was just written may be missing.
//     The reads of a change, of a mutation's payload and of an export are consistent.
//   - An order has two records, one under its own key and one in its customer's partition. Both
//     have the same attributes. The ITEM records are authoritative for an order's items. The item
//     list in both order records is a copy that saves requests.
//   - Records written by other software may lack entity, version, itemCount or embedded items. They
//     are read without these attributes.
//   - Sort keys are compared by their UTF-8 bytes.
package dynamo
