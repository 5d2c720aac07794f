package enginetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func localIndexCases() []testCase {
	return []testCase{
		{"LocalIndexInvalid", testLocalIndexInvalid},
		{"LocalIndexDescribed", testLocalIndexDescribed},
		{"LocalIndexNeverChanges", testLocalIndexNeverChanges},
		{"LocalIndexOrder", testLocalIndexOrder},
		{"LocalIndexIsSparse", testLocalIndexSparse},
		{"LocalIndexFollowsWrites", testLocalIndexFollowsWrites},
		{"LocalIndexRejectsInvalidKeys", testLocalIndexRejectsInvalidKeys},
		{"LocalIndexPages", testLocalIndexPages},
		{"LocalIndexProjection", testLocalIndexProjection},
		{"LocalIndexFilter", testLocalIndexFilter},
		{"LocalIndexCapacity", testLocalIndexCapacity},
	}
}

// The local secondary indexes of the tables in these tests. The index byDate projects all
// attributes, byRank only the keys, and byDateSome also the attribute "v".
const (
	byDate, byRank, byDateSome = "by-date", "by-rank", "by-date-some"
	date, rank                 = "lsidate", "lsirank"
)

// localIndex returns a local secondary index. projected has the projected attributes that are not
// part of a key.
func localIndex(name, sort string, projection types.ProjectionType, projected ...string) types.LocalSecondaryIndex {
	return types.LocalSecondaryIndex{
		IndexName: &name, KeySchema: schema(pk, sort),
		Projection: &types.Projection{ProjectionType: projection, NonKeyAttributes: projected},
	}
}

// withLocalIndexes adds the local secondary indexes to a table.
func withLocalIndexes(in *dynamodb.CreateTableInput) {
	in.AttributeDefinitions = append(in.AttributeDefinitions,
		types.AttributeDefinition{AttributeName: aws.String(date), AttributeType: types.ScalarAttributeTypeS},
		types.AttributeDefinition{AttributeName: aws.String(rank), AttributeType: types.ScalarAttributeTypeN})
	in.LocalSecondaryIndexes = []types.LocalSecondaryIndex{
		localIndex(byDate, date, types.ProjectionTypeAll),
		localIndex(byRank, rank, types.ProjectionTypeKeysOnly),
		localIndex(byDateSome, date, types.ProjectionTypeInclude, "v"),
	}
}

// local returns a table with local secondary indexes.
func (tb *table) local() *table {
	tb.Helper()
	t := &table{T: tb.T, db: tb.db, name: tb.name + "-local"}
	t.create(withLocalIndexes)
	return t
}

// dated returns a record with the keys of the local secondary indexes, and with the attributes "v"
// and "w".
func dated(s, d, r string) item {
	it := record("p", s, date, d, "v", "v"+s, "w", "w"+s)
	it[rank] = num(r)
	return it
}

// indexQuery returns a Query of the partition "p" in an index.
func (tb *table) indexQuery(index string) *dynamodb.QueryInput {
	in := tb.queryInput("pk = :p", ":p", "p")
	in.IndexName = &index
	return in
}

// names returns the names of a record's attributes.
func names(it item) []string { return slices.Collect(maps.Keys(it)) }

func testLocalIndexInvalid(tb *table) {
	six := make([]types.LocalSecondaryIndex, 6)
	for i := range six {
		six[i] = localIndex(fmt.Sprint("index-of-", i), date, types.ProjectionTypeAll)
	}
	all := types.ProjectionTypeAll
	for what, change := range map[string]func(*dynamodb.CreateTableInput){
		"a table without sort key": func(in *dynamodb.CreateTableInput) { in.KeySchema = in.KeySchema[:1] },
		"another partition key": func(in *dynamodb.CreateTableInput) {
			in.LocalSecondaryIndexes[1].KeySchema = schema(sk, rank)
		},
		"an index without sort key": func(in *dynamodb.CreateTableInput) {
			in.LocalSecondaryIndexes[0].KeySchema = schema(pk, date)[:1]
		},
		"a sort key without definition": func(in *dynamodb.CreateTableInput) {
			in.LocalSecondaryIndexes[0].KeySchema = schema(pk, "absent")
		},
		"six indexes": func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes = six },
		"two indexes of one name": func(in *dynamodb.CreateTableInput) {
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, localIndex(byDate, rank, all))
		},
		"the name of a global index": func(in *dynamodb.CreateTableInput) {
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, localIndex(gsi1, rank, all))
		},
		"INCLUDE without attributes": func(in *dynamodb.CreateTableInput) {
			in.LocalSecondaryIndexes[2].Projection.NonKeyAttributes = nil
		},
		"attributes without INCLUDE": func(in *dynamodb.CreateTableInput) {
			in.LocalSecondaryIndexes[1].Projection.NonKeyAttributes = []string{"v"}
		},
		"a definition that no key uses": func(in *dynamodb.CreateTableInput) {
			in.LocalSecondaryIndexes = in.LocalSecondaryIndexes[:1]
		},
	} {
		in := &dynamodb.CreateTableInput{
			TableName: aws.String(tb.name + "-invalid"), BillingMode: types.BillingModePayPerRequest, KeySchema: schema(pk, sk),
		}
		for _, name := range []string{pk, sk, gsi1pk} {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
		}
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName: aws.String(gsi1), KeySchema: schema(gsi1pk, sk), Projection: &types.Projection{ProjectionType: all},
		}}
		withLocalIndexes(in)
		change(in)
		_, err := tb.db.CreateTable(tb.Context(), in)
		assertCode(tb, what, err, "ValidationException")
	}
}

