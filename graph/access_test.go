package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// ann is a customer. Her own records are in ownSubject.
var ann = access.Principal{ID: "ann", Role: access.RoleCustomer, Customer: commerce.CustomerID(ownSubject.customer)}

// newAuthenticatedExecutor returns an executor of the sample dataset that requires authentication.
func newAuthenticatedExecutor(t *testing.T, opts Options) *Executor {
	t.Helper()
	opts.Authenticated = true
	return executor(t, opts)
}

// executeAs executes a request as a principal. It returns the result and the DynamoDB requests.
func executeAs(t *testing.T, e *Executor, principal access.Principal, r Request) (Result, []trace.Request) {
	t.Helper()
	trace := &trace.Trace{}
	result := e.Execute(trace.NewContext(WithPrincipal(t.Context(), principal)), r)
	return result, trace.Requests()
}

func TestPrincipalIsRequired(t *testing.T) {
	e := newAuthenticatedExecutor(t, Options{})
	for name, ctx := range map[string]context.Context{
		"no principal":        t.Context(),
		"the zero principal":  WithPrincipal(t.Context(), access.Principal{}),
		"one without a role":  WithPrincipal(t.Context(), access.Principal{ID: "x", Customer: "cust_001"}),
		"an unknown document": t.Context(),
	} {
		for _, query := range []string{`{__typename}`, `{product(sku:"prod_100"){name}}`, `{produc}`, `{`, `mutation{__typename}`, `subscription{__typename}`} {
			result := e.Execute(ctx, Request{Query: query})
			if result.Outcome != Refused || len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != errcode.Unauthenticated || result.Data != nil {
				t.Errorf("%s, %s: %s %v", name, query, result.Data, result.Errors)
			}
		}
	}
	// Nothing is read, and no subscription starts.
	for _, c := range allCells(t, documentedRules(t)) {
		trace := &trace.Trace{}
		stream, result := e.Start(trace.NewContext(t.Context()), Request{Query: ownSubject.in(c.document)})
		if stream != nil || result.Outcome != Refused || result.Errors[0].Extensions["code"] != errcode.Unauthenticated || result.Data != nil || len(trace.Requests()) > 0 {
			t.Errorf("%s: %s %v", c.document, result.Data, result.Errors)
		}
	}
	// A principal with the role of a customer but without a customer ID has no own records.
	result, requests := executeAs(t, e, access.Principal{ID: "x", Role: access.RoleCustomer}, Request{Query: `{customer(id:"cust_001"){name}}`})
	if result.Outcome != Refused || result.Errors[0].Extensions["code"] != errcode.Forbidden || len(requests) > 0 {
		t.Errorf("%s %v %v", result.Data, result.Errors, requests)
	}
	// Without authentication, every caller may do everything.
	executeRequest(executor(t, Options{}), Request{Query: aliceQuery}).check(t, "without authentication", alice)
}

