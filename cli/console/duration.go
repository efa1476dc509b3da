package console

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// duration is the value of a flag that is a time, and never negative.
type duration struct{ to *time.Duration }

// AddDuration adds a flag that is a time, 0 where it is not given.
func AddDuration(flags *pflag.FlagSet, to *time.Duration, name, use string) {
	flags.Var(duration{to}, name, use)
}

// Set implements pflag.Value.
func (d duration) Set(text string) error {
	given, err := time.ParseDuration(text)
	if err != nil || given < 0 {
		return errors.New("no duration")
	}
	*d.to = given
	return nil
}

// String implements pflag.Value. Help names no default where that is 0.
func (d duration) String() string {
	if d.to == nil || *d.to == 0 {
		return ""
	}
	return d.to.String()
}

// Type implements pflag.Value.
func (duration) Type() string { return "duration" }
