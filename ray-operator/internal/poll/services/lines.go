package services

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

const (
	// reads is how many logs are read in a turn.
	reads = 3
	// tries is how often it is tried to read the same log: it may have gone with its node.
	tries = 3
)

// logLine is the last line of a log.
type logLine struct {
	log  headclient.Log
	text string
	// tried is how often it was tried; done: it was read, or never will be.
	tried int
	done  bool
}

// lastLines are the last lines of the logs of the replicas that failed last, by application.
// A log is read once. One that cannot be read is no failure of the head: a replica's log may
// lie on a node that is gone.
func (l *poller) lastLines(ctx context.Context, parts map[types.NamespacedName]*Config, serving headclient.Serving) map[string]string {
	lines, texts, left := map[string]logLine{}, map[string]string{}, reads
	for _, name := range oursFirst(parts, serving.Applications) {
		log := failed(serving.Applications[name])
		if log == (headclient.Log{}) {
			continue
		}
		known := l.lines[name]
		if known.log != log { // until it is read, the line of the one before it stays
			known.log, known.tried, known.done = log, 0, false
		}
		if !known.done && left > 0 && l.head != nil {
			left--
			l.read(ctx, &known)
		}
		lines[name] = known
		if known.text != "" {
			texts[name] = known.text
		}
	}
	l.lines = lines
	return texts
}

// read tries to read a line.
func (l *poller) read(ctx context.Context, line *logLine) {
	text, err := l.head.LastLine(ctx, line.log)
	line.tried++
	if err == nil || answers(err) || line.tried >= tries {
		line.text, line.done = text, true
	}
	if err != nil {
		l.heard(ctx, err)
	}
}

// oursFirst are the names of applications, first those that are ours.
func oursFirst(parts map[types.NamespacedName]*Config, applications map[string]headclient.Application) []string {
	ours := map[string]bool{}
	for _, config := range parts {
		for name := range config.Applications {
			ours[name] = true
		}
	}
	foreign := func(name string) int {
		if ours[name] {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(applications), func(a, b string) int {
		return cmp.Or(cmp.Compare(foreign(a), foreign(b)), cmp.Compare(a, b))
	})
}

// failed is the log of the replica of an application that failed last, empty if none did: of
// a part that is not well now, if there is one.
func failed(application headclient.Application) headclient.Log {
	var of headclient.Deployment
	for _, deployment := range application.Deployments {
		if deployment.Failed == (headclient.Log{}) {
			continue
		}
		if of.Name == "" || ill(deployment) && !ill(of) || ill(deployment) == ill(of) && deployment.Name < of.Name {
			of = deployment
		}
	}
	return of.Failed
}

// ill reports whether Serve says that a deployment is not well, with the words that it has for
// an application too.
func ill(deployment headclient.Deployment) bool {
	switch headclient.ApplicationState(deployment.State) {
	case headclient.ApplicationUnhealthy, headclient.ApplicationDeployFailed:
		return true
	default:
		return false
	}
}
