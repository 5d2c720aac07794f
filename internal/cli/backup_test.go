package cli_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// placeOrder places an order of cust_01.
func placeOrder(t *testing.T, url, key string) {
	t.Helper()
	got := postQuery(t, url, `mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_100", quantity: 1}], idempotencyKey: "`+key+`"}) { order { id } userErrors { message } } }`)
	if !strings.Contains(got, `"userErrors":[]`) {
		t.Fatalf("placeOrder: %s", got)
	}
}

// A backup beside a running server contains all orders that were confirmed before it, and the
// server goes on.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	file, copied := filepath.Join(dir, "orders.db"), filepath.Join(dir, "copy.db")
	const orders = `{ customer(id: "cust_01") { orderCount } }`
	serveUntil(t, "-addr 127.0.0.1:0 -sample -data "+file, func(_ *command, url string) {
		placeOrder(t, url, "a")
		run(t, "backup -data "+file+" "+copied).checkSucceeded(t, "verified")
		run(t, "backup -data "+file+" "+copied).checkFailed(t, 1, "exists", "-overwrite")
		placeOrder(t, url, "b")
		for _, name := range []string{copied, file + ".backup"} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v, want the mode 0600", name, info, err)
			}
		}
	})
	if _, err := os.Stat(file + ".backup"); !os.IsNotExist(err) {
		t.Errorf("the stopped server left its socket: %v", err)
	}
	run(t, "check -data "+copied).checkSucceeded(t, "clean\n")
	serveUntil(t, "-addr 127.0.0.1:0 -data "+copied, func(_ *command, url string) {
		if got := postQuery(t, url, orders); !strings.Contains(got, `"orderCount":3`) {
			t.Errorf("the copy returns %s, want the orders before the backup", got)
		}
	})
	// Without a server, and after a server that was killed, the command opens the file itself.
	if err := os.WriteFile(file+".backup", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "backup -overwrite -data "+file+" "+copied).checkSucceeded(t, "verified")
	serveUntil(t, "-addr 127.0.0.1:0 -data "+copied, func(_ *command, url string) {
		if got := postQuery(t, url, orders); !strings.Contains(got, `"orderCount":4`) {
			t.Errorf("the second copy returns %s", got)
		}
	})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("the directory has the files %v, %v", entries, err)
	}
	run(t, "backup "+copied).checkFailed(t, 1, "-data")
	run(t, "backup -data "+file).checkFailed(t, 2, "FILE")
	run(t, "backup -data "+file+" -").checkFailed(t, 2, "name of a file")
	run(t, "backup -data "+filepath.Join(dir, "typo.db")+" "+filepath.Join(dir, "x.db")).checkFailed(t, 1, "typo.db")
	if _, err := os.Stat(filepath.Join(dir, "typo.db")); !os.IsNotExist(err) {
		t.Errorf("the backup created the file that it should copy: %v", err)
	}
}

// A file with a wrong bit is refused by all commands.
func TestDamagedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	run(t, "table create -data "+file).checkSucceeded(t)
	run(t, "seed -data "+file).checkSucceeded(t)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[strings.LastIndex(string(content), "Alice Chen")] ^= 1
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "check -data "+file).checkFailed(t, 3, file, "the file is damaged")
	run(t, "-addr 127.0.0.1:0 -data "+file).checkFailed(t, 1, file, "the file is damaged")
	run(t, "backup -data "+file+" "+file+".copy").checkFailed(t, 1, file, "the file is damaged")
}

// A file that an earlier version wrote must be upgraded, and then has the same records.
func TestUpgradeData(t *testing.T) {
	dir := t.TempDir()
	file, exported := filepath.Join(dir, "orders.db"), filepath.Join(dir, "export.jsonl")
	packed, err := os.Open("testdata/format-4.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	content, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(old, content); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	run(t, "-addr 127.0.0.1:0 -data "+file).checkFailed(t, 1, file, "ordergraph upgrade-data -data "+file)
	run(t, "upgrade-data -data "+file).checkSucceeded(t, "Upgraded "+file)
	run(t, "upgrade-data -data "+file).checkSucceeded(t, "already has the format")
	run(t, "export -data "+file+" "+exported).checkSucceeded(t, "183 records")
	run(t, "check -repair -data "+file).checkSucceeded(t, "clean\n") // the lists and counts of later versions are absent
	serveUntil(t, "-addr 127.0.0.1:0 -data "+file, func(_ *command, url string) {
		placeOrder(t, url, "a")
		if got := postQuery(t, url, `{ customer(id: "cust_01") { name orderCount } }`); !strings.Contains(got, `"name":"Alice Chen","orderCount":3`) {
			t.Errorf("the upgraded file returns %s", got)
		}
	})
	run(t, "upgrade-data").checkFailed(t, 1, "-data")
	run(t, "upgrade-data -data "+filepath.Join(dir, "typo.db")).checkFailed(t, 1, "typo.db")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory has the files %v, %v", entries, err)
	}
}
