// Package version describes the build of this program. It imports only the standard library.
//
// The version is the Git tag of the commit. `go build` and `go install` write the tag into the
// binary, so no source file contains the version. A build from files without Git can set the version
// with a flag of `go build`:
//
//	-ldflags "-X github.com/ordergraph/ordergraph/internal/version.linked=v1.2.3"
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Info describes a build.
type Info struct {
	// Version is the Git tag of the commit, such as v1.2.3. For a commit without a tag, it is a
	// pseudo-version, such as v0.0.0-20260102150405-0123456789ab. If the working tree had uncommitted
	// changes, the version ends with "+dirty". For a build without Git, it is "(devel)".
	Version string `json:"version"`
	// Commit is the hash of the commit. Time is the time of the commit in RFC 3339. Both are empty for
	// a build without Git.
	Commit string `json:"commit,omitempty"`
	Time   string `json:"time,omitempty"`
	// Modified reports whether the working tree had uncommitted changes at the time of the build.
	Modified bool `json:"modified"`
	// Go is the version of the Go toolchain. Platform is the operating system and the architecture,
	// such as linux/amd64.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// devel is the version of a build without Git.
const devel = "(devel)"

// linked is the version that a flag of the linker has set.
var linked string

// Get returns the description of this build.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	info := Info{Version: build.Main.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info.Version == "" || info.Version == devel {
		info.Version = cmp.Or(linked, devel)
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.time":
			info.Time = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	return info
}
