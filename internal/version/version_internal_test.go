package version

import (
	"runtime/debug"
	"testing"
)

func TestParse(t *testing.T) {
	build := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3+dirty"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123"}, {Key: "vcs.time", Value: "2026-01-02T15:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	got := parse(build)
	if got.Version != "v1.2.3+dirty" || got.Commit != "0123" || got.Time != "2026-01-02T15:04:05Z" || !got.Modified || got.Go == "" || got.Platform == "" {
		t.Errorf("%+v", got)
	}
	if got := parse(&debug.BuildInfo{}); got.Version != devel || got.Commit != "" || got.Modified {
		t.Errorf("without Git: %+v", got)
	}
}
