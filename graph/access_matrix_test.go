package graph

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// The access matrix selects every field of every type with an access rule, on every path to the
// type, as every role. It compares the results with the tables of docs/access.md. The expectations
// come from the docs, not from the code.

// rule is a documented permission and its grants.
type rule struct {
	permission string
	grants     map[access.Role]string
}

// documentedRules returns the rules of docs/access.md, by the names of permissions, types and
// fields. The rule of a type also applies to its fields, unless the page has a rule for the field.
func documentedRules(t testing.TB) map[string]rule {
	t.Helper()
	text, err := os.ReadFile(accessDocs)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]rule{}
	add := func(name string, r rule) {
		if _, exists := rules[name]; exists {
			t.Errorf("%s documents %s twice", accessDocs, name)
		}
		rules[name] = r
	}
	cells := strings.Repeat(` \| (all|own|–)`, len(access.Roles()))
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)`"+cells+" \\|(.*)\\|$").FindAllStringSubmatch(string(text), -1) {
		r := rule{m[1], map[access.Role]string{}}
		for i, role := range access.Roles() {
			r.grants[role] = m[2+i]
		}
		add(r.permission, r)
		for _, name := range strings.Fields(m[len(m)-1]) {
			add(strings.Trim(name, "`"), r)
		}
	}
	for _, d := range own(t) {
		typeRule, ok := rules[d.Name]
		for _, f := range d.Fields {
			if name := d.Name + "." + f.Name; ok && rules[name].permission == "" {
				rules[name] = typeRule
			}
		}
	}
	if len(rules) < 120 {
		t.Fatalf("%s has %d rules", accessDocs, len(rules))
	}
	return rules
}

// principals returns one principal of each role. The customer's own records are cust_001 and the
// order in ownSubject.
func principals() []access.Principal {
	var all []access.Principal
	for _, role := range access.Roles() {
		p := access.Principal{ID: strings.ToLower(role.String()), Role: role}
		if role == access.RoleCustomer {
			p.Customer = "cust_001"
		}
		all = append(all, p)
	}
	return all
}

// recordSet contains the records that a document refers to. Its values replace $C, $E, $O and $P in
// the ways.
type recordSet struct{ customer, email, order, product string }

var (
	ownSubject     = recordSet{"cust_001", "contact@acme.com", "01KCXT31G00000000000000002", "prod_101"}
	otherSubject   = recordSet{"cust_002", "info@techstart.com", "01KE70EHG00000000000000003", "prod_100"}
	unknownSubject = recordSet{"cust_999", "nobody@example.com", "01KE70EHG00000000000000009", "prod_100"}
)

// otherCustomerPairs are pairs of subjects. The first contains some records of another customer.
// The second has missing records in their place.
var otherCustomerPairs = [][2]recordSet{
	{otherSubject, unknownSubject},
	{{ownSubject.customer, ownSubject.email, otherSubject.order, otherSubject.product}, {ownSubject.customer, ownSubject.email, unknownSubject.order, unknownSubject.product}},
	{{otherSubject.customer, otherSubject.email, ownSubject.order, ownSubject.product}, {unknownSubject.customer, unknownSubject.email, ownSubject.order, ownSubject.product}},
}

func (s recordSet) in(way string) string {
	return strings.NewReplacer("$C", s.customer, "$E", s.email, "$O", s.order, "$P", s.product).Replace(way)
}

// out replaces the subject's values in a text by $C, $E, $O and $P.
func (s recordSet) out(text string) string {
	return strings.NewReplacer(s.customer, "$C", s.email, "$E", s.order, "$O", s.product, "$P").Replace(text)
}

