package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// message is a message from a client, as the WebSocket protocol defines it.
type message struct {
	// ID identifies the operation of a subscribe or complete message.
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// maxOperationID is the maximum length of an operation's ID in bytes. Every message of the
// operation repeats the ID.
const maxOperationID = 256

// readMessage parses a message from a client, but not its payload. It returns an error that
// describes the protocol violation. The socket must then be closed with code 4400.
func readMessage(text []byte) (message, error) {
	var m message
	if !utf8.Valid(text) || tooManyValues(text) || json.Unmarshal(text, &m) != nil {
		return m, errors.New("it is not a JSON object of the protocol")
	}
	switch m.Type {
	case messageInit, messagePing, messagePong:
		if !absent(m.Payload) && !isObject(m.Payload) {
			return m, fmt.Errorf("the payload of %s is not an object", m.Type)
		}
		return m, nil
	case messageSubscribe:
		if err := checkID(m); err != nil {
			return m, err
		}
		if !isObject(m.Payload) {
			return m, errors.New("the payload of subscribe is not an object")
		}
		return m, nil
	case messageComplete:
		return m, checkID(m)
	default:
		return m, errors.New("clients may not send this type")
	}
}

func checkID(m message) error {
	if m.ID == "" || len(m.ID) > maxOperationID {
		return fmt.Errorf("%s needs an id of 1 to %d bytes", m.Type, maxOperationID)
	}
	return nil
}

// checkSubscribe returns an error if the payload of a subscribe message violates the protocol. The
// query may be missing if the request names a trusted document or a persisted query.
func checkSubscribe(payload []byte) error {
	p, refused := readParameters(payload)
	if refused == nil {
		refused = p.mistyped()
	}
	switch {
	case refused != nil:
		return errors.New(refused.message)
	case p.query.kind != jsontext.KindString && !p.namesDocument():
		return errors.New("the payload of subscribe has no query")
	}
	return nil
}

// absent reports whether a JSON value is missing or null. The value must be valid JSON without
// leading white space.
func absent(value json.RawMessage) bool { return len(value) == 0 || value[0] == 'n' }

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }
