package commerce

import "time"

// TimeRange is a half-open time range: From is included, To is excluded. A zero From or To leaves
// that end open. Equal ranges in UTC can be compared with ==.
type TimeRange struct{ From, To time.Time }

// Validate returns an InvalidError if From is after To.
func (r TimeRange) Validate() error {
	if !r.From.IsZero() && !r.To.IsZero() && r.From.After(r.To) {
		return NewInvalidError("is an invalid range: \"from\" must not be after \"to\"")
	}
	return nil
}

// Date is a calendar day in RFC 3339 format, such as 2026-02-01. Dates compare as strings. The
// empty Date means no date.
type Date string

// ParseDate returns s as a date.
//
// It returns an InvalidError if s is not a calendar day in the form 2026-02-01.
func ParseDate(s string) (Date, error) {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return "", NewInvalidError("is %q: use a date of the form 2026-02-01", s)
	}
	return Date(s), nil
}

// Month returns the month of the date, such as "2026-02".
func (d Date) Month() string { return string(d[:len("2026-02")]) }

// DayBefore returns the previous day.
func (d Date) DayBefore() Date {
	day, _ := time.Parse(time.DateOnly, string(d))
	return Date(day.AddDate(0, 0, -1).Format(time.DateOnly))
}

// DateRange is a half-open range of days: From is included, To is excluded. An empty From or To
// leaves that end open.
type DateRange struct{ From, To Date }

// Validate returns an InvalidError if From is after To.
func (r DateRange) Validate() error {
	if r.From != "" && r.To != "" && r.From > r.To {
		return NewInvalidError("is an invalid range: \"from\" must not be after \"to\"")
	}
	return nil
}
