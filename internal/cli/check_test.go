package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/cli"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// lookupIn returns a lookup function for variables of the form NAME=value.
func lookupIn(variables []string) func(string) string {
	return func(name string) string {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// newSeededTable creates a table with the sample data.
func newSeededTable(t *testing.T) (db *dynamodb.Client, table string, variables []string) {
	t.Helper()
	db, table, variables = newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	run(t, "seed", variables...).checkSucceeded(t)
	return db, table, variables
}

func TestCheckCleanTable(t *testing.T) {
	_, table, variables := newSeededTable(t)
	dataset, n := storetest.SampleDataset(t)
	c := run(t, "check", variables...)
	c.checkSucceeded(t, fmt.Sprintf("Table %s: %d orders, %d customers", table, len(dataset.Orders), len(dataset.Customers)), fmt.Sprint(n, " records"), "read units", "\nclean\n")
	run(t, "check -repair", variables...).checkSucceeded(t, "\nclean\n")
}

// damageSample gives an order a wrong total, and adds a claim of an email address that no customer
// has.
func damageSample(t *testing.T, db *dynamodb.Client, table string) {
	t.Helper()
	ctx := context.Background()
	all := tableRecords(t, db, table)
	put := func(rec map[string]types.AttributeValue) {
		if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: rec}); err != nil {
			t.Fatal(err)
		}
	}
	order := all["ORDER#01HVMK3P2Q0000000000000001 #METADATA"]
	order["total"] = storetest.Num("1")
	put(order)
	put(map[string]types.AttributeValue{"pk": storetest.Str("EMAIL#nobody@example.com"), "sk": storetest.Str("#METADATA"), "customerId": storetest.Str("cust_01")})
}

func TestCheckFindsAndRepairs(t *testing.T) {
	db, table, variables := newSeededTable(t)
	healthy := len(tableRecords(t, db, table))
	damageSample(t, db, table)
	for range 2 {
		c := run(t, "check", variables...)
		if c.status != 1 || c.stderr.String() != "" {
			t.Errorf("exit %d, stderr %q, want 1 and nothing", c.status, c.stderr.String())
		}
		for _, part := range []string{
			"order-total  ORDER#01HVMK3P2Q0000000000000001 #METADATA: total is 1, should be ", "orphan-claim  EMAIL#nobody@example.com #METADATA: ",
			"inconsistencies: 2; repair them with `ordergraph check -repair`", "an order's total is not the sum of its items and adjustments",
		} {
			if !strings.Contains(c.stdout.String(), part) {
				t.Errorf("stdout does not contain %q:\n%s", part, c.stdout.String())
			}
		}
	}
	run(t, "check -repair", variables...).checkSucceeded(t, "(repaired)", "1 found, 1 repaired", "\nclean now\n")
	run(t, "check", variables...).checkSucceeded(t, "\nclean\n")
	if n := len(tableRecords(t, db, table)); n != healthy {
		t.Errorf("the repaired table has %d records, want %d", n, healthy)
	}
}

// An inconsistency without an automatic repair remains, and the output describes the repair by hand.
func TestCheckWithoutAutomaticRepair(t *testing.T) {
	db, table, variables := newSeededTable(t)
	rec := tableRecords(t, db, table)["WAREHOUSE#wh_pdx #METADATA"]
	delete(rec, "name")
	if _, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: rec}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"check", "check -repair"} {
		c := run(t, line, variables...)
		if out := c.stdout.String(); c.status != 1 || !strings.Contains(out, `unreadable  WAREHOUSE#wh_pdx #METADATA: attribute "name" is missing`) || !strings.Contains(out, "by hand") {
			t.Errorf("%s: exit %d:\n%s", line, c.status, out)
		}
	}
}

