package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// message is a message of the protocol that a client sends.
type message struct {
	// ID names the operation of a subscribe or complete message.
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// maxOperationID is the maximum length of an operation's ID in bytes. Every message of the operation
// repeats the ID.
const maxOperationID = 256

// readMessage parses a message from a client.
//
// Errors: one that says in a few words how the message breaks the protocol. The socket must then be
// closed with code 4400.
func readMessage(text []byte) (message, error) {
	var m message
	if !utf8.Valid(text) || values(text) > maxValues || json.Unmarshal(text, &m) != nil {
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
		return m, checkSubscribe(m.Payload)
	case messageComplete:
		return m, checkID(m)
	default:
		return m, errors.New("clients do not send this type")
	}
}

func checkID(m message) error {
	if m.ID == "" || len(m.ID) > maxOperationID {
		return fmt.Errorf("%s needs an id of 1 to %d bytes", m.Type, maxOperationID)
	}
	return nil
}

// checkSubscribe reports how the payload of a subscribe message breaks the protocol. The query may be
// missing where the request names its document in another way.
func checkSubscribe(payload []byte) error {
	if !isObject(payload) {
		return errors.New("the payload of subscribe is not an object")
	}
	p, refused := readParameters(payload)
	if refused != nil {
		return errors.New(refused.message)
	}
	for _, member := range []struct {
		name  string
		value json.RawMessage
		fits  func(json.RawMessage) bool
		kind  string
	}{
		{"query", p.query, isString, "a string"},
		{"operationName", p.operationName, isString, "a string"},
		{"documentId", p.documentID, isString, "a string"},
		{"variables", p.variables, isObject, "an object"},
		{"extensions", p.extensions, isObject, "an object"},
	} {
		if !absent(member.value) && !member.fits(member.value) {
			return fmt.Errorf("%s is not %s", member.name, member.kind)
		}
	}
	if !isString(p.query) && !p.namesDocument() {
		return errors.New("subscribe needs a query")
	}
	return nil
}

// namesDocument reports whether parameters name a trusted document or a persisted query.
func (p *parameters) namesDocument() bool {
	var extensions struct {
		PersistedQuery json.RawMessage `json:"persistedQuery"`
	}
	if isObject(p.extensions) && json.Unmarshal(p.extensions, &extensions) == nil && !absent(extensions.PersistedQuery) {
		return true
	}
	return isString(p.documentID) || isString(p.docID) || isString(p.id)
}

// absent reports whether a JSON value is missing or null. Values are valid JSON without leading blanks.
func absent(value json.RawMessage) bool { return len(value) == 0 || value[0] == 'n' }

func isString(value json.RawMessage) bool { return len(value) > 0 && value[0] == '"' }

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }
