package receivers_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/receivers"
	"github.com/ordergraph/ordergraph/internal/webhook"
)

// secret is a secret of a webhook.
var secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32)))

// body returns an event in the format of webhooks.
func body(id string, order commerce.OrderID, version, previous int) []byte {
	chain := "null"
	if previous > 0 {
		chain = fmt.Sprint(previous)
	}
	return fmt.Appendf(nil, `{"id":%[1]q,"subject":%[2]q,"data":{"event":{"id":%[1]q},"version":%[3]d,"previousVersion":%[4]s}}`, id, order, version, chain)
}

// Each behavior is visible in the outcomes of a Sender, and in the deliveries that the receiver has
// accepted. A row has the outcomes of several messages of one order, one minute apart.
func TestBehaviors(t *testing.T) {
	const missing, timeout, closed = "the host does not exist", "within 10s", "closed the connection"
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble of synctest
	healthy := receivers.Healthy
	for _, c := range []struct {
		name     string
		behavior receivers.Behavior
		outcomes []string // a part of each error
		accepted int
	}{
		{"healthy", healthy, []string{"", ""}, 2},
		{"status", receivers.Status(500), []string{"status 500"}, 0},
		{"hang", receivers.Hang, []string{timeout, timeout}, 0},
		{"slow", receivers.Slow(8*time.Second, healthy), []string{"", ""}, 2},
		{"too slow", receivers.Slow(11*time.Second, healthy), []string{timeout}, 0},
		{"redirect", receivers.Redirect("https://new.example.com/"), []string{`redirects to the host "new.example.com"`}, 0},
		{"reset", receivers.Reset, []string{closed, closed}, 0},
		{"lost response", receivers.LoseResponse, []string{closed, closed}, 2},
		{"limit", receivers.Limit(2, 150*time.Second, healthy), []string{"", "", "status 429", "", "", "status 429"}, 4},
		{"gone", receivers.After(1, healthy, receivers.Status(410)), []string{"", "status 410", "status 410"}, 1},
		{"never", receivers.Sometimes(0, 1, receivers.Reset, healthy), []string{"", ""}, 2},
		{"always", receivers.Sometimes(1, 1, receivers.Reset, healthy), []string{closed, closed}, 0},
		{"sometimes", receivers.Sometimes(0.5, 1, receivers.Status(503), healthy), []string{"status 503", "", "", ""}, 3},
		{"during", receivers.During(start.Add(time.Minute), start.Add(3*time.Minute), receivers.Status(500), healthy), []string{"", "status 500", "status 500", ""}, 2},
		{"this order", receivers.ForOrder("order", receivers.Status(422), healthy), []string{"status 422"}, 0},
		{"another order", receivers.ForOrder("other", receivers.Status(422), healthy), []string{""}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := receivers.NewNetwork(t)
				r := n.Add("shop.example.com", c.behavior, secret)
				s := webhook.NewSender(n.SenderOptions())
				defer s.Close()
				for i, want := range c.outcomes {
					time.Sleep(time.Until(start.Add(time.Duration(i) * time.Minute))) // of the bubble
					id := fmt.Sprint("event", i+1)
					o := s.Send(t.Context(), webhook.Message{ID: id, URL: r.URL, Body: body(id, "order", i+1, i), Secrets: []string{secret}, At: time.Now()})
					if text := fmt.Sprint(o.Err); !strings.Contains(text, want) || (want == "") != (o.Err == nil) {
						t.Errorf("message %d: the outcome is %+v, want %q", i+1, o, want)
					}
					synctest.Wait()
					requests := r.Requests()
					if last := requests[len(requests)-1]; len(requests) != i+1 || last.Status != o.Status && last.Status != 0 || last.RetryAfter != o.RetryAfter {
						t.Errorf("message %d: the requests are %+v, want one with the outcome %+v", i+1, requests, o)
					}
				}
				if accepted := r.Accepted(); len(accepted) != c.accepted || len(r.Invalid()) > 0 {
					t.Errorf("accepted %+v, want %d events; invalid: %v", accepted, c.accepted, r.Invalid())
				}
				if o := s.Send(t.Context(), webhook.Message{ID: "e", URL: "https://other.example.com", Secrets: []string{secret}, At: time.Now()}); !strings.Contains(fmt.Sprint(o.Err), missing) {
					t.Errorf("for an unknown host, the outcome is %+v", o)
				}
			})
		})
	}
}

