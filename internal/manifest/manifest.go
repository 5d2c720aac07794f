// Package manifest reads manifests of trusted documents. Such a manifest is a file that lists the
// GraphQL documents of known clients. The package supports the formats of common tools. Within the
// module, it imports only graph/document.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ordergraph/ordergraph/graph/document"
)

// MaxBytes is the maximum size of a manifest in bytes. A manifest of this size contains about ten
// thousand documents. In memory, the parsed documents are about ten times as large as the manifest.
const MaxBytes = 16 << 20

// apolloFormat is the value of "format" in a manifest that Apollo's tool has written.
const apolloFormat = "apollo-persisted-query-manifest"

// Read returns the documents of a manifest in order. If a document is repeated, Read returns it
// only once. If two different documents have the same ID, Read returns an error. Read does not
// check that the documents are valid GraphQL.
func Read(r io.Reader) ([]document.TrustedDocument, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the manifest exceeds %d bytes: remove the documents of clients that are no longer in use", MaxBytes)
	}
	members, err := readMembers(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return nil, err
	}
	var all []document.TrustedDocument
	// A manifest has Apollo's format, or the format of Relay's compiler and GraphQL Code Generator.
	if isApollo(members) {
		all, err = apolloDocuments(members)
	} else {
		all, err = relayDocuments(members)
	}
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("the manifest has no documents: check that the tool that writes it finds the operations of your clients")
	}
	return deduplicate(all)
}

// member is a member of a JSON object, with its name and its value.
type member struct {
	name  string
	value json.RawMessage
}

// errNotManifest is the error for a file in an unsupported format.
var errNotManifest = errors.New("the file is not a manifest: use the output of the npm package @apollo/generate-persisted-query-manifest, or a JSON object that maps IDs to documents, as Relay's compiler and GraphQL Code Generator write it")

// readMembers decodes a JSON object. It keeps the order of the members and keeps duplicate names. A
// map would lose both.
func readMembers(text []byte) ([]member, error) {
	if !json.Valid(text) {
		// json.Valid returns no error, so call json.Unmarshal, which returns a description of the
		// problem.
		var value json.RawMessage
		return nil, fmt.Errorf("%w (invalid JSON: %w)", errNotManifest, json.Unmarshal(text, &value))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errNotManifest
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

// isApollo reports whether a manifest with the given members has Apollo's format. In this format,
// the value of "operations" is an array. In the other format, all values are strings.
func isApollo(members []member) bool {
	for _, m := range members {
		if m.name == "operations" && len(m.value) > 0 && m.value[0] == '[' {
			return true
		}
	}
	return false
}

func apolloDocuments(members []member) ([]document.TrustedDocument, error) {
	var format string
	var version int
	var operations []struct{ ID, Name, Body string }
	for _, m := range members {
		var err error
		switch m.name {
		case "format":
			if json.Unmarshal(m.value, &format) != nil || format != apolloFormat {
				return nil, fmt.Errorf("the manifest's format is %.100s, not %q: generate the manifest with the npm package @apollo/generate-persisted-query-manifest", m.value, apolloFormat)
			}
		case "version":
			if json.Unmarshal(m.value, &version) != nil || version != 1 {
				return nil, fmt.Errorf("the manifest's version is %.100s: only version 1 is supported", m.value)
			}
		case "operations":
			if operations != nil {
				return nil, errors.New(`the manifest has "operations" twice`)
			}
			err = json.Unmarshal(m.value, &operations)
		}
		if err != nil {
			return nil, fmt.Errorf(`the manifest's "operations" must be objects with the strings "id", "name", "type" and "body": %w`, err)
		}
	}
	if format == "" || version == 0 {
		return nil, fmt.Errorf(`the manifest lacks one of the members "format": %q and "version": 1`, apolloFormat)
	}
	all := make([]document.TrustedDocument, len(operations))
	for i, o := range operations {
		if o.ID == "" || o.Body == "" {
			return nil, fmt.Errorf(`operation %d of the manifest (name %q) has no "id" or no "body"`, i+1, o.Name)
		}
		all[i] = document.TrustedDocument{ID: o.ID, Name: o.Name, Text: o.Body}
	}
	return all, nil
}

func relayDocuments(members []member) ([]document.TrustedDocument, error) {
	all := make([]document.TrustedDocument, len(members))
	for i, m := range members {
		all[i].ID = m.name
		if m.value[0] != '"' {
			return nil, fmt.Errorf("%w (the value of %q is not a document)", errNotManifest, m.name)
		}
		if err := json.Unmarshal(m.value, &all[i].Text); err != nil {
			return nil, err
		}
		if all[i].ID == "" || all[i].Text == "" {
			return nil, fmt.Errorf("document %d of the manifest (ID %q) has no ID or no text", i+1, m.name)
		}
	}
	return all, nil
}

// deduplicate removes documents that occur more than once. If two different documents have the same
// ID, it returns an error.
func deduplicate(all []document.TrustedDocument) ([]document.TrustedDocument, error) {
	first := make(map[string]document.TrustedDocument, len(all))
	kept := all[:0]
	for _, d := range all {
		earlier, duplicate := first[d.ID]
		if duplicate && earlier.Text != d.Text {
			return nil, fmt.Errorf("the manifest has two documents for the ID %q (names %q and %q): use different IDs", d.ID, earlier.Name, d.Name)
		}
		if !duplicate {
			first[d.ID] = d
			kept = append(kept, d)
		}
	}
	return kept, nil
}
