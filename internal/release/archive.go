package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"time"
)

// file is a file or directory in an archive.
type file struct {
	name    string
	mode    os.FileMode
	content []byte
}

// textFiles returns the license files that every archive contains.
func (b build) textFiles() []file {
	return []file{{"LICENSE", 0o644, b.license}, {"THIRD_PARTY_LICENSES.txt", 0o644, b.notices}}
}

// writeArchives writes the archive of a platform to the directory out. For Linux, writeArchives
// also writes a zip file for AWS Lambda.
func (b build) writeArchives(out string) error {
	if b.os == "windows" {
		return writeZip(filepath.Join(out, b.archiveName()+".zip"), b.time, append(b.textFiles(), file{"README.md", 0o644, b.readme}, file{"ordergraph.exe", 0o755, b.binary}))
	}
	archive, err := tarGzip(b.time, append(b.textFiles(), file{"README.md", 0o644, b.readme}, file{"ordergraph", 0o755, b.binary}))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, b.archiveName()+".tar.gz"), archive, 0o644); err != nil || b.os != "linux" {
		return err
	}
	// Lambda requires the file name bootstrap.
	return writeZip(filepath.Join(out, "ordergraph_"+b.version+"_lambda_"+b.arch+".zip"), b.time, append(b.textFiles(), file{"bootstrap", 0o755, b.binary}))
}

// tarGzip returns a tar archive of the files, compressed with gzip. In the archive, all files
// belong to root. The parameter modified is the modification time of all files.
func tarGzip(modified time.Time, files []file) ([]byte, error) {
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(w, modified, files); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return compressed.Bytes(), nil
}

// writeTar writes an uncompressed tar archive of the files to w.
func writeTar(w interface{ Write([]byte) (int, error) }, modified time.Time, files []file) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.content)), ModTime: modified, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if f.mode.IsDir() {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeZip writes the files to a zip file. The parameter modified is the modification time of all
// files in the zip file.
func writeZip(path string, modified time.Time, files []file) error {
	var compressed bytes.Buffer
	archive := zip.NewWriter(&compressed)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modified.UTC()}
		header.SetMode(f.mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, compressed.Bytes(), 0o644)
}
