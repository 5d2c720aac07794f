package enginetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func queryCases() []testCase {
	return []testCase{
		{"QueryRanges", testQueryRanges},
		{"QueryByteOrder", testQueryByteOrder},
		{"QueryUpToTheLastRune", testQueryLastRune},
		{"QueryPages", testQueryPages},
		{"QueryPagesBackwards", testQueryPagesBackwards},
		{"QueryAfterDeletedKey", testQueryAfterGone},
		{"QueryBeyondOneMegabyte", testQueryMegabyte},
		{"QueryCount", testQueryCount},
		{"QueryFilter", testQueryFilter},
		{"QueryFilterPages", testQueryFilterPages},
		{"QueryProjection", testQueryProjection},
		{"QuerySeesOnePartition", testQueryOnePartition},
		{"ScanSegments", testScanSegments},
		{"ScanPages", testScanPages},
	}
}

func testQueryRanges(tb *table) {
	for _, s := range []string{"a#1", "a#2", "a#3", "b#1", "b#2"} {
		tb.put(record("p", s))
	}
	tb.put(record("other", "a#2"))
	for _, c := range []struct {
		cond   string
		values []any
		want   string
	}{
		{"pk = :p", nil, "a#1 a#2 a#3 b#1 b#2"},
		{"pk = :p AND sk = :a", []any{":a", "a#2"}, "a#2"},
		{"pk = :p AND begins_with(sk, :a)", []any{":a", "a#"}, "a#1 a#2 a#3"},
		{"pk = :p AND sk BETWEEN :a AND :b", []any{":a", "a#2", ":b", "b#1"}, "a#2 a#3 b#1"},
		{"pk = :p AND sk BETWEEN :a AND :b", []any{":a", "a#2", ":b", "a#2"}, "a#2"},
		{"pk = :p AND sk < :a", []any{":a", "a#3"}, "a#1 a#2"},
		{"pk = :p AND sk <= :a", []any{":a", "a#3"}, "a#1 a#2 a#3"},
		{"pk = :p AND sk > :a", []any{":a", "a#3"}, "b#1 b#2"},
		{"pk = :p AND sk >= :a", []any{":a", "a#3"}, "a#3 b#1 b#2"},
		{"(pk = :p) AND (sk >= :a)", []any{":a", "b#2"}, "b#2"},
		{"sk = :a AND pk = :p", []any{":a", "b#2"}, "b#2"},
		{"pk = :p AND begins_with(sk, :a)", []any{":a", "c"}, ""},
		{"pk = :p AND sk > :a", []any{":a", "c"}, ""},
	} {
		in := tb.queryInput(c.cond, append([]any{":p", "p"}, c.values...)...)
		got := texts(tb.query(in), sk)
		assertEqual(tb, fmt.Sprint(c.cond, c.values), got, strings.Fields(c.want))
		in.ScanIndexForward = aws.Bool(false)
		slices.Reverse(got)
		assertEqual(tb, fmt.Sprint("backwards ", c.cond, c.values), texts(tb.query(in), sk), got)
	}
}

// orderedKeys returns sort keys in the order of their UTF-8 bytes, which is DynamoDB's order.
func orderedKeys() []string {
	return []string{
		"!", "#", "#1", "+", "-", "-1", ".", "/", "0", "00", "1", "10", "2", ":", "A", "AB", "Aa", "B", "Z", "_", "a", "aB", "ab", "b", "z", "~",
		"\u00e4", "\u00fc", "\u00ff", "\u0394", "\u20ac", "\u4e16", "\uff21", "\ufffd", "\U0001f600", "\U0010ffff",
	}
}

func testQueryByteOrder(tb *table) {
	keys := orderedKeys()
	shuffled := slices.Clone(keys)
	for i := range shuffled { // the same shuffle in every run
		j := (i*7 + 3) % len(shuffled)
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	}
	for _, s := range shuffled {
		tb.put(record("p", s, gsi1pk, "g", gsi1sk, s))
	}
	assertEqual(tb, "the table's order", texts(tb.query(tb.queryInput("pk = :p", ":p", "p")), sk), keys)
	assertEqual(tb, "the index's order", tb.index("g"), keys)
	at := slices.Index(keys, "a")
	assertEqual(tb, "from a on", texts(tb.query(tb.queryInput("pk = :p AND sk >= :a", ":p", "p", ":a", "a")), sk), keys[at:])
	assertEqual(tb, "up to a", texts(tb.query(tb.queryInput("pk = :p AND sk <= :a", ":p", "p", ":a", "a")), sk), keys[:at+1])
}

