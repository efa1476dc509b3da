package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/process"
)

// userAgent tells this program's requests apart in the audit log.
const userAgent = "localkube"

func (c *Cluster) client() (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Instance.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.UserAgent, config.Timeout = userAgent, 10*time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

// controlPlane starts etcd and the API server, and the rest when that answers.
func (c *Cluster) controlPlane(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	etcd, api := c.set.Etcd(), c.set.APIServer()
	fresh, err := c.start(api)
	if err == nil {
		_, err = c.start(etcd)
	}
	if err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	err = api.Await(ctx, c.groups, func(ctx context.Context) error {
		if !etcd.Running(c.groups) {
			return fmt.Errorf("etcd has ended; the end of its log %s:\n%s", etcd.Log, process.Tail(etcd.Log, 15))
		}
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	if err != nil {
		return err
	}
	if fresh {
		c.Log.Step("the API server answers at %s", c.set.Authority().Server)
	}
	if err := c.applyManifests(ctx); err != nil {
		return err
	}
	return c.startAll(c.set.Controllers())
}

// applyManifests applies the objects of a new cluster once; what a user then
// changes or deletes stays changed.
func (c *Cluster) applyManifests(ctx context.Context) error {
	done := c.Instance.Path("manifests-applied")
	if _, err := os.Stat(done); err == nil || c.set.State.Nodes == 0 {
		return nil
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	for _, a := range c.set.Network().Addresses {
		if err := releaseDNSAddress(ctx, client, a.DNSService().String()); err != nil {
			return err
		}
	}
	_, err = process.Run(ctx, c.groups, c.Instance.Names.Cgroup("work"), c.set.Kubectl(),
		"--kubeconfig", c.Instance.Kubeconfig(), "apply", "--server-side", "--force-conflicts",
		"--field-manager", userAgent, "-f", c.set.Manifests())
	if err != nil {
		return fmt.Errorf("apply the cluster's own objects: %w", err)
	}
	return os.WriteFile(done, nil, 0o600)
}

// releaseDNSAddress frees the address of the Service "kube-dns" where there is no such Service. An API server reserves the
// address first, so one that was killed before it stored the Service leaves an address that no Service can have for minutes.
func releaseDNSAddress(ctx context.Context, client kubernetes.Interface, address string) error {
	_, err := client.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, "kube-dns", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := client.NetworkingV1().IPAddresses().Delete(ctx, address, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// kubeletsRun reports whether no kubelet has to be started.
func (c *Cluster) kubeletsRun() bool {
	for i := range c.set.Nodes() {
		if !c.set.NodePrograms(i + 1)[0].Running(c.groups) {
			return false
		}
	}
	return true
}

// ready waits for what the first pod needs: a service account, every node
// Ready, names and services that answer. Nodes must have been heard of since
// the given time.
func (c *Cluster) ready(ctx context.Context, since time.Time) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	controllers := c.set.ControllerManager()
	err = controllers.Await(ctx, c.groups, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for i, n := range c.set.Nodes() {
		kubelet := c.set.NodePrograms(i + 1)[0]
		err := kubelet.Await(ctx, c.groups, func(ctx context.Context) error {
			return nodeReady(ctx, client, n.Name, since)
		})
		if err != nil {
			return err
		}
	}
	if c.set.State.Nodes > 0 {
		if err := c.servicesReady(ctx); err != nil {
			return err
		}
	}
	return c.allRunning()
}

// nodeReady also wants a lease that was renewed since: a node that was dead a
// moment ago still looks Ready.
func nodeReady(ctx context.Context, client kubernetes.Interface, name string, since time.Time) error {
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if renewed := lease.Spec.RenewTime; renewed == nil || renewed.Time.Before(since) {
		return fmt.Errorf("node %s has not been heard of since its start", name)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			if cond.Status == corev1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("node %s is not Ready: %s", name, cond.Message)
		}
	}
	return fmt.Errorf("node %s has not said whether it is Ready", name)
}

// servicesReady reaches CoreDNS directly, then as a Service through node 1, by an address of each family.
func (c *Cluster) servicesReady(ctx context.Context) error {
	for _, a := range c.set.Network().Addresses {
		if err := c.dnsReady(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) dnsReady(ctx context.Context, a plan.Addresses) error {
	err := c.set.DNS().Await(ctx, c.groups, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/ready", netip.AddrPortFrom(a.ControlPlane(), 8181)), nil)
		if err != nil {
			return err
		}
		response, err := (&http.Client{Timeout: time.Second}).Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", response.Status)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.set.NodePrograms(1)[1].Await(ctx, c.groups, func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", netip.AddrPortFrom(a.DNSService(), 53).String())
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// allRunning finds a program that has started and ended again.
func (c *Cluster) allRunning() error {
	var failed []error
	for member, programs := range c.set.Programs() {
		for _, p := range programs {
			if !p.Running(c.groups) {
				failed = append(failed, fmt.Errorf("%s of %s has ended; the end of its log %s:\n%s", p.Path, member, p.Log, process.Tail(p.Log, 15)))
			}
		}
	}
	return errors.Join(failed...)
}