// A receiver with TLS accepts events, unless its certificate belongs to another host.
func TestCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := receivers.NewNetwork(t)
		valid := n.AddTLS("shop.example.com", "shop.example.com", receivers.Healthy, secret)
		wrong := n.AddTLS("liar.example.com", "bank.example.com", receivers.Healthy, secret)
		s := webhook.NewSender(n.SenderOptions())
		defer s.Close()
		for r, want := range map[*receivers.Receiver]string{valid: "", wrong: "belongs to another host"} {
			o := s.Send(t.Context(), webhook.Message{ID: "e", URL: r.URL, Body: body("e", "order", 1, 0), Secrets: []string{secret}, At: time.Now()})
			if want == "" && o.Err != nil || !strings.Contains(fmt.Sprint(o.Err), want) || (len(r.Accepted()) == 1) != (want == "") {
				t.Errorf("%s: the outcome is %+v, and the receiver accepted %v, want %q", r.URL, o, r.Accepted(), want)
			}
		}
	})
}

// A receiver accepts no request that is not signed with its secrets at the current time, or whose
// content is wrong.
func TestInvalidRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := receivers.NewNetwork(t)
		r := n.Add("shop.example.com", receivers.Healthy)
		s := webhook.NewSender(n.SenderOptions())
		defer s.Close()
		valid := webhook.Message{ID: "e", URL: r.URL, Body: body("e", "order", 1, 0), Secrets: []string{secret}, At: time.Now()}
		send := func(change func(*webhook.Message)) int {
			m := valid
			change(&m)
			return s.Send(t.Context(), m).Status
		}
		untouched := func(*webhook.Message) {}
		if status := send(untouched); status != 400 {
			t.Errorf("without a trusted secret, the status is %d", status)
		}
		r.Trust(t, secret)
		for i, change := range []func(*webhook.Message){
			func(m *webhook.Message) { m.At = m.At.Add(-6 * time.Minute) },
			func(m *webhook.Message) { m.ID = "f" },
			func(m *webhook.Message) { m.Body = []byte("{") },
			func(m *webhook.Message) { m.Body = body("e", "", 1, 0) },
			func(m *webhook.Message) { m.Body = body("e", "order", 0, 0) },
		} {
			if status := send(change); status != 400 || len(r.Invalid()) != i+2 {
				t.Errorf("change %d: the status is %d, and invalid are %q", i, status, r.Invalid())
			}
		}
		if status := send(untouched); status != 204 || len(r.Accepted()) != 1 {
			t.Errorf("the valid message has the status %d", status)
		}
	})
}

