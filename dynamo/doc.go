// Package dynamo stores the order book in one DynamoDB table with one global secondary index (GSI).
// The type Store reads records. It also embeds the types that change, check, import and export
// records.
//
// The code and the docs use these terms:
//
//   - A record is a DynamoDB item: attributes under a partition key (pk) and a sort key (sk). In
//     this code, "item" means a line item of an order: commerce.LineItem.
//   - An item collection is all records with the same partition key. For example, an order and its
//     line items and events are one item collection.
//   - An entity is a kind of record. Its keys are templates, such as CUSTOMER#{customerId}.
//   - An edge is a copy of a record that puts the record into an additional list. It contains the
//     attributes that the list needs, so reading the list needs no second request. For example, the
//     list of employees by name consists of edges.
//   - An access pattern is one way to read the table. It has an ID such as AP28, which the code,
//     the explain output and the docs use.
//   - A write pattern declares the records that one mutation writes and checks. It has an ID such
//     as WP4.
//   - A change executes one mutation: it reads records, plans the writes, and commits them in one
//     transaction. If the transaction conflicts with another transaction, the change is repeated.
//   - An event is an entry in the timeline of an order. The events of a customer's orders are
//     committed in the order of their IDs. To ensure this, the customer's partition contains a copy
//     of the customer's last event.
//   - A shard is one of the partition keys over which a busy list is spread, such as
//     STATUS#pending#3. The shards of DynamoDB Streams are a different concept.
//   - The change feed delivers events to subscribers. It reads new events from the table's stream,
//     and missed events from the timelines of the orders.
//   - An inconsistency is an inconsistency: a record contradicts another record or the data model. The kind
//     of an inconsistency determines how it is repaired.
//
// Caveats:
//
//   - Reads for GraphQL queries are eventually consistent, so a record that was just written may be
//     missing. Reads for mutations, their results and exports are strongly consistent.
//   - An order has two records with the same attributes. One has the order's own key, and the other
//     is in the customer's partition. To save requests, both embed the order's line items, unless
//     there are more than commerce.MaxEmbeddedItems. Each line item also has its own record. If it
//     differs from the embedded line item, the line item's own record is correct.
//   - The Store can also read records that other software wrote. Such records may lack the embedded
//     line items and the attributes entity, version and itemCount.
//   - Sort keys are compared by their UTF-8 bytes.
package dynamo
