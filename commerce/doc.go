// Package commerce defines the domain types and business rules of Ordergraph, such as orders,
// products and money.
//
// The package has no side effects. It does not read the clock, the environment or the network, and
// it imports no other package of the module. A field that refers to another record, such as
// Order.AccountRepID, is empty if there is no such record.
package commerce
