package faults

import (
	"encoding/json"
	"io"
	"net/http"
)

// keysAndOptions is the JSON object for one table in a BatchGetItem request. It contains the keys
// to read and the options of the read.
type keysAndOptions = map[string]json.RawMessage

// batchSize returns the number of keys or writes in a BatchGetItem or BatchWriteItem request to one
// table. For any other request, it returns 0.
func batchSize(r Request) int {
	parts, _, err := parseBatch(r)
	if err != nil {
		return 0
	}
	return len(parts.entries)
}

// batch contains the keys of a BatchGetItem request, or the writes of a BatchWriteItem request. The
// request accesses only one table.
type batch struct {
	table   string
	entries []json.RawMessage
	// encode encodes the given entries as JSON, in the format that the request uses for one table.
	encode func([]json.RawMessage) (json.RawMessage, error)
	// unprocessedField is the name of the response field that lists unprocessed entries.
	unprocessedField string
}

// parseBatch parses a BatchGetItem or BatchWriteItem request to one table. It also returns the
// top-level fields of the request body. For any other request, it returns a batch without entries.
func parseBatch(r Request) (batch, map[string]json.RawMessage, error) {
	var p batch
	var body map[string]json.RawMessage
	if r.Operation != "BatchGetItem" && r.Operation != "BatchWriteItem" {
		return p, nil, nil
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return p, nil, err
	}
	var tables map[string]json.RawMessage
	if err := json.Unmarshal(body["RequestItems"], &tables); err != nil || len(tables) != 1 {
		return p, nil, err
	}
	for table, text := range tables {
		p.table = table
		if r.Operation == "BatchWriteItem" {
			p.unprocessedField = "UnprocessedItems"
			p.encode = func(entries []json.RawMessage) (json.RawMessage, error) { return json.Marshal(entries) }
			return p, body, json.Unmarshal(text, &p.entries)
		}
		p.unprocessedField = "UnprocessedKeys"
		var options keysAndOptions
		if err := json.Unmarshal(text, &options); err != nil {
			return p, nil, err
		}
		p.encode = func(entries []json.RawMessage) (json.RawMessage, error) {
			keys, err := json.Marshal(entries)
			if err != nil {
				return nil, err
			}
			options["Keys"] = keys
			return json.Marshal(options)
		}
		return p, body, json.Unmarshal(options["Keys"], &p.entries)
	}
	return p, body, nil
}

// sendHalf sends only the first half of a batch to DynamoDB. It adds the second half to the
// response, as unprocessed entries.
func (c *Client) sendHalf(r *http.Request, request Request) (*http.Response, error) {
	p, requestBody, err := parseBatch(request)
	if err != nil {
		return nil, err
	}
	middle := len(p.entries) / 2
	if requestBody["RequestItems"], err = p.requestItems(p.entries[:middle]); err != nil {
		return nil, err
	}
	body, err := json.Marshal(requestBody)
	if err != nil {
		return nil, err
	}
	response, err := c.forward(r, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var responseBody map[string]json.RawMessage
	if err := json.Unmarshal(text, &responseBody); err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		if responseBody[p.unprocessedField], err = p.requestItems(p.entries[middle:]); err != nil {
			return nil, err
		}
	}
	// The new response has no checksum header, because DynamoDB's checksum does not match the changed
	// body.
	return jsonResponse(r, response.StatusCode, responseBody)
}

// requestItems returns a JSON object that maps the table name to the given entries. The request
// field RequestItems and the response fields UnprocessedKeys and UnprocessedItems have this format.
func (p batch) requestItems(entries []json.RawMessage) (json.RawMessage, error) {
	part, err := p.encode(entries)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]json.RawMessage{p.table: part})
}
