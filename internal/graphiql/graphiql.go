// Package graphiql serves GraphiQL, a GraphQL editor that runs in the browser. The server's binary
// contains all files of the editor, so the page sends no requests to other origins. Within the
// module, the package imports only internal/httpheader.
//
// The directory ui contains the source of the page. The built page is committed as ui.zip, so that
// building the server does not require Node.js. ui/README.md describes how to rebuild ui.zip.
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
	"time"

	"github.com/ordergraph/ordergraph/internal/httpheader"
)

//go:embed ui.zip
var bundle []byte

// ContentSecurityPolicy is the Content-Security-Policy header of every response of [Handler]. With
// this policy, the page can run only its own scripts and connect only to its own origin.
const ContentSecurityPolicy = "default-src 'none'; " +
	"script-src 'self'; " +
	// The Monaco editor adds style elements to the page.
	"style-src 'self' 'unsafe-inline'; " +
	// The editor's stylesheet contains its icons as data URLs.
	"img-src 'self' data:; " +
	"font-src 'self'; " +
	"connect-src 'self'; " +
	"worker-src 'self'; " +
	"base-uri 'none'; " +
	"form-action 'none'; " +
	"frame-ancestors 'none'"

// contentTypes maps file extensions to content types. It is used instead of package mime, because
// the results of mime depend on the MIME tables of the operating system.
var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".md":    "text/plain; charset=utf-8", // browsers would download text/markdown instead of showing it
	".png":   "image/png",
	".svg":   "image/svg+xml",
	".ttf":   "font/ttf",
	".wasm":  "application/wasm",
	".woff":  "font/woff",
	".woff2": "font/woff2",
}

// Handler returns a handler for the GraphiQL page and its files. The page sends its requests to
// /graphql. If the embedded ui.zip is unusable, Handler returns an error.
func Handler() (http.Handler, error) {
	return newHandler(bundle)
}

// handler maps the path of a request to the file that is served.
type handler map[string]*asset

// asset is one file of ui.zip, together with the values for its response headers.
type asset struct {
	file     *zip.File
	deflated []byte // the compressed content, a subslice of bundle
	// plain returns the uncompressed file, and gzipped returns the file in gzip format. The first call
	// of plain decompresses the file, which takes up to 30 ms of CPU time. Later calls return the same
	// bytes. All uncompressed files together have about 7 MB, and all compressed files 2 MB.
	plain, gzipped func() ([]byte, error)
	contentType    string
	cacheControl   string
	tag            string // the entity tag without quotes and without the suffix for gzip
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
		return nil, fmt.Errorf("the file has compression method %d, but only deflate (8) is supported", file.Method)
	}
	contentType, ok := contentTypes[path.Ext(file.Name)]
	if !ok {
		return nil, errors.New("the file extension is missing from contentTypes")
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
	a.plain, a.gzipped = sync.OnceValues(a.inflate), sync.OnceValues(a.gzip)
	// The build tool Vite adds a hash of the content to the names of files in assets/. Clients can
	// therefore cache such a file forever.
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

// serve responds with the file, compressed with gzip if the client accepts that. The compressed
// response differs from the plain response, so it has its own entity tag.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	tag, content := a.tag, a.plain
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		tag, content = a.tag+"-gzip", a.gzipped
		header.Set("Content-Encoding", "gzip")
	}
	body, err := content()
	if err != nil {
		http.Error(w, "the file cannot be decompressed", http.StatusInternalServerError)
		return
	}
	header.Set("Cache-Control", a.cacheControl)
	header.Set("ETag", `"`+tag+`"`)
	header.Set("Vary", "Accept-Encoding")
	header.Set("Content-Type", a.contentType)
	header.Set("Content-Length", strconv.Itoa(len(body))) // ServeContent does not set it for compressed content
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// gzipHeader is the header of a gzip file. It states that the content is compressed with deflate.
// It contains no optional fields and no modification time.
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// gzip returns the file in gzip format. It does not compress the file again, because zip and gzip
// files use the same compressed format and the same checksum.
func (a *asset) gzip() ([]byte, error) {
	packed := append([]byte(gzipHeader), a.deflated...)
	packed = binary.LittleEndian.AppendUint32(packed, a.file.CRC32)
	return binary.LittleEndian.AppendUint32(packed, uint32(a.file.UncompressedSize64)), nil
}

func (a *asset) inflate() ([]byte, error) {
	content, err := a.file.Open()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

// acceptsGzip reports whether the header Accept-Encoding allows gzip, either by name or with the
// wildcard *. The slice values contains the header's values. An encoding with the weight 0 is not
// allowed.
func acceptsGzip(values []string) bool {
	wildcard := false
	for _, element := range httpheader.SplitElements(values) {
		coding, parameters, _ := strings.Cut(element, ";")
		accepted := httpheader.Weight(parameters) > 0
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return accepted
		case "*":
			wildcard = accepted
		}
	}
	return wildcard
}