// documentsByType are documents that return a type. %s is replaced by the selection of the type.
// Mutations among them change nothing: their result already exists, or they fail.
var documentsByType = map[string][]string{
	"Query":    {`query{%s}`, `{...F} fragment F on Query{%s}`, `{...on Query @include(if:true){%s}}`},
	"Mutation": {`mutation{%s}`},
	"Subscription": {
		`subscription{%s}`,
	},
	"Viewer":           {`{viewer{%s}}`},
	"OrderStatusCount": {`{orderCounts{%s}}`},
	"DailySales":       {`{sales(placed:{from:"2026-01-01",to:"2026-01-31"},currency:"USD"){%s}}`},
	"Spending":         {`{customer(id:"$C"){spending{%s}}}`},
	"Customer": {
		`{customer(id:"$C"){%s}}`, `{viewer{customer{%s}}}`, `{customerByEmail(email:"$E"){%s}}`, `{customers(first:1){nodes{%s}}}`, `{customers(first:1){edges{node{%s}}}}`,
		`{order(id:"$O"){customer{%s}}}`, `{orderItem(orderId:"$O",productId:"$P"){order{customer{%s}}}}`, `{employee(id:"rep_001"){customers{nodes{%s}}}}`,
		`{_entities(representations:[{__typename:"Customer",id:"$C"}]){...on Customer{%s}}}`,
		`mutation{updateCustomer(input:{id:"$C"}){customer{%s} userErrors{code}}}`,
		`subscription{orderUpdated(id:"$O"){order{customer{%s}}}}`,
	},
	"Order": {
		`{order(id:"$O"){%s}}`, `{ordersById(ids:["$O"]){%s}}`, `{customer(id:"$C"){order(id:"$O"){%s}}}`, `{customer(id:"$C"){orders{nodes{%s}}}}`, `{customer(id:"$C"){orders{edges{node{%s}}}}}`, `{customer(id:"$C"){orders(placed:{from:"2020-01-01T00:00:00Z"}){nodes{%s}}}}`,
		`{orderItem(orderId:"$O",productId:"$P"){order{%s}}}`, `{order(id:"$O"){items{nodes{order{%s}}}}}`, `{orders(first:2){nodes{%s}}}`,
		`{ordersByStatus(status:PENDING){nodes{%s}}}`, `{employee(id:"rep_001"){orders{nodes{%s}}}}`, `{product(sku:"$P"){orderItems{nodes{order{%s}}}}}`,
		`{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{%s}}}`,
		`{_entities(representations:[{__typename:"Customer",id:"$C"}]){...on Customer{order(id:"$O"){%s}}}}`,
		`mutation{cancelOrder(input:{orderId:"$O",expectedVersion:999}){order{%s} userErrors{code}}}`,
		`mutation{setOrderItem(input:{orderId:"$O",sku:"$P",quantity:1,expectedVersion:999}){order{%s} userErrors{code}}}`,
		`mutation{removeOrderItem(input:{orderId:"$O",sku:"$P",expectedVersion:999}){order{%s} userErrors{code}}}`,
		`mutation{holdOrder(input:{orderId:"$O",reason:"r",expectedVersion:999}){order{%s} userErrors{code}}}`,
		`mutation{tagOrder(input:{orderId:"$O",expectedVersion:999}){order{%s} userErrors{code}}}`, `{ordersByTag(tag:"t"){nodes{%s}}}`, `{ordersToShip{nodes{%s}}}`,
		`mutation{setAdjustments(input:{orderId:"$O",adjustments:[],expectedVersion:999}){order{%s} userErrors{code}}}`,
		`mutation{updateOrder(input:{orderId:"$O",expectedVersion:999}){order{%s} userErrors{code}}}`,
		`mutation{releaseOrder(input:{orderId:"$O",expectedVersion:999}){order{%s} userErrors{code}}}`,
		`mutation{addOrderNote(input:{orderId:"$O",note:"n"}){order{%s} userErrors{code}}}`,
		`mutation{updateShippingAddress(input:{orderId:"$O",shippingAddress:{recipient:"A",line1:"B",city:"C",countryCode:"US"},expectedVersion:999}){order{%s} userErrors{code}}}`,
		`{changes{nodes{order{%s}}}}`, `{order(id:"$O"){timeline{nodes{order{%s}}}}}`, `subscription{orderUpdated(id:"$O"){event{order{%s}}}}`,
		`subscription{orderUpdated(id:"$O"){order{%s}}}`, `subscription{customerOrders(customerId:"$C"){order{%s}}}`, `subscription{orderStatusChanged{order{%s}}}`,
	},
	"OrderItem": {
		`{orderItem(orderId:"$O",productId:"$P"){%s}}`, `{order(id:"$O"){items{nodes{%s}}}}`, `{order(id:"$O"){items{edges{node{%s}}}}}`, `{order(id:"$O"){item(productId:"$P"){%s}}}`,
		`{customer(id:"$C"){orders{nodes{items{nodes{%s}}}}}}`, `{product(sku:"$P"){orderItems{nodes{%s}}}}`,
		`{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{items{nodes{%s}}}}}`,
		`subscription{orderUpdated(id:"$O"){order{items{nodes{%s}}}}}`,
	},
	"Payment": {
		`{order(id:"$O"){payments{nodes{%s}}}}`, `{order(id:"$O"){payments{edges{node{%s}}}}}`, `{customer(id:"$C"){orders{nodes{payments{nodes{%s}}}}}}`,
		`{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{payments{nodes{%s}}}}}`, `mutation{recordPayment(input:{orderId:"$O",kind:VOID,amount:{amount:"1"},provider:"p",reference:"r"}){payment{%s} userErrors{code}}}`,
	},
	"UnmatchedPayment": {`{unmatchedPayments{nodes{%s}}}`, `{unmatchedPayments{edges{node{%s}}}}`, `mutation{dismissUnmatchedPayment(input:{provider:"p",reference:"r"}){unmatchedPayment{%s} userErrors{code}}}`},
	"Webhook":          {`{webhooks{nodes{%s}}}`, `{webhooks{edges{node{%s}}}}`, `mutation{pauseWebhook(input:{webhookId:"none"}){webhook{%s} userErrors{code}}}`},
	"WebhookFailure":   {`{webhooks{nodes{failures{nodes{%s}}}}}`, `{webhooks{nodes{failures{edges{node{%s}}}}}}`},
	"DeletedCustomer":  {`mutation{eraseCustomer(input:{customerId:"nobody"}){deletedCustomer{%s} userErrors{code}}}`},
	"Return": {
		`{order(id:"$O"){returns{nodes{%s}}}}`, `{order(id:"$O"){returns{edges{node{%s}}}}}`, `{customer(id:"$C"){orders{nodes{returns{nodes{%s}}}}}}`, `{returns(status:REQUESTED){nodes{%s}}}`,
		`{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{returns{nodes{%s}}}}}`, `mutation{requestReturn(input:{orderId:"$O",lines:[{sku:"$P",quantity:1,reason:"r"}]}){return{%s} userErrors{code}}}`,
	},
	"ReturnLine": {`{order(id:"$O"){returns{nodes{lines{%s}}}}}`, `{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{returns{nodes{lines{%s}}}}}}`},
	"Fulfillment": {
		`{order(id:"$O"){fulfillments{nodes{%s}}}}`, `{order(id:"$O"){fulfillments{edges{node{%s}}}}}`, `{customer(id:"$C"){orders{nodes{fulfillments{nodes{%s}}}}}}`,
		`{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{fulfillments{nodes{%s}}}}}`, `mutation{createFulfillment(input:{orderId:"$O",warehouseId:"wh_sea",expectedVersion:999}){fulfillment{%s} userErrors{code}}}`,
		`mutation{updateTracking(input:{orderId:"$O",fulfillmentId:"$O",expectedVersion:999}){fulfillment{%s} userErrors{code}}}`,
	},
	"FulfillmentLine": {`{order(id:"$O"){fulfillments{nodes{lines{%s}}}}}`, `{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{fulfillments{nodes{lines{%s}}}}}}`},
	"OrderHold":       {`{order(id:"$O"){hold{%s}}}`, `{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{hold{%s}}}}`, `{customer(id:"$C"){orders{nodes{hold{%s}}}}}`},
	"OrderAdjustment": {`{order(id:"$O"){adjustments{%s}}}`, `{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{adjustments{%s}}}}`, `{customer(id:"$C"){orders{nodes{adjustments{%s}}}}}`},
	"OrderContact":    {`{order(id:"$O"){contact{%s}}}`, `{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{contact{%s}}}}`, `{customer(id:"$C"){orders{nodes{contact{%s}}}}}`},
	"OrderEvent": {
		`{changes{nodes{%s}}}`, `{changes{edges{node{%s}}}}`,
		`{order(id:"$O"){timeline{nodes{%s}}}}`, `{order(id:"$O"){timeline{edges{node{%s}}}}}`, `{customer(id:"$C"){orders{nodes{timeline{nodes{%s}}}}}}`,
		`{customer(id:"$C"){order(id:"$O"){timeline{nodes{%s}}}}}`, `{orderItem(orderId:"$O",productId:"$P"){order{timeline{nodes{%s}}}}}`,
		`{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{timeline{nodes{%s}}}}}`,
		`mutation{cancelOrder(input:{orderId:"$O",expectedVersion:999}){order{timeline{nodes{%s}}} userErrors{code}}}`,
		`subscription{orderUpdated(id:"$O"){event{%s}}}`,
	},
	"OrderUpdate": {
		`subscription{orderUpdated(id:"$O"){%s}}`, `subscription{customerOrders(customerId:"$C"){%s}}`, `subscription{orderStatusChanged{%s}}`,
	},
	"Product": {
		`{product(sku:"$P"){%s}}`, `{productsBySku(skus:["$P"]){%s}}`, `{products(category:"Hardware"){nodes{%s}}}`, `{orderItem(orderId:"$O",productId:"$P"){product{%s}}}`,
		`{order(id:"$O"){items{nodes{product{%s}}}}}`, `{inventoryLevel(sku:"prod_100",warehouseId:"wh_sea"){product{%s}}}`,
		`{_entities(representations:[{__typename:"Product",sku:"$P"}]){...on Product{%s}}}`,
		`mutation{updateProduct(input:{sku:"prod_100",expectedVersion:999}){product{%s} userErrors{code}}}`,
		`subscription{orderUpdated(id:"$O"){order{items{nodes{product{%s}}}}}}`,
	},
	"Quote":    {`{quote(input:{items:[{sku:"$P",quantity:1}]}){%s}}`},
	"Category": {`{categories{nodes{%s}}}`},
	"InventoryLevel": {
		`{inventoryLevel(sku:"prod_100",warehouseId:"wh_sea"){%s}}`, `{product(sku:"prod_100"){inventory{nodes{%s}}}}`, `{warehouse(id:"wh_sea"){inventory{nodes{%s}}}}`,
		`{order(id:"$O"){items{nodes{product{inventory{nodes{%s}}}}}}}`,
		`mutation{setInventoryLevel(input:{sku:"prod_100",warehouseId:"wh_sea",quantity:1,expectedVersion:999}){inventoryLevel{%s} userErrors{code}}}`,
	},
	"Warehouse": {
		`{warehouse(id:"wh_sea"){%s}}`, `{warehouses{nodes{%s}}}`, `{inventoryLevel(sku:"prod_100",warehouseId:"wh_sea"){warehouse{%s}}}`,
		`{employee(id:"emp_001"){warehouse{%s}}}`, `{order(id:"$O"){accountRep{warehouse{%s}}}}`,
		`{_entities(representations:[{__typename:"Warehouse",id:"wh_sea"}]){...on Warehouse{%s}}}`,
		`mutation{createWarehouse(input:{id:"wh_sea",name:"X"}){warehouse{%s} userErrors{code}}}`,
		`mutation{updateWarehouse(input:{id:"wh_pdx",expectedVersion:999}){warehouse{%s} userErrors{code}}}`,
	},
	"Employee": {
		`{customer(id:"$C"){accountRep{%s}}}`, `{order(id:"$O"){accountRep{%s}}}`, `{customer(id:"$C"){orders{nodes{accountRep{%s}}}}}`, `{employee(id:"rep_001"){%s}}`,
		`{employees(first:1){nodes{%s}}}`, `{employeesByName(name:"John Smith"){nodes{%s}}}`, `{employeesByJobTitle(jobTitle:"Manager"){nodes{%s}}}`, `{warehouse(id:"wh_sea"){employees{nodes{%s}}}}`,
		`{_entities(representations:[{__typename:"Employee",id:"rep_001"}]){...on Employee{%s}}}`,
		`{_entities(representations:[{__typename:"Order",id:"$O"}]){...on Order{accountRep{%s}}}}`,
		`mutation{updateEmployee(input:{id:"rep_001",expectedVersion:999}){employee{%s} userErrors{code}}}`,
		`subscription{orderUpdated(id:"$O"){order{accountRep{%s}}}}`,
	},
}

