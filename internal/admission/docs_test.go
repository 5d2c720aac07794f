package admission

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/golden"
)

// The table of pools in docs/limits.md derives from the declarations.
func TestGoldenPoolDocs(t *testing.T) {
	var table strings.Builder
	table.WriteString("| pool | contents | size | maximum per customer | if a caller exceeds its share |\n|---|---|---|---|---|\n")
	for _, p := range New(Sizes{}) {
		size := "`" + p.Setting + "` (" + strconv.Itoa(p.Default) + ")"
		if p.Setting == "" {
			size = p.DerivedFrom
		}
		most := ""
		if p.HeldDivisor > 0 {
			most = "1/" + strconv.Itoa(p.HeldDivisor) + " of the size"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", p.Name, p.Counts, size, most, p.RefusalMarkdown())
	}
	golden.CheckSection(t, "../../docs/limits.md", "pools", table.String())
}
