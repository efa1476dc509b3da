package cron_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/cron"
)

func parsed(t testing.TB, schedule, zone string) (cron.Times, *time.Location) {
	t.Helper()
	where, err := cron.Zone(zone)
	if err != nil {
		t.Fatal(err)
	}
	times, err := cron.Parse(schedule, where)
	if err != nil {
		t.Fatal(err)
	}
	return times, where
}

// between are the times of a span as the clocks of the zone show them, with their offsets.
func between(times cron.Times, from, until time.Time) []string {
	var all []string
	for at := times.Next(from); !at.IsZero() && !at.After(until); at = times.Next(at) {
		all = append(all, at.Format("02 15:04 -07:00"))
	}
	return all
}

func TestNext_OnDaysOnWhichClocksChange(t *testing.T) {
	for name, test := range map[string]struct{ schedule, zone, from, want string }{
		"skipped in Berlin":     {"30 2 * * *", "Europe/Berlin", "2026-03-27T12:00", "28 02:30 +01:00, 29 03:00 +02:00, 30 02:30 +02:00"},
		"repeated in Berlin":    {"30 2 * * *", "Europe/Berlin", "2026-10-23T12:00", "24 02:30 +02:00, 25 02:30 +02:00, 26 02:30 +01:00"},
		"each hour, skipped":    {"0 * * * 0", "America/New_York", "2026-03-07T23:00", hours("08 00:00 -05:00, 08 01:00 -05:00", 8, 3, 23, "-04:00")},
		"each hour, repeated":   {"0 * * * 0", "America/New_York", "2026-10-31T23:00", hours("01 00:00 -04:00, 01 01:00 -04:00, 01 01:00 -05:00", 1, 2, 23, "-05:00")},
		"several skipped":       {"0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "29 03:00 +02:00, 30 02:00 +02:00, 30 02:30 +02:00"},
		"half an hour skipped":  {"10,35 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", "04 02:30 +11:00, 04 02:35 +11:00, 05 02:10 +11:00, 05 02:35 +11:00"},
		"half an hour repeated": {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00", "05 01:45 +11:00, 06 01:45 +10:30"},
		"midnight skipped":      {"0 0 * * *", "Africa/Cairo", "2026-04-22T12:00", "23 00:00 +02:00, 24 01:00 +03:00, 25 00:00 +03:00"},
	} {
		t.Run(name, func(t *testing.T) {
			times, zone := parsed(t, test.schedule, test.zone)
			from, err := time.ParseInLocation("2006-01-02T15:04", test.from, zone)
			if err != nil {
				t.Fatal(err)
			}
			have := strings.Join(between(times, from, from.AddDate(0, 0, 3)), ", ")
			if !strings.HasPrefix(have, test.want) {
				t.Errorf("the times are\n%s, want\n%s", have, test.want)
			}
		})
	}
}

// hours are times of each full hour after some others.
func hours(before string, day, from, until int, offset string) string {
	for hour := from; hour <= until; hour++ {
		before += fmt.Sprintf(", %02d %02d:00 %s", day, hour, offset)
	}
	return before
}

// TestNext_IsThatOfEachMinute asks each minute of a year instead, where each hour is meant.
func TestNext_IsThatOfEachMinute(t *testing.T) {
	for _, zone := range []string{"Africa/Cairo", "America/New_York", "Australia/Lord_Howe"} {
		times, where := parsed(t, "7,37 * 1-15 * 0", zone) // a day of the month or of the week
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, where)
		var want []string
		for at := from.Add(time.Minute); at.Year() == 2026; at = at.Add(time.Minute) {
			if at.Minute()%30 == 7 && (at.Day() <= 15 || at.Weekday() == time.Sunday) {
				want = append(want, at.Format("02 15:04 -07:00"))
			}
		}
		if have := between(times, from, time.Date(2026, 12, 31, 23, 59, 59, 0, where)); !slices.Equal(have, want) {
			t.Errorf("%s: %d times, want %d", zone, len(have), len(want))
		}
	}
}

func TestLatest_IsTheLastOfASpan(t *testing.T) {
	for _, test := range []struct{ schedule, after, until, want string }{
		{"0 2 * * *", "2026-05-01T12:00:00Z", "2026-05-08T01:59:59Z", "2026-05-07T02:00:00Z"},
		{"0 2 * * *", "2026-05-01T12:00:00Z", "2026-05-08T02:00:00Z", "2026-05-08T02:00:00Z"},
		{"0 2 * * *", "2026-05-08T02:00:00Z", "2026-05-09T01:00:00Z", "none"},
		{"* * * * *", "2016-05-01T12:00:00Z", "2026-05-08T02:00:30Z", "2026-05-08T02:00:00Z"},
		{"0 0 29 2 *", "2016-05-01T12:00:00Z", "2026-05-08T02:00:30Z", "2024-02-29T00:00:00Z"},
		{"0 0 30 2 *", "2016-05-01T12:00:00Z", "2026-05-08T02:00:30Z", "none"},
		{"@hourly", "2026-05-08T02:00:00Z", "2026-05-08T02:00:00Z", "none"},
		{"@hourly", "2026-05-08T03:00:00Z", "2026-05-08T02:00:00Z", "none"},
	} {
		times, _ := parsed(t, test.schedule, "")
		after, _ := time.Parse(time.RFC3339, test.after)
		until, _ := time.Parse(time.RFC3339, test.until)
		have := "none"
		if latest := times.Latest(after, until); !latest.IsZero() {
			have = latest.Format(time.RFC3339)
		}
		if have != test.want {
			t.Errorf("the latest of %s from %s to %s is %s, want %s", test.schedule, test.after, test.until, have, test.want)
		}
	}
}

func TestParse_RefusesWhatHasNoTimeOfItsOwn(t *testing.T) {
	for _, schedule := range []string{"@every 1h", "TZ=Europe/Berlin 0 2 * * *", "30-10 * * * *", "", "0 2 * *"} {
		if _, err := cron.Parse(schedule, time.UTC); err == nil {
			t.Errorf("%q is taken", schedule)
		}
	}
	if _, err := cron.Zone("Mars/Olympus"); err == nil {
		t.Error("a zone of Mars is taken")
	}
}
