package cli_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// interruptWhileServersFollow interrupts a command while it waits for servers to follow a new state. Then it
// moves the time of that state into the past, so that the next command does not wait.
func interruptWhileServersFollow(t *testing.T, db *dynamodb.Client, table, line, state string, variables []string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	c := start(ctx, line, variables...)
	for !strings.Contains(c.stdout.String(), state) && ctx.Err() == nil {
		select {
		case <-c.done:
			t.Fatalf("%s ended: %s%s", line, c.stdout.String(), c.stderr.String())
		case <-time.After(time.Millisecond):
		}
	}
	stop()
	<-c.done
	if stderr := c.stderr.String(); c.status != 1 || stderr != "ordergraph: table "+strings.Fields(line)[1]+": interrupted; run it again, and it continues\n" {
		t.Errorf("%s: status %d, %s", line, c.status, stderr)
	}
	key := storetest.ItemKey("LAYOUT", "#METADATA")
	out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range out.Item["derivations"].(*types.AttributeValueMemberL).Value {
		text := v.(*types.AttributeValueMemberS)
		text.Value = regexp.MustCompile(` \d{4}-`).ReplaceAllString(text.Value, " 2020-")
	}
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: out.Item}); err != nil {
		t.Fatal(err)
	}
}

// An operator removes a list from a table, and adds it again, while a server runs. Both commands continue
// after an interruption.
func TestDropAndApplyList(t *testing.T) {
	db, table, variables := newSeededTable(t)
	before := tableRecords(t, db, table)
	run(t, "table describe", variables...).checkSucceeded(t, "derived  all lists and numbers are readable\n")
	toDrop := run(t, "table plan customerName", variables...)
	toDrop.checkSucceeded(t, "list     customerName: readable\nnothing to add: servers write and read it; `ordergraph table drop customerName` would do this:\nrecords  7 to remove\n")
	run(t, "table apply customerName", variables...).checkSucceeded(t, "customerName is readable")
	ctx, stop := context.WithCancel(t.Context())
	server := start(ctx, "-addr 127.0.0.1:0", append(variables, "ORDERGRAPH_ADMIN_ADDR=0")...)
	url := "http://" + (<-server.listening).String()
	metrics := metricsURL(t, server)
	// expect waits until the server has read the new state, and checks what a client and the metrics get.
	expect := func(state, answer, readable, progress string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !strings.HasSuffix(server.stderr.String(), state) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			get(t, url+"/readyz") // a readiness check reads the layout
		}
		if got := postQuery(t, url, `{ customers(namePrefix: "Al") { nodes { name } } }`); !strings.Contains(got, answer) {
			t.Errorf("the server answers %s, want %s", got, answer)
		}
		_, text := get(t, metrics+"/metrics")
		for name, value := range map[string]string{"readable": readable, "progress": progress} {
			if sample := "\nordergraph_derivation_" + name + `{derivation="customerName"} ` + value + "\n"; !strings.Contains(text, sample) {
				t.Errorf("the metrics lack %q", sample)
			}
		}
	}
	expect("", "Alice Chen", "1", "1")

	interruptWhileServersFollow(t, db, table, "table drop customerName", "customerName is dropped", variables)
	expect(`"before":"readable","state":"dropped"}`+"\n", "This list or number is not ready: the table does not have customerName: an operator can add it with `ordergraph table apply customerName`.", "0", "0")
	run(t, "table apply customerName", variables...)
	run(t, "table plan customerName", variables...).checkSucceeded(t, "customerName: dropped\nnothing to add: ")
	dropped := run(t, "table drop customerName", variables...)
	dropped.checkSucceeded(t, "clients get UNAVAILABLE for: customers by name prefix.\n", "customerName is absent: ", "records  7 written\n")
	var planned, consumed struct{ read, write float64 }
	for text, units := range map[string]*struct{ read, write float64 }{findUnits(toDrop): &planned, findUnits(dropped): &consumed} {
		if _, err := fmt.Sscanf(text, "units    %g read, %g write", &units.read, &units.write); err != nil {
			t.Fatal(text, err)
		}
	}
	if planned.write != consumed.write || math.Abs(planned.read-consumed.read) > 0.5 { // DynamoDB rounds each page of a scan
		t.Errorf("the plan of the removal was %v, but it has cost %v", planned, consumed)
	}
	run(t, "table drop customerName", variables...).checkSucceeded(t, "customerName is absent")
	if n := len(tableRecords(t, db, table)); n != len(before)-7 {
		t.Errorf("without the list, the table has %d records instead of %d", n, len(before)-7)
	}
	run(t, "table describe", variables...).checkSucceeded(t, "derived  customerName is absent: servers neither write nor read it\n", "fits     yes")
	run(t, "check", variables...).checkSucceeded(t, "clean\n")

	plan := run(t, "table plan customerName -units-per-second 100", variables...)
	plan.checkSucceeded(t, "list     customerName: absent\nrecords  7 to write\nunits    ", "price    $0.0000 (us-east-1, on demand)\ntime     2 minutes at 100 units per second\n")
	interruptWhileServersFollow(t, db, table, "table apply customerName", "customerName is written, 0 % backfilled", variables)
	expect(`"state":"written"}`+"\n", "the table is being given customerName: 0 % of the records have it; try again later.", "0", "0")
	applied := run(t, "table apply customerName -units-per-second 10000 -parallel 2", variables...)
	applied.checkSucceeded(t, "customerName is written, 0 % backfilled: ", "customerName is backfilled: ", "customerName is readable: ", "records  7 written\n")
	expect(`"before":"written","state":"readable"}`+"\n", "Alice Chen", "1", "1")
	stop()
	if <-server.done; server.status != 0 || strings.Contains(server.stderr.String(), `"level":"ERROR"`) {
		t.Errorf("the server ended with status %d: %s", server.status, server.stderr.String())
	}
	if planned, consumed := findUnits(plan), findUnits(applied); planned != consumed {
		t.Errorf("the plan was %s, but it has cost %s", planned, consumed)
	}
	if after := tableRecords(t, db, table); !reflect.DeepEqual(after, before) {
		t.Errorf("afterwards, the table has %d records instead of %d, or others", len(after), len(before))
	}
	run(t, "table plan", variables...).checkSucceeded(t, "customerName ", "  list ", "  readable ", "order.adjustments ", "  feature ")
	run(t, "table plan order.adjustments", variables...).checkSucceeded(t, "feature  order.adjustments: readable\nnothing to add: servers write and read it\n")
	run(t, "table drop order.adjustments", variables...).checkFailed(t, 1, "order.adjustments cannot be dropped, because earlier versions of Ordergraph would damage records with the attribute adjustments")
}

