package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// chosen is a deployment of a service, NAME or APPLICATION/NAME, or all of them where it is empty.
type chosen string

// takes reports whether it is the deployment of an application.
func (c chosen) takes(application, deployment string) bool {
	return c == "" || string(c) == deployment || string(c) == application+"/"+deployment
}

// explainNone returns why there is no log of the deployment yet, or that the service has no such deployment.
func (c chosen) explainNone(service *v1beta1.ClusterService, all []heads.Deployment) (string, error) {
	var names, states []string
	isKnown := false
	for _, one := range all {
		name := one.Name
		if strings.Contains(string(c), "/") {
			name = one.Application + "/" + one.Name
		}
		names = append(names, name)
		if !c.takes(one.Application, one.Name) {
			continue
		}
		isKnown = true
		for _, replica := range one.Replicas {
			states = append(states, replica.State)
		}
	}
	target, what := kube.TargetOf(service), "log"
	if c != "" {
		what = fmt.Sprintf("log of deployment %q", string(c))
	}
	switch {
	case !isKnown && heads.IsDeployed(service, all):
		slices.Sort(names)
		return "", outcome.Errorf(outcome.Usage, "%s has no deployment %q; %s", target, string(c),
			spelling.Remedy(string(c), slices.Compact(names)))
	case !isKnown:
		return fmt.Sprintf("%s has no %s yet: Serve builds its applications", target, what), nil
	case len(states) == 0:
		return fmt.Sprintf("%s has no %s now: it has no replica", target, what), nil
	}
	slices.Sort(states)
	return fmt.Sprintf("%s has no %s yet: its replicas are %s", target, what, strings.Join(slices.Compact(states), ", ")), nil
}

// replicaOutput is what the replicas of a service write.
type replicaOutput struct {
	clusters   away.Clusters
	service    *v1beta1.ClusterService
	deployment string
	isFollowed bool

	heads away.Heads
	// printed is how much of the log of each replica was printed.
	printed map[string]int64
	// said is why there was no log at the last look.
	said string
}

// print prints the logs of all replicas, and again what is new in them where they are followed.
func (o *replicaOutput) print(ctx context.Context) error {
	var err error
	if o.heads, err = o.clusters.Find(); err != nil {
		return err
	}
	c, target := o.clusters.Console, kube.TargetOf(o.service)
	o.printed = map[string]int64{}
	head := patience{console: c, who: "the head", what: target.String(), again: console.Again(o.service.Namespace, "logs %s -f", target)}
	for {
		err := o.look(ctx)
		switch {
		case ctx.Err() != nil:
			return detached(o.service, o.flags()...)
		case err == nil && !o.isFollowed:
			return nil
		case err == nil:
			head.silence.Broken()
			err = pause(ctx, c, o.spare())
		case o.isFollowed && away.IsPassing(err):
			err = head.rest(ctx, err)
		}
		if err != nil && ctx.Err() == nil {
			return kube.Because(err)
		}
	}
}

// flags are the choice as a user types it.
func (o *replicaOutput) flags() []string {
	if o.deployment == "" {
		return nil
	}
	return []string{"--deployment", o.deployment}
}

// spare returns how long heads are left alone: each look has them read the logs again.
func (o *replicaOutput) spare() time.Duration {
	sum := int64(0)
	for _, one := range o.printed {
		sum += one
	}
	return max(console.Look, headclient.Reread(sum))
}

// look prints what is new on each cluster that the service has now.
func (o *replicaOutput) look(ctx context.Context) error {
	found, err := o.clusters.Objects.Read(ctx, kube.TargetOf(o.service))
	if err != nil {
		return err
	}
	service, is := found.(*v1beta1.ClusterService)
	if !is || service.UID != o.service.UID {
		return outcome.Errorf(outcome.Failed, "%s was deleted, and another object has its name", kube.TargetOf(o.service))
	}
	if len(heads.ClustersOf(service)) == 0 {
		return outcome.Errorf(outcome.Refused, "%s runs on no cluster yet; see %s", kube.TargetOf(service),
			console.Again(service.Namespace, "why service/%s", service.Name))
	}
	return o.printAll(ctx, service)
}

// printAll prints what is new in the logs of the replicas of the deployment.
func (o *replicaOutput) printAll(ctx context.Context, service *v1beta1.ClusterService) error {
	all, err := o.heads.EachReplica(ctx, service, func(replica heads.Replica, read away.ReadLogFrom) error {
		if !chosen(o.deployment).takes(replica.Application, replica.Deployment) {
			return nil
		}
		return o.printLog(ctx, replica, read)
	})
	if err != nil || len(o.printed) > 0 { // later its replicas may only be restarting
		return err
	}
	why, err := chosen(o.deployment).explainNone(service, all)
	if err == nil && why != o.said {
		o.clusters.Console.Note("%s; see %s", why, console.Again(service.Namespace, "why %s", kube.TargetOf(service)))
	}
	o.said = why
	return err
}

// printLog prints what is new in a log. One that was rotated begins again, and one of a replica that is gone ends.
func (o *replicaOutput) printLog(ctx context.Context, replica heads.Replica, read away.ReadLogFrom) error {
	key, out := replica.Cluster+"/"+replica.ID, &counter{out: o.clusters.Console.Out}
	err := read(ctx, o.printed[key], out)
	o.printed[key] += out.count
	switch {
	case out.err != nil:
		return outcome.Errorf(outcome.Failed, "print the log: %w", out.err)
	case errors.Is(err, away.ErrLogShorter):
		o.printed[key] = 0
	case err != nil && !errors.Is(err, away.ErrLogGone):
		return fmt.Errorf("read the log of replica %s: %w", replica.ID, err)
	}
	return nil
}