// One forbidden field rejects the whole operation. There is one error per forbidden field. Fields
// that @skip or @include exclude cause no error.
func TestForbiddenFields(t *testing.T) {
	e := newAuthenticatedExecutor(t, Options{})
	const page = `orders(first:1){nodes{id}}`
	with := func(directives string) string { return `{__typename orders(first:1)` + directives + `{nodes{id}}}` }
	for _, c := range []struct {
		query     string
		variables map[string]any
		refused   string
	}{
		{`{product(sku:"prod_100"){name}}`, nil, ""},
		{`{a:` + page + ` product(sku:"prod_100"){name totalInventory}}`, nil, `fields "orders" and "totalInventory" 1:2 1:60`},
		{`{order(id:"x"){timeline{nodes{actor}}}}`, nil, `field "actor" 1:31`},
		{`{product(sku:"prod_100"){...F ...on Product{...F}}} fragment F on Product{inventory{nodes{quantity}}}`, nil, `fields "inventory" and "quantity" 1:75 1:91`},
		{with(`@skip(if:true)`), nil, ""},
		{with(`@include(if:false)`), nil, ""},
		{with(`@skip(if:true)@include(if:true)`), nil, ""},
		{with(`@skip(if:false)@include(if:true)`), nil, `field "orders" 1:13`},
		{`query($a:Boolean!){__typename ...on Query@include(if:$a){` + page + `}}`, map[string]any{"a": false}, ""},
		{`query($a:Boolean!){__typename ...on Query@include(if:$a){` + page + `}}`, map[string]any{"a": true}, `field "orders" 1:58`},
		{`query($a:Boolean=true){__typename ...F@skip(if:$a)} fragment F on Query{` + page + `}`, nil, ""},
		{`query($a:Boolean=true){__typename ...F@skip(if:$a)} fragment F on Query{` + page + `}`, map[string]any{"a": false}, `field "orders" 1:73`},
		{`query($a:Boolean!){...F@skip(if:$a) ...F} fragment F on Query{__typename ` + page + `}`, map[string]any{"a": true}, `field "orders" 1:74`},
		{`mutation{createWarehouse(input:{name:"N"}){userErrors{code}}}`, nil, `field "createWarehouse" 1:10`},
		{`subscription{orderStatusChanged{orderId}}`, nil, `field "orderStatusChanged" 1:14`},
		{`{__schema{queryType{name}} __type(name:"Order"){name}}`, nil, `fields "__schema" and "__type" 1:2 1:28`},
		{`{_service{sdl}}`, nil, `field "_service" 1:2`},
		{`{__typename _entities(representations:[]){__typename}}`, nil, ""},
	} {
		result, requests := executeAs(t, e, ann, Request{Query: c.query, Variables: c.variables})
		text := ""
		for _, err := range result.Errors {
			_, names, _ := strings.Cut(err.Message, "CUSTOMER may not use the ")
			text, _, _ = strings.Cut(names, ":")
			if err.Extensions["code"] != errcode.Forbidden || len(result.Errors) > 1 {
				t.Fatalf("%s: %v", c.query, result.Errors)
			}
			for _, location := range err.Locations {
				text += fmt.Sprintf(" %d:%d", location.Line, location.Column)
			}
		}
		if text != c.refused || (text == "") != (result.Outcome == Executed) {
			t.Errorf("%s %v: the refused fields are %s (outcome %v), want %s", c.query, c.variables, text, result.Outcome, c.refused)
		}
		if c.refused != "" && (len(requests) > 0 || result.Data != nil) {
			t.Errorf("%s: the refused query has the data %s and the requests %v, want neither", c.query, result.Data, requests)
		}
	}
}

// A forbidden input field rejects the operation, no matter whether its value is a literal, a
// variable or a default. Null does not count as a value.
func TestForbiddenInputFields(t *testing.T) {
	e := newAuthenticatedExecutor(t, Options{})
	staff := access.Principal{ID: "staff", Role: access.RoleStaff}
	const (
		input  = `mutation($i:UpdateCustomerInput!){updateCustomer(input:$i){userErrors{code}}}`
		email  = `mutation($e:String){updateCustomer(input:{id:"cust_001",email:$e,expectedVersion:999}){userErrors{code}}}`
		preset = `mutation($e:String="a@b.example"){updateCustomer(input:{id:"cust_001",email:$e,expectedVersion:999}){userErrors{code}}}`
	)
	for _, c := range []struct {
		query     string
		variables map[string]any
		// at is the position of the error. It is empty if the operation is allowed.
		at string
	}{
		{`mutation{updateCustomer(input:{id:"cust_001",email:"a@b.example",expectedVersion:999}){userErrors{code}}}`, nil, "1:46"},
		{`mutation{updateCustomer(input:{id:"cust_001",email:"",expectedVersion:999}){userErrors{code}}}`, nil, "1:46"},
		{`mutation{updateCustomer(input:{id:"cust_001",email:null,expectedVersion:999}){userErrors{code}}}`, nil, ""},
		{`mutation{updateCustomer(input:{id:"cust_001",expectedVersion:999}){userErrors{code}}}`, nil, ""},
		{input, map[string]any{"i": map[string]any{"id": "cust_001", "email": "a@b.example", "expectedVersion": json.Number("999")}}, "1:56"},
		{input, map[string]any{"i": map[string]any{"id": "cust_001", "email": nil, "expectedVersion": json.Number("999")}}, ""},
		{input, map[string]any{"i": map[string]any{"id": "cust_001", "expectedVersion": json.Number("999")}}, ""},
		{email, map[string]any{"e": "a@b.example"}, "1:57"},
		{email, map[string]any{"e": nil}, ""},
		{email, nil, ""},
		{preset, nil, "1:71"},
		{preset, map[string]any{"e": nil}, ""},
		{`mutation($s:Boolean!){updateCustomer(input:{id:"cust_001",email:"a@b.example",expectedVersion:999})@skip(if:$s){userErrors{code}} __typename}`, map[string]any{"s": true}, ""},
		{`mutation{...F} fragment F on Mutation{updateCustomer(input:{id:"cust_001",email:"a@b.example",expectedVersion:999}){userErrors{code}}}`, nil, "1:75"},
	} {
		result, requests := executeAs(t, e, ann, Request{Query: c.query, Variables: c.variables})
		switch {
		case c.at == "" && (result.Outcome != Executed || len(result.Errors) > 0):
			t.Errorf("%s %v: %v", c.query, c.variables, result.Errors)
		case c.at != "" && (result.Outcome != Refused || len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != errcode.Forbidden || len(requests) > 0 || result.Data != nil):
			t.Errorf("%s %v: got data %s, errors %v and requests %v, want only the error FORBIDDEN", c.query, c.variables, result.Data, result.Errors, requests)
		case c.at != "":
			if at := fmt.Sprintf("%d:%d", result.Errors[0].Locations[0].Line, result.Errors[0].Locations[0].Column); at != c.at {
				t.Errorf("%s %v: refused at %s, want %s", c.query, c.variables, at, c.at)
			}
		}
		if result, _ := executeAs(t, e, staff, Request{Query: c.query, Variables: c.variables}); result.Outcome != Executed || len(result.Errors) > 0 {
			t.Errorf("staff, %s %v: %v", c.query, c.variables, result.Errors)
		}
	}
}