// testQueryLastRune reads all keys with a prefix from a start key. The upper bound is the prefix
// and the last Unicode character.
func testQueryLastRune(tb *table) {
	for _, s := range []string{"N", "O", "O#1", "O#2", "O#2#x", "O#\U0001f600", "O$", "P"} {
		tb.put(record("p", s, gsi1pk, "g", gsi1sk, s))
	}
	want := []string{"O#2", "O#2#x", "O#\U0001f600"}
	assertEqual(tb, "in the table", texts(tb.query(tb.queryInput("pk = :p AND sk BETWEEN :a AND :b", ":p", "p", ":a", "O#2", ":b", "O#\U0010ffff")), sk), want)
	in := tb.queryInput("gsi1pk = :p AND gsi1sk BETWEEN :a AND :b", ":p", "g", ":a", "O#2", ":b", "O#\U0010ffff")
	in.IndexName = aws.String(gsi1)
	assertEqual(tb, "in the index", texts(tb.query(in), sk), want)
}

func testQueryPages(tb *table) {
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprint(i))
		tb.put(record("p", fmt.Sprint(i)), record("q", fmt.Sprint(i)))
	}
	for limit := int32(1); limit <= 9; limit++ {
		in := tb.queryInput("pk = :p", ":p", "p")
		in.Limit = &limit
		assertEqual(tb, fmt.Sprint("pages of ", limit), texts(tb.query(in), sk), want)
	}
	in := tb.queryInput("pk = :p", ":p", "p")
	in.Limit = aws.Int32(3)
	out, err := tb.db.Query(tb.Context(), in)
	if err != nil {
		tb.Fatal(err)
	}
	if last := out.LastEvaluatedKey; len(last) != 2 || text(last, pk) != "p" || text(last, sk) != "2" {
		tb.Errorf("the key after three: %v", last)
	}
	in.Limit = aws.Int32(100)
	if out, err = tb.db.Query(tb.Context(), in); err != nil || out.LastEvaluatedKey != nil {
		tb.Errorf("there is nothing after the end: %v, %v", out, err)
	}
}

func testQueryPagesBackwards(tb *table) {
	want := map[string][]string{}
	for i := range 7 {
		for _, p := range []string{"p", "q"} {
			s := fmt.Sprintf("%s%d", p, i)
			tb.put(record(p, s, gsi1pk, "g", gsi1sk, s))
			want[p] = append([]string{s}, want[p]...)
		}
	}
	for limit := int32(1); limit <= 15; limit += 2 {
		in := tb.queryInput("pk = :p", ":p", "p")
		in.Limit, in.ScanIndexForward = &limit, aws.Bool(false)
		assertEqual(tb, fmt.Sprint("pages of ", limit), texts(tb.query(in), sk), want["p"])
		in = tb.queryInput("gsi1pk = :p", ":p", "g")
		in.Limit, in.ScanIndexForward, in.IndexName = &limit, aws.Bool(false), aws.String(gsi1)
		assertEqual(tb, fmt.Sprint("the index in pages of ", limit), texts(tb.query(in), sk), slices.Concat(want["q"], want["p"]))
	}
}

