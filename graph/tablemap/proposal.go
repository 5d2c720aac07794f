package tablemap

// Proposal is what a schema extension would change.
type Proposal struct{}
