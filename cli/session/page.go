package session

import (
	"context"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// openPage serves the page of a job's program until the context ends.
func openPage(ctx context.Context, clusters *away.Clusters, name string, port int) error {
	if _, _, err := findPage(ctx, clusters, name); err != nil {
		return err
	}
	return serve(ctx, clusters.Console, site{
		title: "the page of job/" + name, origin: "the program of job " + name,
		connect: func(ctx context.Context) (net.Conn, error) {
			pod, port, err := findPage(ctx, clusters, name)
			if err != nil {
				return nil, err
			}
			return clusters.Console.Forward(ctx, pod, port)
		},
		token: func(context.Context) string { return "" },
	}, port)
}

// findPage returns the pod and the port of the page that a job's program has now. Any code on the cluster can write where it is,
// so that it must be in a pod of the job's cluster.
func findPage(ctx context.Context, clusters *away.Clusters, name string) (types.NamespacedName, int, error) {
	object, err := clusters.Objects.Read(ctx, kube.Target{Kind: kube.Job, Name: name})
	if err != nil {
		return types.NamespacedName{}, 0, err
	}
	job, is := object.(*v1beta1.ClusterJob)
	if !is || job.Status.Gang == nil || job.Status.Gang.Page == nil {
		return types.NamespacedName{}, 0, outcome.Errorf(outcome.Refused,
			"job/%s has no page now; open it while its phase is Running, where its gang is of framework Spark", name)
	}
	page := job.Status.Gang.Page
	object, err = clusters.Objects.Read(ctx, kube.Target{Kind: kube.Cluster, Name: job.Status.ClusterName})
	if err != nil {
		return types.NamespacedName{}, 0, err
	}
	pod, at := &corev1.Pod{}, types.NamespacedName{Namespace: job.Namespace, Name: page.PodName}
	if err := clusters.Objects.Get(ctx, at, pod); err != nil {
		return types.NamespacedName{}, 0, kube.Because(fmt.Errorf("read pod %s of the page: %w", page.PodName, err))
	}
	if !metav1.IsControlledBy(pod, object) {
		return types.NamespacedName{}, 0, outcome.Errorf(outcome.Refused,
			"job/%s says that its page is in pod %s, which is not of its cluster; look at what else runs on that cluster", name, pod.Name)
	}
	return at, int(page.Port), nil
}
