package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// sbomTool is the program that writes SBOMs. It lists the modules in a binary and detects their
// licenses.
const sbomTool = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"

// allowedLicenses returns the SPDX IDs of the licenses that dependencies may have. The result
// contains 0BSD and BSD-Source-Code, because the SBOM tool reports some ISC and BSD licenses under
// these IDs.
func allowedLicenses() []string {
	// MPL-2.0 requires that users can get the source code. Each archive states the versions of the
	// unmodified modules.
	return []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-Source-Code", "ISC", "MIT", "MIT-0", "MPL-2.0"}
}

// standardLibrary is the name of Go's standard library in an SBOM. The file with its license is in
// the directory GOROOT.
const standardLibrary = "std"

// sbomProgram is the installed SBOM tool.
type sbomProgram struct{ path string }

// installSBOMTool installs the SBOM tool in the directory dir.
func installSBOMTool(ctx context.Context, dir string) (sbomProgram, error) {
	_, err := runCommand(ctx, dir, []string{"GOBIN=" + dir, "CGO_ENABLED=0", "GOFLAGS="}, "go", "install", sbomTool)
	name := "cyclonedx-gomod"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return sbomProgram{filepath.Join(dir, name)}, err
}

// component is a module in the JSON of an SBOM.
type component struct {
	Name, Version string
	Evidence      struct {
		Licenses []struct{ License struct{ ID string } }
	}
}

// licenses returns the SPDX IDs of the module's licenses.
func (c component) licenses() (ids []string) {
	for _, l := range c.Evidence.Licenses {
		ids = append(ids, l.License.ID)
	}
	return ids
}

// write writes the SBOM of a build to the file with the given path. It returns the modules in the
// SBOM. If the license of a module is missing or not allowed, write returns an error.
func (p sbomProgram) write(ctx context.Context, b build, path string) ([]component, error) {
	text, err := runCommand(ctx, ".", nil, p.path, "bin", "-json", "-noserial", "-notimestamp", "-licenses", "-std", "-version", b.version, b.path)
	if err != nil {
		return nil, err
	}
	if text, err = withoutToolHashes(text); err != nil {
		return nil, err
	}
	var document struct{ Components []component }
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if err := checkLicenses(document.Components); err != nil {
		return nil, err
	}
	return document.Components, os.WriteFile(path, text, 0o644)
}

// withoutToolHashes removes the checksums of the SBOM tool itself from an SBOM. These checksums
// differ between the machines on which a release is built.
func withoutToolHashes(text []byte) ([]byte, error) {
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	metadata, _ := document["metadata"].(map[string]any)
	tools, ok := metadata["tools"].([]any)
	if !ok {
		return nil, errors.New("the SBOM lists no tools in its metadata")
	}
	for _, tool := range tools {
		if fields, ok := tool.(map[string]any); ok {
			delete(fields, "hashes")
		}
	}
	out, err := json.MarshalIndent(document, "", "  ")
	return append(out, '\n'), err
}

// checkLicenses returns an error if a module has no license, or a license that is not allowed. The
// error lists all such modules.
func checkLicenses(modules []component) error {
	if len(modules) == 0 {
		return errors.New("the SBOM lists no modules")
	}
	var problems []error
	for _, m := range modules {
		ids := m.licenses()
		if m.Name == standardLibrary {
			continue
		}
		if len(ids) == 0 || slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(allowedLicenses(), id) }) {
			problems = append(problems, fmt.Errorf("module %s %s has the licenses %q, but the allowed licenses are %s: replace the module, or extend allowedLicenses", m.Name, m.Version, ids, strings.Join(allowedLicenses(), ", ")))
		}
	}
	return errors.Join(problems...)
}

// licenseFilePattern matches the names of license files.
var licenseFilePattern = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// readFiles reads the texts that are distributed with the program: the license of Ordergraph, the
// README, and the licenses of all modules. dir is a clone of the repository.
func (b *build) readFiles(ctx context.Context, dir string, modules []component) error {
	var err error
	if b.license, err = os.ReadFile(filepath.Join(dir, "LICENSE")); err != nil {
		return err
	}
	if b.readme, err = os.ReadFile(filepath.Join(dir, "README.md")); err != nil {
		return err
	}
	directories, err := moduleDirectories(ctx, dir)
	if err != nil {
		return err
	}
	var notices bytes.Buffer
	fmt.Fprint(&notices, "Ordergraph contains the following Go modules, which are not modified. Their source code is available at https://pkg.go.dev.\n")
	for _, m := range modules {
		texts, err := licenseTexts(directories[m.Name])
		if err != nil {
			return fmt.Errorf("module %s: %w", m.Name, err)
		}
		fmt.Fprintf(&notices, "\n======== %s %s ========\n\n%s", m.Name, m.Version, texts)
	}
	b.notices = notices.Bytes()
	return nil
}

// moduleDirectories returns the directories that contain the source code of the modules and of the
// standard library. The keys of the map are the module paths.
func moduleDirectories(ctx context.Context, dir string) (map[string]string, error) {
	goroot, err := runCommand(ctx, dir, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	directories := map[string]string{standardLibrary: strings.TrimSpace(string(goroot))}
	list, err := runCommand(ctx, dir, []string{"GOFLAGS="}, "go", "list", "-m", "-json", "all")
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(list)); ; {
		var m struct{ Path, Dir string }
		switch err := decoder.Decode(&m); {
		case errors.Is(err, io.EOF):
			return directories, nil
		case err != nil:
			return nil, err
		}
		directories[m.Path] = m.Dir
	}
}

// licenseTexts returns the content of all license files in a directory, sorted by file name.
func licenseTexts(dir string) ([]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var texts []byte
	for _, entry := range entries {
		if entry.IsDir() || !licenseFilePattern.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(append(texts, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))...), '\n')
	}
	if len(texts) == 0 {
		return nil, errors.New("it has no license file")
	}
	return texts, nil
}
