package services

import (
	"maps"
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// counted is up to how many replies of a sort in a row each is news: who waits for more
// than that many looks at when the first came.
const counted = 3

// HasNews reports whether an answer means something else than the one before, and so wakes the service. When it was
// heard does not, nor which replicas there are while as many run.
func HasNews(a, b Answer) bool {
	return a.At.IsZero() != b.At.IsZero() || a.Failure != b.Failure ||
		a.Outcome != b.Outcome || a.Closed != b.Closed ||
		!alike(a.Serving, b.Serving) || !maps.Equal(a.LastLines, b.LastLines) || replied(a.Probes, b.Probes)
}

// alike reports whether Serve does the same.
func alike(a, b headclient.Serving) bool {
	return a.Running == b.Running && (a.Capacity == nil) == (b.Capacity == nil) &&
		(a.Capacity == nil || *a.Capacity == *b.Capacity) &&
		among(a.Targets, b.Targets) && among(b.Targets, a.Targets) &&
		maps.EqualFunc(a.Applications, b.Applications, alikeApplications)
}

// among reports whether all the targets are among others: no order of them means anything.
func among(targets, others []headclient.Target) bool {
	return !slices.ContainsFunc(targets, func(t headclient.Target) bool { return !slices.Contains(others, t) })
}

func alikeApplications(a, b headclient.Application) bool {
	return a.State == b.State && a.Message == b.Message && a.RoutePrefix == b.RoutePrefix && a.Declarative == b.Declarative &&
		slices.EqualFunc(a.Deployments, b.Deployments, alikeDeployments)
}

func alikeDeployments(a, b headclient.Deployment) bool {
	return a.Name == b.Name && a.State == b.State && a.Trigger == b.Trigger && a.Message == b.Message &&
		a.Wanted == b.Wanted && a.Running == b.Running
}

// replied reports whether replies of proxies mean something new. That a proxy is not asked any
// more does not: the caller stopped asking it.
func replied(a, b map[Probe]Reply) bool {
	for probe, now := range b {
		before := a[probe]
		if before.OK != now.OK || before.Times != now.Times && now.Times <= counted {
			return true
		}
	}
	return false
}
