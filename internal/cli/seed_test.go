package cli_test

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A generated dataset is consistent, reproducible, and can be loaded beside other datasets and the
// sample data.
func TestSeedGenerate(t *testing.T) {
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	const generate = "seed -generate -customers 12 -orders 60 -products 10 -items 1-4"
	c := run(t, generate, variables...)
	c.checkSucceeded(t, table, "60 orders, 12 customers, 10 products", "The first customer is customer-")
	once := tableRecords(t, db, table)
	run(t, generate, variables...).checkSucceeded(t)
	if twice := tableRecords(t, db, table); !reflect.DeepEqual(once, twice) {
		t.Error("generating a second time changed the table")
	}
	run(t, generate+" -seed 2 -statuses pending=1,shipped=1", variables...).checkSucceeded(t)
	storetest.AssertConsistent(t, db, table, 1)
	run(t, "seed", variables...).checkSucceeded(t)
	dataset, n := storetest.SampleDataset(t)
	if both := tableRecords(t, db, table); len(both) < len(once)+n+60*4 {
		t.Errorf("the table had %d generated records, and has only %d after seeding the sample data", len(once), len(both))
	}
	run(t, "check", variables...).checkSucceeded(t, fmt.Sprintf("%d orders", 60+60+len(dataset.Orders)), "clean")

	// The printed IDs can be queried.
	ids := regexp.MustCompile(`The first customer is (\S+), the first order (\S+)\.\n`).FindStringSubmatch(c.stdout.String())
	if ids == nil {
		t.Fatalf("no ids in %q", c.stdout.String())
	}
	_, url := serve(t, "-addr 127.0.0.1:0", variables...)
	query := `{"query":"{ customer(id: \"` + ids[1] + `\") { id } order(id: \"` + ids[2] + `\") { id } }"}`
	if status, answer := post(t, url, query); status != 200 || answer != `{"data":{"customer":{"id":"`+ids[1]+`"},"order":{"id":"`+ids[2]+`"}}}` {
		t.Errorf("status %d, %s", status, answer)
	}
}

// An interrupted command prints how to continue. Continuing gives the complete dataset.
func TestInterruptedSeedGenerate(t *testing.T) {
	db, table, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	orders := longtest.Size(200, 400)
	generate := fmt.Sprintf("seed -generate -customers 5 -orders %d -products 10 -items 1 -statuses pending=1", orders)
	interrupted := newInterrupter(t, variables)
	interrupted(generate, ".BatchWriteItem", 1).checkFailed(t, 1, "seed: interrupted: some records are loaded; run the same command again")
	c := interrupted(generate, ".BatchWriteItem", int64(orders*15/100))
	c.checkFailed(t, 1, "seed: interrupted: some records are loaded; ")
	ctx, stop := context.WithCancel(t.Context())
	server := start(ctx, "-addr 127.0.0.1:0", variables...)
	if _, answer := post(t, "http://"+(<-server.listening).String(), `{"query":"{ orderCounts { count } }"}`); !strings.Contains(answer, `"orderCounts":null`) || !strings.Contains(answer, "check -repair") {
		t.Errorf("after an interrupted seed, orderCounts is %s, want null and a hint", answer)
	}
	stop()
	<-server.done
	// The number of loaded orders is unpredictable. In rare cases it is 0.
	line := generate
	if from := regexp.MustCompile(`continue with the same flags and( -from \d+)\n`).FindStringSubmatch(c.stderr.String()); from != nil {
		line += from[1]
	}
	// A slow run prints its progress.
	c, progress := run(t, line, variables...), regexp.MustCompile(`^(\d+ of \d+ orders, \d+ records\n)*$`)
	if want := fmt.Sprint(orders, " orders"); c.status != 0 || !progress.MatchString(c.stderr.String()) || !strings.Contains(c.stdout.String(), want) {
		t.Errorf("exit status %d, stdout %q, stderr %q, want status 0 and %q", c.status, c.stdout.String(), c.stderr.String(), want)
	}
	if got := len(storetest.AssertConsistent(t, db, table, 1).Orders); got != orders {
		t.Errorf("the table has %d orders, want %d", got, orders)
	}
}

// A failed command prints one sentence with the reason.
func TestSeedGenerateWithoutTable(t *testing.T) {
	_, table, variables := newTestTable(t)
	run(t, "seed -generate", variables...).checkFailed(t, 1, table, "does not exist", "ordergraph table create")
}

// An invalid flag is reported before a store is opened.
func TestSeedGenerateInvalidFlags(t *testing.T) {
	for line, message := range map[string]string{
		"-orders -1":                       "seed: -orders is -1: use 0 to",
		"-from 5 -orders 4":                "seed: -from is 5: use the number of orders that are already loaded, at most 4",
		"-statuses foo=1":                  "the statuses are pending confirmed shipped delivered cancelled",
		"-statuses pending=1,PENDING=2":    `"PENDING=2" repeats a status`,
		"-statuses SHIPPED=1 -customers 0": "seed: -customers is 0",
	} {
		run(t, "seed --generate "+line).checkFailed(t, 2, message)
	}
}
