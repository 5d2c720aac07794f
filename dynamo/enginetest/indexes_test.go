package enginetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func indexCases() []testCase {
	return []testCase{
		{"IndexIsSparse", testIndexSparse},
		{"IndexMovesOnPut", testIndexMovesOnPut},
		{"IndexMovesOnUpdate", testIndexMovesOnUpdate},
		{"IndexMovesOnTransaction", testIndexMovesOnTransaction},
		{"IndexGainsOnPut", testIndexGainsOnPut},
		{"IndexGainsOnUpdate", testIndexGains},
		{"IndexOfNewRecordByUpdate", testIndexNewByUpdate},
		{"IndexLeftByDeleteAndPut", testIndexLeftByDeleteAndPut},
		{"IndexLosesOnRemove", testIndexLosesOnRemove},
		{"IndexLosesOnPut", testIndexLosesOnPut},
		{"IndexLosesOnDelete", testIndexLosesOnDelete},
		{"IndexDeleteAfterLeaving", testIndexDeleteAfterLeaving},
		{"IndexOfEqualKeysLoses", testIndexEqualKeysLoses},
		{"IndexOfEqualKeys", testIndexEqualKeys},
		{"IndexChurn", func(tb *table) { testIndexChurn(tb, 5) }},
		{"IndexGainsOnTransaction", testIndexGainsOnTransaction},
		{"IndexLosesOnTransaction", testIndexLosesOnTransaction},
		{"IndexChurnByTransactions", testIndexChurnByTransactions},
		{"IndexChurnOfIndexedRecords", testIndexChurnIndexed},
		{"IndexLastEvaluatedKey", testIndexLastKey},
	}
}

// indexed returns a record with index keys.
func indexed(s, p, g string) item { return record("p", s, gsi1pk, p, gsi1sk, g) }

func testIndexSparse(tb *table) {
	tb.put(indexed("1", "g", "a"), record("p", "2"), record("p", "3", gsi1pk, "g"), record("p", "4", gsi1sk, "d"), indexed("5", "g", "e"))
	assertEqual(tb, "records with both keys", tb.index("g"), []string{"1", "5"})
}

func testIndexMovesOnPut(tb *table) {
	tb.put(indexed("1", "g", "a"), indexed("2", "g", "b"), indexed("3", "h", "c"))
	tb.put(indexed("1", "h", "z"), indexed("2", "g", "c"))
	assertEqual(tb, "g", tb.index("g"), []string{"2"})
	assertEqual(tb, "h", tb.index("h"), []string{"3", "1"})
}

func testIndexMovesOnUpdate(tb *table) {
	tb.put(indexed("1", "g", "a"), indexed("2", "g", "b"), indexed("3", "h", "c"))
	tb.update("p", "1", "SET gsi1pk = :p, gsi1sk = :s", ":p", "h", ":s", "z")
	tb.update("p", "2", "SET gsi1sk = :s", ":s", "0")
	tb.update("p", "3", "SET v = :s", ":s", "0")
	assertEqual(tb, "g", tb.index("g"), []string{"2"})
	assertEqual(tb, "h", tb.index("h"), []string{"3", "1"})
}

func testIndexMovesOnTransaction(tb *table) {
	tb.put(indexed("1", "g", "a"), indexed("2", "g", "b"), indexed("3", "g", "c"), indexed("4", "g", "d"))
	actions := []types.TransactWriteItem{
		{Update: &types.Update{
			TableName: &tb.name, Key: key("p", "1"),
			UpdateExpression: aws.String("SET gsi1pk = :p"), ExpressionAttributeValues: valueMap(":p", "h"),
		}},
		{Put: &types.Put{TableName: &tb.name, Item: indexed("2", "h", "0")}},
		{Delete: &types.Delete{TableName: &tb.name, Key: key("p", "3")}},
	}
	failing := append(slices.Clone(actions[:3]), types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &tb.name, Key: key("p", "4"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}})
	if _, err := tb.db.TransactWriteItems(tb.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: failing}); err == nil {
		tb.Fatal("the transaction should have been refused")
	}
	assertEqual(tb, "g after the refused one", tb.index("g"), []string{"1", "2", "3", "4"})
	assertEqual(tb, "h after the refused one", tb.index("h"), []string{})
	if _, err := tb.db.TransactWriteItems(tb.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: actions}); err != nil {
		tb.Fatal(err)
	}
	assertEqual(tb, "g", tb.index("g"), []string{"4"})
	assertEqual(tb, "h", tb.index("h"), []string{"2", "1"})
}