func testLocalIndexDescribed(tb *table) {
	t := tb.local()
	out, err := t.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &t.name})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(out.Table.GlobalSecondaryIndexes); n != 1 {
		t.Errorf("got %d global secondary indexes, want 1", n)
	}
	var got []string
	for _, x := range out.Table.LocalSecondaryIndexes {
		got = append(got, fmt.Sprint(*x.IndexName, " ", *x.KeySchema[0].AttributeName, " ", *x.KeySchema[1].AttributeName, " ",
			x.Projection.ProjectionType, x.Projection.NonKeyAttributes, " ", *x.IndexArn == *out.Table.TableArn+"/index/"+*x.IndexName))
	}
	assertSameElements(t, "indexes", got, []string{
		"by-date pk lsidate ALL[] true", "by-rank pk lsirank KEYS_ONLY[] true", "by-date-some pk lsidate INCLUDE[v] true",
	})
}

func testLocalIndexNeverChanges(tb *table) {
	t := tb.local()
	_, err := t.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &t.name, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
		{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String(byRank)}},
	}})
	assertCode(t, "delete", err, "ValidationException")
	_, err = t.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &t.name, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
		{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: aws.String(byRank), KeySchema: schema(gsi1pk, sk), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	}})
	assertCode(t, "create with the same name", err, "ValidationException")
	t.put(dated("1", "a", "1"))
	assertEqual(t, "records", texts(t.query(t.indexQuery(byRank)), sk), []string{"1"})
}

func testLocalIndexOrder(tb *table) {
	t := tb.local()
	t.put(dated("1", "d", "10"), dated("2", "c", "9"), dated("3", "b", "-1"), dated("4", "a", "2.5"))
	t.put(item{pk: str("q"), sk: str("1"), date: str("b"), rank: num("3")})
	read := func(index, condition string, forward, consistent bool, values ...any) []string {
		in := t.queryInput("pk = :p"+condition, append(values, ":p", "p")...)
		in.IndexName, in.ScanIndexForward, in.ConsistentRead = &index, &forward, &consistent
		return texts(t.query(in), sk)
	}
	for _, consistent := range []bool{false, true} {
		assertEqual(t, "by date", read(byDate, "", true, consistent), []string{"4", "3", "2", "1"})
		assertEqual(t, "by rank", read(byRank, "", true, consistent), []string{"3", "4", "2", "1"})
		assertEqual(t, "by rank, descending", read(byRank, "", false, consistent), []string{"1", "2", "4", "3"})
		assertEqual(t, "one date", read(byDate, " AND lsidate = :d", true, consistent, ":d", "b"), []string{"3"})
		assertEqual(t, "some dates", read(byDate, " AND lsidate BETWEEN :from AND :to", true, consistent, ":from", "b", ":to", "c"), []string{"3", "2"})
		assertEqual(t, "low ranks", read(byRank, " AND lsirank < :r", true, consistent, ":r", num("9")), []string{"3", "4"})
	}
}

func testLocalIndexSparse(tb *table) {
	t := tb.local()
	t.put(dated("1", "a", "1"), record("p", "2"), record("p", "3", date, "b"), record("q", "1", date, "c"))
	assertEqual(t, "by date", texts(t.query(t.indexQuery(byDate)), sk), []string{"1", "3"})
	assertEqual(t, "by rank", texts(t.query(t.indexQuery(byRank)), sk), []string{"1"})
	out, err := t.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: &t.name, IndexName: aws.String(byDate), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	assertSameElements(t, "scan", texts(out.Items, date), []string{"a", "b", "c"})
}

