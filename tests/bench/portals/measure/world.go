package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// callersNamespace has the accounts of callers, all of which may view everything.
	callersNamespace = "callers"
	// atOnce is how many requests prepare a Kubernetes at the same time.
	atOnce = 16
	// startLimit is how long anything may take that is not measured.
	startLimit = 5 * time.Minute
)

// world is a Kubernetes with the chart installed, and its API server as a process of this machine.
type world struct {
	*live.Cluster
	dir       string
	authority []byte
	apiServer int
	// kubeconfig is an administrator's.
	kubeconfig string
}

// openWorld connects to the local Kubernetes that KUBECONFIG and LOCALKUBE_NAME name, and installs what the chart renders,
// all but Deployments.
func openWorld(ctx context.Context, dir string) (*world, error) {
	cluster, err := live.Open(ctx)
	if err != nil {
		return nil, err
	}
	w := &world{Cluster: cluster, dir: dir, kubeconfig: os.Getenv("KUBECONFIG")}
	config := rest.CopyConfig(cluster.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read the API server's authority: %w", err)
	}
	w.authority = config.CAData
	if w.apiServer, err = live.Process("kube-apiserver", "localkube/"+os.Getenv("LOCALKUBE_NAME")+"."); err != nil {
		return nil, err
	}
	return w, w.install(ctx)
}

func (w *world) install(ctx context.Context) error {
	out, err := live.Helm(ctx, ".", "template", live.ReleaseName, "helm-chart/heliostat", "--namespace", live.ReleaseNamespace,
		"--set", "server.enabled=true")
	if err != nil {
		return err
	}
	objects, err := live.Decode([]byte(out))
	if err != nil {
		return err
	}
	for _, name := range []string{live.ReleaseNamespace, callersNamespace} {
		if err := w.ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			continue
		}
		if err := w.ApplyObject(ctx, object); err != nil {
			return err
		}
	}
	viewers := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: callersNamespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:" + callersNamespace}},
	}
	if err := w.ensure(ctx, viewers); err != nil {
		return err
	}
	return live.Until(ctx, startLimit, "the kind ComputeCluster to be served", func(ctx context.Context) error {
		return w.List(ctx, &v1beta1.ComputeClusterList{}, client.Limit(1))
	})
}

// ensure makes an object that may be there already.
func (w *world) ensure(ctx context.Context, object client.Object) error {
	if err := w.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// tokens returns tokens of as many callers.
func (w *world) tokens(ctx context.Context, count int) ([]string, error) {
	all := make([]string, count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range all {
		group.Go(func() (err error) {
			all[i], err = w.tokenOf(ctx, callersNamespace, fmt.Sprintf("caller-%d", i))
			return err
		})
	}
	return all, group.Wait()
}

// tokenOf returns a token of an account, which it makes where there is none.
func (w *world) tokenOf(ctx context.Context, namespace, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := w.ensure(ctx, account); err != nil {
		return "", err
	}
	hours := int64(2 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}
	if err := w.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("ask for a token of %s: %w", name, err)
	}
	return request.Status.Token, nil
}

// fill makes objects until there are as many. Of ten, four are clusters with two pods each, five are jobs and one is a service.
func (w *world) fill(ctx context.Context, count int) error {
	for i := range namespaces {
		if err := w.ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}}); err != nil {
			return err
		}
	}
	for i := range namespaces {
		if err := live.Until(ctx, startLimit, "the account of "+namespaceOf(i), w.HasAccount(namespaceOf(i))); err != nil {
			return err
		}
	}
	made, err := w.made(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range count {
		if object, _ := newObject(i); !made[object.GetName()] {
			group.Go(func() error { return w.make(ctx, i) })
		}
	}
	return group.Wait()
}

// made returns the names of objects that are there already: a Kubernetes is filled once for several measurements.
func (w *world) made(ctx context.Context) (map[string]bool, error) {
	names := map[string]bool{}
	for _, kind := range []string{"ComputeClusterList", "ClusterJobList", "ClusterServiceList"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
		if err := w.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list what is there: %w", err)
		}
		for i := range list.Items {
			names[list.Items[i].Name] = true
		}
	}
	return names, nil
}

// make makes one object with its status, and its pods.
func (w *world) make(ctx context.Context, i int) error {
	object, setStatus := newObject(i)
	if err := w.Create(ctx, object); err != nil {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	setStatus()
	if err := w.Status().Update(ctx, object); err != nil {
		return fmt.Errorf("write the status of %s: %w", object.GetName(), err)
	}
	cluster, is := object.(*v1beta1.ComputeCluster)
	if !is {
		return nil
	}
	return errors.Join(w.Create(ctx, newPod(cluster, v1beta1.RoleHead)), w.Create(ctx, newPod(cluster, v1beta1.RoleWorker)))
}