// requiredArguments has the arguments of fields with required arguments.
var requiredArguments = map[string]string{
	"Query.customer": `(id:"$C")`, "Query.customerByEmail": `(email:"$E")`, "Query.order": `(id:"$O")`, "Query.orderItem": `(orderId:"$O",productId:"$P")`,
	"Query.ordersByStatus": `(status:PENDING)`, "Query.product": `(sku:"$P")`, "Query.productsBySku": `(skus:["$P"])`, "Query.ordersById": `(ids:["$O"])`, "Query.products": `(category:"Hardware")`,
	"Query.quote":          `(input:{items:[{sku:"$P",quantity:1}]})`,
	"Query.inventoryLevel": `(sku:"prod_100",warehouseId:"wh_sea")`, "Query.employee": `(id:"rep_001")`, "Query.employeesByName": `(name:"John Smith")`,
	"Query.employeesByJobTitle": `(jobTitle:"Manager")`, "Query.warehouse": `(id:"wh_sea")`, "Query._entities": `(representations:[{__typename:"Product",sku:"prod_100"}])`,
	"Query.sales": `(placed:{from:"2026-01-01",to:"2026-01-31"},currency:"USD")`, "Query.__type": `(name:"Order")`, "Customer.order": `(id:"$O")`, "Order.item": `(productId:"$P")`,
	"Subscription.orderUpdated": `(id:"$O")`, "Subscription.customerOrders": `(customerId:"$C")`,
	"Mutation.createCustomer":          `(input:{id:"cust_002",name:"N",email:"n@example.com"})`,
	"Mutation.updateCustomer":          `(input:{id:"$C"})`,
	"Mutation.assignAccountRep":        `(input:{customerId:"cust_001",employeeId:"rep_001"})`,
	"Mutation.placeOrder":              `(input:{customerId:"$C",items:[{sku:"prod_100",quantity:1000000}]})`,
	"Mutation.confirmOrder":            `(input:{orderId:"$O",expectedVersion:999})`,
	"Mutation.shipOrder":               `(input:{orderId:"$O",warehouseId:"wh_sea",expectedVersion:999})`,
	"Mutation.deliverOrder":            `(input:{orderId:"$O",expectedVersion:999})`,
	"Mutation.cancelOrder":             `(input:{orderId:"$O",expectedVersion:999})`,
	"Mutation.setOrderItem":            `(input:{orderId:"$O",sku:"$P",quantity:1,expectedVersion:999})`,
	"Mutation.removeOrderItem":         `(input:{orderId:"$O",sku:"$P",expectedVersion:999})`,
	"Mutation.updateShippingAddress":   `(input:{orderId:"$O",shippingAddress:{recipient:"A",line1:"B",city:"C",countryCode:"US"},expectedVersion:999})`,
	"Mutation.setAdjustments":          `(input:{orderId:"$O",adjustments:[],expectedVersion:999})`,
	"Mutation.updateOrder":             `(input:{orderId:"$O",expectedVersion:999})`,
	"Mutation.holdOrder":               `(input:{orderId:"$O",reason:"r",expectedVersion:999})`,
	"Mutation.tagOrder":                `(input:{orderId:"$O",expectedVersion:999})`,
	"Query.ordersByTag":                `(tag:"t")`,
	"Mutation.releaseOrder":            `(input:{orderId:"$O",expectedVersion:999})`,
	"Mutation.addOrderNote":            `(input:{orderId:"$O",note:"n"})`,
	"Mutation.createFulfillment":       `(input:{orderId:"$O",warehouseId:"wh_sea",expectedVersion:999})`,
	"Mutation.updateTracking":          `(input:{orderId:"$O",fulfillmentId:"$O",expectedVersion:999})`,
	"Mutation.deliverFulfillment":      `(input:{orderId:"$O",fulfillmentId:"$O",expectedVersion:999})`,
	"Mutation.cancelFulfillment":       `(input:{orderId:"$O",fulfillmentId:"$O",expectedVersion:999})`,
	"Mutation.cancelOrderItems":        `(input:{orderId:"$O",lines:[{sku:"$P",quantity:1}],expectedVersion:999})`,
	"Query.orderByTrackingNumber":      `(trackingNumber:"1Z")`,
	"Mutation.dismissUnmatchedPayment": `(input:{provider:"p",reference:"r"})`,
	"Mutation.createWebhook":           `(input:{url:"http://example.com"})`,
	"Mutation.pauseWebhook":            `(input:{webhookId:"none"})`,
	"Mutation.resumeWebhook":           `(input:{webhookId:"none"})`,
	"Mutation.rotateWebhookSecret":     `(input:{webhookId:"none"})`,
	"Mutation.replayWebhook":           `(input:{webhookId:"none",from:"2026-01-01T00:00:00Z"})`,
	"Mutation.deleteWebhook":           `(input:{webhookId:"none"})`,
	"Mutation.recordPayment":           `(input:{orderId:"$O",kind:VOID,amount:{amount:"1"},provider:"p",reference:"r"})`,
	"Mutation.requestReturn":           `(input:{orderId:"$O",lines:[{sku:"$P",quantity:1,reason:"r"}]})`,
	"Mutation.approveReturn":           `(input:{orderId:"$O",returnId:"none"})`,
	"Mutation.rejectReturn":            `(input:{orderId:"$O",returnId:"none",reason:"r"})`,
	"Mutation.receiveReturn":           `(input:{orderId:"$O",returnId:"none",warehouseId:"wh_sea",lines:[]})`,
	"Mutation.createProduct":           `(input:{sku:"prod_100",name:"N",category:"C",unitPrice:{amount:"1"}})`,
	"Mutation.createWarehouse":         `(input:{id:"wh_sea",name:"N"})`,
	"Mutation.setInventoryLevel":       `(input:{sku:"prod_100",warehouseId:"wh_sea",quantity:1,expectedVersion:999})`,
	"Mutation.transferInventory":       `(input:{sku:"prod_100",fromWarehouseId:"nowhere",toWarehouseId:"here",quantity:1})`,
	"Mutation.adjustInventory":         `(input:{sku:"prod_100",warehouseId:"nowhere",delta:1})`,
	"Mutation.hireEmployee":            `(input:{id:"rep_001",name:"N",jobTitle:"J",hireDate:"2026-01-01"})`,
}

