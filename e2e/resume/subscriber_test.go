package resume_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"
)

// update is an event that a subscription delivers.
type update struct {
	ID      string
	OrderID string
}

// subscriber is a careful client with one subscription. When the connection ends, it connects again
// and resumes after the last update that it received.
type subscriber struct {
	name string
	// field is orderUpdated or customerOrders. argument is the name of the argument, and id its value:
	// the ID of the order or the customer.
	field, argument, id string
	// serverURL returns the URL of the server's GraphQL endpoint.
	serverURL func() string

	mu      sync.Mutex
	changed *sync.Cond
	// after is the event ID after which the subscription resumes: the ID of the last update, or of the
	// initial event.
	after   string
	updates []update
	// external contains the order IDs of updates without an event. Such updates are changes by other
	// software.
	external []string
	// connected counts the acknowledged connections.
	connected int
	// err is the error that ended the subscriber.
	err error
}

func newSubscriber(name, field, argument, id, after string, where func() string) *subscriber {
	f := &subscriber{name: name, field: field, argument: argument, id: id, after: after, serverURL: where}
	f.changed = sync.NewCond(&f.mu)
	return f
}

// errFatal means that the client cannot resume.
var errFatal = errors.New("the server ended the subscription")

// run receives updates until the context ends.
func (f *subscriber) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.session(ctx); errors.Is(err, errFatal) {
			f.mu.Lock()
			f.err = err
			f.changed.Broadcast()
			f.mu.Unlock()
			return
		}
	}
}

// message is a message of graphql-transport-ws
// (https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md).
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// session runs one connection until it ends.
func (f *subscriber) session(ctx context.Context) error {
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(f.serverURL(), "http"), &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	write := func(m message) error {
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		return conn.Write(ctx, websocket.MessageText, text)
	}
	if err := write(message{Type: "connection_init"}); err != nil {
		return err
	}
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			if code := websocket.CloseStatus(err); code >= 4000 {
				return fmt.Errorf("%w: closed with %d: %w", errFatal, code, err)
			}
			return err
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("%w: invalid message %q", errFatal, text)
		}
		switch m.Type {
		case "connection_ack":
			err = write(message{ID: "1", Type: "subscribe", Payload: f.subscription()})
		case "ping":
			err = write(message{Type: "pong"})
		case "next":
			err = f.addUpdate(m)
		case "error":
			if strings.Contains(string(m.Payload), `"UNAVAILABLE"`) {
				return fmt.Errorf("the server sent %s", text)
			}
			err = fmt.Errorf("%w: it sent %s", errFatal, text)
		default:
			err = fmt.Errorf("%w: it sent %s", errFatal, text)
		}
		if err != nil {
			return err
		}
	}
}

// subscription returns the payload of the subscribe message. The subscription resumes after the
// last update.
func (f *subscriber) subscription() json.RawMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connected++
	f.changed.Broadcast()
	text, err := json.Marshal(map[string]any{
		"query":     fmt.Sprintf("subscription($id: ID!, $after: ID) { update: %s(%s: $id, after: $after) { id orderId event { id } } }", f.field, f.argument),
		"variables": map[string]any{"id": f.id, "after": f.after},
	})
	if err != nil {
		panic(err) // strings always encode
	}
	return text
}

// addUpdate stores an update.
func (f *subscriber) addUpdate(m message) error {
	var payload struct {
		Data struct {
			Update *struct {
				ID      *string
				OrderID string
				Event   *struct{ ID string }
			}
		}
		Errors []json.RawMessage
	}
	if err := json.Unmarshal(m.Payload, &payload); err != nil || len(payload.Errors) > 0 || payload.Data.Update == nil {
		return fmt.Errorf("%w: invalid update %s", errFatal, m.Payload)
	}
	u := payload.Data.Update
	if (u.ID == nil) != (u.Event == nil) || u.ID != nil && *u.ID != u.Event.ID {
		return fmt.Errorf("%w: the update's id is not the event's id: %s", errFatal, m.Payload)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if u.ID == nil {
		f.external = append(f.external, u.OrderID)
	} else {
		f.updates = append(f.updates, update{*u.ID, u.OrderID})
		f.after = *u.ID
	}
	f.changed.Broadcast()
	return nil
}

// wait waits until the condition holds. It returns an error if the subscriber has failed or the
// context ends.
func (f *subscriber) wait(ctx context.Context, done func() bool) error {
	defer context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changed.Broadcast()
	})()
	f.mu.Lock()
	defer f.mu.Unlock()
	for !done() {
		if f.err != nil {
			return f.err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		f.changed.Wait()
	}
	return nil
}

// checkUpdates verifies that the subscriber received each event once and in order.
func (f *subscriber) checkUpdates(want []update) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Equal(f.updates, want) {
		return nil
	}
	times := map[update]int{}
	for _, u := range f.updates {
		times[u]++
	}
	var problems []string
	for _, u := range want {
		if n := times[u]; n != 1 {
			problems = append(problems, fmt.Sprintf("%s of order %s was delivered %d times", u.ID, u.OrderID, n))
		}
		delete(times, u)
	}
	for u := range times {
		problems = append(problems, fmt.Sprintf("%s of order %s was delivered, but is in no timeline", u.ID, u.OrderID))
	}
	for i := 1; i < len(f.updates); i++ {
		if f.updates[i].ID <= f.updates[i-1].ID {
			problems = append(problems, fmt.Sprintf("%s was delivered after %s", f.updates[i].ID, f.updates[i-1].ID))
		}
	}
	return fmt.Errorf("%d updates, want %d: %s", len(f.updates), len(want), strings.Join(problems[:min(len(problems), 5)], "; "))
}
