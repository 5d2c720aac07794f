package model

// String returns the name of a kind in lower case, such as claim. An edge is a copy with the same partition
// key, so it has the kind copy, too.
func (k EntityKind) String() string {
	return [...]string{Base: "record", Copy: "copy", Claim: "claim", Sum: "sum", Latest: "latest", Share: "share"}[k]
}
