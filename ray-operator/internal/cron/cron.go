// Package cron says at which times a schedule comes.
//
// In: the schedule in cron's form, the name of a zone, and times. Out: the next time, or the latest one of a span.
//
// Where the hours are chosen, a schedule means what clocks show: each time of day comes once a day, also on the days on
// which the clocks change. Where each hour is meant, it comes in each hour that passes. It is pure: the zones are in the
// program, and what it returns follows from its arguments.
package cron

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // images have no zones

	robfig "github.com/robfig/cron/v3"
)

// Times are the times of a schedule in a zone.
type Times struct {
	zone   *time.Location
	fields *robfig.SpecSchedule
	// isHourly reports whether each hour is meant.
	isHourly bool
}

// everyHour are the bits of all hours of a day.
const everyHour = 1<<24 - 1

var errForm = errors.New("it has not the form of five fields or of a word such as @daily")

// Zone returns the zone of an IANA name, UTC for none.
func Zone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("load zone %q: %w", name, err)
	}
	return zone, nil
}

// Parse reads a schedule in cron's form.
func Parse(schedule string, zone *time.Location) (Times, error) {
	parsed, err := robfig.ParseStandard(schedule)
	if err != nil {
		return Times{}, fmt.Errorf("parse schedule: %w", err)
	}
	fields, is := parsed.(*robfig.SpecSchedule)
	if !is || fields.Location != time.Local { // @every has no time of its own, and TZ= is not where the zone stands
		return Times{}, fmt.Errorf("parse schedule %q: %w", schedule, errForm)
	}
	times := Times{zone: zone, fields: fields, isHourly: fields.Hour&everyHour == everyHour}
	if fields.Location = time.UTC; times.isHourly {
		fields.Location = zone
	}
	return times, nil
}

// Next returns the first time after another one, in the zone. It is zero where none comes within years.
func (t Times) Next(after time.Time) time.Time {
	if t.isHourly {
		next := t.fields.Next(after)
		if next.IsZero() {
			return next
		}
		return next.In(t.zone)
	}
	for wall := wallOf(after.In(t.zone)); ; {
		if wall = t.fields.Next(wall); wall.IsZero() {
			return wall
		}
		if at := t.instant(wall); at.After(after) {
			return at
		}
	}
}

// Latest returns the last time after one and not after another, zero where there is none.
func (t Times) Latest(after, until time.Time) time.Time {
	from := until
	for back := time.Minute; t.isPast(from, until); back *= 2 {
		if !from.After(after) {
			return time.Time{}
		}
		if from = until.Add(-back); from.Before(after) {
			from = after
		}
	}
	var last time.Time
	for next := t.Next(from); !next.IsZero() && !next.After(until); next = t.Next(next) {
		last = next
	}
	return last
}

// isPast reports whether none comes after one time and not after another.
func (t Times) isPast(after, until time.Time) bool {
	next := t.Next(after)
	return next.IsZero() || next.After(until)
}

// wallOf is what the clocks of a time's zone show, as if they were those of UTC, where each time of day comes once.
func wallOf(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
}

// instant is when the clocks of the zone show a time first. Where they skip it, it is when they change.
func (t Times) instant(wall time.Time) time.Time {
	by := func(near time.Time) time.Time { // an offset is less than a day, so that of the day before or after is in force
		_, offset := near.In(t.zone).Zone()
		return wall.Add(-time.Duration(offset) * time.Second).In(t.zone)
	}
	before, after := by(wall.AddDate(0, 0, -1)), by(wall.AddDate(0, 0, 1))
	switch {
	case wallOf(before).Equal(wall):
		return before
	case wallOf(after).Equal(wall):
		return after
	default:
		change, _ := before.ZoneBounds()
		return change
	}
}
