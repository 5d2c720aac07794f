package commerce_test

import (
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

func TestTimeRangeCheck(t *testing.T) {
	early := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	late := early.Add(1)
	for _, r := range []commerce.TimeRange{{}, {From: early}, {To: early}, {From: early, To: late}, {From: early, To: early}} {
		if err := r.Validate(); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
	checkInvalidError(t, commerce.TimeRange{From: late, To: early}.Validate(), `"from" must not be after "to"`)
}

func TestDateRangeCheck(t *testing.T) {
	for _, r := range []commerce.DateRange{{}, {From: "2026-02-01"}, {To: "2026-02-01"}, {From: "2025-12-31", To: "2026-01-01"}, {From: "2026-02-01", To: "2026-02-01"}} {
		if err := r.Validate(); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
	checkInvalidError(t, commerce.DateRange{From: "2026-02-02", To: "2026-02-01"}.Validate(), `"from" must not be after "to"`)
}

func TestParseDateTime(t *testing.T) {
	want := time.Date(2026, 2, 1, 10, 0, 0, 500e6, time.UTC)
	for _, s := range []string{"2026-02-01T10:00:00.5Z", "2026-02-01t10:00:00.500z", "2026-02-01T12:00:00.5+02:00", "2026-02-01t05:30:00.5-04:30"} {
		if at, err := commerce.ParseDateTime(s); err != nil || at != want {
			t.Errorf("ParseDateTime(%q) = %v, %v", s, at, err)
		}
	}
	// The zero time would mean that a TimeRange has no start or no end.
	for _, s := range []string{"0001-01-01T00:00:00Z", "0001-01-01T01:00:00+01:00"} {
		if at, err := commerce.ParseDateTime(s); err != nil || at.IsZero() {
			t.Errorf("ParseDateTime(%q) = %v, %v", s, at, err)
		}
	}
	for _, s := range []string{"", "2026-02-01", "2026-02-01T10:00:00,5Z", "2026-02-01 10:00:00Z", "2026-02-01T1:00:00Z", "2026-02-01T10:00:00", "2026-02-01T10:00:00+24:00", "2026-02-01T24:00:00Z", "2026-02-30T10:00:00Z"} {
		_, err := commerce.ParseDateTime(s)
		checkInvalidError(t, err, "2026-02-01T09:30:00Z")
	}
}

func TestParseDate(t *testing.T) {
	for _, s := range []string{"2026-02-01", "2024-02-29", "9999-12-31"} {
		if d, err := commerce.ParseDate(s); err != nil || d != commerce.Date(s) {
			t.Errorf("ParseDate(%q) = %q, %v", s, d, err)
		}
	}
	for _, s := range []string{"", "2025-02-29", "2026-2-1", "2026-02-01T00:00:00Z", "01.02.2026", "2026-13-01", " 2026-02-01"} {
		_, err := commerce.ParseDate(s)
		checkInvalidError(t, err, "2026-02-01")
	}
}
