package receivers

import (
	"fmt"
	"slices"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// Kind is the kind of a finding.
type Kind string

// The kinds of findings.
const (
	// Missing is an event that was not accepted, nor was a later event of its order.
	Missing Kind = "MISSING"
	// Skipped is an event that was not accepted, but a later event of its order was.
	Skipped Kind = "SKIPPED"
	// OutOfOrder is an event that was first accepted after a later event of its order.
	OutOfOrder Kind = "OUT_OF_ORDER"
	// WrongPrevious is a previousVersion that is not the version of the event before.
	WrongPrevious Kind = "WRONG_PREVIOUS"
	// Changed is an event that was accepted again with another content.
	Changed Kind = "CHANGED"
	// Unknown is an event that is not in the history.
	Unknown Kind = "UNKNOWN"
)

// Finding is one violation of the guarantees.
type Finding struct {
	Kind Kind
	// EventID is the ID of the event.
	EventID commerce.EventID
	// Text describes the violation.
	Text string
}

// String returns the kind, the event and the description.
func (f Finding) String() string { return fmt.Sprintf("%s %s: %s", f.Kind, f.EventID, f.Text) }

// Verify compares the deliveries that a receiver has accepted with the history: all events that its
// webhook wants, where the events of each order are in the sequence of the order's timeline. It
// returns all violations of the guarantees of delivery: per order in order, without a gap, and at
// least once with the same ID. If the webhook still has undelivered events, they are Missing.
func Verify(history []commerce.Event, accepted []Delivery) (findings []Finding) {
	report := func(kind Kind, id commerce.EventID, format string, args ...any) {
		findings = append(findings, Finding{kind, id, fmt.Sprintf(format, args...)})
	}
	positions, previous, last := map[string]int{}, map[string]int{}, map[commerce.OrderID]commerce.Event{}
	for i, e := range history {
		positions[string(e.ID)], previous[string(e.ID)], last[e.OrderID] = i, last[e.OrderID].Version, e
	}
	first := map[string]Delivery{}            // by the ID of the event
	latest := map[commerce.OrderID]int{}      // highest accepted position + 1
	latestID := map[commerce.OrderID]string{} // its event
	for _, d := range accepted {
		position, known := positions[d.WebhookID]
		before, repeated := first[d.WebhookID]
		switch id := commerce.EventID(d.WebhookID); {
		case !known:
			report(Unknown, id, "the history of order %s has no such event", d.OrderID)
			continue
		case repeated:
			if before.At = d.At; before != d {
				report(Changed, id, "it was accepted as %+v, and then as %+v", before, d)
			}
			continue
		case history[position].OrderID != d.OrderID || history[position].Version != d.Version:
			report(Changed, id, "it is version %d of order %s, but was delivered as version %d of order %s", history[position].Version, history[position].OrderID, d.Version, d.OrderID)
		case position < latest[d.OrderID]:
			report(OutOfOrder, id, "it was accepted after the later event %s of order %s", latestID[d.OrderID], d.OrderID)
		}
		first[d.WebhookID] = d
		if d.PreviousVersion != previous[d.WebhookID] {
			report(WrongPrevious, commerce.EventID(d.WebhookID), "its previousVersion is %d, but the previous event of order %s has version %d", d.PreviousVersion, d.OrderID, previous[d.WebhookID])
		}
		if position >= latest[d.OrderID] {
			latest[d.OrderID], latestID[d.OrderID] = position+1, d.WebhookID
		}
	}
	for i, e := range history {
		if _, ok := first[string(e.ID)]; ok {
			continue
		}
		if i < latest[e.OrderID] {
			report(Skipped, e.ID, "version %d of order %s was not accepted, but the later event %s was", e.Version, e.OrderID, latestID[e.OrderID])
		} else {
			report(Missing, e.ID, "version %d of order %s was not accepted", e.Version, e.OrderID)
		}
	}
	return findings
}

// Lags returns, for each accepted event of the history, the time from the event until it was first
// accepted, in ascending order.
func Lags(history []commerce.Event, accepted []Delivery) []time.Duration {
	first := map[string]time.Time{}
	for _, d := range accepted {
		if _, ok := first[d.WebhookID]; !ok {
			first[d.WebhookID] = d.At
		}
	}
	lags := []time.Duration{}
	for _, e := range history {
		if at, ok := first[string(e.ID)]; ok {
			lags = append(lags, at.Sub(e.At))
		}
	}
	slices.Sort(lags)
	return lags
}