func testLocalIndexFollowsWrites(tb *table) {
	t := tb.local()
	t.put(dated("1", "a", "1"), dated("2", "b", "2"), dated("3", "c", "3"), dated("4", "d", "4"))
	t.update("p", "1", "SET lsidate = :d", ":d", "z")
	t.update("p", "2", "REMOVE lsidate")
	if err := t.transact(deleteAction(t, "3"), putAction(t, dated("5", "y", "5"), "")); err != nil {
		t.Fatal(err)
	}
	if err := t.transact(deleteAction(t, "4"), failingAction(t)); err == nil {
		t.Fatal("the transaction should have been rejected")
	}
	assertEqual(t, "by date", texts(t.query(t.indexQuery(byDate)), sk), []string{"4", "5", "1"})
	assertEqual(t, "by rank", texts(t.query(t.indexQuery(byRank)), sk), []string{"1", "2", "4", "5"})
}

func testLocalIndexRejectsInvalidKeys(tb *table) {
	t := tb.local()
	for what, change := range map[string]item{
		"a number instead of a string": {date: num("1")},
		"a string instead of a number": {rank: str("1")},
		"an empty string":              {date: str("")},
	} {
		it := dated("1", "a", "1")
		maps.Copy(it, change)
		_, err := t.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &t.name, Item: it})
		assertCode(t, what, err, "ValidationException")
	}
	if got := t.get("p", "1"); got != nil {
		t.Errorf("got %v", got)
	}
}

