package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/pack"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// renewal is how often an upload is renewed. Ray drops one that no job has used for ten minutes.
const renewal = 3 * time.Minute

// uploaded are files that the head of a cluster keeps for its jobs.
type uploaded struct {
	console *console.Console
	packed  *pack.Package
	// isDetached: nobody is there to renew the upload.
	isDetached bool

	clusters away.Clusters
	cluster  string
}

// prepare uploads the files, unless the head has them.
func (u *uploaded) prepare(ctx context.Context, objects *kube.Objects, job *v1beta1.ClusterJob) error {
	u.clusters, u.cluster = away.Clusters{Console: u.console, Objects: objects}, job.Spec.ClusterRef.Name
	found, err := objects.Read(ctx, kube.Target{Kind: kube.Cluster, Name: u.cluster})
	if err != nil {
		return err
	}
	var jobs []verbs.Object
	if u.isDetached && limitOf(found) > 0 {
		if jobs, err = objects.ListAll(ctx, kube.Job, kube.Selection{Namespace: objects.Namespace}); err != nil {
			return err
		}
	}
	if why := outlives(job, found, jobs, u.isDetached); why != "" {
		return outcome.Errorf(outcome.Refused, "%s, and Ray drops an upload that no job has used for 10 minutes; %s", why, lasting)
	}
	if err := u.ensure(ctx); err != nil {
		return refusal(u.cluster, err)
	}
	return nil
}

// settle does nothing: the job finds the files by their name.
func (u *uploaded) settle(context.Context, *kube.Objects, *v1beta1.ClusterJob) error { return nil }

// hold renews the upload until the context ends.
func (u *uploaded) hold(ctx context.Context) {
	ticker := u.console.Clock.NewTicker(renewal)
	defer ticker.Stop()
	silence := console.Silence{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		err := u.ensure(ctx)
		switch {
		case err == nil:
			silence.Broken()
		case ctx.Err() == nil && silence.IsNew(u.console.Clock.Now()):
			u.console.Note("the uploaded files were not renewed: %v; trying again", err)
		}
	}
}

// ensure has the head keep the files for another while, and uploads them where it does not have them.
func (u *uploaded) ensure(ctx context.Context) error {
	way, err := u.clusters.Find()
	if err != nil {
		return err
	}
	files := away.Package{Namespace: u.clusters.Objects.Namespace, Cluster: u.cluster, Name: u.packed.Name, Archive: u.packed.Archive}
	return way.KeepPackage(ctx, files, func() {
		u.console.Note("uploading %d files, %s packed, to cluster/%s", u.packed.Files, pack.Bytes(int64(len(u.packed.Archive))), u.cluster)
	})
}

// refusal returns why nothing was uploaded, so that no job was created.
func refusal(cluster string, err error) error {
	var unavailable *heads.Unavailable
	if errors.As(err, &unavailable) {
		return outcome.Errorf(outcome.Refused, "upload the files to cluster/%s: %w; wait for it with heliostat wait cluster/%s, or %s",
			cluster, unavailable, cluster, lasting)
	}
	return kube.Because(fmt.Errorf("upload the files to cluster/%s: %w", cluster, err))
}

// limitOf returns how many jobs run on a cluster at once; 0 is any number.
func limitOf(found verbs.Object) int {
	if cluster, is := found.(*v1beta1.ComputeCluster); is && cluster.Spec.MaxConcurrentJobs != nil {
		return int(*cluster.Spec.MaxConcurrentJobs)
	}
	return 0
}

// outlives returns why a job may run when its upload is gone, and "" where it cannot.
func outlives(job *v1beta1.ClusterJob, cluster verbs.Object, jobs []verbs.Object, isDetached bool) string {
	retry, most := job.Spec.Retry, limitOf(cluster)
	switch {
	case retry != nil && (retry.Limit > 0 || retry.InfrastructureLimit != nil && *retry.InfrastructureLimit > 0):
		return fmt.Sprintf("a retry on cluster/%s may come later", cluster.GetName())
	case ptr.Deref(job.Spec.Suspend, false):
		return "a job that is suspended runs later"
	case !isDetached || most == 0:
		return ""
	}
	before := 0
	for _, one := range jobs {
		other, is := one.(*v1beta1.ClusterJob)
		if is && other.Spec.ClusterRef != nil && other.Spec.ClusterRef.Name == cluster.GetName() &&
			other.Status.EndTime == nil && !ptr.Deref(other.Spec.Suspend, false) {
			before++
		}
	}
	if before < most {
		return ""
	}
	return fmt.Sprintf("cluster/%s runs %d jobs at once and has %d, so that with --detach nobody renews the upload of one in its "+
		"queue", cluster.GetName(), most, before)
}
