package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// gatewayQuery queries entities as a gateway does.
const gatewayQuery = `query ($representations: [_Any!]!) { _entities(representations: $representations) { __typename %s } }`

// representationVariables returns the variables of a gateway's query.
func representationVariables(t testing.TB, representations ...mutationInput) json.RawMessage {
	t.Helper()
	variables, err := json.Marshal(map[string]any{"representations": representations})
	if err != nil {
		t.Fatal(err)
	}
	return variables
}

// The entities of a type need one BatchGetItem per hundred entities. The batches of all types start
// together.
func TestEntityBudgets(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		dataset := generateDataset(t, datasetOptions{customers: 30, orders: 120, items: 3, products: 40})
		for _, p := range dataset.Products {
			dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: p.SKU, WarehouseID: "hall", Quantity: 10})
		}
		store := storetest.NewTable(t, db, dynamo.Options{})
		storetest.LoadDataset(t, store, dataset)
		api := serve(t, store)

		orders := make([]mutationInput, 100)
		for i := range orders {
			orders[i] = mutationInput{"__typename": "Order", "id": orderID(i)}
		}
		mixed := []mutationInput{
			{"__typename": "Customer", "id": "customer-001"}, {"__typename": "Order", "id": orderID(1)}, {"__typename": "Product", "sku": "product-001"},
			{"__typename": "Employee", "id": "rep"}, {"__typename": "Warehouse", "id": "hall"}, {"__typename": "Order", "id": orderID(2)}, {"__typename": "Customer", "id": "customer-001"},
		}
		for _, line := range []struct {
			name, fields         string
			representations      []mutationInput
			requests, roundTrips int
		}{
			{"100 orders", `... on Order { status total { amount } }`, orders, 1, 1},
			{"100 orders with items", `... on Order { items { nodes { name } } }`, orders, 1, 1},
			{"100 orders with customers and items", `... on Order { customer { name } items { nodes { name } } }`, orders, 2, 2},
			{"100 orders with items with products", `... on Order { items { nodes { product { name } } } }`, orders, 2, 2},
			{"an order with items and timeline", `... on Order { items { nodes { name } } timeline { nodes { at } } }`, orders[:1], 1, 1},
			{"ten orders with timelines", `... on Order { timeline { nodes { at } } }`, orders[:10], 10, 1},
			{"one order ten times", `... on Order { status }`, []mutationInput{orders[0], orders[0], orders[0], orders[0], orders[0], orders[0], orders[0], orders[0], orders[0], orders[0]}, 1, 1},
			{"entities of every kind", `... on Customer { name } ... on Order { status } ... on Product { name } ... on Employee { name } ... on Warehouse { name }`, mixed, 5, 1},
			{"a customer with orders with items", `... on Customer { name orders(first: 100) { nodes { items { nodes { name } } } } }`, mixed[:1], 2, 1},
			{"a product with its inventory", `... on Product { name inventory { nodes { quantity } } }`, mixed[2:3], 1, 1},
			{"an employee with customers and orders", `... on Employee { name customers { nodes { name } } orders { nodes { id } } }`, mixed[3:4], 3, 1},
			{"a warehouse with employees and inventory", `... on Warehouse { name employees { nodes { name } } inventory { nodes { quantity } } }`, mixed[4:5], 3, 1},
			{"no entity at all", `... on Order { id }`, nil, 0, 0},
		} {
			t.Run(line.name, func(t *testing.T) {
				got := api.ask(t, fmt.Sprintf(gatewayQuery, line.fields), representationVariables(t, append([]mutationInput{}, line.representations...)...))
				var data struct {
					Entities []struct {
						Typename string `json:"__typename"`
					} `json:"_entities"`
				}
				if err := json.Unmarshal(got.Data, &data); err != nil || len(got.Errors) > 0 || len(data.Entities) != len(line.representations) {
					t.Fatalf("%d entities, %v, %+v", len(data.Entities), err, got.Errors)
				}
				for i, entity := range data.Entities {
					if entity.Typename != line.representations[i]["__typename"] {
						t.Errorf("entity %d is %v, want %v", i, entity, line.representations[i])
					}
				}
				got.Extensions.Explain.budget(t, line.requests, line.roundTrips)
				for _, r := range got.Extensions.Explain.Requests {
					if r.Path != "_entities" && !strings.HasPrefix(r.Path, "_entities.") {
						t.Errorf("a request has the path %q, want a path below _entities", r.Path)
					}
				}
			})
		}
	})
}

// If the store fails for one type of record, the entities of this type are null and the others
// remain.
func TestFaultsTakeAwayOneKindOfEntity(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(body, []byte("PRODUCT#")) {
			return nil, errors.New("connection refused")
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return next.Do(r)
	}), slog.LevelError+1)
	body, err := json.Marshal(map[string]any{
		"query": fmt.Sprintf(gatewayQuery, `... on Customer { name } ... on Product { name }`),
		"variables": representationVariables(t, mutationInput{"__typename": "Product", "sku": "prod_100"}, mutationInput{"__typename": "Customer", "id": "cust_01"}, mutationInput{"__typename": "Product", "sku": "prod_101"},
			mutationInput{"__typename": "Customer", "id": "nobody"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got answer
	if err := json.Unmarshal(ask(h, http.MethodPost, server.PathGraphQL, string(body)).Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	const want = `{"_entities":[null,{"__typename":"Customer","name":"Alice Chen"},null,null]}`
	if string(got.Data) != want || len(got.Errors) != 2 {
		t.Fatalf("the answer is %s, %+v, want %s and two errors", got.Data, got.Errors, want)
	}
	places := map[string]bool{}
	for _, e := range got.Errors {
		places[fmt.Sprint(e.Path)] = e.Extensions["code"] == errcode.Unavailable
	}
	if !places["[_entities 0]"] || !places["[_entities 2]"] {
		t.Errorf("the errors are %+v", got.Errors)
	}
}
