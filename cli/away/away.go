package away

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// callWithin is how long one call may take: it goes by way of the API server and a kubelet.
const callWithin = 30 * time.Second

// Clusters are the clusters of a namespace, from outside.
type Clusters struct {
	Console *console.Console
	Objects *kube.Objects
}

// Converse begins a conversation with the head that a cluster has now. The caller closes it.
func (c *Clusters) Converse(ctx context.Context, cluster string) (*heads.Conversation, error) {
	found, head, err := c.find(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return found.Converse(ctx, head)
}

// Way finds the way to the dashboard of the head that a cluster has now, and the cluster's token.
func (c *Clusters) Way(ctx context.Context, cluster string) (*heads.Way, error) {
	found, head, err := c.find(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return found.FindWay(ctx, head)
}

// Dashboard makes a connection to the dashboard of the head that a cluster has now, encrypted where the cluster is.
func (c *Clusters) Dashboard(ctx context.Context, cluster string) (net.Conn, error) {
	way, err := c.Way(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return way.Connect(ctx)
}

// Port makes a connection to a port of the head that a cluster has now.
func (c *Clusters) Port(ctx context.Context, cluster string, port int) (net.Conn, error) {
	_, head, err := c.find(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return c.Console.Forward(ctx, types.NamespacedName{Namespace: head.Cluster.Namespace, Name: head.Pod}, port)
}

// find returns the head of a cluster by what the API server says now.
func (c *Clusters) find(ctx context.Context, name string) (*heads.Heads, heads.Head, error) {
	object, err := c.Objects.Read(ctx, kube.Target{Kind: kube.Cluster, Name: name})
	if err != nil {
		return nil, heads.Head{}, err
	}
	cluster, is := object.(*v1beta1.ComputeCluster)
	if !is {
		return nil, heads.Head{}, fmt.Errorf("read cluster %s: it is of another kind", name)
	}
	pods := &corev1.PodList{}
	if err := c.Objects.List(ctx, pods, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1beta1.LabelCluster: name, v1beta1.LabelRole: v1beta1.RoleHead}); err != nil {
		return nil, heads.Head{}, kube.Because(fmt.Errorf("list head pods of cluster %s: %w", name, err))
	}
	at := &moment{objects: c.Objects, cluster: cluster, pods: pods.Items}
	connect := func(ctx context.Context, address string) (net.Conn, error) { return c.connect(ctx, at, address) }
	found := heads.New(heads.Settings{Clusters: at, Reader: at,
		Options: headclient.Options{Timeout: callWithin, Connect: connect}})
	head, err := found.FindHead(heads.Reference{Namespace: cluster.Namespace, Name: name, UID: cluster.UID})
	return found, head, err
}

// connect makes a connection to the pod that has an address.
func (c *Clusters) connect(ctx context.Context, at *moment, address string) (net.Conn, error) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("the address %q is not host:port", address)
	}
	port, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("the port %q is no number", number)
	}
	for i := range at.pods {
		if pod := &at.pods[i]; pod.Status.PodIP == host {
			return c.Console.Forward(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, port)
		}
	}
	return nil, fmt.Errorf("no head pod has the address %s", host)
}

// moment is a cluster and its heads as the API server had them. It implements what heads are found by.
type moment struct {
	objects *kube.Objects
	cluster *v1beta1.ComputeCluster
	pods    []corev1.Pod
}

// FindCluster implements heads.Clusters.
func (m *moment) FindCluster(namespace, name string) (*v1beta1.ComputeCluster, bool) {
	return m.cluster, m.cluster.Namespace == namespace && m.cluster.Name == name
}

// HeadPods implements heads.Reader.
func (m *moment) HeadPods(string, types.UID) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range m.pods {
		all = append(all, &m.pods[i])
	}
	return all
}

// Pod implements heads.Reader.
func (m *moment) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, m.objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
}

// Secret implements heads.Reader.
func (m *moment) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := m.objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, kube.Because(err)
	}
	return secret, nil
}

// IsPassing reports whether the same call may succeed later by itself.
func IsPassing(err error) bool {
	var coded *outcome.Error
	var unavailable *heads.Unavailable
	var failure *headclient.Error
	switch {
	case err == nil, errors.As(err, &coded):
		return false
	case errors.As(err, &unavailable):
		return unavailable.Temporary
	case errors.As(err, &failure):
		return failure.Kind == headclient.Unavailable || failure.Kind == headclient.Timeout ||
			failure.Kind == headclient.Protocol
	}
	return kube.IsPassing(err)
}

// IsEnding reports whether a cluster takes its attempts with it: it is suspended, being deleted or gone. The operator will say
// what becomes of them.
func IsEnding(err error) bool {
	var unavailable *heads.Unavailable
	return errors.As(err, &unavailable) && unavailable.IsEnding()
}
