package graphiql

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func newTestHandler(t *testing.T) http.Handler {
	t.Helper()
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// request sends one request. header has names and values in turn.
func request(h http.Handler, method, target string, header ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func readAll(t *testing.T, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// bundled returns the files of the embedded bundle by request path.
func bundled(t *testing.T) map[string][]byte {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(bundle), int64(len(bundle)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, file := range archive.File {
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		target := "/" + file.Name
		if file.Name == "index.html" {
			target = "/"
		}
		files[target] = readAll(t, r)
	}
	return files
}

func TestServesEveryFile(t *testing.T) {
	h := newTestHandler(t)
	for target, content := range bundled(t) {
		res := request(h, "GET", target)
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", target, res.StatusCode)
		}
		if !bytes.Equal(readAll(t, res.Body), content) {
			t.Errorf("%s: body is not the bundled file", target)
		}
		if got := res.Header.Get("Content-Length"); got != strconv.Itoa(len(content)) {
			t.Errorf("%s: Content-Length %s, want %d", target, got, len(content))
		}
		wantCache := "no-cache"
		if strings.HasPrefix(target, "/assets/") {
			wantCache = "public, max-age=31536000, immutable"
		}
		for name, want := range map[string]string{
			"Cache-Control":           wantCache,
			"Content-Encoding":        "",
			"Content-Security-Policy": ContentSecurityPolicy,
			"Referrer-Policy":         "no-referrer",
			"Vary":                    "Accept-Encoding",
			"X-Content-Type-Options":  "nosniff",
		} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", target, name, got, want)
			}
		}
	}
}

func TestContentTypes(t *testing.T) {
	h := newTestHandler(t)
	want := map[string]string{
		"":     "text/html; charset=utf-8",
		".js":  "text/javascript; charset=utf-8",
		".css": "text/css; charset=utf-8",
		".ttf": "font/ttf",
		".svg": "image/svg+xml",
		".md":  "text/plain; charset=utf-8",
	}
	seen := map[string]bool{}
	for target := range bundled(t) {
		kind := path.Ext(target)
		seen[kind] = true
		if got := request(h, "GET", target).Header.Get("Content-Type"); got != want[kind] {
			t.Errorf("%s: Content-Type %q, want %q", target, got, want[kind])
		}
	}
	for kind := range want {
		if !seen[kind] {
			t.Errorf("the bundle has no %q file", kind)
		}
	}
}

func TestGzipIsTheSameContent(t *testing.T) {
	h := newTestHandler(t)
	for target, content := range bundled(t) {
		res := request(h, "GET", target, "Accept-Encoding", "br, gzip;q=0.8")
		if got := res.Header.Get("Content-Encoding"); got != "gzip" {
			t.Fatalf("%s: Content-Encoding %q", target, got)
		}
		body := readAll(t, res.Body)
		if got := res.Header.Get("Content-Length"); got != strconv.Itoa(len(body)) {
			t.Errorf("%s: Content-Length %s, sent %d", target, got, len(body))
		}
		// The reader checks checksum and length at the end of the stream.
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		if !bytes.Equal(readAll(t, r), content) {
			t.Errorf("%s: gzip body decodes to something else", target)
		}
	}
}

func TestHeadHasTheHeadersOfGet(t *testing.T) {
	h := newTestHandler(t)
	for _, encoding := range []string{"identity", "gzip"} {
		get := request(h, "GET", "/", "Accept-Encoding", encoding)
		head := request(h, "HEAD", "/", "Accept-Encoding", encoding)
		if head.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", encoding, head.StatusCode)
		}
		if n := len(readAll(t, head.Body)); n != 0 {
			t.Errorf("%s: HEAD sent %d bytes", encoding, n)
		}
		for name := range get.Header {
			if got, want := head.Header.Get(name), get.Header.Get(name); got != want {
				t.Errorf("%s: %s %q on HEAD, %q on GET", encoding, name, got, want)
			}
		}
	}
}

func TestNotFound(t *testing.T) {
	h := newTestHandler(t)
	for _, target := range []string{"/index.html", "/assets", "/assets/", "/assets/none.js", "/graphql", "//", "/../ui.zip"} {
		res := request(h, "GET", target)
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", target, res.StatusCode)
		}
		if res.Header.Get("Content-Security-Policy") != ContentSecurityPolicy {
			t.Errorf("%s: no policy", target)
		}
		if got := res.Header.Get("Cache-Control"); got != "" {
			t.Errorf("%s: Cache-Control %q on an error", target, got)
		}
	}
}

func TestMethodNotAllowed(t *testing.T) {
	h := newTestHandler(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		res := request(h, method, "/")
		if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: status %d, Allow %q", method, res.StatusCode, res.Header.Get("Allow"))
		}
	}
}

