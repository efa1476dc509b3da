package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// other is an operator that is not ours, as a file describes it. Paths in the file are relative to it.
type other struct {
	// Name is what it is called in results.
	Name string `json:"name"`
	// Program is started with Args, a kubeconfig that KUBECONFIG names, and Env.
	Program string            `json:"program"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	// Manifests are files, or patterns of files, that are applied before: its CRDs at least.
	Manifests []string `json:"manifests"`
	// Cluster is the file of one cluster with a head and three workers; its name and namespace are replaced.
	Cluster string `json:"cluster"`
	// Workers is the JSON pointer to the number of workers in it.
	Workers string `json:"workers"`
	// Ready maps JSONPath expressions to the text that each gives once a cluster is ready. The text ${workers} stands
	// for the number of workers that the cluster asks for.
	Ready map[string]string `json:"ready"`

	cluster *unstructured.Unstructured
	ready   map[*jsonpath.JSONPath]string
	objects []*unstructured.Unstructured
}

// wantedWorkers stands in Ready for how many workers a cluster asks for.
const wantedWorkers = "${workers}"

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// readOther reads and checks the file of an operator that is not ours.
func readOther(path string) (*other, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the other operator's file: %w", err)
	}
	o := &other{}
	if err := yaml.UnmarshalStrict(text, o); err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	if err := o.load(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return o, nil
}

// load reads what the file names.
func (o *other) load(dir string) error {
	if !namePattern.MatchString(o.Name) || slices.Contains(contenders(), o.Name) {
		return fmt.Errorf("name is %q: give a word in lower case that is neither %s", o.Name, strings.Join(contenders(), " nor "))
	}
	o.Program = within(dir, o.Program)
	if _, err := os.Stat(o.Program); err != nil {
		return fmt.Errorf("find program: %w: build the operator first", err)
	}
	for _, pattern := range o.Manifests {
		if err := o.addManifests(within(dir, pattern)); err != nil {
			return err
		}
	}
	if err := o.loadCluster(within(dir, o.Cluster)); err != nil {
		return err
	}
	o.ready = map[*jsonpath.JSONPath]string{}
	for path, want := range o.Ready {
		parsed := jsonpath.New(path).AllowMissingKeys(true)
		if err := parsed.Parse(path); err != nil {
			return fmt.Errorf("parse the path %s in ready: %w", path, err)
		}
		o.ready[parsed] = want
	}
	if len(o.ready) == 0 {
		return errors.New("ready is empty: give at least one path, such as '{.status.state}': ready")
	}
	return nil
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// addManifests reads the files that a pattern matches.
func (o *other) addManifests(pattern string) error {
	files, err := filepath.Glob(pattern)
	if err == nil && len(files) == 0 {
		err = os.ErrNotExist
	}
	if err != nil {
		return fmt.Errorf("find manifests %s: %w", pattern, err)
	}
	for _, file := range files {
		objects, err := decodeFile(file)
		if err != nil {
			return err
		}
		o.objects = append(o.objects, objects...)
	}
	return nil
}

func decodeFile(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	objects, err := live.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	return objects, nil
}

func (o *other) loadCluster(file string) error {
	objects, err := decodeFile(file)
	if err != nil {
		return err
	}
	if len(objects) != 1 {
		return fmt.Errorf("read cluster %s: it has %d objects: give one", file, len(objects))
	}
	o.cluster = objects[0]
	n, err := o.workersOf(o.cluster)
	if err != nil {
		return fmt.Errorf("read cluster %s: %w", file, err)
	}
	if n != strconv.Itoa(workersInCluster) {
		return fmt.Errorf("read cluster %s: it has %s workers at %s: give %d, as all others have", file, n, o.Workers, workersInCluster)
	}
	return nil
}

// workersOf is how many workers a cluster asks for, as text.
func (o *other) workersOf(cluster *unstructured.Unstructured) (string, error) {
	var at any = cluster.Object
	for _, step := range strings.Split(strings.TrimPrefix(o.Workers, "/"), "/") {
		switch value := at.(type) {
		case map[string]any:
			at = value[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(value) {
				return "", fmt.Errorf("follow workers %s: there is no item %q", o.Workers, step)
			}
			at = value[i]
		default:
			return "", fmt.Errorf("follow workers %s: nothing is at %q", o.Workers, step)
		}
	}
	return fmt.Sprint(at), nil
}

// isReady reports whether a cluster's status says what Ready asks for.
func (o *other) isReady(obj client.Object) bool {
	cluster, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	workers, err := o.workersOf(cluster)
	if err != nil {
		return false
	}
	for path, want := range o.ready {
		var found bytes.Buffer
		if err := path.Execute(&found, cluster.Object); err != nil || found.String() != strings.ReplaceAll(want, wantedWorkers, workers) {
			return false
		}
	}
	return true
}

// subject is how the operator's clusters are made and judged.
func (o *other) subject() subject {
	return subject{
		make: func(name types.NamespacedName) client.Object {
			cluster := o.cluster.DeepCopy()
			cluster.SetNamespace(name.Namespace)
			cluster.SetName(name.Name)
			return cluster
		},
		ready: o.isReady,
		grow: func(ctx context.Context, cp *controlPlane, name types.NamespacedName) error {
			cluster := &unstructured.Unstructured{}
			cluster.SetGroupVersionKind(o.cluster.GroupVersionKind())
			cluster.SetNamespace(name.Namespace)
			cluster.SetName(name.Name)
			patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": o.Workers, "value": workersInCluster + 1}})
			if err == nil {
				err = cp.Patch(ctx, cluster, client.RawPatch(types.JSONPatchType, patch))
			}
			if err != nil {
				return fmt.Errorf("add a worker to cluster %s: %w", name, err)
			}
			return nil
		},
	}
}

// installOther applies the manifests and gives the operator's account every right: what the rights are costs nothing.
func (cp *controlPlane) installOther(ctx context.Context, o *other) (kubeconfig string, err error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: live.ReleaseNamespace, Name: live.ReleaseName}}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: live.ReleaseNamespace}}, account,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: live.ReleaseName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
		},
	}
	for _, object := range objects {
		if err := cp.Create(ctx, object); err != nil {
			return "", fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	for _, object := range o.objects {
		if err := cp.ApplyObject(ctx, object.DeepCopy()); err != nil {
			return "", err
		}
	}
	kind := o.cluster.GroupVersionKind()
	err = live.Until(ctx, limit, "the kind "+kind.Kind+" to be served", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return cp.List(ctx, list, client.Limit(1))
	})
	if err != nil {
		return "", err
	}
	return cp.authorize(ctx)
}

// startOther starts the operator.
func (cp *controlPlane) startOther(o *other, kubeconfig string) (*contender, error) {
	p := program{name: o.Name, path: o.Program, args: o.Args, env: []string{"KUBECONFIG=" + kubeconfig}}
	for name, value := range o.Env {
		p.env = append(p.env, name+"="+value)
	}
	started, err := start(p, cp.dir, cp.fail)
	return &contender{child: started, audit: cp.audit}, err
}
