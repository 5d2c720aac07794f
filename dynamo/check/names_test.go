package check_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// Earlier versions built index keys from names in lower case, and did not normalize them. Lists
// still contain such records, but lookups by some spellings miss them. A repair or the next change
// of a record writes the new keys, and keeps the name.
func TestNamesWithKeysOfEarlierVersions(t *testing.T) {
	t.Parallel()
	const decomposed = "Jose\u0301"
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, repaired := range []bool{true, false} {
			r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
			r.SetWithEdges("CUSTOMER#c1", "#METADATA", storetest.Item{"name": storetest.Str("Ann Weiß")})
			r.Set("CUSTOMER#c1", "NAME", storetest.Item{"gsi1sk": storetest.Str("ann-weiß#c1")})
			r.SetWithEdges("EMPLOYEE#e1", "#METADATA", storetest.Item{"name": storetest.Str(decomposed), "jobTitle": storetest.Str(" Rep ")})
			r.Set("EMPLOYEE#e1", "NAME", storetest.Item{"gsi1pk": storetest.Str("EMPLOYEE_NAME#" + decomposed)})
			r.Set("EMPLOYEE#e1", "TITLE", storetest.Item{"gsi1pk": storetest.Str("JOB_TITLE# Rep ")})
			found := func() string {
				customers, err := dynamo.ReadPage(t.Context(), r.Store, model.CustomersByName, dynamo.ListRequest{Range: dynamo.NamePrefixRange("ANN WEISS"), Page: dynamo.PageRequest{Limit: 10}})
				if err != nil {
					t.Fatal(err)
				}
				text := fmt.Sprint(len(customers.Items))
				for value, list := range map[string]*model.ListPattern[*commerce.Employee]{"José": model.EmployeesByName, "Rep": model.EmployeesByJobTitle} {
					employees, err := dynamo.ReadPage(t.Context(), r.Store, list, dynamo.ListRequest{PartitionValue: value, Page: dynamo.PageRequest{Limit: 10}})
					if err != nil {
						t.Fatal(err)
					}
					text += fmt.Sprint(" ", len(employees.Items))
				}
				return text
			}
			if got := found(); got != "0 0 0" {
				t.Errorf("before the repair, found %s", got)
			}
			if repaired {
				inconsistencies, summary := r.Check(check.Options{Repair: true})
				if got := storetest.FormatKindCounts(inconsistencies); got != "index-keys 3" || summary.UnrepairedCount() > 0 {
					t.Errorf("found %s, %d left: %+v", got, summary.UnrepairedCount(), inconsistencies)
				}
				if got := r.Get("EMPLOYEE#e1", "#METADATA")["name"]; !storetest.EqualValues(got, storetest.Str(decomposed)) {
					t.Errorf("the repair changed the name to %#v", got)
				}
			} else {
				caller, phones := change.Caller{Name: "c"}, []string{"7"}
				if _, err := r.Store.UpdateCustomer(t.Context(), caller, commerce.CustomerChange{ID: "c1", PhoneNumbers: &phones}); err != nil {
					t.Fatal(err)
				}
				if _, err := r.Store.UpdateEmployee(t.Context(), caller, commerce.EmployeeChange{ID: "e1", PhoneNumbers: &phones}); err != nil {
					t.Fatal(err)
				}
			}
			if got := found(); got != "1 1 1" {
				t.Errorf("after the repair or change, found %s", got)
			}
			r.CheckClean()
		}
	})
}

// A category that is not normalized becomes the same category as its normalized form.
func TestCategoriesThatAreNotNormalized(t *testing.T) {
	t.Parallel()
	const decomposed = "Cafe\u0301 "
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		r.SetWithEdges("PRODUCT#p00", "#METADATA", storetest.Item{"category": storetest.Str("Café"), "gsi1pk": storetest.Str("CATEGORY#Café")})
		r.SetWithEdges("PRODUCT#p01", "#METADATA", storetest.Item{"category": storetest.Str(decomposed), "gsi1pk": storetest.Str("CATEGORY#" + decomposed)})
		r.Set("PRODUCT#p01", "WITH_CATEGORY", storetest.Item{"gsi1pk": storetest.Str("CATEGORY_NAMES#" + decomposed)})
		old := storetest.ItemKey("CATEGORIES", "CATEGORY#"+decomposed)
		old["entity"], old["category"], old["productCount"], old["version"] = storetest.Str("category"), storetest.Str(decomposed), storetest.Num("1"), storetest.Num("1")
		r.Put(old)
		for range 2 { // the first repair moves the product, the second one deletes the empty category
			if _, summary := r.Check(check.Options{Repair: true}); summary.UnrepairedCount() > 0 {
				t.Errorf("%d left", summary.UnrepairedCount())
			}
		}
		r.CheckClean()
		categories, err := dynamo.ReadPage(t.Context(), r.Store, model.Categories, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 10}})
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, c := range categories.Items {
			got = append(got, fmt.Sprint(c.Name, " ", c.ProductCount))
		}
		if want := []string{"Café 2", "Things 1"}; !slices.Equal(got, want) {
			t.Errorf("the categories are %q, want %q", got, want)
		}
	})
}
