package service

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
)

// long is how long the operator was away: longer than any drain.
const long = 1000

// lost are the situations in which an operator has noted that nobody is led to a cluster any more,
// or somebody else has, and was away before it took the labels.
func lost() map[string]func(*testing.T) *situation {
	return map[string]func(*testing.T) *situation{
		"the candidate has all requests": func(t *testing.T) *situation {
			s := upgrades(t, nil)
			s.runs(2, true)
			s.takes(s.seen.Record.Candidate)
			shift := &s.seen.Record.Shift
			shift.Traffic, shift.Proven, shift.At = 100, true, time.Unix(now-long, 0)
			return s
		},
		"the candidate was taken back": func(t *testing.T) *situation {
			s := serves(t)
			s.runs(2, true)
			s.seen.Record.Clusters, s.seen.Record.Retiring = 2, []Retired{{Cluster: 2, At: now - long}}
			return s
		},
		"a cluster is not known": func(t *testing.T) *situation {
			s := serves(t)
			s.runs(2, true)
			s.seen.Record.Clusters = 2
			return s
		},
		"the service is deleted": func(t *testing.T) *situation {
			s := serves(t)
			s.service.DeletionTimestamp = &metav1.Time{Time: time.Unix(now-long, 0)}
			return s
		},
		"the service is suspended": func(t *testing.T) *situation {
			s := serves(t)
			s.service.Spec.Suspend, s.seen.Record.Drained = true, now-long
			return s
		},
	}
}

// TestRequestsHaveAllTheTimeThoughTheOperatorWasAway: clusters drain from when nobody is led
// there any more, whatever was noted before.
func TestRequestsHaveAllTheTimeThoughTheOperatorWasAway(t *testing.T) {
	for name, after := range lost() {
		s := after(t)
		first := s.decide()
		if len(first.Close) != 2 || len(first.Change)+len(first.Discard) > 0 || first.Record == nil {
			t.Errorf("%s: at first: %s", name, &first)
			continue
		}
		for _, pod := range first.Close {
			delete(pod.Labels, naming.ServeLabel("text"))
		}
		s.seen.Record = first.Record.clone()
		for wait, over := range map[time.Duration]bool{time.Second: false, 59 * time.Second: false, 61*time.Second + closeFor: true} {
			later := Decide(s.service, s.seen, at().Add(wait))
			if freed := len(later.Change) > 0; freed != over {
				t.Errorf("%s: %s later: %s", name, wait, &later)
			}
		}
	}
}

// TestKeptConnectionsAreClosedOnceNobodyIsLedThere: not while the labels are there that lead others.
func TestKeptConnectionsAreClosedOnceNobodyIsLedThere(t *testing.T) {
	s := lost()["the candidate was taken back"](t)
	s.seen.Record.Retiring[0].At = now
	closes := func() bool {
		for _, want := range Decide(s.service, s.seen, at().Add(31*time.Second)).Wants {
			if want.Close != "" {
				return true
			}
		}
		return false
	}
	if closes() {
		t.Error("they are closed while others come")
	}
	for _, pod := range s.seen.Clusters[2].Pods {
		delete(pod.Labels, naming.ServeLabel("text"))
	}
	if !closes() {
		t.Error("they are not closed")
	}
}
