package commerce

import (
	"strings"
	"time"
)

// TimeRange is a time range that includes From and excludes To. If From is zero, the range has no
// start. If To is zero, the range has no end. If all times are in UTC, the operator == compares
// TimeRanges correctly.
type TimeRange struct{ From, To time.Time }

// Validate returns an InvalidError if From is after To.
func (r TimeRange) Validate() error {
	if !r.From.IsZero() && !r.To.IsZero() && r.From.After(r.To) {
		return NewInvalidError("is an invalid range: \"from\" must not be after \"to\"")
	}
	return nil
}

// ParseDateTime parses a time in RFC 3339 format and returns it in UTC. As in RFC 3339, the letters
// T and Z may be in lower case, and the decimal separator is a period.
//
// ParseDateTime returns an InvalidError if s has another form.
func ParseDateTime(s string) (time.Time, error) {
	upper := strings.NewReplacer("t", "T", "z", "Z").Replace(s)
	t, err := time.Parse(time.RFC3339, upper)
	// time.Parse also accepts a comma, an hour with one digit, and an offset of 24 hours or more.
	if err == nil && !strings.HasSuffix(upper, "Z") {
		_, err = time.Parse("15:04", upper[len(upper)-len("15:04"):])
	}
	if err != nil || strings.Contains(s, ",") || upper[len("2026-02-01T09")] != ':' {
		return time.Time{}, NewInvalidError("is %q: use a time of the form 2026-02-01T09:30:00Z", excerpt(s))
	}
	if t.IsZero() {
		t = t.Add(1) // in a TimeRange, the zero time would mean that no time is set
	}
	return t.UTC(), nil
}

// Date is a calendar day in the form 2026-02-01. The operators < and > compare dates correctly. The
// empty Date means that no date is set.
type Date string

// ParseDate validates s and returns it as a date.
//
// ParseDate returns an InvalidError if s is not a calendar day in the form 2026-02-01.
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

// DateRange is a range of days that includes From and excludes To. If From is empty, the range has
// no start. If To is empty, the range has no end.
type DateRange struct{ From, To Date }

// Validate returns an InvalidError if From is after To.
func (r DateRange) Validate() error {
	if r.From != "" && r.To != "" && r.From > r.To {
		return NewInvalidError("is an invalid range: \"from\" must not be after \"to\"")
	}
	return nil
}

// Days returns the number of days in the range. It returns false if the range has no start or no end.
func (r DateRange) Days() (int, bool) {
	from, err := time.Parse(time.DateOnly, string(r.From))
	to, err2 := time.Parse(time.DateOnly, string(r.To))
	return int(to.Sub(from).Hours()) / 24, err == nil && err2 == nil
}
