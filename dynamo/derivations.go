package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// DerivationOptions configures ApplyDerivation, PlanDerivation and DropDerivation.
type DerivationOptions struct {
	// UnitsPerSecond limits the read and write units that are consumed in a second. 0 means no limit.
	UnitsPerSecond float64
	// Parallel is the maximum number of records that are written at the same time. 0 means 1.
	Parallel int
	// Segments is the number of segments in which a backfill reads the table. An interrupted backfill
	// continues with the segment that it has not completed. 0 means one segment for about 10,000
	// records.
	Segments int
	// IndexLag is check.Options.IndexLag.
	IndexLag time.Duration
	// OnStatus receives the status after each change of it, and OnInconsistency what was
	// corrected or what an operator must correct. Both may be nil.
	OnStatus        func(model.DerivationStatus)
	OnInconsistency func(check.Inconsistency)
}

// DerivationCost is what it takes to add a derivation to the table, or what it has taken.
type DerivationCost struct {
	// Records is the number of written records.
	Records int
	// ReadUnits and WriteUnits are the DynamoDB units. They include the final verification.
	ReadUnits, WriteUnits float64
}

// recordsPerSegment is the approximate number of records in one segment of a backfill.
const recordsPerSegment = 10_000

// Derivations returns the status of everything that a table can lack, by name.
func (s *Store) Derivations() map[string]model.DerivationStatus {
	all := map[string]model.DerivationStatus{}
	for _, d := range model.Derivations() {
		all[d.Name] = s.table.Layout.Derivations().Of(d.Name)
	}
	return all
}

// CheckReadable returns a model.DerivationUnavailable if a derived number in the records of an entity
// is not readable.
func (s *Store) CheckReadable(e *model.Entity, attribute string) error {
	return s.table.Layout.Derivations().CheckReadable(e.Name + "." + attribute)
}

// PlanDerivation computes what it would cost to add a derivation that the table lacks. It reads the
// whole table.
//
// Errors: the errors of CheckRecords.
func (s *Store) PlanDerivation(ctx context.Context, d model.Derivation, opts DerivationOptions) (DerivationCost, error) {
	if d.Feature {
		return DerivationCost{}, nil // no record changes
	}
	if err := s.table.FollowLayout(ctx); err != nil {
		return DerivationCost{}, err
	}
	found, err := s.CheckRecords(ctx, opts.check(d))
	verification := found.ScanUnits + found.AddedUnits
	return DerivationCost{found.UnrepairedCount(), found.ReadUnits + verification, found.WriteUnits}, err
}

// PlanDrop computes what it would cost to remove a derivation from the table. It reads the whole table.
//
// Errors: the errors of CheckRecords.
func (s *Store) PlanDrop(ctx context.Context, d model.Derivation, opts DerivationOptions) (DerivationCost, error) {
	if err := s.table.FollowLayout(ctx); err != nil {
		return DerivationCost{}, err
	}
	found, err := newStore(s.table.WithDerivation(d.Name, model.Dropped), s.opts).CheckRecords(ctx, opts.check(d))
	cost := DerivationCost{found.UnrepairedCount(), found.ReadUnits, found.WriteUnits}
	if cost.Records > 0 {
		cost.ReadUnits += found.ScanUnits + found.AddedUnits // to verify that nothing remains
	}
	return cost, err
}

// ApplyDerivation adds a derivation to the table while servers use it. It continues where an earlier
// call was interrupted. After success, the derivation is readable.
//
// Errors: the errors of CheckRecords and table.Table.UpdateLayout, and an error if records cannot be
// verified.
func (s *Store) ApplyDerivation(ctx context.Context, d model.Derivation, opts DerivationOptions) (cost DerivationCost, err error) {
	segments := max(1, opts.Segments)
	if opts.Segments == 0 && !d.Feature {
		description, err := s.compareTable(ctx)
		if err != nil {
			return cost, err
		}
		segments = min(1+int(description.Records/recordsPerSegment), model.MaxScanSegments)
	}
	for pass := range maxDerivationPasses {
		if err := s.table.FollowLayout(ctx); err != nil {
			return cost, err
		}
		status := s.table.Layout.Derivations().Of(d.Name)
		if opts.OnStatus != nil {
			opts.OnStatus(status)
		}
		next, duplicates := model.DerivationStatus{Segments: status.Segments}, 0
		switch status.State {
		case model.Readable:
			return cost, nil
		case model.Dropped:
			return cost, fmt.Errorf("%s is being dropped: finish this with `ordergraph table drop %[1]s` first", d.Name)
		case model.Absent:
			next.State, next.Segments = model.Written, segments
		case model.Written:
			if err := s.waitForServers(ctx, status); err != nil {
				return cost, err
			}
			if d.Feature {
				next.State, next.Segments = model.Readable, 0
				break
			}
			o := opts.check(d)
			o.Repair, o.Segments, o.SegmentsDone = true, max(1, status.Segments), status.Done
			o.OnSegment = func(done int) error {
				status.Done = done
				if opts.OnStatus != nil {
					opts.OnStatus(status)
				}
				return s.setDerivation(ctx, d, model.Written, status)
			}
			found, err := s.CheckRecords(ctx, o)
			cost.add(found)
			if err != nil {
				return cost, err
			}
			next.State, next.Done = model.Backfilled, status.Segments
			duplicates = found.Found[check.KindValueShared]
		case model.Backfilled:
			found, err := s.CheckRecords(ctx, opts.check(d))
			cost.ReadUnits += found.ReadUnits
			switch {
			case err != nil:
				return cost, err
			case found.Unverified > 0 && pass < maxDerivationPasses-1:
				continue // records keep changing
			case found.Unverified > 0:
				return cost, fmt.Errorf("records that could not be verified: %d; run `ordergraph check` to find the reasons, then run `ordergraph table apply %s` again", found.Unverified, d.Name)
			case found.Found[check.KindValueShared] > 0:
				return cost, duplicatesError(d, found.Found[check.KindValueShared])
			case found.UnrepairedCount() > found.ByHand:
				next.State = model.Written // records have changed meanwhile, so correct them again
			default:
				next.State, next.Segments = model.Readable, 0
			}
		}
		if err := s.setDerivation(ctx, d, status.State, next); err != nil {
			return cost, err
		}
		if duplicates > 0 {
			return cost, duplicatesError(d, duplicates)
		}
	}
	return cost, fmt.Errorf("%s differed from the other records after each of several backfills: run `ordergraph check`, then `ordergraph table apply %[1]s` again", d.Name)
}

