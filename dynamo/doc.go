// Package dynamo stores the order book in one DynamoDB table with one global secondary index (GSI).
// The type Store reads records. It also combines the packages in the subdirectories.
//
// The nouns:
//
//   - A record is a DynamoDB item: attributes under a partition key (pk) and a sort key (sk). The
//     word "item" is reserved for a line item of an order: commerce.LineItem.
//   - An item collection is all records with the same partition key. An order and its items and
//     events are an item collection, and so are a product and its inventory levels.
//   - An entity is a kind of record. Its keys are templates, such as CUSTOMER#{customerId}.
//   - An edge is a record that exists only for one list. It contains a copy of the attributes that
//     the list needs, so the list needs no second read. For example, employees are listed by name
//     from their NAME edges.
//   - An access pattern is one way to read, with an ID such as AP28. The code, the explain output
//     and the docs use this ID.
//   - A write pattern declares the records that one mutation writes and checks. It has an ID such
//     as WP4.
//   - A change is the execution of one mutation. It reads records, plans the writes, and commits
//     them in one transaction. After a conflict, the change reads and plans again.
//   - An event is an entry in the timeline of an order. A copy of a customer's last event is stored
//     in the customer's partition. All events of a customer are committed in the order of their
//     IDs.
//   - A busy list is spread over several partition keys, called shards: STATUS#pending#3. The
//     shards of DynamoDB Streams are a different concept.
//   - The change feed delivers events to subscribers. It reads new events from the stream, and
//     missed events from the timelines of the orders.
//   - A drift is a record that disagrees with another record or with the model. The kind of the
//     drift determines its repair.
//
// Caveats:
//
//   - Reads for GraphQL queries are eventually consistent: a record that was just written may be
//     missing. Reads of a change, of a mutation's payload and of an export are strongly consistent.
//   - An order has two records, one under its own key and one in its customer's partition. Both
//     have the same attributes. The ITEM records are authoritative for an order's items. The item
//     list in both order records is a copy that saves requests.
//   - Records written by other software may lack the attributes entity, version, itemCount or the
//     embedded items. The Store can read such records.
//   - Sort keys are compared by their UTF-8 bytes.
package dynamo
