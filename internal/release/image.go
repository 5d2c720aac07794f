package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// maxImage is the maximum size in bytes of an uncompressed image.
const maxImage = 40_000_000

// imageConfig returns the configuration of the image. A test ensures that the Dockerfile contains
// the same configuration.
func imageConfig() v1.ImageConfig {
	return v1.ImageConfig{
		User:         "65532:65532",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Env:          []string{"ORDERGRAPH_STORE=dynamodb", "PORT=8080"},
		Entrypoint:   []string{"/ordergraph"},
	}
}

// ociLayout contains the files of an OCI image layout
// (https://github.com/opencontainers/image-spec/blob/main/image-layout.md).
type ociLayout struct{ files []file }

// add adds a blob with the given content to the layout. It returns the descriptor of the blob.
func (l *ociLayout) add(mediaType string, content []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	l.files = append(l.files, file{"blobs/sha256/" + d.Digest.Encoded(), 0o644, content})
	return d
}

// addJSON adds a blob with the JSON encoding of v to the layout. It returns the descriptor of the
// blob.
func (l *ociLayout) addJSON(mediaType string, v any) (v1.Descriptor, error) {
	content, err := json.Marshal(v)
	return l.add(mediaType, content), err
}

// writeImage writes one OCI image, which contains all Linux builds, license texts and CA
// certificates. If there is no Linux build, writeImage writes no file.
func writeImage(out string, builds []build) error {
	l := &ociLayout{}
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	var last build
	for _, b := range builds {
		if b.os != "linux" {
			continue
		}
		manifest, err := b.addImage(l)
		if err != nil {
			return err
		}
		index.Manifests, last = append(index.Manifests, manifest), b
	}
	if len(index.Manifests) == 0 {
		return nil
	}
	// The file index.json has a single entry, which is tagged with the version. This entry refers to a
	// list of the images of all platforms, so the tag covers all platforms.
	platforms, err := l.addJSON(v1.MediaTypeImageIndex, index)
	if err != nil {
		return err
	}
	platforms.Annotations = map[string]string{v1.AnnotationRefName: last.version}
	top, err := json.Marshal(v1.Index{Versioned: index.Versioned, MediaType: index.MediaType, Manifests: []v1.Descriptor{platforms}})
	if err != nil {
		return err
	}
	version, err := json.Marshal(v1.ImageLayout{Version: v1.ImageLayoutVersion})
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := writeTar(&archive, last.time, append([]file{{v1.ImageLayoutFile, 0o644, version}, {v1.ImageIndexFile, 0o644, top}}, l.files...)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "ordergraph_"+last.version+"_image.tar"), archive.Bytes(), 0o644)
}

// addImage adds the image of one platform to the layout. It returns the descriptor of the image's
// manifest.
func (b build) addImage(l *ociLayout) (v1.Descriptor, error) {
	files := append([]file{
		{"etc/", os.ModeDir | 0o755, nil}, {"etc/ssl/", os.ModeDir | 0o755, nil}, {"etc/ssl/certs/", os.ModeDir | 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()},
		{"ordergraph", 0o755, b.binary},
	}, b.textFiles()...)
	var unpacked bytes.Buffer
	if err := writeTar(&unpacked, b.time, files); err != nil {
		return v1.Descriptor{}, err
	}
	if unpacked.Len() > maxImage {
		return v1.Descriptor{}, fmt.Errorf("the uncompressed image has %d bytes, but the maximum is %d", unpacked.Len(), maxImage)
	}
	compressed, err := tarGzip(b.time, files)
	if err != nil {
		return v1.Descriptor{}, err
	}
	platform := v1.Platform{OS: b.os, Architecture: b.arch}
	config := imageConfig()
	config.Labels = map[string]string{
		v1.AnnotationTitle: "Ordergraph", v1.AnnotationVersion: b.version, v1.AnnotationRevision: b.commit,
		v1.AnnotationCreated: b.time.UTC().Format("2006-01-02T15:04:05Z"), v1.AnnotationSource: "https://github.com/ordergraph/ordergraph",
	}
	image := v1.Image{Created: &b.time, Platform: platform, Config: config, RootFS: v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(unpacked.Bytes())}}}
	configuration, err := l.addJSON(v1.MediaTypeImageConfig, image)
	if err != nil {
		return v1.Descriptor{}, err
	}
	manifest, err := l.addJSON(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: configuration, Layers: []v1.Descriptor{l.add(v1.MediaTypeImageLayerGzip, compressed)},
	})
	manifest.Platform = &platform
	return manifest, err
}

// certificates returns the CA certificates that Mozilla trusts, in PEM format. Mozilla trusts some
// certificates only under conditions. PEM cannot express these conditions, so the result omits such
// certificates.
func certificates() []byte {
	var out []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return out
}
