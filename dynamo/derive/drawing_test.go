package derive_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/golden"
)

// The drawing shows every entity: as a base record, or as a record that derives from base records.
func TestGoldenModelDrawing(t *testing.T) {
	drawing := drawing()
	for _, e := range model.Entities() {
		if !strings.Contains(drawing, e.Name) {
			t.Errorf("the drawing does not show the entity %s", e.Name)
		}
	}
	golden.CheckSection(t, "../../ARCHITECTURE.md", "model", drawing)
}

// box is what derives from the same base records in the same way.
type box struct {
	kind  string
	bases []*model.Entity
	lines []string
}

// drawing returns a Mermaid flowchart. An arrow leads from base records to what derives from them.
func drawing() string {
	var boxes []box
	add := func(kind, line string, bases ...*model.Entity) {
		same := func(b box) bool { return b.kind == kind && slices.Equal(b.bases, bases) }
		if i := slices.IndexFunc(boxes, same); i >= 0 {
			boxes[i].lines = append(boxes[i].lines, line)
			return
		}
		boxes = append(boxes, box{kind, bases, []string{line}})
	}
	kinds := map[model.EntityKind]string{model.Copy: "copies", model.Claim: "claims", model.Latest: "latest", model.Share: "shares"}
	for _, e := range model.Entities() {
		if e.Of != nil {
			add(kinds[e.Kind], e.Name, e.Of)
		}
	}
	for _, s := range derive.Sums() {
		add("sums", s.Target.Name+": "+strings.Join(s.Attributes, ", "), s.Bases()...)
	}
	// Base records of the same box are neighbors, so that no arrows cross.
	var bases []*model.Entity
	var place func(*model.Entity)
	place = func(e *model.Entity) {
		if slices.Contains(bases, e) {
			return
		}
		bases = append(bases, e)
		for _, box := range boxes {
			if slices.Contains(box.bases, e) {
				for _, other := range box.bases {
					place(other)
				}
			}
		}
	}
	// A base value of an order contains its line items.
	names := map[*model.Entity]string{&model.EntityOrder: model.EntityOrder.Name + " with " + model.EntityOrderItem.Name}
	var alone []string
	for _, e := range model.Entities() {
		if slices.ContainsFunc(boxes, func(b box) bool { return slices.Contains(b.bases, e) }) {
			place(e)
		} else if e.Kind == model.Base && e != &model.EntityOrderItem {
			alone = append(alone, e.Name)
		}
	}
	position := func(of box) (sum int) {
		for _, e := range of.bases {
			sum += slices.Index(bases, e) * 100 / len(of.bases)
		}
		return sum
	}
	slices.SortStableFunc(boxes, func(a, b box) int { return position(a) - position(b) })
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart LR\n")
	for _, e := range bases {
		fmt.Fprintf(&b, "  %s[%q]\n", e.Name, cmp.Or(names[e], e.Name))
	}
	for i, box := range boxes {
		fmt.Fprintf(&b, "  d%d(%q)\n", i, "<b>"+box.kind+"</b><br>"+strings.Join(box.lines, "<br>"))
		for _, e := range box.bases {
			fmt.Fprintf(&b, "  %s --> d%d\n", e.Name, i)
		}
	}
	fmt.Fprintf(&b, "  alone[%q]\n```\n", "nothing derives from<br>"+strings.Join(alone, "<br>"))
	return b.String()
}
