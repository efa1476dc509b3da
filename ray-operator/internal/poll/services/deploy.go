package services

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

const (
	// believed is how many turns in a row a head must say that it has no Serve before
	// anything is deployed because of it. Ray says so too when it could not find its
	// controller just then, and what is deployed in that moment takes away what was not seen.
	believed = 3
	// mostAgain is the longest pause between two times that the same is deployed because it
	// is missing: somebody takes it away each time.
	mostAgain = 30 * time.Second
)

// lacks reports whether an application is missing that must be there, or there that is to go.
func lacks(config *Config, there map[string]headclient.Application) bool {
	for name := range config.Applications {
		if application := there[name]; !stays(application) || !application.Declarative {
			return true
		}
	}
	return slices.ContainsFunc(config.Drop, func(name string) bool {
		_, ours := config.Applications[name]
		return !ours && stays(there[name]) && there[name].Declarative
	})
}

// stays reports whether an application is there, and not about to go.
func stays(application headclient.Application) bool {
	return application.State != "" && application.State != headclient.ApplicationDeleting
}

// deploy deploys the first part that needs it and may be sent, and reports whether the head
// took one. That it refuses one is an answer and no failure, and concerns that part alone: the
// next one follows.
func (l *poller) deploy(ctx context.Context, wanted map[types.NamespacedName]*Config, serving headclient.Serving) (bool, error) {
	sure := serving.Running || l.silent >= believed
	for _, service := range inOrder(wanted) {
		now, config, known := l.watch.clock.Now(), wanted[service], l.parts[service]
		if !known.wants(config, sure, serving.Applications, now) {
			continue
		}
		document, why := union(config, l.beside(service, wanted), serving.Applications)
		if why != "" {
			known.refuse(config.Digest, why, now)
			continue
		}
		if !serving.Running && len(config.Applications) == 0 {
			document = nil // no Serve is started to run nothing
		}
		if taken, err := l.send(ctx, service, config, document); taken || err != nil {
			return taken, err
		}
	}
	return false, nil
}

// send sends a whole configuration, in which the part of one service is new, if there is
// anything to send.
func (l *poller) send(ctx context.Context, service types.NamespacedName, config *Config, document json.RawMessage) (bool, error) {
	known, now := l.parts[service], l.watch.clock.Now()
	again, former := known.took(config), known.accepted
	if again || known.sent != config.Digest { // not each time that it fails
		log.FromContext(ctx).Info("Deploying applications", "cluster", l.Key.cluster, "service", service, "session", l.session,
			"digest", config.Digest, "applications", len(config.Applications), "again", again)
	}
	known.sent, known.accepted, known.taken, known.form = config.Digest, nil, "", nil
	var err error
	if document != nil {
		err = l.head.Deploy(ctx, document)
	}
	switch headclient.KindOf(err) {
	case "":
		l.accept(service, config)
		if again {
			known.postpone(now)
		}
		return true, nil
	case headclient.Refused, headclient.Invalid:
		known.accepted, known.refusal = former, refusal{digest: config.Digest, why: headclient.CauseOf(err), final: true}
		return false, nil
	default:
		l.heard(ctx, err)
		return false, err
	}
}
