package cli_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/cli"
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// seeded is a table with the sample book.
func seeded(t *testing.T) (db *dynamodb.Client, table string, variables []string) {
	t.Helper()
	db, table, variables = local(t)
	run(t, "table create", variables...).checkDone(t)
	run(t, "seed", variables...).checkDone(t)
	return db, table, variables
}

func TestCheckOfACleanTable(t *testing.T) {
	_, table, variables := seeded(t)
	c := run(t, "check", variables...)
	c.checkDone(t, "Table "+table+": 9 orders, 7 customers", "101 records", "read units", "\nclean\n")
	run(t, "check -repair", variables...).checkDone(t, "\nclean\n")
}

// damageSample loses the claim of an address, gives an order a total that is none, and two customers one address.
func damageSample(t *testing.T, db *dynamodb.Client, table string) {
	t.Helper()
	ctx := context.Background()
	all := contents(t, db, table)
	put := func(rec map[string]types.AttributeValue) {
		if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: rec}); err != nil {
			t.Fatal(err)
		}
	}
	order := all["ORDER#01HVMK3P2Q0000000000000001 #METADATA"]
	order["total"] = &types.AttributeValueMemberN{Value: "1"}
	put(order)
	put(map[string]types.AttributeValue{"pk": text("EMAIL#nobody@example.com"), "sk": text("#METADATA"), "customerId": text("cust_01")})
}

func TestCheckFindsAndRepairs(t *testing.T) {
	db, table, variables := seeded(t)
	healthy := len(contents(t, db, table))
	damageSample(t, db, table)
	for range 2 {
		c := run(t, "check", variables...)
		if c.status != 1 || c.stderr.String() != "" {
			t.Errorf("exit %d, stderr %q, want 1 and nothing", c.status, c.stderr.String())
		}
		for _, part := range []string{
			"order-total  ORDER#01HVMK3P2Q0000000000000001 #METADATA: total is 1, should be ", "orphan-claim  EMAIL#nobody@example.com #METADATA: ",
			"drifts: 2; repair them with `ordergraph check -repair`", "a total that is not the sum",
		} {
			if !strings.Contains(c.stdout.String(), part) {
				t.Errorf("stdout does not say %q:\n%s", part, c.stdout.String())
			}
		}
	}
	run(t, "check -repair", variables...).checkDone(t, "(repaired)", "1 found, 1 repaired", "\nclean now\n")
	run(t, "check", variables...).checkDone(t, "\nclean\n")
	if n := len(contents(t, db, table)); n != healthy {
		t.Errorf("the repaired table has %d records, want %d", n, healthy)
	}
}

// What no repair is made for is left, and says what to do.
func TestCheckThatLeavesSomething(t *testing.T) {
	db, table, variables := seeded(t)
	rec := contents(t, db, table)["CUSTOMER#cust_01 #METADATA"]
	delete(rec, "name")
	if _, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: rec}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"check", "check -repair"} {
		c := run(t, line, variables...)
		if out := c.stdout.String(); c.status != 1 || !strings.Contains(out, `unreadable  CUSTOMER#cust_01 #METADATA: attribute "name" is missing`) || !strings.Contains(out, "by hand") {
			t.Errorf("%s: exit %d:\n%s", line, c.status, out)
		}
	}
}

func TestCheckAsJSON(t *testing.T) {
	db, table, variables := seeded(t)
	damageSample(t, db, table)
	type line struct {
		Class, PK, SK, Detail string
		Repaired              bool
		Summary               *struct {
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
		line                  string
		status, drifts, fixed int
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
		drifts := lines[:len(lines)-1]
		if last == nil || len(drifts) != c.drifts || last.Clean != (c.status == 0) || last.Left != c.drifts-c.fixed || last.Orders != 9 || last.Requests == 0 {
			t.Errorf("%s: %d drifts, %+v", c.line, len(drifts), last)
		}
		for _, d := range drifts {
			if d.Class == "" || d.PK == "" || d.SK == "" || d.Detail == "" || d.Repaired != (c.fixed > 0) {
				t.Errorf("%s: %+v", c.line, d)
			}
		}
	}
}

func TestCheckThatCannotBeMade(t *testing.T) {
	_, _, variables := local(t)
	run(t, "check", variables...).checkFailed(t, 3, "does not exist")
	run(t, "check").checkFailed(t, 3, "check works on DynamoDB", "ORDERGRAPH_STORE=dynamodb")
	run(t, "check", "ORDERGRAPH_STORE=mysql").checkFailed(t, 3, "ORDERGRAPH_STORE")
	run(t, "check -fast").checkFailed(t, 2, "-fast")
	run(t, "check all").checkFailed(t, 2, `"all"`)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens there now
	atEndpoint(t, "http://"+l.Addr().String())
	run(t, "check -json", useDynamoDB).checkFailed(t, 3, "cannot be reached")
}

func TestCheckWithAnotherNumberOfShards(t *testing.T) {
	_, _, variables := seeded(t)
	run(t, "check", append(slices.Clone(variables), "ORDERGRAPH_SHARDS=4")...).checkFailed(t, 3, "shards")
}

func TestCheckThatIsStopped(t *testing.T) {
	_, _, variables := seeded(t)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	c := begin(ctx, "check", variables...)
	<-c.done
	c.checkFailed(t, 3, "stopped before its end")
}

// terminal is an output that says it is one.
type terminal struct{ output }

func (*terminal) Stat() (fs.FileInfo, error) { return os.Stat("/dev/null") }

func TestCheckShowsProgressOnATerminalOnly(t *testing.T) {
	db, table, variables := seeded(t)
	damageSample(t, db, table)
	var stdout output
	var stderr terminal
	status := cli.Run(context.Background(), []string{"check"}, cli.Environment{Stdout: &stdout, Stderr: &stderr, Getenv: func(name string) string {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}})
	if shown := stderr.String(); status != 1 || !strings.Contains(shown, "records read") || !strings.HasSuffix(shown, "\r\x1b[K") {
		t.Errorf("exit %d, stderr %q", status, shown)
	}
	if strings.Contains(stdout.String(), "\x1b") {
		t.Errorf("progress stands on stdout: %q", stdout.String())
	}
}