// inputDocuments are documents that set the input fields with access rules.
var inputDocuments = map[string][]string{
	"UpdateCustomerInput.email": {
		`mutation{updateCustomer(input:{id:"$C",email:"n@example.com",expectedVersion:999}){userErrors{code}}}`,
		`mutation($i:UpdateCustomerInput!={id:"$C",email:"n@example.com",expectedVersion:999}){updateCustomer(input:$i){userErrors{code}}}`,
		`mutation($e:String="n@example.com"){...F} fragment F on Mutation{updateCustomer(input:{id:"$C",email:$e,expectedVersion:999}){userErrors{code}}}`,
	},
	"PlaceOrderInput.adjustments": {
		`mutation{placeOrder(input:{customerId:"$C",items:[{sku:"prod_100",quantity:1000000}],adjustments:[{kind:DISCOUNT,label:"l",amount:"-1"}]}){userErrors{code}}}`,
		`mutation($i:PlaceOrderInput!={customerId:"$C",items:[{sku:"prod_100",quantity:1000000}],adjustments:[]}){placeOrder(input:$i){userErrors{code}}}`,
		`mutation($a:[OrderAdjustmentInput!]={kind:FEE,label:"l",amount:"1"}){...F} fragment F on Mutation{placeOrder(input:{customerId:"$C",items:[{sku:"prod_100",quantity:1000000}],adjustments:$a}){userErrors{code}}}`,
	},
	"PlaceOrderInput.guest": {
		`mutation{placeOrder(input:{guest:{email:"g@example.com"},items:[{sku:"prod_100",quantity:1000000}]}){userErrors{code}}}`,
		`mutation($i:PlaceOrderInput!={guest:{email:"g@example.com"},items:[{sku:"prod_100",quantity:1000000}]}){placeOrder(input:$i){userErrors{code}}}`,
	},
	"PlaceOrderInput.expiresAt": {
		`mutation{placeOrder(input:{customerId:"$C",items:[{sku:"prod_100",quantity:1000000}],expiresAt:"2030-01-01T00:00:00Z"}){userErrors{code}}}`,
		`mutation($i:PlaceOrderInput!={customerId:"$C",items:[{sku:"prod_100",quantity:1000000}],expiresAt:"2030-01-01T00:00:00Z"}){placeOrder(input:$i){userErrors{code}}}`,
	},
	"RecordPaymentInput.reason": {
		`mutation{recordPayment(input:{orderId:"$O",kind:REFUND,amount:{amount:"1"},provider:"p",reference:"r",returnId:"none",reason:"r"}){userErrors{code message}}}`,
		`mutation($i:RecordPaymentInput!={orderId:"$O",kind:REFUND,amount:{amount:"1"},provider:"p",reference:"r",returnId:"none",reason:"r"}){recordPayment(input:$i){userErrors{code message}}}`,
	},
	"QuoteInput.adjustments": {
		`{quote(input:{items:[{sku:"$P",quantity:1}],adjustments:[{kind:DISCOUNT,label:"l",amount:"-1"}]}){total{amount}}}`,
		`query($i:QuoteInput!={items:[{sku:"$P",quantity:1}],adjustments:{kind:DISCOUNT,label:"l",amount:"-1"}}){...on Query{quote(input:$i){total{amount}}}}`,
	},
}

