package oldest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/tests/oldest"
)

const (
	root  = "../../"
	limit = time.Minute
	pause = 50 * time.Millisecond
)

// asked is a spec and what the answer says; nothing: it is taken.
type asked struct {
	Kind string         `json:"kind"`
	Spec map[string]any `json:"spec"`
	Says string         `json:"says"`
}

// object is an object of that spec.
func (a asked) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "heliostat.dev/v1beta1", "kind": a.Kind, "spec": a.Spec}}
	object.SetName("c")
	return object
}

// objects is where the API server keeps a kind.
func objects(of dynamic.Interface, kind string) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: "heliostat.dev", Version: "v1beta1", Kind: kind})
	return of.Resource(plural).Namespace(metav1.NamespaceDefault)
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// serve starts the API server with the CRDs.
func serve(t *testing.T) dynamic.Interface {
	t.Helper()
	config, err := oldest.Serve(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	of, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	crds := of.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, plural := range []string{"computeclusters", "clusterjobs", "clusterservices"} {
		crd := &unstructured.Unstructured{}
		read(t, "ray-operator/config/crd/heliostat.dev_"+plural+".yaml", crd)
		until(t, plural, func(ctx context.Context) error {
			_, err := crds.Create(ctx, crd, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			return err
		})
		until(t, plural, func(ctx context.Context) error {
			_, err := of.Resource(schema.GroupVersionResource{Group: "heliostat.dev", Version: "v1beta1", Resource: plural}).List(ctx, metav1.ListOptions{})
			return err
		})
	}
	return of
}

// until tries something until it succeeds.
func until(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), pause, limit, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	}); err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}

func (a asked) judge(t *testing.T, how string, err error) {
	t.Helper()
	if (err != nil) != (a.Says != "") || err != nil && !strings.Contains(err.Error(), a.Says) {
		t.Errorf("%s of %s %v is answered with %v, want it to say %q", how, a.Kind, a.Spec, err, a.Says)
	}
}

// TestOldest_RefusesMisspeltFields: what kubectl apply sends is refused where a field is misspelt, in a pod template too:
// where the object is new, and where it is there.
func TestOldest_RefusesMisspeltFields(t *testing.T) {
	of := serve(t)
	var all []asked
	read(t, "tests/integration/testdata/misspelt.yaml", &all)
	strict, dry := metav1.FieldValidationStrict, []string{metav1.DryRunAll}
	for _, a := range all {
		_, err := objects(of, a.Kind).Create(t.Context(), a.object(), metav1.CreateOptions{FieldValidation: strict, DryRun: dry})
		a.judge(t, "the creation", err)
	}
	there := asked{Kind: "ComputeCluster", Spec: map[string]any{"rayVersion": "2.60.0"}}
	if _, err := objects(of, there.Kind).Create(t.Context(), there.object(), metav1.CreateOptions{FieldValidation: strict}); err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Kind != there.Kind || !strings.Contains(a.Says, "template") {
			continue
		}
		patch, err := json.Marshal(a.object())
		if err != nil {
			t.Fatal(err)
		}
		_, err = objects(of, a.Kind).Patch(t.Context(), "c", types.MergePatchType, patch, metav1.PatchOptions{FieldValidation: strict, DryRun: dry})
		a.judge(t, "an edit", err)
	}
}

// TestOldest_IsWhatTheChartNeeds: the API server here is of the release that the chart names as the oldest.
func TestOldest_IsWhatTheChartNeeds(t *testing.T) {
	var chart struct{ KubeVersion string }
	read(t, "helm-chart/heliostat/Chart.yaml", &chart)
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	minor := strings.TrimSuffix(strings.TrimPrefix(chart.KubeVersion, ">=1."), ".0-0")
	if want := fmt.Sprintf("k8s.io/apiextensions-apiserver v0.%s.", minor); !strings.Contains(string(text), want) {
		t.Errorf("the chart wants Kubernetes %s, and go.mod has no %q", chart.KubeVersion, want)
	}
}