// testQueryAfterGone continues after keys of records that have been deleted or never existed. A
// cursor can outlive its record.
func testQueryAfterGone(tb *table) {
	for i := range 6 {
		tb.put(record("p", fmt.Sprint(i), gsi1pk, "g", gsi1sk, fmt.Sprint(i)))
	}
	in := tb.queryInput("pk = :p", ":p", "p")
	in.Limit = aws.Int32(3)
	out, err := tb.db.Query(tb.Context(), in)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := tb.db.DeleteItem(tb.Context(), &dynamodb.DeleteItemInput{TableName: &tb.name, Key: key("p", "2")}); err != nil {
		tb.Fatal(err)
	}
	in.ExclusiveStartKey, in.Limit = out.LastEvaluatedKey, nil
	assertEqual(tb, "after a record that is gone", texts(tb.query(in), sk), []string{"3", "4", "5"})
	in.ExclusiveStartKey = key("p", "25")
	assertEqual(tb, "after a key that never was", texts(tb.query(in), sk), []string{"3", "4", "5"})
	in.ScanIndexForward = aws.Bool(false)
	assertEqual(tb, "backwards from there", texts(tb.query(in), sk), []string{"1", "0"})

	idx := tb.queryInput("gsi1pk = :p", ":p", "g")
	idx.IndexName = aws.String(gsi1)
	idx.ExclusiveStartKey = record("p", "2", gsi1pk, "g", gsi1sk, "2")
	assertEqual(tb, "in the index, after a record that is gone", texts(tb.query(idx), sk), []string{"3", "4", "5"})
	idx.ExclusiveStartKey = record("p", "3", gsi1pk, "g", gsi1sk, "15")
	assertEqual(tb, "in the index, after where a record once was", texts(tb.query(idx), sk), []string{"3", "4", "5"})
}

