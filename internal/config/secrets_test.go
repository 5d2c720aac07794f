package config_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/config"
)

// If the file of a secret is unusable, the previous secret remains in use, and each problem is
// logged once.
func TestWatchSecrets(t *testing.T) {
	const secret = "MARKER of sixteen letters or more"
	path := write(t, secret+" 1")
	cfg, err := config.Read(environment("ORDERGRAPH_CURSOR_KEY_FILE="+path, "ORDERGRAPH_TABLE=orders"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var log bytes.Buffer
	var tick func()
	var changes []string
	config.WatchSecrets(ctx, cfg, config.WatchOptions{
		Log:      slog.New(slog.NewTextHandler(&log, nil)),
		OnChange: map[string]func([]byte){"ORDERGRAPH_CURSOR_KEY": func(secret []byte) { changes = append(changes, string(secret)) }},
		AfterFunc: func(d time.Duration, f func()) func() bool {
			if d != 10*time.Second {
				t.Errorf("the interval is %s", d)
			}
			tick = f
			return nil
		},
	})
	for _, c := range []struct {
		// text is the new text of the file. The file is removed if text is empty.
		text string
		// change is the secret that OnChange receives, or empty if OnChange must not be called.
		change string
		// logged is a part of the expected new log line, or empty if no line is expected.
		logged string
	}{
		{text: secret + " 1\n"},
		{text: secret + " 2\n", change: secret + " 2", logged: "a secret has changed"},
		{text: "MARKER", logged: "6 characters"},
		{text: "MARKER"},
		{text: "", logged: "no such file"},
		{text: ""},
		{text: "MARKER", logged: "6 characters"},
		{text: secret + " 2\n"},
		{text: "MARKER", logged: "6 characters"},
		{text: secret + " 1", change: secret + " 1", logged: "a secret has changed"},
	} {
		if c.text == "" {
			_ = os.Remove(path)
		} else if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		changes = nil
		tick()
		if lines := strings.Count(log.String(), "\n"); lines > 1 || (lines == 1) != (c.logged != "") || !strings.Contains(log.String(), c.logged) || strings.Contains(log.String(), "MARKER") {
			t.Errorf("%q: the log is %q, want %q", c.text, log.String(), c.logged)
		}
		if got := strings.Join(changes, ","); got != c.change {
			t.Errorf("%q: the new secrets are %q, want %q", c.text, got, c.change)
		}
	}
	if string(cfg.CursorKey) != secret+" 1" {
		t.Errorf("the configuration has changed: %q", cfg.CursorKey)
	}
	stop()
	ended := tick
	tick = nil
	if ended(); tick != nil {
		t.Error("the files are reread after the end")
	}
}

// If no secret is in a file, WatchSecrets starts no timer.
func TestNothingToWatch(t *testing.T) {
	cfg := read(t, "ORDERGRAPH_CURSOR_KEY=sixteen letters!")
	config.WatchSecrets(t.Context(), cfg, config.WatchOptions{AfterFunc: func(time.Duration, func()) func() bool {
		t.Error("a timer is started")
		return nil
	}})
}
