package main

import (
	"slices"

	"github.com/go-logr/logr"
)

// lazySink is a log that prints what is added to it once something is logged: each pass adds its object, and few log
// anything.
type lazySink struct {
	logr.LogSink
	values []any
}

// WithValues as logr.LogSink says.
func (s lazySink) WithValues(values ...any) logr.LogSink { return lazySink{s.LogSink, s.with(values)} }

// WithName as logr.LogSink says.
func (s lazySink) WithName(name string) logr.LogSink {
	return lazySink{s.LogSink.WithName(name), s.values}
}

// Info as logr.LogSink says.
func (s lazySink) Info(level int, text string, values ...any) {
	s.LogSink.Info(level, text, s.with(values)...)
}

// Error as logr.LogSink says.
func (s lazySink) Error(err error, text string, values ...any) {
	s.LogSink.Error(err, text, s.with(values)...)
}

func (s lazySink) with(values []any) []any { return slices.Concat(s.values, values) }