func testIndexGains(tb *table) {
	tb.put(indexed("1", "g", "b"), indexed("2", "g", "d"), record("p", "3"))
	tb.update("p", "3", "SET gsi1pk = :p, gsi1sk = :s", ":p", "g", ":s", "c")
	assertEqual(tb, "g", tb.index("g"), []string{"1", "3", "2"})
}

func testIndexNewByUpdate(tb *table) {
	tb.put(indexed("1", "g", "b"), indexed("2", "g", "d"))
	tb.update("p", "3", "SET gsi1pk = :p, gsi1sk = :s", ":p", "g", ":s", "c")
	assertEqual(tb, "g", tb.index("g"), []string{"1", "3", "2"})
}

func testIndexGainsOnPut(tb *table) {
	tb.put(indexed("1", "g", "b"), indexed("2", "g", "d"), record("p", "3"), record("p", "4"))
	tb.put(indexed("3", "g", "c"), indexed("4", "g", "a"))
	assertEqual(tb, "g", tb.index("g"), []string{"4", "1", "3", "2"})
}

// testIndexLeftByDeleteAndPut tests the only way to remove a record from the index that works on
// all engines.
func testIndexLeftByDeleteAndPut(tb *table) {
	tb.put(indexed("1", "g", "a"), indexed("2", "g", "b"), indexed("3", "g", "c"), indexed("4", "h", "a"))
	del := func(s string) {
		if _, err := tb.db.DeleteItem(tb.Context(), &dynamodb.DeleteItemInput{TableName: &tb.name, Key: key("p", s)}); err != nil {
			tb.Fatal(err)
		}
	}
	del("2")
	tb.put(record("p", "2", "v", "x"))
	assertEqual(tb, "g without 2", tb.index("g"), []string{"1", "3"})
	del("2")
	tb.put(indexed("2", "g", "0"))
	assertEqual(tb, "g with 2 back", tb.index("g"), []string{"2", "1", "3"})
	del("1")
	assertEqual(tb, "g without 1", tb.index("g"), []string{"2", "3"})
	assertEqual(tb, "h", tb.index("h"), []string{"4"})
}

func testIndexLosesOnRemove(tb *table) {
	tb.put(indexed("1", "g", "a"), indexed("2", "g", "b"), indexed("3", "g", "c"), indexed("4", "g", "d"))
	tb.update("p", "1", "REMOVE gsi1pk, gsi1sk")
	tb.update("p", "3", "REMOVE gsi1sk")
	assertEqual(tb, "g", tb.index("g"), []string{"2", "4"})
	if got := tb.get("p", "1"); len(got) != 2 {
		tb.Errorf("the record itself: %v", got)
	}
	tb.update("p", "3", "SET gsi1sk = :s", ":s", "z")
	assertEqual(tb, "g with one back", tb.index("g"), []string{"2", "4", "3"})
}

func testIndexLosesOnPut(tb *table) {
	tb.put(indexed("1", "g", "a"), indexed("2", "g", "b"), indexed("3", "g", "c"))
	tb.put(record("p", "2", "v", "x"))
	assertEqual(tb, "g", tb.index("g"), []string{"1", "3"})
	tb.put(indexed("2", "g", "0"))
	assertEqual(tb, "g with it back", tb.index("g"), []string{"2", "1", "3"})
}

func testIndexLosesOnDelete(tb *table) {
	tb.put(indexed("1", "g", "a"), indexed("2", "g", "b"), indexed("3", "g", "c"))
	for _, s := range []string{"1", "2"} {
		if _, err := tb.db.DeleteItem(tb.Context(), &dynamodb.DeleteItemInput{TableName: &tb.name, Key: key("p", s)}); err != nil {
			tb.Fatal(err)
		}
	}
	assertEqual(tb, "g", tb.index("g"), []string{"3"})
}

// testIndexDeleteAfterLeaving deletes a record that a put has removed from the index before.
func testIndexDeleteAfterLeaving(tb *table) {
	tb.put(indexed("1", "g", "a"), indexed("2", "g", "b"), indexed("3", "g", "c"))
	tb.put(record("p", "1"))
	if _, err := tb.db.DeleteItem(tb.Context(), &dynamodb.DeleteItemInput{TableName: &tb.name, Key: key("p", "1")}); err != nil {
		tb.Fatal(err)
	}
	assertEqual(tb, "g", tb.index("g"), []string{"2", "3"})
}

func testIndexEqualKeys(tb *table) {
	var want []string
	for i := range 9 {
		want = append(want, fmt.Sprint(i))
		tb.put(indexed(fmt.Sprint(i), "g", "same"))
	}
	assertSameElements(tb, "all of them", tb.index("g"), want)
	for limit := int32(1); limit < 5; limit++ {
		for _, forward := range []bool{true, false} {
			in := tb.queryInput("gsi1pk = :p AND gsi1sk = :s", ":p", "g", ":s", "same")
			in.IndexName, in.Limit, in.ScanIndexForward = aws.String(gsi1), &limit, &forward
			assertSameElements(tb, fmt.Sprint("in pages of ", limit), texts(tb.query(in), sk), want)
		}
	}
	tb.put(indexed("7", "h", "same"))
	assertSameElements(tb, "without one", tb.index("g"), []string{"0", "1", "2", "3", "4", "5", "6", "8"})
	assertEqual(tb, "the one that moved", tb.index("h"), []string{"7"})
}

func testIndexEqualKeysLoses(tb *table) {
	tb.put(indexed("1", "g", "same"), indexed("2", "g", "same"), indexed("3", "g", "same"))
	tb.update("p", "2", "REMOVE gsi1pk")
	assertSameElements(tb, "without one", tb.index("g"), []string{"1", "3"})
}

// testIndexChurnIndexed changes records that stay in the index, by operations that work on all
// engines.
func testIndexChurnIndexed(tb *table) { testIndexChurn(tb, 3) }

// testIndexChurn changes records by the first ways operations and compares the index with the
// expected content.
func testIndexChurn(tb *table, ways int) {
	where := map[string]string{} // maps a sort key to its index partition
	state := uint32(1)
	next := func(n int) int { // the same pseudo-random numbers in every run
		state = state*1664525 + 1013904223
		return int(state>>16) % n
	}
	for step := range 250 {
		s := fmt.Sprint(next(12))
		g := fmt.Sprint("g", next(3))
		switch next(ways) {
		case 3:
			tb.put(record("p", s))
			delete(where, s)
		case 4:
			tb.update("p", s, "REMOVE gsi1pk, gsi1sk")
			delete(where, s)
		case 0:
			if _, err := tb.db.DeleteItem(tb.Context(), &dynamodb.DeleteItemInput{TableName: &tb.name, Key: key("p", s)}); err != nil {
				tb.Fatal(err)
			}
			delete(where, s)
		case 1:
			tb.put(indexed(s, g, s))
			where[s] = g
		case 2:
			if _, there := where[s]; !there && ways == 3 {
				continue // this update would add the record to the index
			}
			tb.update("p", s, "SET gsi1pk = :p, gsi1sk = :s", ":p", g, ":s", s)
			where[s] = g
		}
		if step%10 != 9 {
			continue
		}
		for i := range 3 {
			g := fmt.Sprint("g", i)
			var want []string
			for s, at := range where {
				if at == g {
					want = append(want, s)
				}
			}
			assertSameElements(tb, fmt.Sprintf("%s after %d steps", g, step+1), tb.index(g), want)
		}
		if tb.Failed() {
			return // a wrong entry would be reported repeatedly
		}
	}
}

// updateAction returns an update in a transaction. values contains pairs of placeholder and value.
func updateAction(tb *table, s, expr string, values ...any) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &tb.name, Key: key("p", s), UpdateExpression: &expr, ExpressionAttributeValues: valueMap(values...),
	}}
}

func deleteAction(tb *table, s string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: &tb.name, Key: key("p", s)}}
}

// failingAction returns an action whose condition fails.
func failingAction(tb *table) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &tb.name, Key: key("p", "nobody"), ConditionExpression: aws.String("attribute_exists(pk)"),
	}}
}

func testIndexGainsOnTransaction(tb *table) {
	tb.put(indexed("1", "g", "b"), indexed("2", "g", "d"), record("p", "3"), record("p", "5", gsi1pk, "g"))
	actions := []types.TransactWriteItem{
		updateAction(tb, "3", "SET gsi1pk = :p, gsi1sk = :s", ":p", "g", ":s", "c"),
		updateAction(tb, "4", "SET gsi1pk = :p, gsi1sk = :s", ":p", "g", ":s", "a"),
		updateAction(tb, "5", "SET gsi1sk = :s", ":s", "e"),
		putAction(tb, indexed("6", "g", "f"), "attribute_not_exists(pk)"),
	}
	if err := tb.transact(append(slices.Clone(actions), failingAction(tb))...); err == nil {
		tb.Fatal("the transaction should have been refused")
	}
	assertEqual(tb, "g after the refused one", tb.index("g"), []string{"1", "2"})
	if err := tb.transact(actions...); err != nil {
		tb.Fatal(err)
	}
	assertEqual(tb, "g", tb.index("g"), []string{"4", "1", "3", "2", "5", "6"})
	if err := tb.transact(deleteAction(tb, "3"), deleteAction(tb, "4")); err != nil {
		tb.Fatal(err)
	}
	assertEqual(tb, "g without two", tb.index("g"), []string{"1", "2", "5", "6"})
}