// duplicatesError returns the error for a claim that cannot become readable, because records have a value
// that is reserved for another record.
func duplicatesError(d model.Derivation, n int) error {
	return fmt.Errorf("records with a value that another record also has: %d; change these values, then run `ordergraph table apply %s` again", n, d.Name)
}

// maxDerivationPasses limits how often ApplyDerivation and DropDerivation read the table or change the
// state.
const maxDerivationPasses = 12

// DropDerivation removes a derivation from the table while servers use it. It continues where an
// earlier call was interrupted.
//
// Errors: the errors of CheckRecords and table.Table.UpdateLayout, and an error if an operator must
// correct records first.
func (s *Store) DropDerivation(ctx context.Context, d model.Derivation, opts DerivationOptions) (cost DerivationCost, err error) {
	if d.Feature {
		return cost, fmt.Errorf("%s cannot be dropped, because earlier versions of Ordergraph would damage records with the attribute %s", d.Name, d.Attribute)
	}
	for range maxDerivationPasses {
		if err := s.table.FollowLayout(ctx); err != nil {
			return cost, err
		}
		status := s.table.Layout.Derivations().Of(d.Name)
		if opts.OnStatus != nil {
			opts.OnStatus(status)
		}
		next := model.DerivationStatus{State: model.Dropped}
		switch status.State {
		case model.Absent:
			return cost, nil
		case model.Dropped:
			if err := s.waitForServers(ctx, status); err != nil {
				return cost, err
			}
			o := opts.check(d)
			o.Repair = true
			found, err := s.CheckRecords(ctx, o)
			cost.add(found)
			if err != nil {
				return cost, err
			}
			if found.ByHand > 0 {
				return cost, fmt.Errorf("records must be corrected before %s can be dropped: %d", d.Name, found.ByHand)
			}
			if len(found.Found) > 0 {
				continue // a result without remains comes from a pass that found none
			}
			next.State = model.Absent
		}
		if err := s.setDerivation(ctx, d, status.State, next); err != nil {
			return cost, err
		}
	}
	return cost, fmt.Errorf("records still contain %s after several passes: run `ordergraph table drop %[1]s` again", d.Name)
}

// setDerivation stores the next status of a derivation, unless another command has changed its state
// meanwhile.
func (s *Store) setDerivation(ctx context.Context, d model.Derivation, from model.DerivationState, next model.DerivationStatus) error {
	return s.table.UpdateLayout(ctx, func(l *model.StoredLayout) error {
		before := l.Derivations.Of(d.Name)
		if before.State != from {
			return fmt.Errorf("%s is %s instead of %s, because another command has changed it meanwhile", d.Name, before.State, from)
		}
		if next.Since = before.Since; next.State != from {
			next.Since = s.table.Now().UTC().Truncate(time.Millisecond)
		}
		l.Derivations[d.Name] = next
		return nil
	})
}

// waitForServers waits until all servers follow a status.
func (s *Store) waitForServers(ctx context.Context, status model.DerivationStatus) error {
	for {
		left := status.Since.Add(table.LayoutDelay).Sub(s.table.Now())
		if left <= 0 {
			return nil
		}
		if err := table.Sleep(ctx, min(left, time.Second)); err != nil {
			return fmt.Errorf("wait until all servers follow the change: %w", err)
		}
	}
}

// check returns the options of a check of the derivation d.
func (o DerivationOptions) check(d model.Derivation) check.Options {
	return check.Options{
		Derivation: &d, Segments: o.Segments, Parallel: o.Parallel, UnitsPerSecond: o.UnitsPerSecond, IndexLag: o.IndexLag,
		OnInconsistency: o.OnInconsistency,
	}
}

// add adds what a check has consumed and repaired.
func (c *DerivationCost) add(found check.Summary) {
	for _, n := range found.Repaired {
		c.Records += n
	}
	c.ReadUnits += found.ReadUnits
	c.WriteUnits += found.WriteUnits
}
