// Package feed delivers changes of orders to subscribers. It reads new changes from the table's
// stream, and missed changes from the timelines of the orders. It imports commerce, dynamo/model
// and dynamo/table.
//
// A [Feed] has one reader of its [Source] for all subscriptions. It starts the reader with the
// first subscription, and stops the reader after the last. A [Subscription] registers first, and
// then reads the ID of the last event. It reads events up to this ID from the timelines, and
// receives later events from the stream. After a gap in the stream, a Subscription reads the missed
// events in the same way.
package feed
