package table

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/raceenabled"
)

// orderJSON returns order n in DynamoDB's JSON, as other software may write it.
func orderJSON(n, items int) string {
	id := fmt.Sprintf("01HVNR4Q3R%016d", n)
	var lines []string
	for i := range items {
		lines = append(lines, fmt.Sprintf(`{"M":{"price":{"N":"29.99"},"qty":{"N":"%d"},"name":{"S":"Wooden chair %d"},"productId":{"S":"prod_%03d"}}}`, i+1, i, 100+i))
	}
	return fmt.Sprintf(`{"gsi1sk":{"S":"ORDER#%s"},"createdAt":{"S":"2024-04-17T12:00:00.000Z"},"total":{"N":"129.98"},"updatedAt":{"S":"2024-04-18T12:00:00.000Z"},"gsi1pk":{"S":"STATUS#pending"},`+
		`"pk":{"S":"ORDER#%s"},"sk":{"S":"ORDER"},"customerId":{"S":"cust_%04d"},"orderId":{"S":"%s"},"status":{"S":"pending"},"currency":{"S":"USD"},"entity":{"S":"Order"},"version":{"N":"1"},`+
		`"shippingAddress":{"M":{"recipient":{"S":"A"},"line1":{"S":"Main Street 1"},"city":{"S":"Springfield"},"postalCode":{"S":"12345"},"countryCode":{"S":"US"}}},"items":{"L":[%s]}}`,
		id, id, n, id, strings.Join(lines, ","))
}

const customerJSON = `{"pk":{"S":"CUSTOMER#cust_01"},"sk":{"S":"CUSTOMER"},"customerId":{"S":"cust_01"},"name":{"S":"Ada"},"email":{"S":"ada@example.com"},"phoneNumbers":{"L":[{"S":"+1 555 0100"}]},` +
	`"createdAt":{"S":"2024-04-17T12:00:00.000Z"},"updatedAt":{"S":"2024-04-18T12:00:00.000Z"},"orderCount":{"N":"10"},"version":{"N":"1"},"entity":{"S":"Customer"}}`

func ordersJSON(orders, items int) string {
	list := make([]string, orders)
	for i := range list {
		list[i] = orderJSON(i, items)
	}
	return fmt.Sprintf(`{"Count":%d,"Items":[%s],"ScannedCount":%d}`, orders, strings.Join(list, ","), orders)
}

// replayTables returns tables that get the same response to all requests: from memory and over a
// connection, each on the fast path and through the SDK.
func replayTables(b testing.TB, body string) map[string]*Table {
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Crc32": {newResponse(http.StatusOK, body).Header.Get("X-Amz-Crc32")}, "Content-Length": {strconv.Itoa(len(body))}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for name, values := range header {
			w.Header()[name] = values
		}
		_, _ = io.WriteString(w, body)
	}))
	b.Cleanup(server.Close)
	memory := newTestTable(b, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: header, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}, nil
	})
	connected := newTable(dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""), HTTPClient: awshttp.NewBuildableClient(),
	}))
	return map[string]*Table{"memory": memory, "memory/sdk": onSDK(memory), "connection": connected, "connection/sdk": onSDK(connected)}
}

// benchmarkEach benchmarks read with each table of replayTables.
func benchmarkEach(b *testing.B, body string, read func(*Table) error) {
	for name, s := range replayTables(b, body) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func readCustomer(s *Table) error {
	r, err := s.Get(context.Background(), &model.CustomerByID.AccessPattern, model.CustomerByID.Key(s.KeyBuilder(), "cust_01"))
	if err == nil {
		_, err = s.DecodeCustomer(r)
	}
	return err
}

// pendingOrders reads up to limit pending orders.
func pendingOrders(s *Table, limit int) ([]*commerce.Order, error) {
	p := &model.OrdersByStatus.AccessPattern
	records, _, err := s.Query(context.Background(), p, "STATUS#pending", string(p.SK), model.Range{}, limit, false)
	if err != nil {
		return nil, err
	}
	decoded := make([]*commerce.Order, len(records))
	for i, r := range records {
		if decoded[i], err = s.DecodeOrder(r); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}

func readOrders(orders int) func(s *Table) error {
	return func(s *Table) error {
		found, err := pendingOrders(s, orders)
		if err == nil && len(found) != orders {
			err = fmt.Errorf("got %d orders, want %d", len(found), orders)
		}
		return err
	}
}

func BenchmarkGetItem(b *testing.B) { benchmarkEach(b, `{"Item":`+customerJSON+`}`, readCustomer) }

func BenchmarkQuery(b *testing.B) {
	for _, n := range []int{10, 50} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchmarkEach(b, ordersJSON(n, 3), readOrders(n)) })
	}
}

func BenchmarkParse(b *testing.B) {
	body := []byte(ordersJSON(50, 3))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := parseResponse(body, "shop", 50); !ok {
			b.Fatal("the response is not parsed")
		}
	}
}

func BenchmarkDecodeOrder(b *testing.B) {
	s := newTestTable(b, nil)
	a, _ := parseResponse([]byte(ordersJSON(1, 3)), "shop", 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.DecodeOrder(a.Records[0]); err != nil {
			b.Fatal(err)
		}
	}
}

// The allocations of a read stay below a limit. They include signing, but no connection.
func TestReadAllocations(t *testing.T) {
	if raceenabled.On || testing.CoverMode() != "" {
		t.Skip("the race detector and coverage add allocations")
	}
	customer := replayTables(t, `{"Item":`+customerJSON+`}`)["memory"]
	orders := replayTables(t, ordersJSON(50, 3))["memory"]
	for _, c := range []struct {
		name  string
		limit float64
		read  func() error
	}{
		{"a GetItem of a customer", 95, func() error { return readCustomer(customer) }},
		{"a Query of 50 orders with 3 items each", 225, func() error { return readOrders(50)(orders) }},
	} {
		got := testing.AllocsPerRun(50, func() {
			if err := c.read(); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.limit {
			t.Errorf("%s makes %.0f allocations, want at most %.0f", c.name, got, c.limit)
		}
	}
}

// Orders read on the fast path equal orders read through the SDK.
func TestFastPathRecordsMatchSDK(t *testing.T) {
	s := replayTables(t, ordersJSON(50, 3))["memory"]
	read := func(s *Table) []*commerce.Order {
		orders, err := pendingOrders(s, 50)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range orders {
			for i := range o.Items {
				o.Items[i].CustomFields = commerce.CustomValues{} // they refer to the record
			}
		}
		return orders
	}
	if got, want := read(s), read(onSDK(s)); !reflect.DeepEqual(got, want) || len(got) != 50 || len(got[7].Items) != 3 || got[7].ShippingAddress.City != "Springfield" {
		t.Errorf("the fast path reads\n%+v\nthe SDK\n%+v", got, want)
	}
}

// Attributes returns copies, which do not refer to the bytes of the response.
func TestAttributesAreCopies(t *testing.T) {
	body := []byte(`{"Item":` + customerJSON + `}`)
	a, ok := parseResponse(body, "shop", 1)
	if !ok {
		t.Fatal("the response is not parsed")
	}
	record := model.Reader{Record: a.Records[0].Attributes()}
	clear(body)
	if got := record.Text("name") + " " + strings.Join(record.Texts("phoneNumbers"), ""); got != "Ada +1 555 0100" {
		t.Errorf("overwriting the response buffer changed the record to %q", got)
	}
}
