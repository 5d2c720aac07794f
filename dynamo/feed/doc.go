// Package feed delivers changes of orders to subscribers. It reads new changes from the table's
// stream in DynamoDB Streams. It reads missed changes from the timelines of the orders, which
// contain each order's events. It imports commerce and the packages dynamo/model and dynamo/table.
//
// A [Feed] reads its [Source] once for all subscriptions. It starts reading when the first
// subscription begins, and stops when the last subscription has ended.
//
// A new [Subscription] first registers with the Feed and then reads the ID of the last event. It
// reads missed events up to this ID from the timelines. It receives events with higher IDs from the
// stream. The Feed may miss some changes in the stream. Subscriptions to orders and customers then
// read the missed events from the timelines.
//
// A Subscription to a status that begins after an event is delayed: it reads all events from the list of
// status changes. The stream only shows when there are new ones.
package feed