// Checking permissions takes time in proportion to the document, even if its fragments expand
// exponentially. The number of locations is limited.
func TestPermissionChecksAreLinear(t *testing.T) {
	e := newAuthenticatedExecutor(t, Options{})
	doubling := `{...F0}`
	for i := range 100 {
		doubling += fmt.Sprintf(" fragment F%d on Query{...F%d ...F%d}", i, i+1, i+1)
	}
	document, _, _ := e.documents.Find(t.Context(), "", doubling+` fragment F100 on Query{orders{__typename}}`, nil, true)
	if len(document.Errors(true)) > 0 && document.Errors(true)[0].Extensions["code"] == errcode.BadUserInput {
		t.Fatal(document.Errors(true))
	}
	parsed := document.Parsed
	// The limits reject this document earlier. The permission check must not depend on that.
	if errs := validator.ValidateWithRules(e.schema.Schema(), parsed, rules.NewRules(rules.LoneAnonymousOperationRule)); parsed == nil || len(errs) > 0 {
		t.Fatal(errs)
	}
	prepared, _ := e.preparer.Prepare(document, parsed.Operations[0], nil)
	if err := e.resolver.access.Check(ann, prepared, nil); err == nil || len(err.Locations) != 1 {
		t.Errorf("%v, want an error with one location", err)
	}
	result, _ := executeAs(t, e, ann, Request{Query: `{` + repeatNumbered(25, "a%d:customers{__typename} ") + `}`})
	if len(result.Errors) != 1 || len(result.Errors[0].Locations) != errcode.MaxErrors {
		t.Errorf("%v, want one error with %d locations", result.Errors, errcode.MaxErrors)
	}
}

