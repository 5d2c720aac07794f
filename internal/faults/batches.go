package faults

import (
	"encoding/json"
	"io"
	"net/http"
)

// keysAndOptions is the part of a BatchGetItem for one table: the keys and the other options.
type keysAndOptions = map[string]json.RawMessage

// batchSize returns the number of entries in a batch of one table. It returns 0 for other requests.
func batchSize(r Request) int {
	parts, _, err := parseBatch(r)
	if err != nil {
		return 0
	}
	return len(parts.entries)
}

// batch has the entries of a batch.
type batch struct {
	table   string
	entries []json.RawMessage
	// encode encodes some entries as the table's part of the batch.
	encode func([]json.RawMessage) (json.RawMessage, error)
	// unprocessedField is the response field for unprocessed entries.
	unprocessedField string
}

// parseBatch decodes a batch of one table. For other requests, it returns no entries.
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

// sendHalf sends the first half of a batch to the engine and returns the rest as unprocessed.
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
	// The new body has no checksum, because the engine's checksum would be wrong.
	return jsonResponse(r, response.StatusCode, responseBody)
}

// requestItems encodes some entries as RequestItems or as unprocessed entries.
func (p batch) requestItems(entries []json.RawMessage) (json.RawMessage, error) {
	part, err := p.encode(entries)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]json.RawMessage{p.table: part})
}
