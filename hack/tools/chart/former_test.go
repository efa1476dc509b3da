package chart

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// definitions is a Kubernetes that has CustomResourceDefinitions alone.
type definitions struct{ client dynamic.Interface }

func (d definitions) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return d.client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")), false, nil
}

// stored returns a Kubernetes in which one of our kinds has objects in these versions.
func stored(t *testing.T, versions ...string) definitions {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterjobs.heliostat.dev"}}
	definition.Status.StoredVersions = versions
	return definitions{fake.NewSimpleDynamicClient(scheme, definition)}
}

// former are the options that Helm adds where the API server serves the former version.
var former = []string{"--api-versions", "heliostat.dev/v1alpha1"}

// TestFormerKinds_StopTheChart: the definitions of a former installation are left alone, whether or not the chart brings them.
func TestFormerKinds_StopTheChart(t *testing.T) {
	for name, c := range map[string]struct {
		over      definitions
		options   []string
		isRefused bool
	}{
		"nothing is there":                       {stored(t), nil, false},
		"this version is stored":                 {stored(t, "v1beta1"), nil, false},
		"this version is served":                 {stored(t), []string{"--api-versions", "heliostat.dev/v1beta1"}, false},
		"the former one is stored":               {stored(t, "v1alpha1"), nil, true},
		"both are stored":                        {stored(t, "v1beta1", "v1alpha1"), nil, true},
		"the former one is served":               {stored(t), former, true},
		"it is served, and the CRDs are others'": {stored(t), slices.Concat(withoutCRDs, former), true},
		"it is stored, and the CRDs are others'": {stored(t, "v1alpha1"), withoutCRDs, false}, // not everybody may read them
	} {
		t.Run(name, func(t *testing.T) {
			_, err := RenderOver(c.over, slices.Concat(withoutPolicies, c.options)...)
			if (err != nil) != c.isRefused {
				t.Fatalf("it is %v", err)
			}
			for _, step := range []string{
				"kubectl get computeclusters,clusterjobs,clusterservices,clusterjobschedules --all-namespaces --output yaml > ",
				"kubectl delete clusterjobschedules,clusterservices,clusterjobs,computeclusters --all --all-namespaces",
				"helm uninstall RELEASE --namespace NAMESPACE",
				"kubectl delete crd computeclusters.heliostat.dev clusterjobs.heliostat.dev clusterservices.heliostat.dev ",
				"go run ./hack/v1beta1 < heliostat.yaml > v1beta1.yaml",
			} {
				if err != nil && !strings.Contains(err.Error(), step) {
					t.Errorf("it does not say %q: %v", step, err)
				}
			}
		})
	}
}

// TestFormerKinds_StopHelm: the program itself passes on what the API server serves.
func TestFormerKinds_StopHelm(t *testing.T) {
	_, err := tryHelm(t, slices.Concat([]string{"template", releaseName, dir, "--namespace", releaseNamespace}, former)...)
	if err == nil || !strings.Contains(err.Error(), "heliostat.dev/v1alpha1 is installed") {
		t.Errorf("helm says %v", err)
	}
}
