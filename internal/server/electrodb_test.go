package server_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// With names and versions of ElectroDB, every mutation writes the same records, and each of them also
// contains its own entity's name and version.
func TestMutationsWriteElectroDBIdentifiers(t *testing.T) {
	identifiers, _ := model.ParseElectroDB("1,order=2,customerOrder=orderOfCustomer:3")
	names, err := filepath.Glob("testdata/golden-writes/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	attributes := regexp.MustCompile(`__edb_e__=(\S+) __edb_v__=(\S+) `)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			s := newFixtureWithOptions(t, storetest.Engines()[0].Client(t), smallDataset(t), dynamo.Options{ElectroDB: identifiers})
			want, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := runGoldenWrite(t, s, name)
			for i, file := range got.Files {
				text := attributes.ReplaceAllString(string(file.Data), "")
				if file.Name != "explain.txt" && text != string(want.Files[i].Data) {
					t.Errorf("%s is %s, want %s", file.Name, text, want.Files[i].Data)
				}
			}
			for k, rec := range s.records(t) {
				pk, sk, _ := strings.Cut(k, " ")
				e, version := model.EntityOf(model.Keys{PK: pk, SK: sk}).Name, "1"
				switch e {
				case "order":
					version = "2"
				case "customerOrder":
					e, version = "orderOfCustomer", "3"
				}
				if !strings.Contains(rec, "__edb_e__="+e+" __edb_v__="+version+" ") {
					t.Errorf("%s %s does not contain the name %s and the version %s", k, rec, e, version)
				}
			}
		})
	}
}

// Mutations keep the names and versions that ElectroDB has written into a record, and do not copy them
// to the record's copies.
func TestMutationsKeepElectroDBIdentifiers(t *testing.T) {
	identifiers, _ := model.ParseElectroDB("1")
	s := newFixtureWithOptions(t, storetest.Engines()[0].Client(t), smallDataset(t), dynamo.Options{ElectroDB: identifiers})
	id := s.place(t, "ann", "mug")
	own := map[string]attribute{"__edb_e__": storetest.Str("Order"), "__edb_v__": storetest.Str("7")}
	s.change(t, "ORDER#"+id, "#METADATA", own)
	s.change(t, "CUSTOMER#ann", "#METADATA", own)
	s.mutate(t, "confirmOrder", mutationInput{"orderId": id})
	s.mutate(t, "updateCustomer", mutationInput{"id": "ann", "name": "Anna"})
	records := s.records(t)
	for k, want := range map[string]string{"ORDER#" + id + " #METADATA": "Order __edb_v__=7 ", "CUSTOMER#ann ORDER#" + id: "customerOrder __edb_v__=1 ", "CUSTOMER#ann #METADATA": "Order __edb_v__=7 ", "CUSTOMER#ann NAME": "customerName __edb_v__=1 "} {
		if !strings.Contains(records[k], "__edb_e__="+want) {
			t.Errorf("%s is %s, want __edb_e__=%s", k, records[k], want)
		}
	}
}
