package embedded_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded"
)

// Writes to a table with local secondary indexes return the item collections that they changed.
func TestItemCollectionMetrics(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	create(t, s)
	const (
		size = `,"ReturnItemCollectionMetrics":"SIZE"}`
		of   = `{"ItemCollectionKey":{"pk":{"S":"p"}},"SizeEstimateRangeGB":[0,1]}`
		item = `{"pk":{"S":"p"},"sk":{"S":"s"}}`
		pair = `{"pk":{"S":"p"},"sk":{"N":"1"}}`
		one  = `{"ItemCollectionMetrics":` + of + `}`
		list = `"ItemCollectionMetrics":{"local":[` + of + `]}}`
	)
	for _, c := range []struct{ operation, request, want string }{
		{"PutItem", `{"TableName":"local","Item":` + item + size, one},
		{"UpdateItem", `{"TableName":"local","Key":` + item + size, one},
		{"DeleteItem", `{"TableName":"local","Key":` + item + size, one},
		{"PutItem", `{"TableName":"local","Item":` + item + `}`, `{}`},
		{"PutItem", `{"TableName":"local","Item":` + item + `,"ReturnItemCollectionMetrics":"NONE"}`, `{}`},
		{"PutItem", `{"TableName":"pair","Item":` + pair + size, `{}`},
		{"BatchWriteItem", `{"RequestItems":{"pair":[{"PutRequest":{"Item":` + pair + `}}],"local":[
			{"PutRequest":{"Item":` + item + `}},{"DeleteRequest":{"Key":{"pk":{"S":"p"},"sk":{"S":"t"}}}}]}` + size, `{"UnprocessedItems":{},` + list},
		{"BatchWriteItem", `{"RequestItems":{"local":[{"DeleteRequest":{"Key":` + item + `}},{"DeleteRequest":{"Key":{"pk":{"S":"q"},"sk":{"S":"t"}}}}]}` + size,
			`{"UnprocessedItems":{},"ItemCollectionMetrics":{"local":[` + of + `,{"ItemCollectionKey":{"pk":{"S":"q"}},"SizeEstimateRangeGB":[0,1]}]}}`},
		{"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"local","Item":` + item + `}},
			{"ConditionCheck":{"TableName":"local","Key":{"pk":{"S":"q"},"sk":{"S":"s"}},"ConditionExpression":"attribute_not_exists(pk)"}}]` + size, `{` + list},
	} {
		if status, body := send(t, s, c.operation, c.request); status != http.StatusOK || body != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.operation, c.request, body, c.want)
		}
	}
}

// A local secondary index is in the file, with its definition. Removing the last global secondary
// index that has the same attribute does not remove the attribute's definition.
func TestLocalIndexIsStored(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := embedded.Open(path, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	for _, request := range []string{
		`{"TableName":"local","Item":{"pk":{"S":"p"},"sk":{"S":"1"},"a":{"S":"z"}}}`,
		`{"TableName":"local","Item":{"pk":{"S":"p"},"sk":{"S":"2"},"a":{"S":"y"}}}`,
		`{"TableName":"local","Item":{"pk":{"S":"p"},"sk":{"S":"3"}}}`,
	} {
		if status, body := send(t, s, "PutItem", request); status != http.StatusOK {
			t.Fatal(body)
		}
	}
	if status, body := send(t, s, "UpdateTable", `{"TableName":"local","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"global"}}]}`); status != http.StatusOK {
		t.Fatal(body)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, nil)
	out, err := s.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("local")})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range out.Table.LocalSecondaryIndexes {
		if *x.ItemCount != 2 {
			t.Errorf("%s: got %d items, want 2", *x.IndexName, *x.ItemCount)
		}
	}
	if n := len(out.Table.LocalSecondaryIndexes); n != 2 {
		t.Errorf("got %d local secondary indexes, want 2", n)
	}
	page, err := s.Client().Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("local"), IndexName: aws.String("a-local"), KeyConditionExpression: aws.String("pk = :p AND a > :a"),
		ExpressionAttributeValues: item{":p": &types.AttributeValueMemberS{Value: "p"}, ":a": &types.AttributeValueMemberS{Value: "a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range page.Items {
		got = append(got, text(i["sk"]))
	}
	if want := []string{"2", "1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A page of a local secondary index has at most 1 MB of complete items, although its entries are
// small.
func TestLocalIndexPageOfCompleteItems(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	request := composite("large") + `"LocalSecondaryIndexes":[{"IndexName":"keys","KeySchema":` + keySchema("pk", "a") + `,"Projection":{"ProjectionType":"KEYS_ONLY"}}]}`
	if status, body := send(t, s, "CreateTable", request); status != http.StatusOK {
		t.Fatal(body)
	}
	for _, sk := range []string{"1", "2", "3", "4", "5"} {
		i := newItem("p", "sk", sk, "a", sk, "v", string(slices.Repeat([]byte("x"), 300<<10)))
		if _, err := s.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("large"), Item: i}); err != nil {
			t.Fatal(err)
		}
	}
	for selected, want := range map[types.Select]int32{types.SelectAllAttributes: 4, types.SelectAllProjectedAttributes: 5} {
		out, err := s.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("large"), IndexName: aws.String("keys"), Select: selected})
		if err != nil {
			t.Fatal(err)
		}
		if out.Count != want {
			t.Errorf("%s: got %d items, want %d", selected, out.Count, want)
		}
	}
}
