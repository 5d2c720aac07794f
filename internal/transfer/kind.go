package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind is the kind of a file. DetectKind derives it from the file's first bytes.
type Kind int

// Kinds of files.
const (
	// KindUnknown means that the kind cannot be detected, for example because the file is empty. The
	// export of an empty table is an empty file.
	KindUnknown Kind = iota
	// KindGzip is a file compressed with gzip.
	KindGzip
	// KindExport is an export of a table.
	KindExport
	// KindDataset is a dataset, such as the sample data.
	KindDataset
)

// maxSniffed is the maximum number of bytes that a sniffer passes to DetectKind.
const maxSniffed = 512

// DetectKind returns the kind of a file that begins with the given bytes.
func DetectKind(start []byte) Kind {
	if bytes.HasPrefix(start, []byte{0x1f, 0x8b}) {
		return KindGzip
	}
	d := json.NewDecoder(bytes.NewReader(start))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return KindUnknown
	}
	switch key, err := d.Token(); {
	case err != nil:
		return KindUnknown
	case key == "Item":
		return KindExport
	case key == "source", key == "employees", key == "warehouses", key == "products", key == "customers", key == "orders":
		return KindDataset
	}
	return KindUnknown
}

// sniffer is a reader that expects an export. If the input is compressed, or is a dataset instead
// of an export, the first Read returns an error. The error contains the right command for the
// input.
type sniffer struct {
	io.Reader
	// name is the file's name in errors.
	name    string
	checked bool
}

func (s *sniffer) Read(b []byte) (int, error) {
	if s.checked {
		return s.Reader.Read(b)
	}
	s.checked = true
	// Two bytes are enough to detect a compressed file. The sniffer does not wait for more bytes,
	// because a pipe may not contain them yet, and the Read would block.
	n, err := io.ReadAtLeast(s.Reader, b, min(2, len(b)))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the next Read returns io.EOF
	}
	switch DetectKind(b[:min(n, maxSniffed)]) {
	case KindUnknown, KindExport:
	case KindGzip:
		return 0, fmt.Errorf("%s is compressed: run `gunzip -c FILE | ordergraph import -`", s.name)
	case KindDataset:
		return 0, fmt.Errorf("%s is a dataset, not an export: load it with `ordergraph seed FILE`", s.name)
	}
	return n, err
}
