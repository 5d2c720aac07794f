package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// Derivation is an edge, a claim, or a number or record that adds up other records. A table can lack it, so
// it can be added to a table or dropped while servers use the table. It can also be a feature (see
// Entity.AddedFeatures), which can only be added.
type Derivation struct {
	// Name identifies the derivation: the name of the entity, and for a number in its records also the
	// attribute, such as warehouse.productCount.
	Name string
	// Entity is the edge, claim or Sum, or the entity whose records contain the number.
	Entity *Entity
	// Attribute is the name of the number or feature. It is empty for an edge, claim or Sum.
	Attribute string
	// Feature reports whether this is a feature, which no record derives from others.
	Feature bool
	// Added reports whether older tables lack the derivation (see Entity.Added).
	Added bool
	// Undeclared reports whether this is the list or claim of a custom field that the schema extension of
	// this process does not declare.
	Undeclared bool
}

// IsRecord reports whether d is an edge or claim: a record that follows from one other record. If d is
// nil, it returns false.
func (d *Derivation) IsRecord() bool { return d != nil && d.Attribute == "" && d.Entity.Kind != Sum }

// IsStoredIn reports whether the record with the primary key k is the edge, claim or sum, or contains
// the number.
func (d *Derivation) IsStoredIn(k Keys) bool { return EntityOf(k) == d.Entity }

// Derivations returns everything that a table can lack. A claim that is not Added is in every table,
// because without it, two records could get the same value.
func Derivations() (all []Derivation) { return Declarations{Entities: allEntities}.Derivations() }

// Derivations is the function Derivations with the entities of d.
func (d Declarations) Derivations() (all []Derivation) {
	for _, e := range d.Entities {
		if e.IsEdge() || (e.Kind == Claim || e.Kind == Sum) && e.Added {
			all = append(all, Derivation{Name: e.Name, Entity: e, Added: e.Added})
		}
		for _, name := range e.AddedNumbers {
			all = append(all, Derivation{Name: e.Name + "." + name, Entity: e, Attribute: name, Added: true})
		}
		for _, name := range e.AddedFeatures {
			all = append(all, Derivation{Name: e.Name + "." + name, Entity: e, Attribute: name, Added: true, Feature: true})
		}
	}
	return all
}

// FindDerivation returns the derivation with the given name. It also returns a list or claim by a custom
// field that no schema extension declares, so that it can be dropped.
func FindDerivation(name string) (Derivation, error) {
	var names []string
	for _, d := range Derivations() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	if e := customDerivation(name); e != nil {
		return Derivation{Name: name, Entity: e, Added: true, Undeclared: true}, nil
	}
	return Derivation{}, fmt.Errorf("%q is no derivation: choose one of %s", name, strings.Join(names, ", "))
}

// DerivationState is what servers do with a derivation.
type DerivationState string

// The states, in the order in which a derivation passes through them.
const (
	// Absent means that servers neither write nor read the derivation.
	Absent DerivationState = "absent"
	// Written means that servers write the derivation, but older records may lack it.
	Written DerivationState = "written"
	// Backfilled means that all records have been given the derivation, but nothing has verified it.
	Backfilled DerivationState = "backfilled"
	// Readable means that servers also read the derivation.
	Readable DerivationState = "readable"
	// Dropped means that servers no longer use the derivation, but records may still contain it.
	Dropped DerivationState = "dropped"
)

// DerivationStatus is the state of a derivation in a table.
type DerivationStatus struct {
	State DerivationState
	// Since is the time when the table stored the state.
	Since time.Time
	// Done is the number of segments of the table that the backfill has processed, of Segments.
	Done, Segments int
}

// String describes the status for operators, such as "written, 40 % backfilled".
func (s DerivationStatus) String() string {
	if s.State != Written {
		return string(s.State)
	}
	return fmt.Sprintf("%s, %d %% backfilled", s.State, 100*s.Done/max(1, s.Segments))
}

// Progress returns the part of the table that a backfill has processed, from 0 to 1.
func (s DerivationStatus) Progress() float64 {
	switch s.State {
	case Written:
		return float64(s.Done) / float64(max(1, s.Segments))
	case Backfilled, Readable:
		return 1
	default:
		return 0
	}
}

// DerivationStatuses maps the names of derivations to their status. A derivation that it does not contain is
// readable. Do not modify it, because servers and commands share it.
type DerivationStatuses map[string]DerivationStatus

// Of returns the status of the named derivation.
func (all DerivationStatuses) Of(name string) DerivationStatus {
	if s, ok := all[name]; ok {
		return s
	}
	return DerivationStatus{State: Readable}
}

// Writes reports whether mutations write the named derivation.
func (all DerivationStatuses) Writes(name string) bool {
	s := all.Of(name).State
	return s != Absent && s != Dropped
}

// WritesNumber reports whether mutations write a number in the records of an entity.
func (all DerivationStatuses) WritesNumber(e *Entity, attribute string) bool {
	return len(all) == 0 || !slices.Contains(e.AddedNumbers, attribute) || all.Writes(e.Name+"."+attribute)
}

// hasIndexKeys reports whether a record of an entity has index keys. Without a stored layout, it has
// no index keys that depend on a feature.
func (all DerivationStatuses) hasIndexKeys(e *Entity, r Record) bool {
	writes := func(feature string) bool {
		_, stored := all[feature]
		return stored && all.Writes(feature)
	}
	hasValue := !e.Optional || r[e.AttributeForPlaceholder(e.IndexPK.Placeholders()[0])] != nil
	return hasValue && (e.IndexFeature == "" || writes(e.IndexFeature)) || e.FullIndexFeature != "" && writes(e.FullIndexFeature)
}