// conflictingInput returns the input of a mutation that changes nothing, because no record has this
// version. If the input has no expectedVersion, the mutation needs arguments in requiredArguments.
func conflictingInput(d *ast.Definition) string {
	values := map[string]string{"ID": `"nobody"`, "String": `"x"`, "Int": `1`, "Boolean": `true`, "Date": `"2026-01-01"`, "DateTime": `"2026-01-01T00:00:00Z"`, "Decimal": `"1"`}
	var fields []string
	for _, f := range d.Fields {
		switch of := parsedSchema.Types[f.Type.Name()]; {
		case f.Name == "expectedVersion":
			fields = append(fields, f.Name+":999")
		case f.Type.NonNull && of.Kind == ast.InputObject:
			fields = append(fields, f.Name+":"+conflictingInput(of))
		case f.Type.NonNull && of.Kind == ast.Enum:
			fields = append(fields, f.Name+":"+of.EnumValues[0].Name)
		case f.Type.NonNull:
			fields = append(fields, f.Name+":"+values[of.Name])
		}
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// matrixField returns the selection of a field.
func matrixField(d *ast.Definition, f *ast.FieldDefinition) string {
	text := f.Name + requiredArguments[d.Name+"."+f.Name]
	if text == f.Name {
		var needed []string
		for _, a := range f.Arguments {
			switch {
			case d == parsedSchema.Mutation:
				needed = append(needed, a.Name+":"+conflictingInput(parsedSchema.Types[a.Type.Name()]))
			case a.Type.NonNull && a.Type.Elem == nil:
				needed = append(needed, a.Name+":"+anyValue(a.Type))
			}
		}
		if len(needed) > 0 {
			text += "(" + strings.Join(needed, ",") + ")"
		}
	}
	result := parsedSchema.Types[f.Type.Name()]
	switch {
	case !result.IsCompositeType():
		return text
	case strings.HasSuffix(result.Name, "Payload"):
		return text + `{userErrors{__typename message}}`
	case strings.HasSuffix(result.Name, "Connection"):
		return text + `{nodes{__typename}}`
	default:
		return text + `{__typename}`
	}
}

// accessMatrix compares the behavior of an executor with the documented rules.
type accessMatrix struct {
	rules map[string]rule
	e     *Executor
	// cells are the selected parts of the matrix.
	cells []cell
	// permissionsOnly skips the comparison of records.
	permissionsOnly bool
}

// schemaWithCustomFields returns a schema that also has the mutation setCustomFields.
func schemaWithCustomFields(t testing.TB) *ast.Schema {
	t.Helper()
	e, err := ParseExtension("test", "extend type Order { custom: Int @field }")
	if err != nil {
		t.Fatal(err)
	}
	return loadSchema(servedSources(e))
}

func newMatrix(t testing.TB, rules map[string]rule, cells []cell, policy *access.Policy, schema *ast.Schema, dataset sampleStore) *accessMatrix {
	t.Helper()
	return &accessMatrix{rules: rules, cells: cells, e: newExecutor(Options{
		Store: dataset.store, Feed: dataset.feed, Cursors: paging.NewCursorSigner([]byte("a key for tests")), Authenticated: true, Policy: policy,
		Report: func(_ context.Context, err error) { t.Error(err) },
	}, schema)}
}

// grant returns the documented grant of a role for a permission, type or field.
func (m *accessMatrix) grant(role access.Role, of string) string {
	r, ok := m.rules[of]
	if !ok {
		return "?"
	}
	return r.grants[role]
}

// selectedRuleFields returns the fields with access rules that a document selects, as Type.field,
// with their columns. It includes the input fields that the document sets, also in the default values
// of variables.
func selectedRuleFields(documents *document.Store, rules map[string]rule, document string) (fields map[string][]int, err error) {
	parsed, _, missing := documents.Find(context.Background(), "", document, nil, false)
	if missing != nil {
		return nil, fmt.Errorf("%s: %w", document, missing)
	}
	if len(parsed.Errors(false)) > 0 {
		return nil, fmt.Errorf("%s: %w", document, parsed.Errors(false))
	}
	fields = map[string][]int{}
	var walk func(set ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				if name := s.ObjectDefinition.Name + "." + s.Name; s.Name != "__typename" && rules[name].permission != "" {
					fields[name] = append(fields[name], s.Position.Column)
				}
				for _, a := range s.Arguments {
					for name, column := range inputFieldsOf(a) {
						if rules[name].permission != "" {
							fields[name] = append(fields[name], column)
						}
					}
				}
				walk(s.SelectionSet)
			case *ast.InlineFragment:
				walk(s.SelectionSet)
			case *ast.FragmentSpread:
				walk(s.Definition.SelectionSet)
			}
		}
	}
	walk(parsed.Parsed.Operations[0].SelectionSet)
	return fields, nil
}