// Messages to customers reveal nothing of the schema that the request does not contain. Messages to
// staff do, no matter who sent the document first.
func TestMessagesHideSchema(t *testing.T) {
	const wrong = `{product(sku:"prod_100"){nam}}`
	e := newAuthenticatedExecutor(t, Options{Documents: []document.TrustedDocument{{ID: "wrong", Text: wrong}}})
	staff := access.Principal{ID: "staff", Role: access.RoleStaff}
	for _, r := range []Request{{Query: wrong}, {DocumentID: "wrong"}, persistedQueryRequest(hashOf(wrong), wrong), {Query: `{custome(id:"1"){name}}`}, {Query: `{customer}`}, {Query: `{customers(first:"1"){nodes{id}}}`},
		{Query: `{ordersByStatus(status:PENDIN){nodes{id}}}`}, {Query: `{customer(id:"1"){...on Produc{sku}}}`}, {Query: `mutation{placeOrder(input:{}){__typename}}`}} {
		for range 2 {
			result, _ := executeAs(t, e, staff, r)
			redacted, _ := executeAs(t, e, ann, r)
			if len(result.Errors) == 0 || len(redacted.Errors) == 0 || redacted.Outcome != Refused {
				t.Fatalf("%+v: %v, %v", r, result.Errors, redacted.Errors)
			}
			checkSchemaHidden(t, r.Query+r.DocumentID, redacted.Errors)
			if r.Query == wrong || r.DocumentID != "" {
				if !strings.Contains(result.Errors[0].Message, "Product") {
					t.Errorf("%+v: staff get %v", r, result.Errors)
				}
			}
		}
	}
	for query, variables := range map[string]map[string]any{
		`mutation($i:PlaceOrderInput!){placeOrder(input:$i){__typename}}`: {"i": map[string]any{"item": "x"}},
		`query($s:OrderStatus!){ordersByStatus(status:$s){nodes{id}}}`:    {"s": "PENDIN"},
	} {
		redacted, _ := executeAs(t, e, ann, Request{Query: query, Variables: variables})
		if len(redacted.Errors) == 0 || redacted.Outcome != Refused {
			t.Errorf("%s: %s %v", query, redacted.Data, redacted.Errors)
		}
		checkSchemaHidden(t, query, redacted.Errors)
	}
}

// Errors during execution reveal nothing of the schema to customers, or to any caller if
// introspection is disabled.
func TestRuntimeMessagesHideSchema(t *testing.T) {
	staff := access.Principal{ID: "staff", Role: access.RoleStaff}
	entity := func(representation any) Request {
		return Request{Query: `query($r:[_Any!]!){_entities(representations:$r){__typename}}`, Variables: map[string]any{"r": []any{representation}}}
	}
	type object = map[string]any
	open, closed := newAuthenticatedExecutor(t, Options{}), newAuthenticatedExecutor(t, Options{NoIntrospection: true})
	for name, c := range map[string]struct {
		r Request
		// told is part of the message for callers who may see the schema.
		result string
	}{
		"an unknown type":       {entity(object{"__typename": "Custome", "id": "1"}), "Warehouse"},
		"no type":               {entity(object{"id": "1"}), "Warehouse"},
		"a malformed type":      {entity(object{"__typename": json.Number("1"), "id": "1"}), "Warehouse"},
		"no object":             {entity("Customer"), "not an object"},
		"a list":                {entity([]any{"Customer"}), "not an object"},
		"no key":                {entity(object{"__typename": "Product"}), `"sku"`},
		"another's key":         {entity(object{"__typename": "Product", "id": "prod_100"}), `"sku"`},
		"a key that is null":    {entity(object{"__typename": "Product", "sku": nil}), `"sku"`},
		"a key of another type": {entity(object{"__typename": "Order", "id": true}), "not an ID"},
		"literals":              {Request{Query: `{_entities(representations:[{__typename:"Produc"}]){__typename}}`}, "Warehouse"},
		"a date with a time":    {Request{Query: `{customer(id:"cust_001"){orders(placed:{from:"yesterday"}){nodes{id}}}}`}, "as a string of the form"},
		"a number for it":       {Request{Query: `query($p:TimeRange){customer(id:"cust_001"){orders(placed:$p){nodes{id}}}}`, Variables: object{"p": object{"from": json.Number("1")}}}, "as a string"},
		"a cursor":              {Request{Query: `{products(category:"Hardware",after:"x"){nodes{sku}}}`}, "not a cursor"},
		"a null":                {Request{Query: `query($i:ID="x"){customer(id:$i){name}}`, Variables: object{"i": nil}}, "ID!"},
		"a null in an input":    {Request{Query: `mutation($n:Int=1){placeOrder(input:{customerId:"cust_001",items:[{sku:"prod_100",quantity:$n}]}){__typename}}`, Variables: object{"n": nil}}, "Int!"},
		"a cost":                {Request{Query: `{customer(id:"cust_001"){` + repeatNumbered(12, `a%d:orders(first:100){nodes{timeline(first:100){nodes{at}}}}`) + `}}`}, "smaller pages"},
	} {
		for principal, result := range map[string]Result{
			"a customer": first(executeAs(t, open, ann, c.r)), "staff of a server without introspection": first(executeAs(t, closed, staff, c.r)),
		} {
			if len(result.Errors) == 0 {
				t.Errorf("%s: %s gets no error: %s", name, principal, result.Data)
			}
			checkSchemaHidden(t, fmt.Sprint(c.r.Query, c.r.Variables), result.Errors)
		}
		if result := first(executeAs(t, open, staff, c.r)); len(result.Errors) == 0 || !strings.Contains(result.Errors[0].Message, c.result) {
			t.Errorf("%s: the errors for staff are %v, want %s", name, result.Errors, c.result)
		}
	}
}

