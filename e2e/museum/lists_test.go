package museum_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// orderPage is a page of orders.
type orderPage struct {
	Nodes    []struct{ ID string }
	PageInfo struct {
		HasNextPage bool
		EndCursor   string
	}
}

// orders returns a page of the list of orders.
func (s *shop) orders(first int, after string) (page orderPage) {
	s.Helper()
	arguments := fmt.Sprintf("first: %d", first)
	if after != "" {
		arguments += fmt.Sprintf(", after: %q", after)
	}
	var response struct{ Data struct{ Orders orderPage } }
	body := s.post(s.url, "", "{ orders("+arguments+") { nodes { id } pageInfo { hasNextPage endCursor } } }")
	if err := json.Unmarshal([]byte(body), &response); err != nil {
		s.Fatal(err, body)
	}
	return response.Data.Orders
}

var listRooms = []room{{
	name: "short-pages", sources: []string{"aws-amplify/amplify-cli#449", "aws-amplify/amplify-js#2233", "aws/aws-appsync-community#156"},
	there: "The limit of a page applies to the records that are read, so a page can be short or empty although more records match.",
	here:  "Each page except the last one has the requested number of orders, even if they are in several partitions.",
	test: func(t *testing.T) {
		s := newShopWithShards(t, 4)
		const orders, size = 25, 3
		s.do("adjustInventory", input{"sku": "p0", "warehouseId": "w0", "delta": orders})
		for range orders {
			s.place("c0", 1)
		}
		seen, after := map[string]bool{}, ""
		for n := 0; n < orders; n += size {
			page := s.orders(size, after)
			if more := n+size < orders; len(page.Nodes) != min(size, orders-n) || page.PageInfo.HasNextPage != more {
				s.Fatalf("after %d of %d orders, the page has %d orders, and hasNextPage is %t", n, orders, len(page.Nodes), page.PageInfo.HasNextPage)
			}
			for _, o := range page.Nodes {
				seen[o.ID] = true
			}
			after = page.PageInfo.EndCursor
		}
		if len(seen) != orders {
			s.Errorf("the pages contain %d orders, want %d", len(seen), orders)
		}
	},
}, {
	name: "empty-last-page", sources: []string{"aws-amplify/amplify-cli#3160"},
	there: "The last record is on a full page, but the page promises a next page, which is empty.",
	here:  "A page promises a next page only if it has records.",
	test: func(t *testing.T) {
		s := newShop(t)
		for range 4 {
			s.place("c0", 1)
		}
		first := s.orders(2, "")
		if last := s.orders(2, first.PageInfo.EndCursor); !first.PageInfo.HasNextPage || len(last.Nodes) != 2 || last.PageInfo.HasNextPage {
			s.Errorf("the pages are %+v and %+v", first, last)
		}
	},
}, {
	name: "stale-index-key", sources: []string{"tywalch/electrodb#366"},
	there: "A change sets only one of the attributes in an index key. Afterwards, the key does not fit the record.",
	here:  "The index keys have the current values of all attributes, even if two changes happen at the same time.",
	test: func(t *testing.T) {
		s := newShop(t)
		s.during(func() { s.do("updateProduct", input{"sku": "p0", "name": "Kite"}) }, "updateProduct", input{"sku": "p0", "category": "Toys"})
		s.want(`{ new: products(category: "Toys", namePrefix: "kite") { nodes { sku } } old: products(category: "Toys", namePrefix: "product") { nodes { sku } } }`,
			`{"new":{"nodes":[{"sku":"p0"}]},"old":{"nodes":[]}}`)
	},
}, {
	name: "sparse-index", sources: []string{"tywalch/electrodb#479"},
	there: "A record no longer belongs to a list, but its index entry remains.",
	here:  "The transaction that changes the record removes the entry.",
	test: func(t *testing.T) {
		s := newShop(t)
		const query = `{ warehouse(id: "w0") { employees { nodes { id } } } }`
		s.want(query, `{"warehouse":{"employees":{"nodes":[{"id":"e0"}]}}}`)
		s.do("updateEmployee", input{"id": "e0", "warehouseId": nil})
		s.want(query, `{"warehouse":{"employees":{"nodes":[]}}}`)
	},
}}
