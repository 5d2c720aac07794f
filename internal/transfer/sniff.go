package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind is what a file can be, as its first bytes tell.
type Kind int

// Kinds of files.
const (
	// KindUnknown may be an export.
	KindUnknown Kind = iota
	// KindGzip is compressed.
	KindGzip
	// KindExport has records.
	KindExport
	// KindBook is an order book, such as the sample data.
	KindBook
)

// sniffed is how many bytes are looked at.
const sniffed = 512

// KindOf tells what a file is that begins so.
func KindOf(begins []byte) Kind {
	if bytes.HasPrefix(begins, []byte{0x1f, 0x8b}) {
		return KindGzip
	}
	d := json.NewDecoder(bytes.NewReader(begins))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return KindUnknown
	}
	switch key, err := d.Token(); {
	case err != nil:
		return KindUnknown
	case key == "Item":
		return KindExport
	case key == "source", key == "employees", key == "warehouses", key == "products", key == "customers", key == "orders":
		return KindBook
	}
	return KindUnknown
}

// sniffer refuses at the first read what is no export, with the command that takes it.
type sniffer struct {
	io.Reader
	// name is the file's for messages.
	name string
	seen bool
}

func (s *sniffer) Read(b []byte) (int, error) {
	if s.seen {
		return s.Reader.Read(b)
	}
	s.seen = true
	// One byte tells nothing, and more may be long in coming.
	n, err := io.ReadAtLeast(s.Reader, b, min(2, len(b)))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the next read ends the file
	}
	switch KindOf(b[:min(n, sniffed)]) {
	case KindUnknown, KindExport:
	case KindGzip:
		return 0, fmt.Errorf("%s is compressed: gunzip -c FILE | ordergraph import -", s.name)
	case KindBook:
		return 0, fmt.Errorf("%s is no export but an order book: load it with `ordergraph seed FILE`", s.name)
	}
	return n, err
}
