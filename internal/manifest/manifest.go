// Package manifest reads files of trusted documents, in the formats of the tools that write them.
// It imports graph for the type.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ordergraph/ordergraph/graph/document"
)

// MaxBytes is how many bytes a manifest can have: some ten thousand documents. Their parsed forms
// take about ten times as much memory.
const MaxBytes = 16 << 20

// apolloFormat is what Apollo's tool writes as the format of a manifest.
const apolloFormat = "apollo-persisted-query-manifest"

// Read reads a manifest of trusted documents, in its order. It can be one of two, which its content
// tells apart:
//
//   - that of npm's @apollo/generate-persisted-query-manifest:
//     {"format": "apollo-persisted-query-manifest", "version": 1, "operations": [{"id", "name", "type", "body"}]};
//   - that of Relay's compiler (persistConfig.file), and of GraphQL Code Generator: an object with a text for each id.
//
// A document that stands there twice is returned once. Whether it is a document at all,
// graph.NewExecutor and graph.CheckDocuments report.
//
// Errors: what is read is no such manifest, is too large, has no documents, or two for one id; they
// name the operation.
func Read(r io.Reader) ([]document.Trusted, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the manifest has more than %d bytes: leave out the documents of clients that are gone", MaxBytes)
	}
	members, err := readMembers(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return nil, err
	}
	var all []document.Trusted
	if isApollo(members) {
		all, err = apolloDocuments(members)
	} else {
		all, err = mappedDocuments(members)
	}
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("the manifest has no documents: let the tool that writes it find the operations of your clients")
	}
	return distinct(all)
}

// member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// errNoManifest is told of a file that is something else.
var errNoManifest = errors.New("this is no manifest: give the file that npm's @apollo/generate-persisted-query-manifest writes, or an object with a text for each id, as Relay's compiler and GraphQL Code Generator write it")

// readMembers reads a JSON object as it stands there; decoding into a map would lose members of the
// same name.
func readMembers(text []byte) ([]member, error) {
	if !json.Valid(text) {
		// Unmarshal tells where it is wrong.
		var whole json.RawMessage
		return nil, fmt.Errorf("%w (it is no JSON: %w)", errNoManifest, json.Unmarshal(text, &whole))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errNoManifest
	}
	var members []member
	for d.More() {
		var m member
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m.name, _ = name.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

// isApollo reports whether an object is of Apollo's tool: only there some value is no text.
func isApollo(members []member) bool {
	for _, m := range members {
		if m.name == "operations" && len(m.value) > 0 && m.value[0] == '[' {
			return true
		}
	}
	return false
}

func apolloDocuments(members []member) ([]document.Trusted, error) {
	var format string
	var version int
	var operations []struct{ ID, Name, Body string }
	for _, m := range members {
		var err error
		switch m.name {
		case "format":
			if json.Unmarshal(m.value, &format) != nil || format != apolloFormat {
				return nil, fmt.Errorf("the manifest's format is %.100s, not %q: write it with npm's @apollo/generate-persisted-query-manifest", m.value, apolloFormat)
			}
		case "version":
			if json.Unmarshal(m.value, &version) != nil || version != 1 {
				return nil, fmt.Errorf("the manifest's version is %.100s: only 1 is known here", m.value)
			}
		case "operations":
			if operations != nil {
				return nil, errors.New(`the manifest has "operations" twice`)
			}
			err = json.Unmarshal(m.value, &operations)
		}
		if err != nil {
			return nil, fmt.Errorf(`the manifest's "operations" are not {"id", "name", "type", "body"}, each a text: %w`, err)
		}
	}
	if format == "" || version == 0 {
		return nil, fmt.Errorf(`the manifest lacks its "format": %q or its "version": 1`, apolloFormat)
	}
	all := make([]document.Trusted, len(operations))
	for i, o := range operations {
		if o.ID == "" || o.Body == "" {
			return nil, fmt.Errorf(`operation %d of the manifest (name %q) has no "id" or no "body"`, i+1, o.Name)
		}
		all[i] = document.Trusted{ID: o.ID, Name: o.Name, Text: o.Body}
	}
	return all, nil
}

func mappedDocuments(members []member) ([]document.Trusted, error) {
	all := make([]document.Trusted, len(members))
	for i, m := range members {
		all[i].ID = m.name
		if m.value[0] != '"' {
			return nil, fmt.Errorf("%w (the value of %q is neither an Apollo manifest's nor the text of a document)", errNoManifest, m.name)
		}
		if err := json.Unmarshal(m.value, &all[i].Text); err != nil {
			return nil, err
		}
		if all[i].ID == "" || all[i].Text == "" {
			return nil, fmt.Errorf("document %d of the manifest (id %q) has no id or no text", i+1, m.name)
		}
	}
	return all, nil
}

// distinct leaves out documents that stand there twice, and refuses two for one id.
func distinct(all []document.Trusted) ([]document.Trusted, error) {
	first := make(map[string]document.Trusted, len(all))
	kept := all[:0]
	for _, d := range all {
		before, twice := first[d.ID]
		if twice && before.Text != d.Text {
			return nil, fmt.Errorf("the manifest has two documents for the id %q (names %q and %q): give each its own", d.ID, before.Name, d.Name)
		}
		if !twice {
			first[d.ID] = d
			kept = append(kept, d)
		}
	}
	return kept, nil
}
