package cli_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// skewClock simulates a clock that is late by d: it moves the Date of DynamoDB's responses
// ahead.
func skewClock(t *testing.T, d time.Duration) {
	t.Helper()
	local, err := url.Parse(endpoint(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(local)
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(d).UTC().Format(http.TimeFormat))
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", server.URL)
}

// lateByAnHour tolerates the whole seconds of the Date header, and slow responses.
var lateByAnHour = regexp.MustCompile(`the clock of this machine is (59m5\ds|1h0m\ds) behind DynamoDB's`)

// Commands that write fail if the machine's clock is wrong. Other commands work.
func TestWrongClock(t *testing.T) {
	db, table, variables := newSeededTable(t)
	damageSample(t, db, table)
	before, out := tableRecords(t, db, table), writeTempFile(t, `{"Item":{"pk":{"S":"NOTE#1"},"sk":{"S":"NOTE"}}}`+"\n")
	skewClock(t, time.Hour)
	run(t, "export "+filepath.Join(t.TempDir(), "out.jsonl"), variables...).checkSucceeded(t, "Exported")
	if c := run(t, "check", variables...); c.status != 1 || c.stderr.String() != "" {
		t.Errorf("check: exit %d, stderr %q", c.status, c.stderr.String())
	}
	for line, status := range map[string]int{"seed": 1, "seed -generate -orders 1 -customers 1 -products 9": 1, "import -overwrite " + out: 1, "check -repair": 3} {
		c := run(t, line, variables...)
		if message := c.stderr.String(); c.status != status || !lateByAnHour.MatchString(message) || !strings.Contains(message, "set the clock") {
			t.Errorf("%s: exit %d, stderr %q", line, c.status, message)
		}
	}
	if !reflect.DeepEqual(before, tableRecords(t, db, table)) {
		t.Error("the command wrote records although the clock is wrong")
	}

	ctx, stop := context.WithCancel(context.Background())
	c := start(ctx, "-addr 127.0.0.1:0", variables...)
	addr := <-c.listening
	if status, body := get(t, "http://"+addr.String()+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "behind DynamoDB's") {
		t.Errorf("readyz: status %d, body %s", status, body)
	}
	stop()
	<-c.done
	if log := c.stderr.String(); strings.Count(log, "writes are rejected because the server's clock and DynamoDB's clock differ") != 1 {
		t.Errorf("the log does not contain the warning once: %s", log)
	}
}
