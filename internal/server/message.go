package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// clientMessage is a message that a client sends over a WebSocket, in the format of the subprotocol
// graphql-transport-ws.
type clientMessage struct {
	// ID identifies the operation. Only subscribe and complete messages have an ID.
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// maxOperationID is the maximum length of an operation's ID in bytes. IDs must be short, because
// every message of an operation repeats its ID.
const maxOperationID = 256

// parseMessage parses a client's message, but not the message's payload. If the message violates
// the protocol, parseMessage returns an error that describes the violation. The caller must then
// close the socket with code 4400.
func parseMessage(text []byte) (clientMessage, error) {
	var m clientMessage
	if !utf8.Valid(text) || tooManyJSONValues(text) || json.Unmarshal(text, &m) != nil {
		return m, errors.New("the message is not a JSON object, has too many values, or its id or type is not a string")
	}
	switch m.Type {
	case messageInit, messagePing, messagePong:
		if !isMissingOrNull(m.Payload) && !isObject(m.Payload) {
			return m, fmt.Errorf("the payload of %s is not an object", m.Type)
		}
		return m, nil
	case messageSubscribe:
		if err := checkOperationID(m); err != nil {
			return m, err
		}
		if !isObject(m.Payload) {
			return m, errors.New("the payload of subscribe is not an object")
		}
		return m, nil
	case messageComplete:
		return m, checkOperationID(m)
	default:
		return m, errors.New("clients may not send messages of this type")
	}
}

func checkOperationID(m clientMessage) error {
	if m.ID == "" || len(m.ID) > maxOperationID {
		return fmt.Errorf("%s needs an id of 1 to %d bytes", m.Type, maxOperationID)
	}
	return nil
}

// checkSubscribePayload returns an error if the payload of a subscribe message violates the
// protocol. A payload without a query is valid if it names a trusted document or a persisted query.
func checkSubscribePayload(payload []byte) error {
	p, refused := decodeParameters(payload)
	if refused == nil {
		refused = p.checkTypes()
	}
	switch {
	case refused != nil:
		return errors.New(refused.message)
	case p.query.kind != jsontext.KindString && !p.namesDocument():
		return errors.New("the payload of subscribe has no query")
	}
	return nil
}

// isMissingOrNull reports whether value is empty or the JSON value null. It reads only the first
// byte, so value must be valid JSON without leading white space.
func isMissingOrNull(value json.RawMessage) bool { return len(value) == 0 || value[0] == 'n' }

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }
