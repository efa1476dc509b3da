package preset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// source is a preset that makes a job of a script and a number of workers.
func source(namespace, name, entrypoint string) client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1beta1.LabelPreset: ""}},
		Data: map[string]string{
			"schema.json": `{"type": "object", "required": ["script"], "properties": {"script": {"type": "string"},
				"workers": {"type": "integer", "maximum": 8, "default": 2}}}`,
			"manifest.yaml": "apiVersion: heliostat.dev/v1beta1\nkind: ClusterJob\nmetadata: {generateName: a-}\nspec:\n  entrypoint: " + entrypoint +
				" ${script}\n  clusterTemplate: {spec: {rayVersion: 2.60.0, workerGroups: [{name: a, replicas: \"${workers}\"}]}}\n",
		},
	}
}

// namedSource is a preset whose users name the object.
func namedSource() client.Object {
	named := source("team", "named", "python").(*corev1.ConfigMap)
	named.Data = map[string]string{
		"schema.json":   `{"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}`,
		"manifest.yaml": "apiVersion: heliostat.dev/v1beta1\nkind: ClusterJob\nmetadata: {name: \"${name}\"}\nspec: {clusterRef: {name: dev}, entrypoint: ls}\n",
	}
	return named
}

func TestManifest_IsThatOfThePreset(t *testing.T) {
	made := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(source(release, "training", "python"), source(release, "own", "theirs"),
		source("team", "own", "ours"), namedSource(), source("other", "hidden", "x"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "plain"}}).Build()
	objects := &kube.Objects{WithWatch: made, Namespace: "team"}
	for name, c := range map[string]struct {
		preset  string
		kind    kube.Kind
		options []string
		code    int
		says    []string
	}{
		"the administrator's":       {"training", kube.Job, []string{"script=a.py"}, outcome.Done, []string{"entrypoint: python a.py\n", "replicas: 2\n"}},
		"numbers and texts":         {"training", kube.Job, []string{"script=7", "workers=3"}, outcome.Done, []string{"python 7\n", "replicas: 3\n"}},
		"a text for a number":       {"training", kube.Job, []string{"script=x", "workers=many"}, outcome.Usage, []string{"workers has the type string"}},
		"a value with =":            {"training", kube.Job, []string{"script=a=b c"}, outcome.Done, []string{"python a=b c\n"}},
		"that of the namespace":     {"own", kube.Job, []string{"script=x"}, outcome.Done, []string{"entrypoint: ours x\n"}},
		"two options are wrong":     {"training", kube.Job, []string{"workers=9"}, outcome.Usage, []string{"script is required", "workers is above 8; give 8 or less"}},
		"an option that is unknown": {"training", kube.Job, []string{"script=x", "worker=1"}, outcome.Usage, []string{"workers"}},
		"the name of the object":    {"named", kube.Job, nil, outcome.Done, []string{"name: mine\n"}},
		"another name by an option": {"named", kube.Job, []string{"name=other"}, outcome.Done, []string{"name: other\n"}},
		"another kind":              {"training", kube.Cluster, []string{"script=x"}, outcome.Usage, []string{"makes a ClusterJob"}},
		"no such preset":            {"trainin", kube.Job, nil, outcome.Usage, []string{"training"}},
		"one of another namespace":  {"hidden", kube.Job, nil, outcome.Usage, []string{"no preset"}},
		"no preset":                 {"plain", kube.Job, nil, outcome.Usage, []string{"no preset"}},
		"no option":                 {"training", kube.Job, []string{"script"}, outcome.Usage, []string{"NAME=VALUE"}},
		"an option twice":           {"training", kube.Job, []string{"script=a", "script=b"}, outcome.Usage, []string{"once"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Flags{name: c.preset, namespace: release, options: c.options}
			text, err := f.Manifest(t.Context(), objects, c.kind, "mine")
			if outcome.Code(err) != c.code {
				t.Fatalf("exit code %d, want %d: %v", outcome.Code(err), c.code, err)
			}
			if err != nil {
				text = []byte(err.Error())
			}
			for _, says := range c.says {
				if !strings.Contains(string(text), says) {
					t.Errorf("it does not say %q: %s", says, text)
				}
			}
		})
	}
}
