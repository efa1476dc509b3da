package app

import (
	"context"
	"crypto/rand"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/apiserver/feed"
	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/apiserver/rest"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/history/client"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// answersAtOnce is how many bytes of large answers of heads are read at once, all together.
const answersAtOnce = 64 << 20

// portal is the half of the server below /v1, and what it reads.
type portal struct {
	api    *rest.API
	own    access.Reader
	view   *view.View
	feed   *feed.Feed
	output *logs.Logs
	heads  *heads.Heads
	// history asks archivers; nil where no history is kept.
	history *client.Client
}

// History says where archivers are, and by which files the server and they know each other.
type History struct {
	// Archivers are their addresses, each host:port, as collectors have them.
	Archivers []string
	Files     client.Files
}

// connect returns a client of the archivers, and nil where no history is kept.
func (h History) connect() (*client.Client, error) {
	if len(h.Archivers) == 0 {
		return nil, nil //nolint:nilnil // no history is kept
	}
	if err := h.Files.Check(); err != nil {
		return nil, err
	}
	return client.New(h.Archivers, client.Secure(h.Files))
}

func newPortal(cfg Config, kubernetes *access.Kubernetes) (*portal, error) {
	own, err := kubernetes.Own()
	if err != nil {
		return nil, err
	}
	p := &portal{own: own, view: view.New(cfg.Namespaces...)}
	p.feed = feed.New(p.view, cfg.Clock)
	p.heads = heads.New(heads.Settings{
		Clusters: found{p.view}, Reader: reader{p.view, own}, Random: rand.Reader,
		Options: headclient.Options{Memory: headclient.NewMemory(answersAtOnce)},
	})
	p.output = logs.New(logs.Settings{Heads: p.heads, Jobs: found{p.view}, Clock: cfg.Clock,
		Directory: cfg.OutputDirectory})
	if p.history, err = cfg.History.connect(); err != nil {
		return nil, err
	}
	needs := rest.Needs{
		Access: kubernetes, View: p.view, Feed: p.feed, Heads: p.heads, Logs: p.output, Namespace: cfg.Namespace,
		AddressOf: cfg.Dashboards.addressOf, Log: cfg.Log, Clock: cfg.Clock,
	}
	if p.history != nil {
		needs.History = p.history
	}
	p.api = rest.New(needs)
	return p, nil
}

// run reads objects and publishes changes until the context ends.
func (p *portal) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.view.Run(ctx, p.own) })
	group.Go(func() error {
		p.feed.Run(ctx)
		return nil
	})
	err := group.Wait()
	if ended := p.output.Close(); err == nil && ended != nil {
		err = fmt.Errorf("end what is read: %w", ended)
	}
	if p.history != nil {
		_ = p.history.Close() // nothing is read any more
	}
	return err
}

// found finds objects by name in the view.
type found struct{ view *view.View }

// FindCluster implements heads.Clusters.
func (f found) FindCluster(namespace, name string) (*v1beta1.ComputeCluster, bool) {
	object, _, _ := f.view.Find(view.Key{Kind: view.Clusters, Namespace: namespace, Name: name})
	cluster, is := object.(*v1beta1.ComputeCluster)
	return cluster, is
}

// FindJob implements logs.Jobs.
func (f found) FindJob(namespace, name string) (*v1beta1.ClusterJob, bool) {
	object, _, _ := f.view.Find(view.Key{Kind: view.Jobs, Namespace: namespace, Name: name})
	job, is := object.(*v1beta1.ClusterJob)
	return job, is
}

// reader reads what a head is found by: pods from the view, and as they are now.
type reader struct {
	view *view.View
	own  access.Reader
}

// HeadPods implements heads.Reader.
func (r reader) HeadPods(_ string, owner types.UID) []*corev1.Pod {
	var all []*corev1.Pod
	for _, pod := range r.view.PodsOwnedBy(owner) {
		if pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead {
			all = append(all, pod)
		}
	}
	return all
}

// Pod implements heads.Reader.
func (r reader) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, r.get(ctx, namespace, name, pod)
}

// Secret implements heads.Reader.
func (r reader) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, r.get(ctx, namespace, name, secret)
}

// get reads an object as it is now. That there is none is for heads to explain; other errors are the server's own.
func (r reader) get(ctx context.Context, namespace, name string, into access.Object) error {
	err := r.own.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return err
	}
	return access.OfServer(err)
}
