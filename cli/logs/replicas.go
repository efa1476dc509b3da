package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/apiserver/heads"
	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// chosen is a deployment of a service, NAME or APPLICATION/NAME, or all of them where it is empty.
type chosen string

// takes reports whether a replica is of the deployment.
func (c chosen) takes(one heads.Replica) bool {
	return c == "" || string(c) == one.Deployment || string(c) == one.Application+"/"+one.Deployment
}

// replicaOutput is what the replicas of a service write.
type replicaOutput struct {
	clusters   away.Clusters
	service    *v1alpha1.ClusterService
	deployment string
	isFollowed bool

	heads away.Heads
	// printed is how much of the log of each replica was printed.
	printed map[string]int64
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
	service, is := found.(*v1alpha1.ClusterService)
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
func (o *replicaOutput) printAll(ctx context.Context, service *v1alpha1.ClusterService) error {
	var others []string
	isThere := false
	err := o.heads.EachReplica(ctx, service, func(replica heads.Replica, read away.ReadLogFrom) error {
		if !chosen(o.deployment).takes(replica) {
			others = append(others, replica.Deployment)
			return nil
		}
		isThere = true
		return o.printLog(ctx, replica, read)
	})
	if err == nil && !isThere && len(o.printed) == 0 && len(others) > 0 { // later its replicas may only be restarting
		return outcome.Errorf(outcome.Usage, "%s has no replica of a deployment %q now; %s", kube.TargetOf(service), o.deployment,
			spelling.Remedy(o.deployment, slices.Compact(others)))
	}
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
