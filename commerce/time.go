package commerce

import "time"

// TimeRange is a span of time: From is in it, To is not. A zero From or To leaves that side open.
// TimeRanges in UTC are equal (==) where they say the same.
type TimeRange struct{ From, To time.Time }

// Check returns an InvalidError if From is after To.
func (r TimeRange) Check() error {
	if !r.From.IsZero() && !r.To.IsZero() && r.From.After(r.To) {
		return Invalid("runs backwards: its \"from\" is after its \"to\"")
	}
	return nil
}

// Date is a calendar day as RFC 3339 writes it, 2026-02-01; dates compare as strings. The empty
// Date is none.
type Date string

// ParseDate returns s as a date.
//
// Errors: InvalidError where s is no day of the calendar in that form.
func ParseDate(s string) (Date, error) {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return "", Invalid("is %q: a date has the form 2026-02-01", s)
	}
	return Date(s), nil
}

// Month returns the month of the date, such as 2026-02.
func (d Date) Month() string { return string(d[:len("2026-02")]) }

// DayBefore returns the day before.
func (d Date) DayBefore() Date {
	day, _ := time.Parse(time.DateOnly, string(d))
	return Date(day.AddDate(0, 0, -1).Format(time.DateOnly))
}

// DateRange is a span of days: From is in it, To is not. An empty From or To leaves that side open.
type DateRange struct{ From, To Date }

// Check returns an InvalidError if From is after To.
func (r DateRange) Check() error {
	if r.From != "" && r.To != "" && r.From > r.To {
		return Invalid("runs backwards: its \"from\" is after its \"to\"")
	}
	return nil
}
