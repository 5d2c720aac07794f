// Package graphiql serves GraphiQL, the GraphQL editor for the browser. The binary contains all
// files of GraphiQL, and the page sends no requests to other origins. Of this module, the package
// imports only internal/accept.
//
// The page is built from the directory ui and committed as ui.zip, so that building the server does
// not need Node. ui/README.md describes how to rebuild ui.zip.
package graphiql

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed ui.zip
var bundle []byte

// ContentSecurityPolicy is the Content-Security-Policy header of every response of [Handler]. The
// page can run only its own scripts and connect only to its own origin. Inline styles are allowed,
// because the Monaco editor writes its theme into style elements. Images in data URLs are allowed,
// because the editor's stylesheet contains icons in this form.
const ContentSecurityPolicy = "default-src 'none'; " +
	"script-src 'self'; " +
	"style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; " +
	"font-src 'self'; " +
	"connect-src 'self'; " +
	"worker-src 'self'; " +
	"base-uri 'none'; " +
	"form-action 'none'; " +
	"frame-ancestors 'none'"

// contentTypes maps each file extension in the bundle to a content type. The mime package is not
// used, because its results depend on the MIME tables of the operating system.
var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".md":    "text/plain; charset=utf-8", // as Markdown, browsers only download it
	".png":   "image/png",
	".svg":   "image/svg+xml",
	".ttf":   "font/ttf",
	".wasm":  "application/wasm",
	".woff":  "font/woff",
	".woff2": "font/woff2",
}

// Handler returns a handler that serves the page at "/" and the page's assets at their own paths.
// It returns an error if the embedded bundle is unusable. A test ensures that the committed bundle
// is usable.
//
// The page sends its queries to /graphql of its own origin.
func Handler() (http.Handler, error) {
	return newHandler(bundle)
}

// handler maps request paths to assets.
type handler map[string]*asset

// asset is one file of the bundle, ready to be sent.
type asset struct {
	file     *zip.File
	deflated []byte // aliases the bundle
	// plain returns the uncompressed file. The first call inflates the file, which takes up to 30 ms
	// of CPU time, and keeps the result. All files together have about seven megabytes.
	plain        func() ([]byte, error)
	contentType  string
	cacheControl string
	tag          string // the part of the entity tag that all encodings share
}

func newHandler(bundle []byte) (handler, error) {
	archive, err := zip.NewReader(bytes.NewReader(bundle), int64(len(bundle)))
	if err != nil {
		return nil, fmt.Errorf("graphiql: bundle: %w", err)
	}
	h := make(handler, len(archive.File))
	for _, file := range archive.File {
		a, err := newAsset(file, bundle)
		if err != nil {
			return nil, fmt.Errorf("graphiql: bundle: %s: %w", file.Name, err)
		}
		if file.Name == "index.html" {
			h["/"] = a
		} else {
			h["/"+file.Name] = a
		}
	}
	if h["/"] == nil {
		return nil, errors.New("graphiql: bundle: no index.html")
	}
	return h, nil
}

func newAsset(file *zip.File, bundle []byte) (*asset, error) {
	if file.Method != zip.Deflate {
		return nil, fmt.Errorf("the file has compression method %d, want deflate", file.Method)
	}
	contentType, ok := contentTypes[path.Ext(file.Name)]
	if !ok {
		return nil, errors.New("no content type for this file extension")
	}
	offset, err := file.DataOffset()
	if err != nil {
		return nil, err
	}
	end := offset + int64(file.CompressedSize64)
	if end > int64(len(bundle)) {
		return nil, io.ErrUnexpectedEOF
	}
	deflated := bundle[offset:end]
	sum := sha256.Sum256(deflated)
	a := &asset{
		file:         file,
		deflated:     deflated,
		contentType:  contentType,
		cacheControl: "no-cache",
		tag:          hex.EncodeToString(sum[:16]),
	}
	a.plain = sync.OnceValues(a.inflate)
	// Vite adds a hash of the content to the names of all files in the directory assets. A file with
	// such a name therefore never changes. Files outside the directory have no hash in their names.
	if strings.HasPrefix(file.Name, "assets/") {
		a.cacheControl = "public, max-age=31536000, immutable"
	}
	return a, nil
}

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", ContentSecurityPolicy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	a, ok := h[r.URL.Path]
	switch {
	case !ok:
		http.NotFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	default:
		a.serve(w, r)
	}
}

func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	// The compressed file differs from the plain file in its bytes, so it needs its own entity tag.
	gzip := acceptsGzip(r.Header.Values("Accept-Encoding"))
	tag := `"` + a.tag + `"`
	if gzip {
		tag = `"` + a.tag + `-gzip"`
	}
	header := w.Header()
	header.Set("Cache-Control", a.cacheControl)
	header.Set("ETag", tag)
	header.Set("Vary", "Accept-Encoding")
	if etagMatches(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", a.contentType)
	if gzip {
		header.Set("Content-Encoding", "gzip")
		header.Set("Content-Length", strconv.Itoa(len(gzipHeader)+len(a.deflated)+gzipTrailerSize))
	} else {
		header.Set("Content-Length", strconv.FormatUint(a.file.UncompressedSize64, 10))
	}
	if r.Method == http.MethodHead {
		return
	}
	// An error means that the client has disconnected or the bundle is damaged in memory.
	// Content-Length has already been sent. So the server closes the connection, and the client
	// detects that the response is incomplete.
	if gzip {
		_ = a.writeGzip(w)
	} else {
		_ = a.writePlain(w)
	}
}

// gzipHeader is the header of a gzip file that uses deflate. It contains no optional fields, no
// modification time and no operating system.
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// gzipTrailerSize is the size in bytes of the trailer of a gzip file. The trailer contains a
// checksum and the length.
const gzipTrailerSize = 8

// writeGzip writes the file in gzip format without compressing it again. Zip and gzip files contain
// the same deflate stream and the same checksum.
func (a *asset) writeGzip(w io.Writer) error {
	if _, err := io.WriteString(w, gzipHeader); err != nil {
		return err
	}
	if _, err := w.Write(a.deflated); err != nil {
		return err
	}
	trailer := make([]byte, 0, gzipTrailerSize)
	trailer = binary.LittleEndian.AppendUint32(trailer, a.file.CRC32)
	trailer = binary.LittleEndian.AppendUint32(trailer, uint32(a.file.UncompressedSize64))
	_, err := w.Write(trailer)
	return err
}

func (a *asset) writePlain(w io.Writer) error {
	plain, err := a.plain()
	if err != nil {
		return err
	}
	_, err = w.Write(plain)
	return err
}

func (a *asset) inflate() ([]byte, error) {
	content, err := a.file.Open()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}
