// Command pack packs a built user interface into one zip file. Usage:
//
//	pack <build directory> <zip file>
//
// With the same version of Go, the same input produces the same bytes.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// zipEntryTime is the modification time of all files in the zip file. The time is fixed, so that
// packing the same files again produces the same zip file.
var zipEntryTime = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pack <build directory> <zip file>")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(dir, target string) error {
	packed, err := pack(os.DirFS(dir))
	if err != nil {
		return err
	}
	return os.WriteFile(target, packed, 0o644)
}

// pack returns a zip file with all files of the directory build. An error leaves the existing zip
// file unchanged, because pack creates the new one in memory.
func pack(build fs.FS) ([]byte, error) {
	if _, err := fs.Stat(build, "index.html"); err != nil {
		return nil, fmt.Errorf("the directory contains no build of the user interface: %w", err)
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	// WalkDir visits the files in lexical order, so the names in the zip file are sorted.
	err := fs.WalkDir(build, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", name)
		}
		return addFile(archive, build, name)
	})
	if err = errors.Join(err, archive.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func addFile(archive *zip.Writer, build fs.FS, name string) error {
	content, err := fs.ReadFile(build, name)
	if err != nil {
		return err
	}
	entry, err := archive.CreateHeader(&zip.FileHeader{
		Name:     name,
		Method:   zip.Deflate,
		Modified: zipEntryTime,
	})
	if err != nil {
		return err
	}
	_, err = entry.Write(content)
	return err
}
