// Package commerce holds the nouns and rules of an order book: customers, orders and their items,
// products, stock, employees, money and the lifecycle of an order.
//
// It is pure: it reads no clock, no environment and no network, and it imports nothing of the other
// packages. An empty id in a reference (Order.AccountRepID, say) means that there is nothing to
// refer to.
package commerce