// ofOldTable returns the statuses in a table that stores none.
func ofOldTable() DerivationStatuses {
	all := DerivationStatuses{}
	for _, d := range Derivations() {
		if d.Added {
			all[d.Name] = DerivationStatus{State: Absent}
		}
	}
	return all
}

// ReadableDerivations returns the statuses to store in a table without records. It contains the
// derivations that a table would lack otherwise.
func ReadableDerivations(since time.Time) DerivationStatuses {
	all := ofOldTable()
	for _, d := range Derivations() {
		if d.Added && !d.Entity.OnRequest {
			all[d.Name] = DerivationStatus{State: Readable, Since: since}
		}
	}
	return all
}

// DerivationUnavailable means that a list or number cannot be read, because the table does not have
// its derivation, or not completely.
type DerivationUnavailable struct {
	Name   string
	Status DerivationStatus
}

// Error names the derivation and how to get it.
func (e *DerivationUnavailable) Error() string {
	switch e.Status.State {
	case Absent, Dropped:
		return fmt.Sprintf("the table does not have %s: an operator can add it with `ordergraph table apply %[1]s`", e.Name)
	case Backfilled:
		return fmt.Sprintf("the table is being given %s: all records have it, and are being verified; try again later", e.Name)
	}
	return fmt.Sprintf("the table is being given %s: %d %% of the records have it; try again later", e.Name, 100*e.Status.Done/max(1, e.Status.Segments))
}

// CheckReadable returns a DerivationUnavailable unless the named derivation is readable.
func (all DerivationStatuses) CheckReadable(name string) error {
	if s := all.Of(name); s.State != Readable {
		return &DerivationUnavailable{name, s}
	}
	return nil
}

// CheckFeatures returns a DerivationUnavailable if a record of the entity e uses a feature that the table
// does not have.
func (all DerivationStatuses) CheckFeatures(e *Entity, r Record) error {
	if e.BaseEntity() == &EntityOrder && commerce.CustomerID(TextOf(r, AttrCustomerID)).IsGuest() {
		if err := all.CheckReadable(OrderGuests); err != nil {
			return err
		}
	}
	if e == &EntityReturn {
		return all.CheckReadable(OrderReturnsFeature)
	}
	for _, name := range e.BaseEntity().AddedFeatures {
		if err := all.CheckReadable(e.BaseEntity().Name + "." + name); err != nil && r[name] != nil {
			return err
		}
	}
	return nil
}

// CheckListReadable returns a DerivationUnavailable if a list reads records that are not readable.
func (all DerivationStatuses) CheckListReadable(p *AccessPattern) error {
	for _, e := range p.Entities() {
		if err := all.CheckReadable(e.Name); err != nil {
			return err
		}
	}
	return nil
}

// acceptsUndeclared is set by AcceptUndeclared.
var acceptsUndeclared bool

// AcceptUndeclared declares the lists and claims of custom fields that a layout contains, although no
// schema extension declares them. It is for processes that only drop such a list or claim. Other processes
// refuse the layout, because they could not write the records.
func AcceptUndeclared() { acceptsUndeclared = true }

// texts returns the statuses as they are stored. Each text consists of the name, the state, the time
// and, during a backfill, its progress.
func (all DerivationStatuses) texts() (texts []string) {
	old := ofOldTable()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		if s.State == Absent && old.Of(name).State == Absent {
			continue // older versions do not know the name
		}
		text := name + " " + string(s.State) + " " + Timestamp(s.Since)
		if s.Segments > 0 {
			text += fmt.Sprintf(" %d/%d", s.Done, s.Segments)
		}
		texts = append(texts, text)
	}
	return texts
}

// parseDerivations is the inverse of texts. It adds the derivations that old tables lack.
func parseDerivations(texts []string) (DerivationStatuses, error) {
	all := ofOldTable()
	for _, text := range texts {
		parts := strings.Split(text, " ")
		if len(parts) < 3 || len(parts) > 4 {
			return nil, fmt.Errorf("contains %q instead of a name, a state and a time", text)
		}
		d, err := FindDerivation(parts[0])
		if err != nil {
			return nil, fmt.Errorf("contains %q, which this version of Ordergraph does not know: upgrade this server", parts[0])
		}
		s := DerivationStatus{State: DerivationState(parts[1])}
		if s.Since, err = time.Parse(timestampLayout, parts[2]); err != nil {
			return nil, fmt.Errorf("contains %q with an invalid time", text)
		}
		if !slices.Contains([]DerivationState{Absent, Written, Backfilled, Readable, Dropped}, s.State) {
			return nil, fmt.Errorf("contains %q with the state %q, which this version of Ordergraph does not know: upgrade this server", parts[0], parts[1])
		}
		if d.Undeclared && acceptsUndeclared {
			DeclareEntities(d.Entity)
		} else if d.Undeclared && s.State != Absent && s.State != Dropped {
			return nil, fmt.Errorf("contains %q, which the schema extension of this process does not declare: use the earlier file, or remove the records with `ordergraph table drop %[1]s` first", parts[0])
		}
		if len(parts) == 4 {
			done, of, _ := strings.Cut(parts[3], "/")
			if s.Done, err = strconv.Atoi(done); err == nil {
				s.Segments, err = strconv.Atoi(of)
			}
			if err != nil || s.Done < 0 || s.Done > s.Segments {
				return nil, fmt.Errorf("contains %q with an invalid progress", text)
			}
		}
		all[parts[0]] = s
	}
	return all, nil
}
