package serving

import (
	"context"
	"encoding/json"
	"slices"
	"time"

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

// life is what was done in one session of a head.
type life struct {
	// reborn: another session answered before. What the record says of it counts no more.
	reborn bool
	// begun is the digest that was sent last, taken the same once the head took it. What
	// became of it is not known in between, and the record does not know of it.
	begun, taken string
	refusal      refusal
	// silent is in how many turns in a row the head said that it has no Serve.
	silent int
	// again is how often what was taken was deployed again in a row because something of it
	// was missing, due when it is next.
	again int
	due   time.Time
}

// refusal is why a digest was not taken.
type refusal struct {
	digest, why string
	// final: the head said so. Else nothing was sent, and the reason may pass.
	final bool
}

// took tells whether a head has taken a configuration in this session, as far as is known.
func (l *life) took(config *Config) bool {
	if l.begun != "" {
		return l.taken == config.Digest
	}
	return config.Taken && !l.reborn
}

// sure tells whether what Serve says is all that there is.
func (l *life) sure(config *Config, running bool) bool {
	return running || l.silent >= believed || config.Alone && !l.took(config)
}

// wants tells whether a configuration is to be deployed where Serve says this.
func (l *life) wants(config *Config, serving headclient.Serving, now time.Time) bool {
	switch {
	case !l.sure(config, serving.Running):
		return false
	case !l.took(config):
		return true
	case !lacks(config, serving.Applications):
		l.again, l.due, l.refusal = 0, time.Time{}, refusal{}
		return false
	default:
		return !now.Before(l.due)
	}
}

// lacks tells whether an application is missing that is to be there, or there that is to go.
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

// stays tells whether an application is there, and not about to go.
func stays(application headclient.Application) bool {
	return application.State != "" && application.State != headclient.ApplicationDeleting
}

// deploy deploys a configuration where that is needed, and tells whether the head took it.
// That it would not is an answer and no failure.
func (l *lookout) deploy(ctx context.Context, config *Config, serving headclient.Serving) (bool, error) {
	if config == nil || l.refusal.digest != config.Digest {
		l.refusal = refusal{}
	}
	now := l.watch.clock.Now()
	if config == nil || l.refusal.final || !l.wants(config, serving, now) {
		return false, nil
	}
	document, why := union(config, serving.Applications)
	if why != "" {
		l.refusal = refusal{digest: config.Digest, why: why}
		return false, nil
	}
	if !serving.Running && len(config.Applications) == 0 {
		document = nil // no Serve is started to run nothing
	}
	return l.send(ctx, config, document, now)
}

// send sends a whole configuration, if there is anything to send.
func (l *lookout) send(ctx context.Context, config *Config, document json.RawMessage, now time.Time) (bool, error) {
	again := l.took(config)
	if again || l.begun != config.Digest { // not each time that it fails
		log.FromContext(ctx).Info("deploying applications", "cluster", l.cluster, "session", l.session, "digest", config.Digest, "applications", len(config.Applications), "again", again)
	}
	l.begun, l.taken = config.Digest, ""
	var err error
	if document != nil {
		err = l.head.Deploy(ctx, document)
	}
	switch headclient.KindOf(err) {
	case "":
		l.taken, l.refusal, l.silent = config.Digest, refusal{}, 0
		if again {
			l.again++
			l.due = now.Add(min(shortest<<min(l.again, 10), mostAgain))
		}
		return true, nil
	case headclient.Refused, headclient.Invalid:
		l.refusal = refusal{digest: config.Digest, why: headclient.CauseOf(err), final: true}
		return false, nil
	default:
		l.heard(ctx, err)
		return false, err
	}
}