func first(result Result, _ []trace.Request) Result { return result }

// Customers read their own records with the documented number of requests. Timelines take one more
// round trip, because the owner of an order is known only after the order has been read.
func TestBudgetsOfOwnRecords(t *testing.T) {
	e := newAuthenticatedExecutor(t, Options{Limits: entityLimits})
	entities := func(n int, fields string) Request {
		representations := make([]any, n)
		for i := range representations {
			id := []string{ownSubject.order, "01KA3P5WG00000000000000001", otherSubject.order}[min(i, 2)]
			if i > 2 {
				id = fmt.Sprintf("01KE70EHG0000000000000%04d", 1000+i)
			}
			representations[i] = map[string]any{"__typename": "Order", "id": id}
		}
		return Request{Query: `query($r:[_Any!]!){_entities(representations:$r){...on Order{` + fields + `}}}`, Variables: map[string]any{"r": representations}}
	}
	order := func(fields string) Request {
		return Request{Query: fmt.Sprintf(`{order(id:%q){%s}}`, ownSubject.order, fields)}
	}
	for _, c := range []struct {
		r    Request
		want string
	}{
		{order(`id items{nodes{name}}`), "1 AP29 GetItem"},
		{order(`id customer{name} items{nodes{product{name}}}`), "1 AP29 GetItem, 2 AP6 GetItem, 2 AP10 GetItem"},
		{order(`id timeline{nodes{at}}`), "1 AP29 GetItem, 2 AP27 Query"},
		{Request{Query: fmt.Sprintf(`{orderItem(orderId:%q,productId:"prod_101"){name}}`, ownSubject.order)}, "1 AP29 GetItem"},
		{Request{Query: fmt.Sprintf(`{orderItem(orderId:%q,productId:"prod_101"){product{name} order{status timeline{nodes{at}}}}}`, ownSubject.order)}, "1 AP29 GetItem, 2 AP27 Query, 2 AP10 GetItem"},
		{Request{Query: `{customer(id:"cust_001"){name orders{nodes{timeline{nodes{at}}}}}}`}, "1 AP6 GetItem, 1 AP2 Query, 2 AP27 Query, 2 AP27 Query"},
		{Request{Query: `{customer(id:"cust_002"){name orders{nodes{id}} orderCount}}`}, ""},
		{entities(100, `status items{nodes{name}}`), "1 AP29 BatchGetItem"},
		{entities(100, `status timeline{nodes{at}}`), "1 AP29 BatchGetItem, 2 AP27 Query, 2 AP27 Query"},
		{Request{Query: `{_entities(representations:[{__typename:"Employee",id:"rep_001"},{__typename:"Warehouse",id:"wh_sea"}]){__typename}}`}, ""},
	} {
		result, requests := executeAs(t, e, ann, c.r)
		var got []string
		for _, r := range requests {
			got = append(got, fmt.Sprintf("%d %s %s", r.RoundTrip, r.Pattern, r.Operation))
		}
		if text := strings.Join(got, ", "); text != c.want || result.Outcome != Executed {
			t.Errorf("%s\n  took %s\n  want %s\n  %.300s %v", c.r.Query, text, c.want, result.Data, result.Errors)
		}
	}
}

