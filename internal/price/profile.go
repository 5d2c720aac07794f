package price

import (
	"errors"
	"fmt"
)

// Profile lists the GraphQL operations that clients execute in a month.
type Profile struct {
	Operations []Operation `json:"operations"`
}

// Operation is a query or mutation of a Profile. It contains a GraphQL document, the measured
// DynamoDB units, or both.
type Operation struct {
	// Name is the name of the operation in the output.
	Name string `json:"name"`
	// RequestsPerMonth is how often clients execute the operation in a month.
	RequestsPerMonth int64 `json:"requestsPerMonth"`
	// Query is the text of a GraphQL document that contains one operation. DocumentID is the ID or the
	// name of a trusted document. At most one of Query and DocumentID can be set.
	Query      string `json:"query"`
	DocumentID string `json:"document"`
	// Variables contains the values of the operation's variables.
	Variables map[string]any `json:"variables"`
	// Setup lists mutations that are executed before the operation. The price of the operation does
	// not include the price of these mutations.
	Setup []string `json:"setup"`
	// MeasuredUnits is the capacity that one execution of the operation consumed. Users can copy it
	// from a server's explain output. If MeasuredUnits is nil, the command price executes the
	// operation to measure the capacity.
	MeasuredUnits *Units `json:"units"`
}

// maxRequests is the maximum value of RequestsPerMonth. A higher value would mean more than about
// 400 million requests a second.
const maxRequests = 1e15

// maxUnits is the maximum number of DynamoDB read units, or of write units, for one execution.
const maxUnits = 1e9

// ParseUsageProfile parses a profile. If the profile is invalid, the error names the operation and says
// how to correct it.
func ParseUsageProfile(text []byte) (Profile, error) {
	var p Profile
	if err := decode(text, &p); err != nil {
		return p, err
	}
	if len(p.Operations) == 0 {
		return p, errors.New(`"operations" is empty: list at least one operation`)
	}
	named := map[string]bool{}
	for i, o := range p.Operations {
		if o.Name == "" {
			return p, fmt.Errorf(`operation %d has no "name"`, i+1)
		}
		if err := o.validate(); err != nil {
			return p, fmt.Errorf("operation %s: %w", o.Name, err)
		}
		if named[o.Name] {
			return p, fmt.Errorf("two operations have the name %s: rename one of them", o.Name)
		}
		named[o.Name] = true
	}
	return p, nil
}

func (o Operation) validate() error {
	documents := 0
	for _, text := range []string{o.Query, o.DocumentID} {
		if text != "" {
			documents++
		}
	}
	switch {
	case o.RequestsPerMonth < 0 || o.RequestsPerMonth > maxRequests:
		return fmt.Errorf(`"requestsPerMonth" must be a whole number from 0 to %d`, int64(maxRequests))
	case documents > 1:
		return errors.New(`the operation has both "query" and "document": remove one of them`)
	case documents == 0 && o.MeasuredUnits == nil:
		return errors.New(`the operation has no "query", "document" or "units": set one of them`)
	case o.MeasuredUnits != nil && !o.MeasuredUnits.valid():
		return fmt.Errorf(`"read" and "write" in "units" must be multiples of 0.5, from 0 to %d`, int64(maxUnits))
	}
	return nil
}

// valid reports whether both numbers are multiples of 0.5 between 0 and maxUnits.
func (u Units) valid() bool {
	for _, n := range []float64{u.Read, u.Write} {
		if n < 0 || n > maxUnits || n*2 != float64(int64(n*2)) {
			return false
		}
	}
	return true
}
