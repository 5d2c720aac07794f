package admission

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/golden"
)

// The table of pools in docs/limits.md derives from the declarations.
func TestGoldenPoolDocs(t *testing.T) {
	var table strings.Builder
	table.WriteString("| pool | contents | size | if a caller exceeds its share |\n|---|---|---|---|\n")
	for _, p := range New(Sizes{}) {
		size := "`" + p.Setting + "` (" + strconv.Itoa(p.Default) + ")"
		if p.Setting == "" {
			size = p.DerivedFrom
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", p.Name, p.Counts, size, p.RefusalMarkdown())
	}
	golden.CheckSection(t, "../../docs/limits.md", "pools", table.String())
}
