package access

import "slices"

// Permission is the right to read or change one kind of data. The GraphQL schema declares the
// permission that each field requires. A Policy grants permissions to roles.
type Permission int

// Permissions.
const (
	// PermissionReadViewer allows reading the caller's own role and permissions.
	PermissionReadViewer Permission = iota + 1
	// PermissionReadCatalog allows reading products: names, prices and available stock.
	PermissionReadCatalog
	// PermissionReadCustomer allows reading a customer.
	PermissionReadCustomer
	// PermissionListCustomers allows listing all customers, and finding customers by name or email
	// address.
	PermissionListCustomers
	// PermissionReadOrder allows reading an order with its line items, payments, returns and timeline. It also
	// allows subscribing to the changes of this order.
	PermissionReadOrder
	// PermissionListOrders allows listing the orders of all customers. It also allows subscribing to
	// the status changes of all orders.
	PermissionListOrders
	// PermissionReadActor allows reading the name of the caller who caused an event in an order's
	// timeline, recorded a payment or requested a return, the reason why an order is on hold, and
	// the tags of an order.
	PermissionReadActor
	// PermissionReadNote allows reading the notes in an order's timeline. GrantOwn covers only the notes
	// that the caller's own customer account wrote, or that staff wrote for it.
	PermissionReadNote
	// PermissionReadStock allows reading warehouses and their inventory.
	PermissionReadStock
	// PermissionReadContact allows reading the name, job title and phone numbers of an employee who is
	// responsible for a customer or an order.
	PermissionReadContact
	// PermissionReadStaff allows listing employees. It also allows reading all fields of an employee
	// that do not require PermissionReadContact.
	PermissionReadStaff
	// PermissionPlaceOrder allows placing orders.
	PermissionPlaceOrder
	// PermissionChangeOrder allows cancelling an order, changing its line items, addresses or contact, and
	// adding notes.
	PermissionChangeOrder
	// PermissionAdjustOrder allows setting the amounts for shipping, taxes, discounts and fees of an order.
	PermissionAdjustOrder
	// PermissionFulfilOrder allows confirming, shipping and delivering orders, putting them on hold, and
	// approving, rejecting and receiving returns.
	PermissionFulfilOrder
	// PermissionRecordPayment allows recording payments of orders.
	PermissionRecordPayment
	// PermissionRefundFreely allows refunding more for a return than was paid for its pieces.
	PermissionRefundFreely
	// PermissionCreateCustomer allows adding customers, placing orders of guests and claiming such orders for
	// customers.
	PermissionCreateCustomer
	// PermissionChangeCustomer allows changing a customer's record, but not the email address.
	PermissionChangeCustomer
	// PermissionEraseCustomer allows erasing the personal data of customers.
	PermissionEraseCustomer
	// PermissionChangeEmail allows changing a customer's email address.
	PermissionChangeEmail
	// PermissionAssignRep allows choosing the employee who is responsible for a customer.
	PermissionAssignRep
	// PermissionChangeStock allows changing the inventory of warehouses.
	PermissionChangeStock
	// PermissionChangeCatalog allows adding and changing products.
	PermissionChangeCatalog
	// PermissionChangeWarehouses allows adding warehouses.
	PermissionChangeWarehouses
	// PermissionChangeStaff allows adding and changing employees.
	PermissionChangeStaff
	// PermissionManageWebhooks allows reading and changing webhooks to which events are sent.
	PermissionManageWebhooks
	// PermissionResolveEntities allows a GraphQL federation gateway to look up entities by key. To
	// read an entity, a caller also needs the permission of the entity's type.
	PermissionResolveEntities
	// PermissionReadSubgraph allows reading the schema of this federation subgraph.
	PermissionReadSubgraph
	// PermissionIntrospect allows introspection. Without this permission, error messages contain the
	// name of a type or field only if the request contains it.
	PermissionIntrospect
	// PermissionExplain allows requesting the explain output, which lists the DynamoDB requests of an
	// operation. It also allows reading the description of the table.
	PermissionExplain

	permissionsEnd = iota + 1
)

var permissionNames = [permissionsEnd]string{
	PermissionReadViewer:       "READ_VIEWER",
	PermissionReadCatalog:      "READ_CATALOG",
	PermissionReadCustomer:     "READ_CUSTOMER",
	PermissionListCustomers:    "LIST_CUSTOMERS",
	PermissionReadOrder:        "READ_ORDER",
	PermissionListOrders:       "LIST_ORDERS",
	PermissionReadActor:        "READ_ACTOR",
	PermissionReadNote:         "READ_NOTE",
	PermissionReadStock:        "READ_STOCK",
	PermissionReadContact:      "READ_CONTACT",
	PermissionReadStaff:        "READ_STAFF",
	PermissionPlaceOrder:       "PLACE_ORDER",
	PermissionChangeOrder:      "CHANGE_ORDER",
	PermissionAdjustOrder:      "ADJUST_ORDER",
	PermissionFulfilOrder:      "FULFIL_ORDER",
	PermissionRecordPayment:    "RECORD_PAYMENT",
	PermissionRefundFreely:     "REFUND_FREELY",
	PermissionCreateCustomer:   "CREATE_CUSTOMER",
	PermissionChangeCustomer:   "CHANGE_CUSTOMER",
	PermissionEraseCustomer:    "ERASE_CUSTOMER",
	PermissionChangeEmail:      "CHANGE_EMAIL",
	PermissionAssignRep:        "ASSIGN_REP",
	PermissionChangeStock:      "CHANGE_STOCK",
	PermissionChangeCatalog:    "CHANGE_CATALOG",
	PermissionChangeWarehouses: "CHANGE_WAREHOUSES",
	PermissionChangeStaff:      "CHANGE_STAFF",
	PermissionManageWebhooks:   "MANAGE_WEBHOOKS",
	PermissionResolveEntities:  "RESOLVE_ENTITIES",
	PermissionReadSubgraph:     "READ_SUBGRAPH",
	PermissionIntrospect:       "INTROSPECT",
	PermissionExplain:          "EXPLAIN",
}

// String returns the permission's name in the GraphQL schema, such as READ_ORDER. It returns
// NOTHING if the permission does not exist.
func (p Permission) String() string {
	if p < 1 || p >= permissionsEnd {
		return "NOTHING"
	}
	return permissionNames[p]
}

// Permissions returns all permissions.
func Permissions() []Permission {
	all := make([]Permission, 0, permissionsEnd-1)
	for p := Permission(1); p < permissionsEnd; p++ {
		all = append(all, p)
	}
	return all
}

// ParsePermission returns the permission with the given name. It returns false if no permission has
// this name.
func ParsePermission(name string) (Permission, bool) {
	i := slices.Index(permissionNames[1:], name)
	return Permission(i + 1), i >= 0
}