func TestCheckJSON(t *testing.T) {
	db, table, variables := newSeededTable(t)
	damageSample(t, db, table)
	type line struct {
		Kind, PK, SK, Detail string
		Repaired             bool
		Summary              *struct {
			Clean     bool
			Records   int
			Orders    int
			Found     map[string]int
			Repaired  map[string]int
			Left      int
			Requests  int
			ReadUnits float64
		}
	}
	for _, c := range []struct {
		line                           string
		status, inconsistencies, fixed int
	}{{"check -json", 1, 2, 0}, {"check --json --repair", 0, 2, 2}, {"check -json", 0, 0, 0}} {
		got := run(t, c.line, variables...)
		if got.status != c.status || got.stderr.String() != "" {
			t.Errorf("%s: exit %d, stderr %q, want %d", c.line, got.status, got.stderr.String(), c.status)
		}
		var lines []line
		for text := range strings.Lines(got.stdout.String()) {
			var l line
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatalf("%s: %v in %q", c.line, err, text)
			}
			lines = append(lines, l)
		}
		last := lines[len(lines)-1].Summary
		inconsistencies := lines[:len(lines)-1]
		if last == nil || len(inconsistencies) != c.inconsistencies || last.Clean != (c.status == 0) || last.Left != c.inconsistencies-c.fixed || last.Orders != 9 || last.Requests == 0 {
			t.Errorf("%s: %d inconsistencies, %+v", c.line, len(inconsistencies), last)
		}
		for _, d := range inconsistencies {
			if d.Kind == "" || d.PK == "" || d.SK == "" || d.Detail == "" || d.Repaired != (c.fixed > 0) {
				t.Errorf("%s: %+v", c.line, d)
			}
		}
	}
}

func TestCheckFailsToStart(t *testing.T) {
	_, _, variables := newTestTable(t)
	run(t, "check", variables...).checkFailed(t, 3, "does not exist")
	run(t, "check").checkFailed(t, 3, "check requires DynamoDB or a file", "ORDERGRAPH_STORE=dynamodb", "-data")
	run(t, "check", "ORDERGRAPH_STORE=mysql").checkFailed(t, 3, "ORDERGRAPH_STORE")
	run(t, "check -fast").checkFailed(t, 2, "-fast")
	run(t, "check all").checkFailed(t, 2, `"all"`)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // the port is now unused
	setEndpoint(t, "http://"+l.Addr().String())
	run(t, "check -json", useDynamoDB).checkFailed(t, 3, "cannot be reached")
}

func TestCheckWithAnotherNumberOfShards(t *testing.T) {
	db, table, variables := newSeededTable(t)
	run(t, "check", append(slices.Clone(variables), "ORDERGRAPH_SHARDS=4")...).checkSucceeded(t, "clean")
	storetest.DeleteLayout(t, db, table)
	run(t, "check", append(slices.Clone(variables), "ORDERGRAPH_SHARDS=4")...).checkFailed(t, 3, "shards")
}

