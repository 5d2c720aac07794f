package document

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/internal/setting"
)

// A long chain of fragments does not exhaust the stack, which has a hundredth of its usual size in
// this test.
func TestMeasureBoundsStack(t *testing.T) {
	const chain = 50_000
	document := mustParse(t, `{...F0} `+numberedFields(chain, "fragment F%d on Query{...G%d} ")+` fragment F on Query{a}`)
	for i := range chain { // F0 spreads F1, and so on
		document.Fragments[i].SelectionSet[0].(*ast.FragmentSpread).Name = fmt.Sprintf("F%d", i+1)
	}
	defer debug.SetMaxStack(debug.SetMaxStack(10 << 20))
	if errs := setting.OrDefaults(Limits{}).measure(document).errs; len(errs) == 0 || errs[0].Extensions["code"] != LimitCodes.Depth {
		t.Errorf("%v, want %s", errs, LimitCodes.Depth)
	}
}