// An entity of a forbidden type is rejected at its path. Other entities are returned.
func TestForbiddenEntities(t *testing.T) {
	e := newAuthenticatedExecutor(t, Options{})
	result, _ := executeAs(t, e, ann, Request{Query: `{_entities(representations:[{__typename:"Employee",id:"rep_001"},{__typename:"Customer",id:"cust_001"},{__typename:"Employee",id:"nobody"},{__typename:"Customer",id:"cust_002"},{__typename:"Employee"}])
		{...on Employee{name} ...on Customer{name accountRep{name}}}}`})
	const want = `{"_entities":[null,{"name":"Acme Corp","accountRep":{"name":"Account Rep 001"}},null,null,null]}`
	if string(result.Data) != want || len(result.Errors) != 3 {
		t.Fatalf("%s %v", result.Data, result.Errors)
	}
	codes := map[string]any{}
	for _, err := range result.Errors {
		codes[err.Path.String()] = err.Extensions["code"]
	}
	if codes["_entities[0]"] != errcode.Forbidden || codes["_entities[2]"] != errcode.Forbidden || codes["_entities[4]"] != errcode.BadUserInput {
		t.Errorf("%v", result.Errors)
	}
}

// A subscription to another customer's records fails like a subscription to missing records.
func TestSubscriptionPermissions(t *testing.T) {
	e := newAuthenticatedExecutor(t, Options{})
	staff := access.Principal{ID: "staff", Role: access.RoleStaff}
	for _, c := range []struct {
		principal access.Principal
		order     string
		customer  string
		found     bool
		requests  string
	}{
		{principal: ann, order: ownSubject.order, found: true, requests: "AP29"},
		{principal: ann, order: otherSubject.order, requests: "AP29"},
		{principal: ann, order: unknownSubject.order, requests: "AP29"},
		{principal: staff, order: otherSubject.order, found: true, requests: "AP1"},
		{principal: staff, order: unknownSubject.order, requests: "AP1"},
		{principal: ann, customer: ownSubject.customer, found: true, requests: "AP6"},
		{principal: ann, customer: otherSubject.customer},
		{principal: ann, customer: unknownSubject.customer},
		{principal: staff, customer: otherSubject.customer, found: true, requests: "AP6"},
		{principal: staff, customer: unknownSubject.customer, requests: "AP6"},
	} {
		trace := &trace.Trace{}
		ctx := trace.NewContext(WithPrincipal(t.Context(), c.principal))
		ctx = loading(ctx, e)
		var err error
		if c.order != "" {
			err = e.resolver.checkOrderSubscription(ctx, commerce.OrderID(c.order))
		} else {
			err = e.resolver.checkCustomerOrdersSubscription(ctx, commerce.CustomerID(c.customer))
		}
		result := (*gqlerror.Error)(nil)
		if c.found != (err == nil) || !c.found && (!errors.As(err, &result) || result.Extensions["code"] != errcode.NotFound || strings.Contains(result.Message, c.order+c.customer)) {
			t.Errorf("%+v: %v", c, err)
		}
		var requests []string
		for _, r := range trace.Requests() {
			requests = append(requests, r.Pattern)
		}
		if strings.Join(requests, " ") != c.requests {
			t.Errorf("%+v: read %v", c, requests)
		}
	}
}

// A principal who sees all customers but only their own orders can subscribe only to their own
// orders.
func TestSubscriptionNeedsOrderPermission(t *testing.T) {
	policy := access.StandardPolicy().WithGrant(access.RoleCustomer, access.PermissionReadCustomer, access.GrantAll)
	e := newAuthenticatedExecutor(t, Options{Policy: &policy})
	ctx := WithPrincipal(t.Context(), ann)
	ctx = loading(ctx, e)
	if err := e.resolver.checkCustomerOrdersSubscription(ctx, commerce.CustomerID(ownSubject.customer)); err != nil {
		t.Errorf("own orders: %v", err)
	}
	var result *gqlerror.Error
	if err := e.resolver.checkCustomerOrdersSubscription(ctx, commerce.CustomerID(otherSubject.customer)); !errors.As(err, &result) || result.Extensions["code"] != errcode.NotFound {
		t.Errorf("subscribing to another customer's orders returns %v, want NOT_FOUND", err)
	}
}

