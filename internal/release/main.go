// Command release builds the files of a release from the last commit. The command requires git,
// make and go. If builds in two clones differ, or a license is not allowed, the command fails.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// allTargets lists the platforms of a release, each in the form OS/ARCHITECTURE.
const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	out := flag.String("out", "dist", "output directory; the command first deletes the directory's previous content")
	targets := flag.String("targets", allTargets, "platforms, separated by commas")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := release(ctx, *out, strings.Split(*targets, ",")); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1) //nolint:gocritic // the deferred stop need not run before the process exits
	}
}

// release builds the files of a release and writes them to the directory out.
func release(ctx context.Context, out string, targets []string) error {
	work, err := os.MkdirTemp("", "ordergraph-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	first, second := filepath.Join(work, "first"), filepath.Join(work, "another", "directory")
	for _, clone := range []string{first, second} {
		if _, err := runCommand(ctx, ".", nil, "git", "clone", "--quiet", ".", clone); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	sbom, err := installSBOMTool(ctx, work)
	if err != nil {
		return err
	}
	var builds []build
	for _, target := range targets {
		b, err := newBuild(ctx, target, work, first, second)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		modules, err := sbom.write(ctx, b, filepath.Join(out, b.archiveName()+".cdx.json"))
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		if err := b.readFiles(ctx, first, modules); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		if err := b.writeArchives(out); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		fmt.Printf("%s: both builds have the same content of %d bytes\n", b.archiveName(), len(b.binary))
		builds = append(builds, b)
	}
	if err := writeImage(out, builds); err != nil {
		return err
	}
	return writeChecksums(out)
}

// build contains the program for one platform, its license texts and the README.
type build struct {
	os, arch string
	// version and commit are read from the binary. time is the time of the commit.
	version, commit string
	time            time.Time
	binary          []byte
	// path is the path of the binary. binary is the content of this file.
	path string
	// license is the license of Ordergraph. notices contains the licenses of its modules. readme is
	// the README.
	license, notices, readme []byte
}

// newBuild builds the program for the given platform in two clones of the repository. The
// parameters first and second are the directories of the clones. If the two binaries differ,
// newBuild returns an error.
func newBuild(ctx context.Context, target, work, first, second string) (build, error) {
	b := build{}
	var ok bool
	if b.os, b.arch, ok = strings.Cut(target, "/"); !ok {
		return b, errors.New("the target must have the form OS/ARCHITECTURE, such as linux/amd64")
	}
	var err error
	b.path = filepath.Join(work, b.os+"-"+b.arch)
	if b.binary, err = compile(ctx, b, first, b.path); err != nil {
		return b, err
	}
	again, err := compile(ctx, b, second, b.path+"-again")
	if err != nil {
		return b, err
	}
	if !bytes.Equal(b.binary, again) {
		return b, errors.New("two builds of the same commit differ: the build depends on the directory or on the time")
	}
	info, err := buildinfo.Read(bytes.NewReader(b.binary))
	if err != nil {
		return b, err
	}
	b.version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.time":
			if b.time, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return b, err
			}
		}
	}
	if b.commit == "" {
		return b, errors.New("the binary does not contain the Git commit of its source code: run the command in a Git repository")
	}
	return b, nil
}

// compile runs the Makefile in dir to build a static binary, and returns the content of the binary.
// Go uses the Git tag of the commit as the version of the program.
func compile(ctx context.Context, b build, dir, path string) ([]byte, error) {
	environment := []string{"GOOS=" + b.os, "GOARCH=" + b.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-buildvcs=true", "GOEXPERIMENT=", "GOWORK=off"}
	if _, err := runCommand(ctx, dir, environment, "make", "build", "OUT="+path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// archiveName returns the file name of the platform's archive, without the extension.
func (b build) archiveName() string {
	return fmt.Sprintf("ordergraph_%s_%s_%s", b.version, b.os, b.arch)
}

// runCommand runs a command in the directory dir and returns its output. The parameter environment
// contains variables that are added to the environment of this process.
func runCommand(ctx context.Context, dir string, environment []string, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = dir, append(command.Environ(), environment...)
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, errs.String())
	}
	return out, nil
}

// writeChecksums writes the SHA-256 checksums of all files in the directory dir to the file
// SHA256SUMS in this directory.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var sums bytes.Buffer
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), sums.Bytes(), 0o644)
}
