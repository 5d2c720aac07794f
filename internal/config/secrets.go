package config

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// secretFile is a file that contains a secret. name is the name of the setting that the secret
// belongs to.
type secretFile struct {
	name, path string
	// sum is the SHA-256 hash of the secret in use.
	sum [sha256.Size]byte
}

// watchedFile is a secretFile that WatchSecrets reads again periodically.
type watchedFile struct {
	secretFile
	// setting validates a new secret. It does not change the configuration of the running server.
	setting setting.Setting
	// logged is the last problem that was logged. It is empty if the secret was valid when the file
	// was last read.
	logged string
}

// readSecret reads a secret from a file and removes one line break at the end of the secret.
func readSecret(path string) (string, error) {
	text, err := readFile(path)
	if err != nil {
		return "", err
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if text == "" {
		return "", errors.New("it is empty")
	}
	return text, nil
}

// WatchOptions configures WatchSecrets.
type WatchOptions struct {
	// OnChange maps the name of a setting to the function that WatchSecrets calls with the setting's
	// new secret.
	OnChange map[string]func(secret []byte)
	// Log is the logger for changed secrets and for files that WatchSecrets cannot use.
	Log *slog.Logger
	// AfterFunc calls f in its own goroutine after the duration d. The function stop cancels the call.
	// If AfterFunc is nil, WatchSecrets uses time.AfterFunc.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// WatchSecrets periodically rereads the files that contain secrets, until ctx ends. If a file is
// unreadable or its secret is invalid, the previous secret remains in use.
func WatchSecrets(ctx context.Context, cfg Config, opts WatchOptions) {
	if len(cfg.secretFiles) == 0 {
		return
	}
	if opts.AfterFunc == nil {
		opts.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	var files []*watchedFile
	for _, f := range cfg.secretFiles {
		for _, section := range Sections() {
			if i := slices.IndexFunc(section.Settings, func(s setting.Setting) bool { return s.Name == f.name }); i >= 0 {
				files = append(files, &watchedFile{secretFile: f, setting: section.Settings[i]})
			}
		}
	}
	var reread func()
	reread = func() {
		if ctx.Err() != nil {
			return
		}
		for _, f := range files {
			f.reread(ctx, opts)
		}
		opts.AfterFunc(auth.FilePollInterval, reread)
	}
	opts.AfterFunc(auth.FilePollInterval, reread)
}

// reread reads the file again. If the secret has changed, reread calls the function in
// opts.OnChange.
func (f *watchedFile) reread(ctx context.Context, opts WatchOptions) {
	text, err := readSecret(f.path)
	if err == nil {
		err = f.setting.Set(text)
	}
	if err != nil {
		if f.logged != err.Error() { // log the same problem only once
			f.logged = err.Error()
			opts.Log.ErrorContext(ctx, "cannot use the changed file that contains a secret, so the previous secret remains in use", "setting", f.name, "file", f.path, "error", err)
		}
		return
	}
	f.logged = ""
	if sum := sha256.Sum256([]byte(text)); sum != f.sum {
		f.sum = sum
		opts.OnChange[f.name]([]byte(text))
		opts.Log.InfoContext(ctx, "a secret has changed", "setting", f.name, "file", f.path)
	}
}
