// Package feed delivers changes of orders to subscribers: new ones from the table's stream, missed
// ones from the orders' timelines. It imports commerce, dynamo/model and dynamo/table.
//
// A [Feed] reads its [Source] once for all subscriptions, from the first to the last. A
// [Subscription] registers first, then reads the ID of the last event. Events up to that ID come
// from the timelines, later ones from the stream. A gap in the stream is handled in the same way.
package feed
