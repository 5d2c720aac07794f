// Package commerce defines the domain types and business rules of the order book: customers,
// orders, line items, products, inventory, employees, money and permissions.
//
// The package has no side effects, and it does not read the clock, the environment or the network.
// It imports no other package of the module. An empty ID in a reference, such as
// Order.AccountRepID, means that the reference is not set.
package commerce
