package museum_test

import (
	"fmt"
	"regexp"
	"strings"
)

// orders returns the IDs on a page of the list of orders, whether another page follows, and the cursor of
// its last order.
func (s *shop) orders(first int, after string) (ids []string, more bool, end string) {
	s.Helper()
	body := s.post(s.url, "", fmt.Sprintf("{ orders(first: %d, after: %s) { nodes { id } pageInfo { hasNextPage endCursor } } }", first, quoteOrNull(after)))
	for _, id := range regexp.MustCompile(`"id":"(.*?)"`).FindAllStringSubmatch(body, -1) {
		ids = append(ids, id[1])
	}
	_, end, _ = strings.Cut(body, `"endCursor":`)
	return ids, strings.Contains(body, `"hasNextPage":true`), strings.Trim(end, `"}`)
}

var listRooms = []room{{
	name: "short-pages", sources: []string{"aws-amplify/amplify-cli#449", "aws-amplify/amplify-js#2233", "aws/aws-appsync-community#156"},
	there: "The limit of a page applies to the records that are read, so a page can be short or empty although more records match.",
	here:  "Each page except the last one has the requested number of orders, even if they are in several partitions.",
	test: func(s *shop) {
		s = newShop(s.T, 4)
		const orders, size = 25, 3
		s.do("adjustInventory", input{"sku": "p0", "warehouseId": "w0", "delta": orders})
		for range orders {
			s.place("c0", 1)
		}
		seen, after := map[string]bool{}, ""
		for n := 0; n < orders; n += size {
			ids, more, end := s.orders(size, after)
			if after = end; len(ids) != min(size, orders-n) || more != (n+size < orders) {
				s.Fatalf("after %d of %d orders, the page has %d orders, and hasNextPage is %t", n, orders, len(ids), more)
			}
			for _, id := range ids {
				seen[id] = true
			}
		}
		if len(seen) != orders {
			s.Errorf("the pages contain %d orders, want %d", len(seen), orders)
		}
	},
}, {
	name: "empty-last-page", sources: []string{"aws-amplify/amplify-cli#3160"},
	there: "The last record is on a full page, but the page promises a next page, which is empty.",
	here:  "A page promises a next page only if it has records.",
	test: func(s *shop) {
		for range 4 {
			s.place("c0", 1)
		}
		first, more, after := s.orders(2, "")
		if second, promised, _ := s.orders(2, after); len(first) != 2 || !more || len(second) != 2 || promised {
			s.Errorf("the pages are %v, %t and %v, %t", first, more, second, promised)
		}
	},
}, {
	name: "stale-index-key", sources: []string{"tywalch/electrodb#366"},
	there: "A change sets only one of the attributes in an index key. Afterwards, the key does not fit the record.",
	here:  "The index keys have the current values of all attributes, even if two changes happen at the same time.",
	test: func(s *shop) {
		s.during(func() { s.do("updateProduct", input{"sku": "p0", "name": "Kite"}) }, "updateProduct", input{"sku": "p0", "category": "Toys"})
		s.want(`{ new: products(category: "Toys", namePrefix: "kite") { nodes { sku } } old: products(category: "Toys", namePrefix: "product") { nodes { sku } } }`,
			`{"new":{"nodes":[{"sku":"p0"}]},"old":{"nodes":[]}}`)
	},
}, {
	name: "sparse-index", sources: []string{"tywalch/electrodb#479"},
	there: "A record no longer belongs to a list, but its index entry remains.",
	here:  "The transaction that changes the record removes the entry.",
	test: func(s *shop) {
		const query = `{ warehouse(id: "w0") { employees { nodes { id } } } }`
		s.want(query, `{"warehouse":{"employees":{"nodes":[{"id":"e0"}]}}}`)
		s.do("updateEmployee", input{"id": "e0", "warehouseId": nil})
		s.want(query, `{"warehouse":{"employees":{"nodes":[]}}}`)
	},
}}
