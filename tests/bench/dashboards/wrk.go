package dashboards

import (
	"fmt"
	"regexp"
	"strconv"
)

// Load is what wrk says of a load.
type Load struct {
	// Requests and MiB are those of a second, and P50 is in milliseconds.
	Requests, MiB, P50 float64
}

var (
	requestsOf = regexp.MustCompile(`(?m)^Requests/sec:\s+([0-9.]+)$`)
	bytesOf    = regexp.MustCompile(`(?m)^Transfer/sec:\s+([0-9.]+)([KMG]?)B$`)
	halfOf     = regexp.MustCompile(`(?m)^\s+50%\s+([0-9.]+)(us|ms|s)\s*$`) // wrk pads seconds
	troubleOf  = regexp.MustCompile(`(?m)^\s*(Non-2xx or 3xx responses: .*|Socket errors: .*)$`)
)

// units are what sizes and times of wrk are counted in, as MiB and milliseconds.
var units = map[string]float64{"": 1.0 / (1 << 20), "K": 1.0 / 1024, "M": 1, "G": 1024, "us": 1e-3, "ms": 1, "s": 1e3}

// ParseWrk reads what wrk --latency prints. A load with failed requests is an error.
func ParseWrk(text string) (Load, error) {
	if trouble := troubleOf.FindStringSubmatch(text); trouble != nil {
		return Load{}, fmt.Errorf("read what wrk measured: requests failed: %s", trouble[1])
	}
	var load Load
	for _, one := range []struct {
		form *regexp.Regexp
		into *float64
	}{{requestsOf, &load.Requests}, {bytesOf, &load.MiB}, {halfOf, &load.P50}} {
		found := one.form.FindStringSubmatch(text)
		if found == nil {
			return Load{}, fmt.Errorf("read what wrk measured: %s is missing: %s", one.form, text)
		}
		value, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return Load{}, fmt.Errorf("read what wrk measured: %w", err)
		}
		unit := 1.0
		if len(found) > 2 {
			unit = units[found[2]]
		}
		*one.into = value * unit
	}
	return load, nil
}
