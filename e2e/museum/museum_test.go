// Package museum_test shows that Ordergraph does not have published bugs of other order systems,
// GraphQL servers and DynamoDB engines. Each room of the museum is one of these bugs.
package museum_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/variant"
)

// room is one published bug.
type room struct {
	name string
	// sources are issues and pull requests, such as vendurehq/vendure#3508.
	sources []string
	// there describes what happened in the other software, and here what happens in Ordergraph.
	there, here string
	test        func(s *shop)
	// variants are the names of the broken code that the room finds. The default is the room's name.
	variants []string
}

func rooms() []room {
	all := slices.Concat(stockRooms, orderRooms, paymentRooms, listRooms, eventRooms, engineRooms)
	for i, r := range all {
		if r.variants == nil {
			all[i].variants = []string{r.name}
		}
	}
	return all
}

func TestMuseum(t *testing.T) {
	for _, r := range rooms() {
		t.Run(r.name, func(t *testing.T) { r.test(newShop(t, 1)) })
	}
}

// The docs list all rooms.
func TestGoldenDocs(t *testing.T) {
	text := "| reports | what happened there | what happens here |\n|---|---|---|\n"
	for _, r := range rooms() {
		var links []string
		for _, source := range r.sources {
			repository, number, _ := strings.Cut(source, "#")
			links = append(links, fmt.Sprintf("[%s](https://github.com/%s/issues/%s)", source, repository, number))
		}
		text += fmt.Sprintf("| %s | %s | %s |\n", strings.Join(links, " "), r.there, r.here)
	}
	golden.CheckSection(t, "../../docs/museum.md", "rooms", text)
}

// Each variant breaks the code of a room, and each room has a variant. All variants apply to the code.
func TestVariants(t *testing.T) {
	variants, _ := variant.Read(t, "testdata/variants")
	used, known := map[string]bool{}, map[string]bool{}
	for _, r := range rooms() {
		for _, name := range r.variants {
			used[name] = true
		}
	}
	for _, v := range variants {
		known[v.Name] = true
	}
	if !maps.Equal(used, known) {
		t.Errorf("the rooms have the variants %v, but the variants are %v", used, known)
	}
}

// Each room fails with its variant, without a panic, and all rooms pass without a variant.
func TestVariantsAreCaught(t *testing.T) {
	longtest.Skip(t)
	_, files := variant.Read(t, "testdata/variants")
	binary := variant.Build(t, files, "./e2e/museum")
	if r := variant.Run(t, binary, "", time.Minute, "-test.run=^TestMuseum$"); r.Failed {
		t.Fatalf("without a variant:\n%s", r.Output)
	}
	cpu := time.Duration(0)
	for _, room := range rooms() {
		for _, name := range room.variants {
			r := variant.Run(t, binary, name, time.Minute, "-test.run=^TestMuseum$/^"+room.name+"$")
			cpu += r.CPU
			if !r.Failed || !strings.Contains(r.Output, "--- FAIL: TestMuseum/"+room.name+" ") || strings.Contains(r.Output, "panic: ") {
				t.Errorf("%s does not find the variant %s:\n%s", room.name, name, r.Output)
			}
		}
	}
	t.Logf("the rooms with variants used %s of CPU time", cpu)
}