func TestRevalidation(t *testing.T) {
	h := newTestHandler(t)
	plain := request(h, "GET", "/").Header.Get("ETag")
	zipped := request(h, "GET", "/", "Accept-Encoding", "gzip").Header.Get("ETag")
	if plain == "" || plain == zipped {
		t.Fatalf("tags %s and %s: want two different ones", plain, zipped)
	}
	for _, test := range []struct {
		encoding, noneMatch string
		want                int
	}{
		{"identity", plain, http.StatusNotModified},
		{"identity", "W/" + plain, http.StatusNotModified},
		{"identity", `"other", ` + plain, http.StatusNotModified},
		{"identity", "*", http.StatusNotModified},
		{"identity", zipped, http.StatusOK},
		{"identity", `"other"`, http.StatusOK},
		{"gzip", zipped, http.StatusNotModified},
		{"gzip", plain, http.StatusOK},
	} {
		res := request(h, "GET", "/", "Accept-Encoding", test.encoding, "If-None-Match", test.noneMatch)
		if res.StatusCode != test.want {
			t.Errorf("%s, If-None-Match %s: status %d, want %d", test.encoding, test.noneMatch, res.StatusCode, test.want)
		}
		if res.StatusCode == http.StatusNotModified && len(readAll(t, res.Body)) > 0 {
			t.Errorf("%s, If-None-Match %s: 304 with a body", test.encoding, test.noneMatch)
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"":                      false,
		"gzip":                  true,
		"GZIP":                  true,
		"deflate, gzip;q=1.0":   true,
		"gzip;q=0":              false,
		"gzip; q=0.000":         false,
		"gzip;q=nonsense":       false,
		"gzip;q=0, *":           false,
		"*":                     true,
		"*;q=0":                 false,
		"*;q=0, gzip":           true,
		"br;q=1, identity;q=.5": false,
	} {
		if got := acceptsGzip([]string{value}); got != want {
			t.Errorf("acceptsGzip(%q) = %t", value, got)
		}
	}
}

var (
	reference = regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	scheme    = regexp.MustCompile(`(?i)https?://`)
)

func TestPageRefersOnlyToItsOwnFiles(t *testing.T) {
	h := newTestHandler(t)
	page := string(bundled(t)["/"])
	if found := scheme.FindString(page); found != "" {
		t.Errorf("index.html has an absolute address: %s", found)
	}
	references := reference.FindAllStringSubmatch(page, -1)
	if len(references) == 0 {
		t.Fatal("index.html refers to no files")
	}
	for _, match := range references {
		target, relative := strings.CutPrefix(match[1], "./")
		if !relative {
			t.Errorf("%s is not relative to the page", match[1])
		}
		if res := request(h, "GET", "/"+target); res.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", match[1], res.StatusCode)
		}
	}
	if strings.Contains(page, "<script>") || strings.Contains(page, "<style") {
		t.Error("index.html has inline code, which the policy refuses")
	}
	if !strings.Contains(page, `<meta name="graphql-endpoint" content="/graphql" />`) {
		t.Error("index.html does not name the endpoint /graphql")
	}
}

// Scripts name the chunks and workers that they load later. A missing file would fail only in the
// browser, and only in some use of the page.
func TestScriptsReferOnlyToBundledFiles(t *testing.T) {
	files := bundled(t)
	chunk := regexp.MustCompile("[\"'`](?:\\./)?(?:assets/)?([\\w.-]+-[\\w-]{8}\\.(?:js|css|ttf))[\"'`)]")
	found := 0
	for target, content := range files {
		if path.Ext(target) != ".js" {
			continue
		}
		for _, match := range chunk.FindAllSubmatch(content, -1) {
			found++
			if _, ok := files["/assets/"+string(match[1])]; !ok {
				t.Errorf("%s refers to %s", target, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no script refers to any other file: the pattern must be outdated")
	}
}

func TestUnusableBundles(t *testing.T) {
	build := func(method uint16, names ...string) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, name := range names {
			entry, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := entry.Write([]byte("content")); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if _, err := newHandler(build(zip.Deflate, "index.html")); err != nil {
		t.Errorf("a usable bundle: %v", err)
	}
	for name, bundle := range map[string][]byte{
		"not a zip":     []byte("no zip"),
		"no page":       build(zip.Deflate, "app.js"),
		"not deflated":  build(zip.Store, "index.html"),
		"unknown types": build(zip.Deflate, "index.html", "notes.xyz"),
	} {
		if _, err := newHandler(bundle); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A client can continue an interrupted download of a file.
func TestRange(t *testing.T) {
	h := newTestHandler(t)
	for _, encoding := range []string{"identity", "gzip"} {
		whole := readAll(t, request(h, "GET", "/", "Accept-Encoding", encoding).Body)
		res := request(h, "GET", "/", "Accept-Encoding", encoding, "Range", "bytes=10-19")
		if body := readAll(t, res.Body); res.StatusCode != http.StatusPartialContent || !bytes.Equal(body, whole[10:20]) || res.Header.Get("Content-Length") != "10" {
			t.Errorf("%s: status %d, %d bytes, Content-Length %s", encoding, res.StatusCode, len(body), res.Header.Get("Content-Length"))
		}
	}
}