func testQueryMegabyte(tb *table) {
	var want []string
	for i := range 20 {
		s := fmt.Sprintf("%02d", i)
		want = append(want, s)
		tb.put(record("p", s, gsi1pk, "g", gsi1sk, s, "v", strings.Repeat("x", 100_000)))
	}
	assertEqual(tb, "all pages", texts(tb.query(tb.queryInput("pk = :p", ":p", "p")), sk), want)
	assertEqual(tb, "all pages of the index", tb.index("g"), want)
	in := tb.queryInput("pk = :p", ":p", "p")
	in.Select = types.SelectCount
	total, pages := 0, 0
	for {
		out, err := tb.db.Query(tb.Context(), in)
		if err != nil {
			tb.Fatal(err)
		}
		total, pages = total+int(out.Count), pages+1
		if out.LastEvaluatedKey == nil {
			break
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
	if total != 20 {
		tb.Errorf("counted %d in %d pages", total, pages)
	}
}

func testQueryCount(tb *table) {
	for i := range 5 {
		tb.put(record("p", fmt.Sprint(i)), record("q", fmt.Sprint(i)))
	}
	in := tb.queryInput("pk = :p AND sk >= :a", ":p", "p", ":a", "2")
	in.Select = types.SelectCount
	out, err := tb.db.Query(tb.Context(), in)
	if err != nil || out.Count != 3 {
		tb.Errorf("want 3, got %v, %v", out, err)
	}
	in = tb.queryInput("pk = :p", ":p", "nobody")
	in.Select = types.SelectCount
	out, err = tb.db.Query(tb.Context(), in)
	if err != nil || out.Count != 0 || out.LastEvaluatedKey != nil {
		tb.Errorf("want 0, got %v, %v", out, err)
	}
}

func testQueryFilter(tb *table) {
	for i := range 10 {
		it := record("p", fmt.Sprint(i), "v", []string{"even", "odd"}[i%2])
		it["n"] = num(fmt.Sprint(i))
		tb.put(it, record("q", fmt.Sprint(i), "v", "odd"))
	}
	in := tb.queryInput("pk = :p", ":p", "p", ":v", "odd", ":n", num("3"))
	in.FilterExpression = aws.String("v = :v AND n >= :n")
	assertEqual(tb, "filtered", texts(tb.query(in), sk), []string{"3", "5", "7", "9"})
	in.ScanIndexForward = aws.Bool(false)
	assertEqual(tb, "filtered backwards", texts(tb.query(in), sk), []string{"9", "7", "5", "3"})
}

// testQueryFilterPages tests that a limit counts the records read, not the records that match the
// filter.
func testQueryFilterPages(tb *table) {
	for i := range 10 {
		tb.put(record("p", fmt.Sprint(i), "v", []string{"even", "odd"}[i%2]), record("o", fmt.Sprint(i), "v", "odd"))
	}
	in := tb.queryInput("pk = :p", ":p", "p", ":v", "odd")
	in.FilterExpression = aws.String("v = :v")
	in.Limit = aws.Int32(4)
	out, err := tb.db.Query(tb.Context(), in)
	if err != nil {
		tb.Fatal(err)
	}
	assertEqual(tb, "the first page", texts(out.Items, sk), []string{"1", "3"})
	if text(out.LastEvaluatedKey, sk) != "3" || out.ScannedCount != 4 || out.Count != 2 {
		tb.Errorf("the first page: last key %v, scanned %d, count %d", out.LastEvaluatedKey, out.ScannedCount, out.Count)
	}
	assertEqual(tb, "all pages", texts(tb.query(in), sk), []string{"1", "3", "5", "7", "9"})
}

func testQueryProjection(tb *table) {
	tb.put(record("p", "1", "v", "x", "w", "y"))
	in := tb.queryInput("#p = :p", ":p", "p")
	in.ProjectionExpression = aws.String("v, #p")
	in.ExpressionAttributeNames = map[string]string{"#p": pk}
	got := tb.query(in)
	if len(got) != 1 || len(got[0]) != 2 || text(got[0], "v") != "x" || text(got[0], pk) != "p" {
		tb.Errorf("got %v", got)
	}
}

func testQueryOnePartition(tb *table) {
	for _, p := range []string{"a", "a.", "a.b", "a#", "ab", "A", "b"} {
		tb.put(record(p, "1", "v", p))
	}
	for _, p := range []string{"a", "a.", "a.b", "a#", "ab", "A", "b"} {
		assertEqual(tb, p, texts(tb.query(tb.queryInput("pk = :p", ":p", p)), "v"), []string{p})
	}
}

func testScanSegments(tb *table) {
	var want []string
	for i := range 40 {
		id := fmt.Sprintf("%02d", i)
		want = append(want, id)
		tb.put(record("p"+id, "s", "id", id))
	}
	for _, total := range []int32{1, 2, 3, 7} {
		var got []string
		for segment := range total {
			in := &dynamodb.ScanInput{TableName: &tb.name, Segment: aws.Int32(segment), TotalSegments: aws.Int32(total), Limit: aws.Int32(4)}
			for range 100 {
				out, err := tb.db.Scan(tb.Context(), in)
				if err != nil {
					tb.Fatal(err)
				}
				got = append(got, texts(out.Items, "id")...)
				if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
					break
				}
			}
		}
		assertSameElements(tb, fmt.Sprintf("%d segments", total), got, want)
	}
	for _, c := range [][2]*int32{{aws.Int32(2), aws.Int32(2)}, {aws.Int32(-1), aws.Int32(2)}, {aws.Int32(0), nil}, {nil, aws.Int32(2)}} {
		_, err := tb.db.Scan(tb.Context(), &dynamodb.ScanInput{TableName: &tb.name, Segment: c[0], TotalSegments: c[1]})
		assertCode(tb, fmt.Sprint("segment ", aws.ToInt32(c[0]), " of ", aws.ToInt32(c[1])), err, "ValidationException")
	}
}

func testScanPages(tb *table) {
	var want []string
	for i := range 6 {
		for j := range 3 {
			id := fmt.Sprint(i, ".", j)
			it := record(fmt.Sprint("p", i), fmt.Sprint("s", j), "id", id)
			if j == 0 {
				it[gsi1pk], it[gsi1sk] = str("g"), str(id)
			}
			tb.put(it)
			want = append(want, id)
		}
	}
	scan := func(in *dynamodb.ScanInput) (got []string) {
		for range 100 {
			out, err := tb.db.Scan(tb.Context(), in)
			if err != nil {
				tb.Fatal(err)
			}
			got = append(got, texts(out.Items, "id")...)
			if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
				return got
			}
		}
		tb.Fatal("Scan does not come to an end")
		return nil
	}
	for _, limit := range []int32{1, 4, 5, 100} {
		assertSameElements(tb, fmt.Sprint("pages of ", limit), scan(&dynamodb.ScanInput{TableName: &tb.name, Limit: &limit}), want)
	}
	assertSameElements(tb, "filtered", scan(&dynamodb.ScanInput{
		TableName: &tb.name, Limit: aws.Int32(5),
		FilterExpression: aws.String("begins_with(id, :v)"), ExpressionAttributeValues: valueMap(":v", "3."),
	}), []string{"3.0", "3.1", "3.2"})
	if got := scan(&dynamodb.ScanInput{TableName: &tb.name, IndexName: aws.String(gsi1), Limit: aws.Int32(4)}); len(got) != 6 {
		tb.Errorf("the index has six records, scanned %v", got)
	}
}
