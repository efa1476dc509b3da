package logs

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// replicasOf returns the logs of the replicas of a deployment, NAME or APPLICATION/NAME, or of all without one.
func replicasOf(serving headclient.Serving, deployment string) ([]headclient.Log, error) {
	var logs []headclient.Log
	var known []string
	isKnown := deployment == ""
	for _, name := range slices.Sorted(maps.Keys(serving.Applications)) {
		for _, one := range serving.Applications[name].Deployments {
			known = append(known, one.Name)
			if deployment != "" && deployment != one.Name && deployment != name+"/"+one.Name {
				continue
			}
			isKnown = true
			for _, replica := range one.Replicas {
				if replica.Log != (headclient.Log{}) {
					logs = append(logs, replica.Log)
				}
			}
		}
	}
	if !isKnown && len(known) > 0 {
		return nil, outcome.Errorf(outcome.Usage, "the service has no deployment %q; %s", deployment, spelling.Remedy(deployment, known))
	}
	return logs, nil
}

// replicaOutput is what the replicas of a service write.
type replicaOutput struct {
	clusters   away.Clusters
	service    *v1alpha1.ClusterService
	deployment string
	isFollowed bool

	// printed is how much of each log was printed.
	printed map[headclient.Log]int64
}

// print prints the logs of all replicas, and again what is new in them where they are followed.
func (o *replicaOutput) print(ctx context.Context) error {
	c, target := o.clusters.Console, kube.TargetOf(o.service)
	o.printed = map[headclient.Log]int64{}
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
	var clusters []string
	for _, version := range []*v1alpha1.ServiceVersion{service.Status.Active, service.Status.Candidate} {
		if version != nil && version.ClusterName != "" && !slices.Contains(clusters, version.ClusterName) {
			clusters = append(clusters, version.ClusterName)
		}
	}
	if len(clusters) == 0 {
		return outcome.Errorf(outcome.Refused, "%s runs on no cluster yet; see %s", kube.TargetOf(service),
			console.Again(service.Namespace, "why service/%s", service.Name))
	}
	for _, cluster := range clusters {
		if err := o.lookAt(ctx, cluster); err != nil {
			return err
		}
	}
	return nil
}

// lookAt prints what is new on one cluster. A log that was rotated begins again, and one of a replica that is gone ends.
func (o *replicaOutput) lookAt(ctx context.Context, cluster string) error {
	head, err := o.clusters.Converse(ctx, cluster)
	if err != nil {
		return err
	}
	defer func() { _ = head.Close() }() // it was read, or the failure is another
	serve := head.Serve()
	serving, err := serve.Serving(ctx)
	if err != nil {
		return head.Explain(err)
	}
	logs, err := replicasOf(serving, o.deployment)
	if err != nil {
		return err
	}
	for _, log := range logs {
		if err := o.printLog(ctx, head, serve, log); err != nil {
			return err
		}
	}
	return nil
}

func (o *replicaOutput) printLog(ctx context.Context, head *heads.Conversation, serve *headclient.Serve, log headclient.Log) error {
	count, err := serve.ReplicaLog(ctx, log, o.printed[log], o.clusters.Console.Out)
	o.printed[log] += count
	switch headclient.KindOf(err) {
	case headclient.Gone:
		o.printed[log] = 0
		return nil
	case headclient.NotFound:
		return nil
	}
	var failure *headclient.Error
	if err != nil && !errors.As(err, &failure) {
		return outcome.Errorf(outcome.Failed, "print the log: %w", err)
	}
	if err != nil {
		return fmt.Errorf("read the log %s: %w", log.File, head.Explain(err))
	}
	return nil
}
