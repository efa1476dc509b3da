package app

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// readEach is how often all labels are made again at most. A label of a new object is known after as long.
const readEach = time.Second

// labels finds objects by the DNS labels that they have below the wildcard. It may be used by many goroutines.
type labels struct {
	view  *view.View
	clock clock.PassiveClock

	mutex sync.Mutex
	read  time.Time
	known map[string]view.Key
}

func newLabels(of *view.View, now clock.PassiveClock) *labels { return &labels{view: of, clock: now} }

// FindLabel implements route.Labels.
func (l *labels) FindLabel(label string) (kind route.Kind, namespace, name string, found bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key, is := l.known[label]
	if !is && (l.known == nil || l.clock.Since(l.read) >= readEach) {
		l.readAll()
		key, is = l.known[label]
	}
	if !is {
		return "", "", "", false
	}
	if _, _, exists := l.view.Find(key); !exists {
		delete(l.known, label)
		return "", "", "", false
	}
	kind = route.Cluster
	if key.Kind == view.Services {
		kind = route.Service
	}
	return kind, key.Namespace, key.Name, true
}

func (l *labels) readAll() {
	l.read, l.known = l.clock.Now(), map[string]view.Key{}
	for _, key := range l.view.Keys(view.Clusters) {
		l.known[naming.ClusterHost(key.Namespace, key.Name)] = key
	}
	for _, key := range l.view.Keys(view.Services) {
		l.known[naming.ServiceHost(key.Namespace, key.Name)] = key
	}
}