// Verify finds each violation, and reports no other one.
func TestVerify(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	var history []commerce.Event
	var delivered []receivers.Delivery
	// The orders x and y have three events each, which alternate. Their versions have gaps, because the
	// webhook does not want all events.
	for i := range 6 {
		order := commerce.OrderID("xy"[i%2 : i%2+1])
		e := commerce.Event{ID: commerce.EventID(fmt.Sprint(order, i/2+1)), OrderID: order, Version: (i/2 + 1) * 2, At: at}
		history = append(history, e)
		delivered = append(delivered, receivers.Delivery{WebhookID: string(e.ID), OrderID: order, Version: e.Version, PreviousVersion: e.Version - 2, Event: "{}", At: at.Add(time.Duration(i) * time.Second)})
	}
	change := func(i int, f func(*receivers.Delivery)) []receivers.Delivery {
		all := slices.Clone(delivered)
		f(&all[i])
		return all
	}
	again := func(i int, f func(*receivers.Delivery)) []receivers.Delivery {
		d := delivered[i]
		f(&d)
		return append(slices.Clone(delivered), d)
	}
	swapped := func(i, j int) []receivers.Delivery {
		all := slices.Clone(delivered)
		all[i], all[j] = all[j], all[i]
		return all
	}
	lost := func(i ...int) (rest []receivers.Delivery) {
		for j, d := range delivered {
			if !slices.Contains(i, j) {
				rest = append(rest, d)
			}
		}
		return rest
	}
	for _, c := range []struct {
		name     string
		accepted []receivers.Delivery
		findings string
	}{
		{"complete", delivered, ""},
		{"orders in another sequence", []receivers.Delivery{delivered[1], delivered[3], delivered[5], delivered[0], delivered[2], delivered[4]}, ""},
		{"adjacent events of two orders swapped", swapped(2, 3), ""},
		{"a duplicate", again(0, func(d *receivers.Delivery) { d.At = d.At.Add(time.Hour) }), ""},
		{"nothing", nil, "MISSING x1, MISSING y1, MISSING x2, MISSING y2, MISSING x3, MISSING y3"},
		{"the first event lost", lost(0), "SKIPPED x1"},
		{"a lost event", lost(2), "SKIPPED x2"},
		{"the last event lost", lost(5), "MISSING y3"},
		{"two lost events", lost(3, 5), "MISSING y2, MISSING y3"},
		{"a swapped pair", swapped(2, 4), "OUT_OF_ORDER x2"},
		{"the first event last", swapped(0, 4), "OUT_OF_ORDER x2, OUT_OF_ORDER x1"},
		{"the last event first", []receivers.Delivery{delivered[4], delivered[0], delivered[2], delivered[1], delivered[3], delivered[5]}, "OUT_OF_ORDER x1, OUT_OF_ORDER x2"},
		{"a gap in the chain", change(4, func(d *receivers.Delivery) { d.PreviousVersion = 2 }), "WRONG_PREVIOUS x3"},
		{"no chain", change(3, func(d *receivers.Delivery) { d.PreviousVersion = 0 }), "WRONG_PREVIOUS y2"},
		{"a chain before the first event", change(1, func(d *receivers.Delivery) { d.PreviousVersion = 1 }), "WRONG_PREVIOUS y1"},
		{"another version", change(0, func(d *receivers.Delivery) { d.Version = 3 }), "CHANGED x1"},
		{"another order", change(0, func(d *receivers.Delivery) { d.OrderID = "y" }), "CHANGED x1"},
		{"a duplicate with another event", again(0, func(d *receivers.Delivery) { d.Event = "[]" }), "CHANGED x1"},
		{"a duplicate with another previous version", again(2, func(d *receivers.Delivery) { d.PreviousVersion = 0 }), "CHANGED x2"},
		{"a duplicate with another ID", again(0, func(d *receivers.Delivery) { d.WebhookID = "x9" }), "UNKNOWN x9"},
	} {
		var found []string
		for _, f := range receivers.Verify(history, c.accepted) {
			found = append(found, fmt.Sprint(f.Kind, " ", f.EventID))
			if !strings.HasPrefix(f.String(), found[len(found)-1]+": ") || f.Text == "" {
				t.Errorf("%s: the finding is %q", c.name, f)
			}
		}
		if got := strings.Join(found, ", "); got != c.findings {
			t.Errorf("%s: the findings are %q, want %q", c.name, got, c.findings)
		}
	}
	if lags := receivers.Lags(history, again(0, func(d *receivers.Delivery) { d.At = d.At.Add(time.Hour) })); len(lags) != 6 || lags[0] != 0 || lags[5] != 5*time.Second {
		t.Errorf("the lags are %v, want 0 s to 5 s", lags)
	}
}