func testIndexLosesOnTransaction(tb *table) {
	tb.put(indexed("1", "g", "a"), indexed("2", "g", "b"), indexed("3", "g", "same"), indexed("4", "g", "same"), indexed("5", "g", "z"))
	actions := []types.TransactWriteItem{
		updateAction(tb, "1", "REMOVE gsi1pk, gsi1sk"),
		updateAction(tb, "3", "REMOVE gsi1sk"),
		putAction(tb, record("p", "5", "v", "x"), "attribute_exists(pk)"),
	}
	if err := tb.transact(append(slices.Clone(actions), failingAction(tb))...); err == nil {
		tb.Fatal("the transaction should have been refused")
	}
	assertEqual(tb, "g before", tb.index("g")[:2], []string{"1", "2"})
	assertSameElements(tb, "g after the refused one", tb.index("g"), []string{"1", "2", "3", "4", "5"})
	if err := tb.transact(actions...); err != nil {
		tb.Fatal(err)
	}
	assertEqual(tb, "g", tb.index("g"), []string{"2", "4"})
	if got := tb.get("p", "1"); len(got) != 2 {
		tb.Errorf("the record itself: %v", got)
	}
	if err := tb.transact(deleteAction(tb, "1"), deleteAction(tb, "3"), deleteAction(tb, "5")); err != nil {
		tb.Fatal(err)
	}
	assertEqual(tb, "g after deletes of those that left", tb.index("g"), []string{"2", "4"})
	if err := tb.transact(updateAction(tb, "1", "SET gsi1pk = :p, gsi1sk = :s", ":p", "g", ":s", "c"), deleteAction(tb, "2")); err != nil {
		tb.Fatal(err)
	}
	assertEqual(tb, "g with one back", tb.index("g"), []string{"1", "4"})
}

// testIndexChurnByTransactions is testIndexChurn with transactions of three actions. Every third
// transaction is rejected.
func testIndexChurnByTransactions(tb *table) {
	where := map[string]string{} // maps a sort key to its index partition
	state := uint32(1)
	next := func(n int) int { // the same pseudo-random numbers in every run
		state = state*1664525 + 1013904223
		return int(state>>16) % n
	}
	for step := range 120 {
		var actions []types.TransactWriteItem
		then := maps.Clone(where)
		first := next(12)
		for i := range 3 {
			s := fmt.Sprint((first + i) % 12)
			g := fmt.Sprint("g", next(3))
			switch next(5) {
			case 0:
				actions = append(actions, deleteAction(tb, s))
				delete(then, s)
			case 1:
				actions = append(actions, putAction(tb, indexed(s, g, s), ""))
				then[s] = g
			case 2:
				actions = append(actions, updateAction(tb, s, "SET gsi1pk = :p, gsi1sk = :s", ":p", g, ":s", s))
				then[s] = g
			case 3:
				actions = append(actions, putAction(tb, record("p", s), ""))
				delete(then, s)
			case 4:
				actions = append(actions, updateAction(tb, s, "REMOVE gsi1pk, gsi1sk"))
				delete(then, s)
			}
		}
		refuse := step%3 == 2
		if refuse {
			actions = append(actions, failingAction(tb))
		} else {
			where = then
		}
		if err := tb.transact(actions...); (err != nil) != refuse {
			tb.Fatal(err)
		}
		for i := range 3 {
			g := fmt.Sprint("g", i)
			var want []string
			for s, at := range where {
				if at == g {
					want = append(want, s)
				}
			}
			assertSameElements(tb, fmt.Sprintf("%s after %d steps", g, step+1), tb.index(g), want)
		}
		if tb.Failed() {
			return // a wrong entry would be reported repeatedly
		}
	}
}

func testIndexLastKey(tb *table) {
	tb.put(indexed("1", "g", "a"), indexed("2", "g", "b"))
	in := tb.queryInput("gsi1pk = :p", ":p", "g")
	in.IndexName, in.Limit = aws.String(gsi1), aws.Int32(1)
	out, err := tb.db.Query(tb.Context(), in)
	if err != nil {
		tb.Fatal(err)
	}
	last := out.LastEvaluatedKey
	if len(last) != 4 || text(last, pk) != "p" || text(last, sk) != "1" || text(last, gsi1pk) != "g" || text(last, gsi1sk) != "a" {
		tb.Errorf("want the keys of both table and index, got %v", last)
	}
	if len(out.Items) != 1 || len(out.Items[0]) != 4 {
		tb.Errorf("got %v", out.Items)
	}
}
