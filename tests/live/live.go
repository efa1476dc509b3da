// Package live is a running Kubernetes as tests see it: clients, namespaces, manifests
// applied, commands run in pods, and waiting with a deadline.
//
// In: the kubeconfig that KUBECONFIG names, of a Kubernetes for tests. Out:
// what was read or done, or an error that says what was waited for and what was seen
// last. It must never sleep for a fixed time, and never use a kubeconfig that was not
// named.
package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Cluster is a running Kubernetes. Its embedded client reads past any cache.
type Cluster struct {
	client.WithWatch
	Config     *rest.Config
	Kubernetes kubernetes.Interface
}

// Open connects to the cluster whose kubeconfig KUBECONFIG names. It fails if the
// variable is not set or the API server does not answer.
func Open(ctx context.Context) (*Cluster, error) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		return nil, errors.New("find a Kubernetes to test on: KUBECONFIG is not set: " +
			"run this layer by make, or bring one up with bin/localkube up and export what it prints")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	config.QPS, config.UserAgent = -1, "heliostat-tests"
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme), gatewayv1.Install(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	c := &Cluster{Config: config}
	if c.Kubernetes, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	if c.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("build a client for %s: %w", config.Host, err)
	}
	if err := c.Get(ctx, types.NamespacedName{Name: "default"}, &corev1.Namespace{}); err != nil {
		return nil, fmt.Errorf("ask the API server at %s: %w: is it up? (localkube status)", config.Host, err)
	}
	return c, nil
}

// Namespace makes a namespace of a fresh name and waits for its service account, which
// comes a moment later.
func (c *Cluster) Namespace(ctx context.Context, prefix string) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	if err := c.Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	return namespace.Name, Until(ctx, 30*time.Second, "the service account of namespace "+namespace.Name, c.HasAccount(namespace.Name))
}

// HasAccount looks whether a namespace has its service account, without which no pod
// can be made in it.
func (c *Cluster) HasAccount(namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
	}
}

// dropLimit is how long it may take to delete the clusters of a namespace.
const dropLimit = 5 * time.Minute

// Drop deletes the clusters of a namespace, waits until their pods are gone, and deletes
// the namespace, which Kubernetes then takes 5 s to look at.
func (c *Cluster) Drop(ctx context.Context, name string) error {
	// Of hundreds, one request does not delete all in the minute that the API server gives it.
	err := Until(ctx, dropLimit, "the clusters of namespace "+name+" to be deleted", func(ctx context.Context) error {
		return c.DeleteAllOf(ctx, &v1beta1.ComputeCluster{}, client.InNamespace(name))
	})
	if err != nil {
		return err
	}
	err = Until(ctx, dropLimit, "the pods of namespace "+name+" to be gone", func(ctx context.Context) error {
		var pods corev1.PodList
		err := c.List(ctx, &pods, client.InNamespace(name), client.HasLabels{v1beta1.LabelCluster})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d are there, among them %s", len(pods.Items), pods.Items[0].Name)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

// Decode reads the objects of a file of YAML documents, in their order.
func Decode(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case err != nil && errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("decode a manifest: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// Apply applies manifests on the server's side, as kubectl apply --server-side does. A
// namespace is given to objects that name none, unless it is empty.
func (c *Cluster) Apply(ctx context.Context, namespace string, manifests []byte) error {
	objects, err := Decode(manifests)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		if err := c.ApplyObject(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// ApplyObject applies one object on the server's side.
func (c *Cluster) ApplyObject(ctx context.Context, object *unstructured.Unstructured) error {
	config := client.ApplyConfigurationFromUnstructured(object)
	if err := c.WithWatch.Apply(ctx, config, client.FieldOwner("tests"), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// Exec runs a command in a container of a pod and gives what it printed to standard
// output. Its error tells of an exit code other than 0 and of all that was printed.
func (c *Cluster) Exec(ctx context.Context, pod types.NamespacedName, container string, command ...string) (string, error) {
	request := c.Kubernetes.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, clientgoscheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", request.URL().String())
	if err != nil {
		return "", fmt.Errorf("run a command in pod %s: %w", pod, err)
	}
	var out, stderr bytes.Buffer // two, as they are written at the same time
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &stderr})
	if err != nil {
		return out.String(), fmt.Errorf("run %q in pod %s: %w: %s%s", command, pod, err, out.String(), stderr.String())
	}
	return out.String(), nil
}

// poll is how often Until looks.
const poll = 100 * time.Millisecond

// Until waits until a look gives no error. After the limit it fails with what was
// waited for and what the last look said.
func Until(ctx context.Context, limit time.Duration, what string, look func(context.Context) error) error {
	last := errors.New("not looked yet")
	err := wait.PollUntilContextTimeout(ctx, poll, limit, true, func(ctx context.Context) (bool, error) {
		found := look(ctx)
		if found == nil {
			return true, nil
		}
		if ctx.Err() == nil { // else it only says that the time is up
			last = found
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w: %w", what, err, last)
	}
	return nil
}