// inputFieldsOf returns the input fields of an argument, one level deep.
func inputFieldsOf(a *ast.Argument) map[string]int {
	fields := map[string]int{}
	switch {
	case a.Value.Kind == ast.ObjectValue && a.Value.Definition != nil:
		for _, child := range a.Value.Children {
			fields[a.Value.Definition.Name+"."+child.Name] = child.Position.Column
		}
	case a.Value.Kind == ast.Variable && a.Value.Definition != nil && a.Value.Definition.Kind == ast.InputObject:
		for _, f := range a.Value.VariableDefinition.DefaultValue.Children {
			fields[a.Value.Definition.Name+"."+f.Name] = a.Value.Position.Column
		}
	}
	return fields
}

// checkPermissions returns a difference between the permission check and the docs, or "".
func (m *accessMatrix) checkPermissions(principal access.Principal, c cell) string {
	document := ownSubject.in(c.document)
	var want, got []string
	for field, columns := range c.fields {
		if m.grant(principal.Role, field) == "–" {
			for _, column := range columns {
				want = append(want, fmt.Sprint(column))
			}
		}
	}
	_, _, errs := m.e.prepare(WithPrincipal(context.Background(), principal), Request{Query: document})
	if len(errs) > 1 {
		return fmt.Sprintf("%s, %s: %v, want one error", principal.Role, document, errs)
	}
	for _, e := range errs {
		code, says := errcode.Forbidden, principal.Role.String()
		if principal.Role == access.RoleAnonymous {
			code, says = errcode.Unauthenticated, "send a token"
		}
		if e.Extensions["code"] != code || !strings.Contains(e.Message, says) {
			return fmt.Sprintf("%s, %s: %v", principal.Role, document, e)
		}
		for _, location := range e.Locations {
			got = append(got, fmt.Sprint(location.Column))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if want = slices.Compact(want); !slices.Equal(want, got) { // a variable can set several fields
		return fmt.Sprintf("%s, %s: refused at %v, but the docs expect %v", principal.Role, document, got, want)
	}
	return ""
}

// observation is the response to a caller and the requests that were made for it.
type observation struct{ answer, requests string }

// executeRequest executes a document that refers to a subject's records. For a subscription, it
// returns the error at the start, or the response to an event of the subject's order. The event
// does not contain the order, so the order is read.
func (m *accessMatrix) executeRequest(principal access.Principal, about recordSet, document string) observation {
	trace := &trace.Trace{}
	ctx := trace.NewContext(WithPrincipal(context.Background(), principal))
	stream, result := m.e.Start(ctx, Request{Query: about.in(document)})
	if stream != nil {
		defer stream.Close()
		order := commerce.OrderID(about.order)
		result = stream.deliver(withReportedErrors(ctx), nil, &feed.OrderChange{OrderID: order, Event: &commerce.Event{ID: "01KE70EHG0000000000000000Z", OrderID: order, Type: commerce.EventConfirmed, Actor: "somebody", Note: staffNote}})
	}
	var requests strings.Builder
	for _, r := range trace.Requests() {
		fmt.Fprintf(&requests, "%d %s %s %s %d\n", r.RoundTrip, r.Pattern, r.Operation, r.Key, r.Items)
	}
	return observation{fmt.Sprintf("%s %v", result.Data, result.Errors), requests.String()}
}

// records returns a difference between the records that a role can read and the docs, or "". way is
// a document that returns the type. The selection has all fields that the role may use.
func (m *accessMatrix) records(principal access.Principal, typ, way string) string {
	if isRoot(typ) {
		return "" // differences checks root fields one by one
	}
	var selection []string
	d := parsedSchema.Types[typ]
	for _, f := range d.Fields {
		if g := m.grant(principal.Role, typ+"."+f.Name); g == "own" || g == "all" {
			selection = append(selection, matrixField(d, f))
		}
	}
	if len(selection) == 0 {
		selection = []string{"__typename"}
	}
	return m.compareOwners(principal, way, fmt.Sprintf(way, strings.Join(selection, " ")))
}

// compareOwners compares the responses for another customer's records and for missing records. If
// the docs grant only own records, both responses must be the same. Otherwise they must differ.
func (m *accessMatrix) compareOwners(principal access.Principal, way, document string) string {
	if m.permissionsOnly {
		return ""
	}
	fields, err := selectedRuleFields(m.e.documents, m.rules, ownSubject.in(document))
	if err != nil {
		return err.Error()
	}
	own := false
	for field := range fields {
		switch m.grant(principal.Role, field) {
		case "own":
			own = true
		case "–":
			if got := m.executeRequest(principal, ownSubject, document); got.requests != "" || !strings.HasPrefix(got.answer, " ") && !strings.HasPrefix(got.answer, "null") {
				return fmt.Sprintf("%s, %s: refused, and %+v", principal.Role, document, got)
			}
			return ""
		}
	}
	for _, g := range otherCustomerPairs {
		guess, nobody := g[0], g[1]
		if guess.in(document) == nobody.in(document) {
			continue
		}
		of, ofNobody := m.executeRequest(principal, guess, document), m.executeRequest(principal, nobody, document)
		of.answer, of.requests = guess.out(of.answer), guess.out(of.requests)
		ofNobody.answer, ofNobody.requests = nobody.out(ofNobody.answer), nobody.out(ofNobody.requests)
		switch {
		case of == ofNobody && of.requests == "" && strings.Contains(of.answer, "not use the type"):
			// The method entity compares this case with the docs.
		case own && of != ofNobody:
			return fmt.Sprintf("%s, %s: another customer's record:\n%+v\na missing record:\n%+v", principal.Role, document, of, ofNobody)
		case !own && guess == otherSubject && of.answer == ofNobody.answer && strings.ContainsAny(way, "$"):
			return fmt.Sprintf("%s, %s: another customer's record looks like a missing record: %+v", principal.Role, document, of)
		}
	}
	if own && strings.Contains(way, "$") {
		mine, nobodys := m.executeRequest(principal, ownSubject, document), m.executeRequest(principal, unknownSubject, document)
		if ownSubject.out(mine.answer) == unknownSubject.out(nobodys.answer) {
			return fmt.Sprintf("%s, %s: the own record looks like a missing record: %+v", principal.Role, document, mine)
		}
	}
	return ""
}

// entity returns a difference between the response to a representation and the docs, or "".
func (m *accessMatrix) entity(principal access.Principal, typ string) string {
	keys := map[string]string{"Customer": `id:"cust_001"`, "Order": `id:"` + ownSubject.order + `"`, "Product": `sku:"prod_100"`, "Employee": `id:"rep_001"`, "Warehouse": `id:"wh_sea"`}
	got := m.executeRequest(principal, ownSubject, fmt.Sprintf(`{_entities(representations:[{__typename:%q,%s}]){__typename}}`, typ, keys[typ]))
	refused := strings.Contains(got.answer, "not use the type")
	if want := m.grant(principal.Role, typ) == "–"; refused != want || refused && got.requests != "" || !refused && got.answer != fmt.Sprintf(`{"_entities":[{"__typename":%q}]} `, typ) && m.grant(principal.Role, "Query._entities") != "–" {
		return fmt.Sprintf("%s, entity %s: %+v", principal.Role, typ, got)
	}
	return ""
}

// checkHints returns a difference between the docs and the caller's access to explain output and
// suggestions, or "".
func (m *accessMatrix) checkHints(principal access.Principal) string {
	result := m.e.Execute(WithExplain(WithPrincipal(context.Background(), principal)), Request{Query: `{__typename}`})
	if _, explained := result.Extensions["explain"]; explained == (m.grant(principal.Role, "EXPLAIN") == "–") {
		return fmt.Sprintf("%s gets explain output: %v", principal.Role, explained)
	}
	if got := m.executeRequest(principal, ownSubject, `{product(sku:"prod_100"){nam}}`); strings.Contains(got.answer, "Product") == (m.grant(principal.Role, "INTROSPECT") == "–") {
		return fmt.Sprintf("%s gets this message for an unknown name: %s", principal.Role, got.answer)
	}
	return ""
}

// staffNote is the note of the event that executeRequest delivers. No customer wrote it.
const staffNote = "written by staff"

// checkNotes returns a difference between the docs and the caller's access to a note that no
// customer wrote, or "". A caller who may read own notes cannot read this one.
func (m *accessMatrix) checkNotes(principal access.Principal) string {
	got := m.executeRequest(principal, ownSubject, `subscription{orderUpdated(id:"$O"){event{note}}}`)
	if strings.Contains(got.answer, staffNote) != (m.grant(principal.Role, "OrderEvent.note") == "all") {
		return fmt.Sprintf("%s reads a note: %+v", principal.Role, got)
	}
	return ""
}

// cell is a part of the matrix: a field at the end of a way, or an input field.
type cell struct {
	typ, field, way string
	document        string
	// The selected fields with access rules.
	fields map[string][]int
}

func allCells(t testing.TB, rules map[string]rule) []cell {
	t.Helper()
	documents := document.NewStore(schemaWithCustomFields(t), document.Options{})
	var all []cell
	for _, typ := range slices.Sorted(maps.Keys(documentsByType)) {
		d := parsedSchema.Types[typ]
		for _, way := range documentsByType[typ] {
			for _, f := range d.Fields {
				document := fmt.Sprintf(way, "probe:"+matrixField(d, f))
				fields, err := selectedRuleFields(documents, rules, ownSubject.in(document))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, cell{typ, f.Name, way, document, fields})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inputDocuments)) {
		for _, document := range inputDocuments[name] {
			fields, err := selectedRuleFields(documents, rules, ownSubject.in(document))
			if err != nil {
				t.Fatal(err)
			}
			if len(fields[name]) == 0 {
				t.Fatalf("%s does not set %s", document, name)
			}
			all = append(all, cell{"Mutation", name, document, document, fields})
		}
	}
	return all
}

// differences returns differences between the executor and the docs for some principals, at most
// most of them. It checks the cells with a field that satisfies passes.
func (m *accessMatrix) differences(roles []access.Principal, most int, passes func(field string) bool) []string {
	var found []string
	add := func(difference string) {
		if difference != "" {
			found = append(found, difference)
		}
	}
	done := map[string]bool{}
	for _, c := range m.cells {
		if len(found) >= most {
			return found
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(c.fields)), passes) {
			continue
		}
		for _, principal := range roles {
			add(m.checkPermissions(principal, c))
			if isRoot(c.typ) {
				add(m.compareOwners(principal, c.document, c.document))
			}
			if way := fmt.Sprint(principal.Role, c.way); !done[way] {
				done[way] = true
				add(m.records(principal, c.typ, c.way))
			}
		}
	}
	for _, principal := range roles {
		add(m.checkHints(principal))
		if passes("OrderEvent.note") {
			add(m.checkNotes(principal))
		}
		for _, typ := range []string{"Customer", "Order", "Product", "Employee", "Warehouse"} {
			if passes(typ) {
				add(m.entity(principal, typ))
			}
		}
	}
	return found
}

// isRoot reports whether a type is a root type.
func isRoot(typ string) bool { return typ == "Query" || typ == "Mutation" || typ == "Subscription" }

// sampleStore is the sample dataset and its change feed.
type sampleStore struct {
	store *dynamo.Store
	feed  *feed.Feed
}

func newSampleStore(t testing.TB) sampleStore {
	t.Helper()
	db := storetest.Engines()[0].Client(t)
	store := storetest.SampleStore(t, db)
	return sampleStore{store, storetest.OpenFeed(t, db, store, feed.Options{})}
}

// The matrix and the docs contain every type and field with an access rule.
func TestMatrixIsComplete(t *testing.T) {
	rules, withoutRule := documentedRules(t), unruled(t)
	for _, d := range own(t) {
		for _, f := range d.Fields {
			if name := d.Name + "." + f.Name; d.Kind == ast.InputObject && written(f.Directives) != "" && (len(inputDocuments[name]) == 0 || rules[name].permission == "") {
				t.Errorf("no test document sets %s, or %s documents no permission for it", name, accessDocs)
			}
		}
		if d.Kind != ast.Object || slices.Contains(withoutRule, d.Name) {
			continue
		}
		if len(documentsByType[d.Name]) == 0 {
			t.Errorf("no test document returns %s", d.Name)
		}
		for _, f := range d.Fields {
			if rules[d.Name+"."+f.Name].permission == "" {
				t.Errorf("%s has no rule for %s.%s", accessDocs, d.Name, f.Name)
			}
		}
	}
	for _, p := range access.Permissions() {
		if rules[p.String()].permission == "" {
			t.Errorf("%s does not document the permission %s", accessDocs, p)
		}
	}
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	rules := documentedRules(t)
	m := newMatrix(t, rules, allCells(t, rules), nil, schemaWithCustomFields(t), newSampleStore(t))
	for _, d := range m.differences(principals(), 20, func(string) bool { return true }) {
		t.Error(d)
	}
}

// withoutGrant returns the rules without a permission's grant to admins.
func withoutGrant(rules map[string]rule, permission string) map[string]rule {
	altered := map[string]rule{}
	for name, r := range rules {
		if r.permission == permission {
			grants := maps.Clone(r.grants)
			grants[access.RoleAdmin] = "–"
			r.grants = grants
		}
		altered[name] = r
	}
	return altered
}

// compareWithoutPermission compares the rules for an admin without one permission. Roles with the
// same grants of two permissions do not reveal which of the two a field requires.
func compareWithoutPermission(t testing.TB, rules map[string]rule, cells []cell, schema *ast.Schema, dataset sampleStore, permission string, passes func(field string) bool) []string {
	t.Helper()
	p, ok := access.ParsePermission(permission)
	if !ok {
		t.Fatalf("%q is not a permission", permission)
	}
	policy := access.StandardPolicy().WithGrant(access.RoleAdmin, p, access.GrantNone)
	admin := access.Principal{ID: "admin", Role: access.RoleAdmin}
	m := newMatrix(t, withoutGrant(rules, permission), cells, &policy, schema, dataset)
	// A principal who may not see customers gets no customers from lists, so records cannot be
	// compared.
	m.permissionsOnly = true
	return m.differences([]access.Principal{admin}, 1, passes)
}

// Each field requires exactly the documented permission.
func TestMatrixOfSinglePermissions(t *testing.T) {
	rules, schema, dataset := documentedRules(t), schemaWithCustomFields(t), newSampleStore(t)
	cells := allCells(t, rules)
	for _, p := range access.Permissions() {
		for _, d := range compareWithoutPermission(t, rules, cells, schema, dataset, p.String(), func(field string) bool { return rules[field].permission == p.String() }) {
			t.Error(d)
		}
	}
}

// The matrix detects every change of a grant in the policy, for the whole schema and for the fields
// of each root type.
func TestMatrixDetectsGrants(t *testing.T) {
	rules, schema, dataset, standard := documentedRules(t), schemaWithCustomFields(t), newSampleStore(t), access.StandardPolicy()
	cells := allCells(t, rules)
	prefixes := []string{"", "Query.", "Mutation.", "Subscription."}
	altered := 0
	for _, principal := range principals() {
		for _, p := range access.Permissions() {
			for _, g := range []access.GrantScope{access.GrantNone, access.GrantOwn, access.GrantAll} {
				original := standard.GrantForRole(principal.Role, p)
				switch {
				case g == original,
					// Only customers have own records. A role without access cannot be distinguished from a role
					// with access to own records.
					g == access.GrantOwn && (principal.Customer == "" || original == access.GrantNone || original == access.GrantAll),
					// A customer can only reach their own contact data.
					p == access.PermissionReadContact && g == access.GrantAll:
					continue
				}
				altered++
				policy := standard.WithGrant(principal.Role, p, g)
				m := newMatrix(t, rules, cells, &policy, schema, dataset)
				for _, way := range prefixes {
					needs := func(field string) bool { return strings.HasPrefix(field, way) && rules[field].permission == p.String() }
					if slices.ContainsFunc(slices.Collect(maps.Keys(rules)), needs) && len(m.differences([]access.Principal{principal}, 1, needs)) == 0 {
						t.Errorf("the matrix does not detect that %s is granted %s of %s%s instead of %s", principal.Role, g, way, p, original)
					}
				}
			}
		}
	}
	if altered < 90 {
		t.Errorf("only %d grants were changed", altered)
	}
}

// The matrix detects the removal of any @access from the schema. By default every fourth is
// removed.
func TestMatrixDetectsDirectives(t *testing.T) {
	t.Parallel()
	rules, dataset := documentedRules(t), newSampleStore(t)
	cells := allCells(t, rules)
	removed := 0
	schema := schemaWithCustomFields(t)
	notices := func(what, permission string, directives *ast.DirectiveList, passes func(field string) bool) {
		if removed++; removed%longtest.Size(4, 1) > 0 {
			return
		}
		original := *directives
		*directives = slices.DeleteFunc(slices.Clone(original), func(d *ast.Directive) bool { return d.Name == "access" })
		defer func() { *directives = original }()
		if len(newMatrix(t, rules, cells, nil, schema, dataset).differences(principals(), 1, passes)) == 0 && len(compareWithoutPermission(t, rules, cells, schema, dataset, permission, passes)) == 0 {
			t.Errorf("the matrix does not detect that %s has no @access", what)
		}
	}
	for _, d := range own(t) {
		if d.Kind != ast.Object && d.Kind != ast.InputObject {
			continue
		}
		if p := written(d.Directives); p != "" {
			notices(d.Name, p, &schema.Types[d.Name].Directives, func(field string) bool {
				return field == d.Name || strings.HasPrefix(field, d.Name+".")
			})
		}
		for _, f := range d.Fields {
			if p := written(f.Directives); p != "" {
				notices(d.Name+"."+f.Name, p, &schema.Types[d.Name].Fields.ForName(f.Name).Directives, func(field string) bool {
					return field == d.Name+"."+f.Name
				})
			}
		}
	}
	if removed < 55 {
		t.Errorf("only %d directives were removed", removed)
	}
}
