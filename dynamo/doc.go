// Package dynamo keeps the order book in one DynamoDB table with one global secondary index (GSI).
//
// The nouns:
//
//   - A record is what DynamoDB calls an item: attributes under a partition key (pk) and a sort key (sk). An
//     order's item is a commerce.LineItem, never just "item".
//   - An item collection is all records of one partition key: an order with its items and events, or a
//     product with its inventory levels.
//   - An entity is a kind of record. Its keys are templates: CUSTOMER#{customerId}.
//   - An edge is a record that exists for one list and carries the attributes which that list needs, so that no
//     list does a second look-up: an employee's NAME edge, a customer's REP edge.
//   - An access pattern is one way to read, with an ID such as AP28. The ID is its name in code, in the explain
//     output and in the docs.
//   - A write pattern is one kind of change, with the records that it writes and checks, and an ID such as WP4.
//   - A change is one mutation under way: it reads what it needs, plans what becomes of each record, and is made as one
//     transaction, or planned anew where somebody was faster.
//   - An event is a change of an order, as its timeline tells it. A customer's last event stands in the customer's partition as well; all
//     events of a customer are committed in the order of their ids.
//   - A shard is one of several partition keys that a busy list is spread over: STATUS#pending#3. The table's stream has shards too, which
//     are DynamoDB's.
//   - A feed delivers changes of orders to subscribers: new ones from the stream, missed ones from the timelines.
//   - A unit is a record with all that follows from it, such as an order with its copies, items and events. A check verifies and
//     repairs it as a whole.
//   - A drift is a record that disagrees with another or with the model. It is of a class, which says what repairs it.
//
// Package dynamo/model holds every key template, access pattern and write pattern, dynamo/table
// makes the requests, dynamo/bulk, dynamo/check and dynamo/repair work on whole tables, dynamo/feed
// delivers changes. This package reads and changes records, and Store puts all of it together.
//
// Caveats:
//
//   - Reads for queries are eventually consistent: a record written a moment ago may not be seen yet. What a change reads, a
//     mutation's payload and an export are consistent.
//   - An order stands in the table twice, under its own key and in its customer's partition. Both records carry
//     the same attributes. The ITEM records are the truth about an order's items; the list that both order records carry
//     is a copy for speed.
//   - Records of other software are read as they are: without entity, version, itemCount or embedded items.
//   - Sort keys compare by the bytes of their UTF-8.
package dynamo