// withProxy puts a proxy between the commands and DynamoDB. It calls before with each
// request. If before returns the name of an error, the proxy responds with that error.
func withProxy(t *testing.T, before func(operation string, body []byte) (refusal string)) {
	t.Helper()
	local, err := url.Parse(endpoint(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(local)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // canceled requests log errors
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the command has canceled the request
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		refusal := before(operation, body)
		mu.Unlock()
		if refusal == "" {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"no"}`, refusal)
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", server.URL)
}

// A check with unverified records does not report a clean table.
func TestCheckWithUnverifiedRecords(t *testing.T) {
	db, table, variables := newSeededTable(t)
	const order = "01HVMK3P2Q0000000000000001"
	version := 100
	withProxy(t, func(operation string, _ []byte) string {
		if operation != "BatchGetItem" {
			return ""
		}
		// The order's own record has been read, and its copy is read next.
		version++
		var actions []types.TransactWriteItem
		for _, k := range [][2]string{{"ORDER#" + order, "#METADATA"}, {"CUSTOMER#cust_01", "ORDER#" + order}} {
			actions = append(actions, types.TransactWriteItem{Update: &types.Update{
				TableName: &table, Key: storetest.ItemKey(k[0], k[1]),
				UpdateExpression: aws.String("SET version = :v, updatedAt = :t"),
				ExpressionAttributeValues: map[string]types.AttributeValue{
					":v": storetest.Num(strconv.Itoa(version)), ":t": storetest.Str(fmt.Sprintf("2026-03-01T00:00:00.%03dZ", version)),
				},
			}})
		}
		if _, err := db.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: actions}); err != nil {
			t.Error(err)
		}
		return ""
	})
	c := run(t, "check", variables...)
	for _, part := range []string{"unverified  ORDER#" + order + " #METADATA: the record changed between reads", "\nunverified records: 1,", "\nsome records are unverified: the table may be inconsistent\n"} {
		if out := c.stdout.String(); c.status != 3 || !strings.Contains(out, part) {
			t.Errorf("exit %d, want 3 and %q:\n%s", c.status, part, out)
		}
	}
	c = run(t, "check -json", variables...)
	first, last, _ := strings.Cut(c.stdout.String(), "\n")
	if c.status != 3 || !strings.HasPrefix(first, `{"unverified":{"pk":"ORDER#`+order+`","sk":"#METADATA","reason":"the record changed`) || !strings.Contains(last, `"clean":false,"complete":true`) || !strings.Contains(last, `"unsettled":1`) {
		t.Errorf("exit %d:\n%s", c.status, c.stdout.String())
	}
}

// An interrupted check prints its findings and repairs so far.
func TestInterruptedCheck(t *testing.T) {
	_, n := storetest.SampleDataset(t)
	db, table, variables := newSeededTable(t)
	for _, line := range []string{"check -repair", "check -repair -json"} {
		damageSample(t, db, table)
		ctx, stop := context.WithCancel(t.Context())
		transactions := 0
		withProxy(t, func(operation string, _ []byte) string {
			if operation == "TransactWriteItems" {
				if transactions++; transactions >= 2 {
					stop()
					return "ThrottlingException" // otherwise, the transaction could be executed during the next check
				}
			}
			return ""
		})
		c := start(ctx, line, variables...)
		<-c.done
		stop()
		if c.status != 3 || !strings.Contains(c.stderr.String(), "interrupted before the end") {
			t.Errorf("%s: exit %d, stderr %q", line, c.status, c.stderr.String())
		}
		want := []string{"(repaired)", "incomplete check; inconsistencies found so far: 1, repaired: 1\n", fmt.Sprint(n+1, " records")}
		if strings.Contains(line, "json") {
			want = []string{`"repaired":true`, fmt.Sprint(`{"summary":{"clean":false,"complete":false,"records":`, n+1), `"repaired":{"order-total":1}`}
		}
		for _, part := range want {
			if out := c.stdout.String(); !strings.Contains(out, part) {
				t.Errorf("%s: want %q:\n%s", line, part, out)
			}
		}
	}
}

func TestFailedCheck(t *testing.T) {
	db, table, variables := newSeededTable(t)
	damageSample(t, db, table)
	withProxy(t, func(operation string, _ []byte) string {
		if operation == "TransactWriteItems" {
			return "AccessDeniedException"
		}
		return ""
	})
	c := run(t, "check -repair", variables...)
	if c.status != 3 || !strings.Contains(c.stdout.String(), "incomplete check; inconsistencies found so far: 0, repaired: 0") || !strings.Contains(c.stderr.String(), "denies access") {
		t.Errorf("exit %d, stderr %q:\n%s", c.status, c.stderr.String(), c.stdout.String())
	}
}

// failingWriter is a writer that always fails.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestCheckWithFailingOutput(t *testing.T) {
	_, _, variables := newSeededTable(t)
	for _, args := range [][]string{{"check"}, {"check", "-json"}} {
		var stderr output
		if status := cli.Run(t.Context(), args, cli.Environment{Stdout: failingWriter{}, Stderr: &stderr, Getenv: lookupIn(variables)}); status != 3 || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%q: exit %d, stderr %q", args, status, stderr.String())
		}
	}
}

// The output suggests `check -repair` only if the command can repair an inconsistency.
func TestCheckByHand(t *testing.T) {
	db, table, variables := newSeededTable(t)
	ctx := context.Background()
	remove := func(pk, attribute string) {
		if _, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &table, Key: storetest.ItemKey(pk, "#METADATA"),
			UpdateExpression: aws.String("REMOVE #a"), ExpressionAttributeNames: map[string]string{"#a": attribute},
		}); err != nil {
			t.Fatal(err)
		}
	}
	checkOutput := func(line string, status int, parts ...string) {
		t.Helper()
		c := run(t, line, variables...)
		for _, part := range parts {
			if out := c.stdout.String(); c.status != status || !strings.Contains(out, part) {
				t.Errorf("%s: exit %d, want %d and %q:\n%s", line, c.status, status, part, out)
			}
		}
	}
	remove("WAREHOUSE#wh_pdx", "name")
	checkOutput("check", 1, "\ninconsistencies: 1; all must be repaired by hand, as described above\n")
	damageSample(t, db, table)
	checkOutput("check", 1, "\ninconsistencies: 3; `ordergraph check -repair` repairs 2, and 1 must be repaired by hand\n")
	checkOutput("check -json", 1, `"repaired":false,"byHand":true}`, `"left":3,"leftByHand":1,`)
	run(t, "check -restore", variables...).checkFailed(t, 2, "-restore requires -repair")
	checkOutput("check -repair", 1, "\ninconsistencies left: 1; all must be repaired by hand, as described above\n")
	if _, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &table, Key: storetest.ItemKey("WAREHOUSE#wh_sea", "#METADATA")}); err != nil {
		t.Fatal(err)
	}
	checkOutput("check -repair", 1, "warehouse-missing  WAREHOUSE#wh_sea #METADATA: inventory levels or employees refer to the warehouse (a stand-in was written)")

	// The import restores the warehouse's name from the edited export.
	file := filepath.Join(t.TempDir(), "all.jsonl")
	run(t, "export "+file, variables...).checkSucceeded(t)
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		if strings.Contains(line, `"pk":{"S":"WAREHOUSE#wh_sea"}`) {
			named := strings.Replace(line, `"name":{"S":"wh_sea"}`, `"name":{"S":"Seattle"}`, 1)
			if err := os.WriteFile(file, []byte(named), 0o600); err != nil || named == line {
				t.Fatalf("%v, %s", err, line)
			}
		}
	}
	run(t, "import -overwrite "+file, variables...).checkSucceeded(t)
	if name := tableRecords(t, db, table)["WAREHOUSE#wh_sea #METADATA"]["name"]; name.(*types.AttributeValueMemberS).Value != "Seattle" {
		t.Errorf("the warehouse has the name %v, want Seattle", name)
	}
}

// fakeTerminal is an output that looks like a terminal.
type fakeTerminal struct{ output }

func (*fakeTerminal) Stat() (fs.FileInfo, error) { return os.Stat("/dev/null") }

func TestCheckShowsProgressOnATerminalOnly(t *testing.T) {
	db, table, variables := newSeededTable(t)
	damageSample(t, db, table)
	var stdout output
	var stderr fakeTerminal
	status := cli.Run(context.Background(), []string{"check"}, cli.Environment{Stdout: &stdout, Stderr: &stderr, Getenv: lookupIn(variables)})
	if shown := stderr.String(); status != 1 || !strings.Contains(shown, "records read") || !strings.HasSuffix(shown, "\r\x1b[K") {
		t.Errorf("exit %d, stderr %q", status, shown)
	}
	if strings.Contains(stdout.String(), "\x1b") {
		t.Errorf("progress is written to stdout: %q", stdout.String())
	}
}
