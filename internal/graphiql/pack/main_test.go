package main

import (
	"archive/zip"
	"bytes"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

func TestPackIsDeterministic(t *testing.T) {
	build := func(age time.Duration) fstest.MapFS {
		files := fstest.MapFS{}
		for _, name := range []string{"index.html", "assets/b.js", "assets/a.css", "favicon.svg"} {
			files[name] = &fstest.MapFile{Data: []byte("content of " + name), ModTime: time.Now().Add(-age)}
		}
		return files
	}
	first, err := pack(build(0))
	if err != nil {
		t.Fatal(err)
	}
	second, err := pack(build(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two builds of the same files have different zip files")
	}
	archive, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range archive.File {
		names = append(names, file.Name)
	}
	if want := []string{"assets/a.css", "assets/b.js", "favicon.svg", "index.html"}; !slices.Equal(names, want) {
		t.Errorf("entries %q, want %q", names, want)
	}
}

func TestPackRequiresIndex(t *testing.T) {
	if _, err := pack(fstest.MapFS{"readme.txt": &fstest.MapFile{}}); err == nil {
		t.Error("packed a directory without index.html")
	}
}
