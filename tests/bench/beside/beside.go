// Package beside measures the server beside another program on a Kubernetes of this machine.
//
// In: KUBECONFIG of a localkube up --control-plane-only, root, the repository as the working directory. Out: a World, which
// is that Kubernetes with all that the chart renders but Deployments; the server and other programs as processes; and a file
// with the figures of each round. It must never judge what is measured.
package beside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// StartLimit is how long anything may take that is not measured.
const StartLimit = 5 * time.Minute

// World is a Kubernetes with the chart installed, and a directory for the files of what runs beside it.
type World struct {
	*live.Cluster
	// Authority is the API server's.
	Authority []byte
	dir       string
}

// Main runs a measurement until a signal comes, and exits with its error.
func Main(run func(context.Context) error) {
	log.SetLogger(logr.Discard()) // of the client library; what fails comes back as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// Open builds the server and other programs in bin, connects to the local Kubernetes that KUBECONFIG names, and installs what
// the chart renders, and some namespaces.
func Open(ctx context.Context, programs map[string]string, namespaces ...string) (*World, error) {
	for name, source := range programs {
		build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join("bin", name), source)
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", name, err, out)
		}
	}
	cluster, err := live.Open(ctx)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(cluster.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read the API server's authority: %w", err)
	}
	dir, err := os.MkdirTemp("", "beside")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	w := &World{Cluster: cluster, Authority: config.CAData, dir: dir}
	if err := errors.Join(w.install(ctx, namespaces), w.certify()); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Close removes the files of what ran beside the Kubernetes.
func (w *World) Close() { _ = os.RemoveAll(w.dir) }

// At returns the path of a file of the world.
func (w *World) At(name string) string { return filepath.Join(w.dir, name) }

// install applies what the chart renders, all but Deployments.
func (w *World) install(ctx context.Context, namespaces []string) error {
	out, err := live.Helm(ctx, ".", "template", live.ReleaseName, "helm-chart/heliostat", "--namespace", live.ReleaseNamespace,
		"--set", "server.enabled=true")
	if err != nil {
		return err
	}
	objects, err := live.Decode([]byte(out))
	if err != nil {
		return err
	}
	for _, name := range append([]string{live.ReleaseNamespace}, namespaces...) {
		if err := w.Ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
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
	return live.Until(ctx, StartLimit, "the kinds to be served, and pods to be accepted", func(ctx context.Context) error {
		err := w.List(ctx, &v1beta1.ComputeClusterList{}, client.Limit(1))
		for _, name := range namespaces {
			err = errors.Join(err, w.HasAccount(name)(ctx))
		}
		return err
	})
}

// Ensure makes an object that may be there already.
func (w *World) Ensure(ctx context.Context, object client.Object) error {
	if err := w.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// TokenOf returns a token of an account, which it makes where there is none.
func (w *World) TokenOf(ctx context.Context, namespace, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := w.Ensure(ctx, account); err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(2 * 60 * 60))}}
	if err := w.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("ask for a token of %s: %w", name, err)
	}
	return request.Status.Token, nil
}

// Rounds measures as often as is asked for, and writes the figures to a file, if it is named.
func Rounds[R any](ctx context.Context, count int, file string, measure func(context.Context) (R, error)) error {
	var all []R
	for i := range count {
		one, err := measure(ctx)
		if err != nil {
			return fmt.Errorf("measure round %d: %w", i+1, err)
		}
		fmt.Printf("round %d: %+v\n", i+1, one)
		all = append(all, one)
	}
	text, err := json.Marshal(all)
	if err == nil && file != "" {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep the figures: %w", err)
	}
	return nil
}