// findUnits returns the units that a command prints.
func findUnits(c *command) string {
	return regexp.MustCompile(`units    .*`).FindString(c.stdout.String())
}

func TestDerivationArguments(t *testing.T) {
	_, _, variables := newTestTable(t)
	run(t, "table plan customerName", variables...).checkFailed(t, 1, "ordergraph table create")
	for line, message := range map[string]string{
		"table plan customers": `table plan: "customers" is no derivation: choose one of customerRep, customerName, `, "table apply": "choose one of", "table drop": "choose one of",
		"table drop customerName customerRep": "unexpected argument", "table plan -units-per-second 0": "positive", "table apply customerName -parallel 0": "positive",
	} {
		run(t, line, variables...).checkFailed(t, 2, message)
	}
}

// A table that other software has created gets all lists and numbers, if it has no records.
func TestCreateOnEmptyTable(t *testing.T) {
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	storetest.DeleteLayout(t, db, table)
	run(t, "table create", variables...).checkSucceeded(t, "already exists")
	has := func() bool {
		out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: storetest.ItemKey("LAYOUT", "#METADATA")})
		if err != nil {
			t.Fatal(err)
		}
		return out.Item != nil
	}
	if !has() {
		t.Error("the empty table stores no layout")
	}
	run(t, "seed", variables...).checkSucceeded(t)
	storetest.DeleteLayout(t, db, table)
	run(t, "table create", variables...).checkSucceeded(t, "already exists")
	if has() {
		t.Error("a table with records got the layout of an empty table")
	}
}
