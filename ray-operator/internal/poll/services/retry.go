package services

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Pauses between two times that the same is deployed because it could not be.
const (
	firstRetry = 30 * time.Second
	mostRetry  = 15 * time.Minute
)

// retries are how often in a row a configuration was deployed again because an application of it
// could not be, and when the next time is.
type retries struct {
	count int
	at    time.Time
}

// isDue reports whether a configuration must be deployed again where its applications are like
// this. Ray builds an application again whose build failed. To one whose replicas cannot start it
// means nothing to be asked for the same.
func (r *retries) isDue(config *Config, applications map[string]headclient.Application, now time.Time) bool {
	failed, well := false, true
	for name := range config.Applications {
		state := applications[name].State
		failed = failed || state == headclient.ApplicationDeployFailed
		well = well && state == headclient.ApplicationRunning
	}
	switch {
	case well || !config.Retry:
		*r = retries{}
	case !failed: // it is on its way
		r.at = time.Time{}
	case r.at.IsZero():
		r.at = now.Add(min(firstRetry<<min(r.count, 10), mostRetry))
	default:
		return !now.Before(r.at)
	}
	return false
}

// note counts a time that the same was deployed.
func (r *retries) note() { r.count, r.at = r.count+1, time.Time{} }