// A mutation checks the policy itself, even if the check before the execution was skipped.
func TestChangesCheckPermissions(t *testing.T) {
	e := newAuthenticatedExecutor(t, Options{})
	document, _, _ := e.documents.Find(t.Context(), "", `mutation{createWarehouse(input:{name:"N"}){warehouse{id}}}`, nil, false)
	ctx := WithPrincipal(withReportedErrors(t.Context()), ann)
	operation, _, errs := e.prepare(WithPrincipal(t.Context(), access.Principal{ID: "a", Role: access.RoleAdmin}), Request{Query: document.Text})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	response, _ := e.run(ctx, operation, nil)
	if text, err := json.Marshal(response); err != nil || !strings.Contains(string(text), errcode.Forbidden) || !strings.Contains(string(response.Data), `"createWarehouse":null`) {
		t.Errorf("%s %v", text, err)
	}
}

// The permission check rejects exactly the forbidden fields that execution would visit, for any
// fragments, conditions and variables.
func TestPermissionCheckMatchesExecution(t *testing.T) {
	e := newExecutorWithoutStore(t, document.Limits{})
	schema := e.schema.Schema()
	rapid.Check(t, func(t *rapid.T) {
		fragments := rapid.IntRange(0, 4).Draw(t, "fragments")
		fields := []string{`__typename`, `orders(first:1){__typename %s}`, `products(category:"x"){nodes{totalInventory name}}`, `warehouses{__typename}`}
		directives := []string{"", "", "@skip(if:$a)", "@include(if:$a)", "@skip(if:$b)@include(if:$a)", "@include(if:false)", "@skip(if:false)"}
		aliases := 0
		var selections func(depth, from int) string
		selections = func(depth, from int) string {
			var b strings.Builder
			for range rapid.IntRange(1, 3).Draw(t, "selections") {
				directive := rapid.SampledFrom(directives).Draw(t, "directive")
				switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
				case kind == 0 && depth > 0:
					fmt.Fprintf(&b, "...on Query%s{%s}", directive, selections(depth-1, from))
				case kind == 1 && from < fragments:
					fmt.Fprintf(&b, "...F%d%s ", rapid.IntRange(from, fragments-1).Draw(t, "fragment"), directive)
				default:
					name, rest, found := strings.Cut(rapid.SampledFrom(fields).Draw(t, "field"), "{")
					if found {
						rest = "{" + strings.ReplaceAll(rest, "%s", "")
					}
					aliases++ // fields with the same alias would be merged
					fmt.Fprintf(&b, "f%d:%s%s%s ", aliases, name, directive, rest)
				}
			}
			return b.String()
		}
		query := "query($a:Boolean!,$b:Boolean!){" + selections(2, 0) + "}"
		for i := range fragments {
			query += fmt.Sprintf(" fragment F%d on Query{%s}", i, selections(1, i+1))
		}
		parsed, err := parser.ParseQuery(&ast.Source{Input: query})
		if err != nil {
			t.Fatal(err)
		}
		_ = validator.ValidateWithRules(schema, parsed, rules.NewRules(rules.LoneAnonymousOperationRule)) // fills in the definitions; errors about unused fragments are ignored
		operation := &graphql.OperationContext{Doc: parsed, Variables: map[string]any{"a": rapid.Bool().Draw(t, "a"), "b": rapid.Bool().Draw(t, "b")}}
		want := map[int]bool{}
		var visit func(set ast.SelectionSet, typ string)
		visit = func(set ast.SelectionSet, typ string) {
			for _, f := range graphql.CollectFields(operation, set, []string{typ}) {
				if name := typ + "." + f.Name; slices.Contains([]string{"Query.orders", "Product.totalInventory", "Query.warehouses"}, name) {
					want[f.Position.Start] = true
				}
				visit(f.Selections, f.Definition.Type.Name())
			}
		}
		visit(parsed.Operations[0].SelectionSet, "Query")
		got := map[int]bool{}
		prepared, _ := e.preparer.Prepare(&document.Document{}, parsed.Operations[0], operation.Variables)
		if err := e.resolver.access.Check(ann, prepared, operation.Variables); err != nil {
			for _, location := range err.Locations {
				got[location.Column-1] = true // the text has one line
			}
		}
		if len(got) < errcode.MaxErrors && !maps.Equal(got, want) {
			t.Fatalf("%s with %v: refused at %v, want %v", query, operation.Variables, got, want)
		}
	})
}
