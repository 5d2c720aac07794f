package tablemap

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/internal/price"
)

// Proposal is what a schema extension would change.
type Proposal struct {
	// Entities and AccessPatterns are new. Removed contains the lists and look-ups that the
	// extension of the server declares, but the proposed one does not.
	Entities       []string        `json:"entities"`
	AccessPatterns []string        `json:"accessPatterns"`
	Removed        []string        `json:"removed"`
	Queries        []ProposedQuery `json:"queries"`
	// WriteUnitsPerOrder are the write units that each order needs in addition.
	WriteUnitsPerOrder float64       `json:"writeUnitsPerOrder"`
	Plan               []PlannedStep `json:"plan"`
}

// ProposedQuery is the cost of a new query that selects one page of the default size.
type ProposedQuery struct {
	Field      string `json:"field"`
	Requests   int    `json:"requests"`
	RoundTrips int    `json:"roundTrips"`
	// ReadUnits are the most units if no record exceeds 1 KB, and MaxReadUnits those for the
	// largest possible records. DollarsPerMillion is the price of a million queries that consume
	// ReadUnits.
	ReadUnits         float64     `json:"readUnits"`
	MaxReadUnits      float64     `json:"maxReadUnits"`
	DollarsPerMillion json.Number `json:"dollarsPerMillion"`
}

// PlannedStep is a list or look-up to add to the table with Command.
type PlannedStep struct {
	Derivation string `json:"derivation"`
	// Records is the number of records to write, or nil if it is unknown. WriteUnits and Dollars
	// are the cost of these writes. Reading the table costs more.
	Records    *int         `json:"records"`
	WriteUnits *float64     `json:"writeUnits"`
	Dollars    *json.Number `json:"dollars"`
	Command    string       `json:"command"`
}

// TypicalRecordBytes is the size of records that ProposedQuery.ReadUnits and the load of orders
// assume.
const TypicalRecordBytes = 1024

// Cost contains the maximum load of a query for records up to TypicalRecordBytes, and for all
// records.
type Cost struct{ Typical, Most bound.Bound }

// Propose compares two declarations. costs contains the cost of each new query. count returns the
// number of records of a type, if it is known. Propose calls it at most once for each type.
func (s Source) Propose(costs map[string]Cost, count func(recordType string) (int, bool)) *Proposal {
	before, after := s.Declarations, s.Proposed.Declarations
	added := func(all, without []*model.Entity) []string {
		return slices.DeleteFunc(names(all), func(name string) bool { return slices.Contains(names(without), name) })
	}
	p := &Proposal{
		Entities: added(after.Entities, before.Entities), Removed: added(before.Entities, after.Entities),
		AccessPatterns: []string{}, Queries: []ProposedQuery{}, Plan: []PlannedStep{},
	}
	type counted struct {
		n     int
		known bool
	}
	counts := map[string]counted{}
	once := func(recordType string) (int, bool) {
		c, ok := counts[recordType]
		if !ok {
			c.n, c.known = count(recordType)
			counts[recordType] = c
		}
		return c.n, c.known
	}
	for _, q := range after.Queries() {
		if !slices.Contains(p.Entities, q.Entity.Name) {
			continue
		}
		p.AccessPatterns = append(p.AccessPatterns, q.AccessPattern.ID)
		cost := costs[q.Name]
		p.Queries = append(p.Queries, ProposedQuery{
			"Query." + q.Name, cost.Typical.Requests, cost.Typical.RoundTrips, cost.Typical.ReadUnits, cost.Most.ReadUnits,
			s.Prices.PerMillion(price.Units{Read: cost.Typical.ReadUnits}),
		})
		p.Plan = append(p.Plan, s.plan(q, once))
	}
	statuses := s.Store.Derivations()
	p.WriteUnitsPerOrder = total(after.OrderLoad(statuses)) - total(before.OrderLoad(statuses))
	return p
}

// plan returns the step that adds a list or look-up to the table. A record is in it only if it has
// a value of the field.
func (s Source) plan(q model.CustomQuery, count func(string) (int, bool)) PlannedStep {
	step := PlannedStep{Derivation: q.Entity.Name, Command: "ordergraph table apply " + q.Entity.Name + " -schema FILE"}
	isField := func(f commerce.CustomField) bool { return f.Name == q.Field.Name }
	n, known := 0, true
	if slices.ContainsFunc(s.Declarations.CustomFields(q.RecordType), isField) || q.Field.Default != nil {
		n, known = count(q.RecordType)
	}
	if known {
		units := float64(n) * model.BackfillUnits(q.Entity)
		dollars := json.Number(strings.TrimRight(strings.TrimRight(s.Prices.Dollars(price.Units{Write: units}, 1).FloatString(6), "0"), "."))
		step.Records, step.WriteUnits, step.Dollars = &n, &units, &dollars
	}
	return step
}

func total(load []model.KeyLoad) (units float64) {
	for _, l := range load {
		units += l.WriteUnits
	}
	return units
}