func testLocalIndexPages(tb *table) {
	t := tb.local()
	var want []string
	for i := range 12 {
		s := fmt.Sprintf("%02d", i)
		t.put(dated(s, fmt.Sprint("date-", i%3), "7"))
		want = append(want, s)
	}
	for _, index := range []string{byDate, byRank} {
		for _, limit := range []int32{1, 5} {
			for _, forward := range []bool{true, false} {
				in := t.indexQuery(index)
				in.Limit, in.ScanIndexForward = &limit, &forward
				assertSameElements(t, fmt.Sprintf("%s in pages of %d", index, limit), texts(t.query(in), sk), want)
			}
		}
		in := t.indexQuery(index)
		in.Limit = aws.Int32(1)
		out, err := t.db.Query(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		attribute := map[string]string{byDate: date, byRank: rank}[index]
		assertSameElements(t, "the key of a page of "+index, names(out.LastEvaluatedKey), []string{pk, sk, attribute})

		var scanned []item
		scan := &dynamodb.ScanInput{TableName: &t.name, IndexName: &index, Limit: aws.Int32(5)}
		for pages := dynamodb.NewScanPaginator(t.db, scan); pages.HasMorePages(); {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			scanned = append(scanned, page.Items...)
		}
		assertSameElements(t, "scan of "+index, texts(scanned, sk), want)

		in.ExclusiveStartKey = key("p", "00")
		_, err = t.db.Query(t.Context(), in)
		assertCode(t, "a start key without the index's key", err, "ValidationException")
	}
}

func testLocalIndexProjection(tb *table) {
	t := tb.local()
	t.put(dated("1", "a", "1"))
	every := []string{date, pk, rank, sk, "v", "w"}
	for _, c := range []struct {
		index, projection string
		selected          types.Select
		want              []string
	}{
		{byDate, "", "", every},
		{byDate, "v, w", "", []string{"v", "w"}},
		{byDate, "", types.SelectAllProjectedAttributes, every},
		{byRank, "", "", []string{pk, rank, sk}},
		{byRank, "", types.SelectAllProjectedAttributes, []string{pk, rank, sk}},
		{byRank, "", types.SelectAllAttributes, every},
		{byRank, "sk", "", []string{sk}},
		{byRank, "sk, w", "", []string{sk, "w"}},
		{byRank, "w", types.SelectSpecificAttributes, []string{"w"}},
		{byDateSome, "", "", []string{date, pk, sk, "v"}},
		{byDateSome, "", types.SelectAllAttributes, every},
		{byDateSome, "v", "", []string{"v"}},
		{byDateSome, "w", "", []string{"w"}},
	} {
		for _, consistent := range []bool{false, true} {
			in := t.indexQuery(c.index)
			scan := &dynamodb.ScanInput{TableName: &t.name, IndexName: &c.index, Select: c.selected, ConsistentRead: &consistent}
			in.Select, in.ConsistentRead = c.selected, &consistent
			if c.projection != "" {
				in.ProjectionExpression, scan.ProjectionExpression = &c.projection, &c.projection
			}
			what := fmt.Sprintf("%s, projection %q, select %q", c.index, c.projection, c.selected)
			for _, it := range t.query(in) {
				assertSameElements(t, "query of "+what, names(it), c.want)
			}
			out, err := t.db.Scan(t.Context(), scan)
			if err != nil {
				t.Fatalf("scan of %s: %v", what, err)
			}
			if len(out.Items) != 1 {
				t.Fatalf("scan of %s: got %v", what, out.Items)
			}
			assertSameElements(t, "scan of "+what, names(out.Items[0]), c.want)
		}
	}
	in := t.indexQuery(byRank)
	in.Select = types.SelectCount
	out, err := t.db.Query(t.Context(), in)
	if err != nil || out.Count != 1 {
		t.Errorf("count: got %v, %v", out, err)
	}
}

func testLocalIndexFilter(tb *table) {
	t := tb.local()
	t.put(dated("1", "a", "1"), dated("2", "b", "2"), dated("3", "c", "3"))
	filtered := func(index, filter string, values ...any) *dynamodb.QueryInput {
		in := t.indexQuery(index)
		in.FilterExpression = &filter
		maps.Copy(in.ExpressionAttributeValues, valueMap(values...))
		return in
	}
	assertEqual(t, "an attribute", texts(t.query(filtered(byDate, "w > :w", ":w", "w1")), sk), []string{"2", "3"})
	assertEqual(t, "a projected attribute", texts(t.query(filtered(byDateSome, "v > :v", ":v", "v1")), sk), []string{"2", "3"})
	assertEqual(t, "the table's sort key", texts(t.query(filtered(byRank, "sk > :s", ":s", "1")), sk), []string{"2", "3"})
	for what, in := range map[string]*dynamodb.QueryInput{
		"an attribute that the index does not project": filtered(byRank, "w > :w", ":w", "w1"),
		"the partition key":                            filtered(byRank, "pk > :s", ":s", "1"),
	} {
		_, err := t.db.Query(t.Context(), in)
		assertCode(t, what, err, "ValidationException")
	}
	in := filtered(byRank, "w > :w", ":w", "w1")
	in.Select = types.SelectAllAttributes
	_, err := t.db.Query(t.Context(), in)
	assertCode(t, "an attribute of the complete record", err, "ValidationException")
}

func testLocalIndexCapacity(tb *table) {
	t := tb.local()
	units := func(c *types.ConsumedCapacity) map[string]float64 {
		all := map[string]float64{"total": *c.CapacityUnits, "table": *c.Table.CapacityUnits}
		for name, x := range c.LocalSecondaryIndexes {
			all[name] = *x.CapacityUnits
		}
		for name, x := range c.GlobalSecondaryIndexes {
			all[name] = *x.CapacityUnits
		}
		return all
	}
	expect := func(what string, got *types.ConsumedCapacity, want map[string]float64) {
		t.Helper()
		if got := units(got); !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	long := string(slices.Repeat([]byte("x"), 4500))
	for _, s := range []string{"1", "2", "3"} {
		it := dated(s, "a", s)
		it["w"], it[gsi1pk], it[gsi1sk] = str(long), str("g"), str("g")
		out, err := t.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &t.name, Item: it, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
		if err != nil {
			t.Fatal(err)
		}
		expect("put", out.ConsumedCapacity, map[string]float64{"total": 17, "table": 5, gsi1: 5, byDate: 5, byRank: 1, byDateSome: 1})
	}
	out, err := t.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &t.name, Item: record("p", "4"), ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
	if err != nil {
		t.Fatal(err)
	}
	expect("put of a record that is in no index", out.ConsumedCapacity, map[string]float64{"total": 1, "table": 1})

	query := func(index string, selected types.Select, consistent bool) *types.ConsumedCapacity {
		t.Helper()
		in := t.indexQuery(index)
		in.Select, in.ConsistentRead, in.ReturnConsumedCapacity = selected, &consistent, types.ReturnConsumedCapacityIndexes
		out, err := t.db.Query(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return out.ConsumedCapacity
	}
	expect("all attributes in the index", query(byDate, "", false), map[string]float64{"total": 2, "table": 0, byDate: 2})
	expect("keys", query(byRank, "", false), map[string]float64{"total": 0.5, "table": 0, byRank: 0.5})
	expect("keys, consistent", query(byRank, "", true), map[string]float64{"total": 1, "table": 0, byRank: 1})
	expect("complete records", query(byRank, types.SelectAllAttributes, false), map[string]float64{"total": 3.5, "table": 3, byRank: 0.5})
	expect("complete records, consistent", query(byRank, types.SelectAllAttributes, true), map[string]float64{"total": 7, "table": 6, byRank: 1})
}
