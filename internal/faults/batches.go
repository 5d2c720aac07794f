package faults

import (
	"encoding/json"
	"io"
	"net/http"
)

// keysAndOptions are a table's part of a BatchGetItem: the keys, and whatever else was asked for.
type keysAndOptions = map[string]json.RawMessage

// batchSize is how many parts a batch of one table has; 0 for a request that is no batch.
func batchSize(r Request) int {
	parts, _, err := split(r)
	if err != nil {
		return 0
	}
	return len(parts.asked)
}

// parts are what a batch asks for.
type parts struct {
	table string
	asked []json.RawMessage
	// with makes a table's part of some of them.
	with func([]json.RawMessage) (json.RawMessage, error)
	// left is where the answer tells what was not done.
	left string
}

// split takes a batch of one table apart; no parts where the request is no batch.
func split(r Request) (parts, map[string]json.RawMessage, error) {
	var p parts
	var whole map[string]json.RawMessage
	if r.Operation != "BatchGetItem" && r.Operation != "BatchWriteItem" {
		return p, nil, nil
	}
	if err := json.Unmarshal(r.Body, &whole); err != nil {
		return p, nil, err
	}
	var tables map[string]json.RawMessage
	if err := json.Unmarshal(whole["RequestItems"], &tables); err != nil || len(tables) != 1 {
		return p, nil, err
	}
	for table, text := range tables {
		p.table = table
		if r.Operation == "BatchWriteItem" {
			p.left = "UnprocessedItems"
			p.with = func(some []json.RawMessage) (json.RawMessage, error) { return json.Marshal(some) }
			return p, whole, json.Unmarshal(text, &p.asked)
		}
		p.left = "UnprocessedKeys"
		var options keysAndOptions
		if err := json.Unmarshal(text, &options); err != nil {
			return p, nil, err
		}
		p.with = func(some []json.RawMessage) (json.RawMessage, error) {
			keys, err := json.Marshal(some)
			if err != nil {
				return nil, err
			}
			options["Keys"] = keys
			return json.Marshal(options)
		}
		return p, whole, json.Unmarshal(options["Keys"], &p.asked)
	}
	return p, whole, nil
}

// half lets the engine see the first half of a batch, and says of the rest that it is unprocessed.
func (c *Client) half(r *http.Request, asked Request) (*http.Response, error) {
	p, whole, err := split(asked)
	if err != nil {
		return nil, err
	}
	middle := len(p.asked) / 2
	if whole["RequestItems"], err = p.of(p.asked[:middle]); err != nil {
		return nil, err
	}
	body, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	response, err := c.send(r, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var answered map[string]json.RawMessage
	if err := json.Unmarshal(text, &answered); err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		if answered[p.left], err = p.of(p.asked[middle:]); err != nil {
			return nil, err
		}
	}
	// A reply of our own has no checksum of the engine's.
	return reply(r, response.StatusCode, answered)
}

// of is a RequestItems, or what is left of it, of some of the parts.
func (p parts) of(some []json.RawMessage) (json.RawMessage, error) {
	part, err := p.with(some)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]json.RawMessage{p.table: part})
}
