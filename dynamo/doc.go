// Package dynamo stores the order book in one DynamoDB table with one global secondary index (GSI).
// The type Store reads records. It also combines the packages in the subdirectories.
//
// The nouns:
//
//   - A record is a DynamoDB item: attributes under a partition key (pk) and a sort key (sk). In
//     this code, "item" means a line item of an order: commerce.LineItem.
//   - An item collection is all records with the same partition key. An order and its items and
//     events are an item collection, and so are a product and its inventory levels.
//   - An entity is a kind of record. Its keys are templates, such as CUSTOMER#{customerId}.
//   - An edge is an additional record for one list. It contains a copy of the attributes that the
//     list needs, so the list needs no second read. For example, employees are listed by name from
//     their NAME edges.
//   - An access pattern is one way to read, with an ID such as AP28. The code, the explain output
//     and the docs use this ID.
//   - A write pattern declares the records that one mutation writes and checks. It has an ID such
//     as WP4.
//   - A change runs one mutation: it reads records, plans the writes, and commits them in one
//     transaction. After a conflict with another transaction, the change starts again with the
//     reads.
//   - An event is an entry in the timeline of an order. A copy of each customer's last event is
//     stored in the customer's partition. The events of a customer are committed in the order of
//     their IDs.
//   - A shard is one of the partition keys over which a busy list is spread, such as
//     STATUS#pending#3. The shards of DynamoDB Streams are a different concept.
//   - The change feed delivers events to subscribers. It reads new events from the stream, and
//     missed events from the timelines of the orders.
//   - A drift is an inconsistency: a record contradicts another record or the data model. The kind
//     of a drift determines how it is repaired.
//
// Caveats:
//
//   - Reads for GraphQL queries are eventually consistent: a record that was just written may be
//     missing. Reads for mutations, their payloads and exports are strongly consistent.
//   - An order has two records with the same attributes, one under its own key and one in its
//     customer's partition. Both embed a copy of the order's items to save requests. The ITEM
//     records are authoritative.
//   - The Store can read records of other software that lack the embedded items or the attributes
//     entity, version or itemCount.
//   - Sort keys are compared by their UTF-8 bytes.
package dynamo
