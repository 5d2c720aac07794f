// Package feed delivers changes of orders to subscribers: new ones from the table's stream, missed
// ones from the orders' timelines. It imports commerce, dynamo/model and dynamo/table.
package feed
