// Package feed delivers changes of orders to subscribers. It reads new changes from the table's
// stream, and missed changes from the timelines of the orders. It imports commerce, dynamo/model
// and dynamo/table.
//
// A [Feed] reads its [Source] once for all subscriptions. It begins when the first subscription
// starts, and stops when the last subscription has ended.
//
// A new [Subscription] first registers with the Feed and then reads the ID of the last event. It
// reads missed events up to this ID from the timelines. It receives events with higher IDs from the
// stream. If the feed has missed a part of the stream, each Subscription reads the missed events
// from the timelines.
package feed
