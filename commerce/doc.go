// Package commerce defines the domain types and business rules of the order book: customers,
// orders, line items, products, inventory, employees, money and permissions.
//
// The package is pure. It reads no clock, no environment and no network, and imports no other
// package of the module. An empty ID in a reference, such as Order.AccountRepID, means that the
// reference is not set.
package commerce
