package validate_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/validate"
)

// row is an edit of a good cluster that makes it bad at one field, or keeps it good
// where path is empty.
type row struct {
	edit func(*v1alpha1.ComputeCluster)
	path string
	// says is a part of the message.
	says string
}

func group(edit func(*v1alpha1.WorkerGroup)) func(*v1alpha1.ComputeCluster) {
	return func(c *v1alpha1.ComputeCluster) { edit(&c.Spec.WorkerGroups[0]) }
}

func size(pairs ...string) func(*v1alpha1.ComputeCluster) {
	return group(func(g *v1alpha1.WorkerGroup) { g.Size = testkit.Resources(pairs...) })
}

func rayResource(name, quantity string) func(*v1alpha1.ComputeCluster) {
	return group(func(g *v1alpha1.WorkerGroup) {
		g.RayResources = map[string]resource.Quantity{name: resource.MustParse(quantity)}
	})
}

func startParam(name, value string) func(*v1alpha1.ComputeCluster) {
	return group(func(g *v1alpha1.WorkerGroup) { g.RayStartParams = map[string]string{name: value} })
}

func rayLabel(key, value string) func(*v1alpha1.ComputeCluster) {
	return group(func(g *v1alpha1.WorkerGroup) { g.Labels = map[string]string{key: value} })
}

func template(edit func(*corev1.PodTemplateSpec, *corev1.Container)) func(*v1alpha1.ComputeCluster) {
	return group(func(g *v1alpha1.WorkerGroup) {
		g.Template = testkit.Template(corev1.Container{Name: "side"}, corev1.Container{Name: "ray"})
		edit(g.Template, &g.Template.Spec.Containers[1])
	})
}

func named(name string) func(*v1alpha1.ComputeCluster) {
	return func(c *v1alpha1.ComputeCluster) { c.Name = name }
}

func groupNamed(name string) func(*v1alpha1.ComputeCluster) {
	return group(func(g *v1alpha1.WorkerGroup) { g.Name = name })
}

func replicas(n int32) func(*v1alpha1.ComputeCluster) {
	return group(func(g *v1alpha1.WorkerGroup) { g.Replicas = &n })
}

func version(text string) func(*v1alpha1.ComputeCluster) {
	return func(c *v1alpha1.ComputeCluster) { c.Spec.RayVersion = text }
}

const at = "spec.workerGroups[0]."

var clusterRows = map[string]row{
	"a good cluster":            {edit: func(*v1alpha1.ComputeCluster) {}},
	"name of 50":                {edit: named(strings.Repeat("a", 50))},
	"name of 51":                {named(strings.Repeat("a", 51)), "metadata.name", "at most 50"},
	"name with a digit first":   {named("1a"), "metadata.name", "DNS-1035"},
	"name with a dot":           {named("a.b"), "metadata.name", "DNS-1035"},
	"oldest version":            {edit: version("2.52.0")},
	"version too old":           {version("2.51.0"), "spec.rayVersion", "2.52.0"},
	"version too new":           {version("2.61.0"), "spec.rayVersion", "2.60"},
	"version without a patch":   {version("2.60"), "spec.rayVersion", "such as"},
	"pull policy":               {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.ImagePullPolicy = "Never" }},
	"pull policy unknown":       {func(c *v1alpha1.ComputeCluster) { c.Spec.ImagePullPolicy = "Often" }, "spec.imagePullPolicy", "Always"},
	"head is looked at too":     {func(c *v1alpha1.ComputeCluster) { c.Spec.Head.Size = testkit.Resources("cpu", "0") }, "spec.head.size[cpu]", "greater"},
	"no groups":                 {edit: func(c *v1alpha1.ComputeCluster) { c.Spec.WorkerGroups = nil }},
	"64 groups":                 {edit: manyGroups(64)},
	"65 groups":                 {manyGroups(65), "spec.workerGroups", "64"},
	"group of 40":               {edit: groupNamed(strings.Repeat("g", 40))},
	"group of 41":               {groupNamed(strings.Repeat("g", 41)), at + "name", "at most 40"},
	"group with a capital":      {groupNamed("Cpu"), at + "name", "lower-case"},
	"group without a name":      {groupNamed(""), at + "name", "lower-case"},
	"group called head":         {groupNamed("head"), at + "name", "the head itself"},
	"group called headgroup":    {groupNamed("headgroup"), at + "name", "the head itself"},
	"two groups of a name":      {func(c *v1alpha1.ComputeCluster) { c.Spec.WorkerGroups[1].Name = "cpu" }, "spec.workerGroups[1].name", "Duplicate"},
	"no workers":                {edit: replicas(0)},
	"replicas not said":         {edit: group(func(g *v1alpha1.WorkerGroup) { g.Replicas = nil })},
	"fewer than none":           {replicas(-1), at + "replicas", "between 0"},
	"most workers":              {edit: replicas(10000)},
	"too many workers":          {replicas(10001), at + "replicas", "10000"},
	"size":                      {edit: size("cpu", "500m", "memory", "1Gi", "nvidia.com/gpu", "0")},
	"no cpu":                    {size("cpu", "0"), at + "size[cpu]", "greater than zero"},
	"negative device":           {size("nvidia.com/gpu", "-1"), at + "size[nvidia.com/gpu]", "greater than zero"},
	"half a device":             {size("nvidia.com/gpu", "500m"), at + "size[nvidia.com/gpu]", "whole number"},
	"rayResources":              {edit: rayResource("reader", "500m")},
	"rayResources none":         {edit: rayResource("CPU", "0")},
	"rayResources negative":     {rayResource("CPU", "-1"), at + "rayResources[CPU]", "negative"},
	"rayResources half a CPU":   {rayResource("CPU", "500m"), at + "rayResources[CPU]", "whole numbers"},
	"rayResources half a GPU":   {rayResource("GPU", "500m"), at + "rayResources[GPU]", "whole numbers"},
	"rayResources object store": {rayResource("object_store_memory", "1Gi"), at + "rayResources[object_store_memory]", "size"},
	"rayResources node":         {rayResource("node:1", "1"), at + "rayResources[node:1]", "Ray's own"},
	"rayResources no name":      {rayResource("", "1"), at + "rayResources[]", "Ray's own"},
	"option":                    {edit: startParam("min-worker-port", "11000")},
	"bare option":               {edit: startParam("enable-resource-isolation", "")},
	"option with dashes":        {startParam("--port", "1"), at + "rayStartParams[--port]", "without leading dashes"},
	"option of the operator":    {startParam("block", ""), at + "rayStartParams[block]", "leave it out"},
	"option with a counterpart": {startParam("num-cpus", "1"), at + "rayStartParams[num-cpus]", "use rayResources.CPU"},
	"bare option with a value":  {startParam("enable-resource-isolation", "1"), at + "rayStartParams[enable-resource-isolation]", "no value"},
	"label":                     {edit: rayLabel("example.com/zone", "a_b.c-1")},
	"label without a value":     {edit: rayLabel("zone", "")},
	"label of Ray":              {rayLabel("ray.io/zone", "a"), at + "labels[ray.io/zone]", "Ray's own"},
	"label key":                 {rayLabel("a b", "a"), at + "labels[a b]", "at most 63"},
	"label key empty":           {rayLabel("", "a"), at + "labels[]", "at most 63"},
	"label prefix":              {rayLabel("a,b/c", "a"), at + "labels[a,b/c]", "at most 63"},
	"label value":               {rayLabel("zone", "a=b"), at + "labels[zone]", "a value is"},
	"label value too long":      {rayLabel("zone", strings.Repeat("a", 64)), at + "labels[zone]", "at most 63"},
}

func manyGroups(n int) func(*v1alpha1.ComputeCluster) {
	return func(c *v1alpha1.ComputeCluster) {
		c.Spec.WorkerGroups = nil
		for i := range n {
			c.Spec.WorkerGroups = append(c.Spec.WorkerGroups, testkit.Group(fmt.Sprintf("g%d", i), 0))
		}
	}
}

type (
	tmpl = corev1.PodTemplateSpec
	ctr  = corev1.Container
)

var yes, no = true, false

const inRay = at + "template.spec.containers[1]."

var templateRows = map[string]row{
	"a plain template": {edit: template(func(*tmpl, *ctr) {})},
	"a rich template": {edit: template(func(t *tmpl, c *ctr) {
		t.Labels, t.Annotations = map[string]string{"team": "a"}, map[string]string{"example.com/heliostat.dev": "a"}
		t.Spec.ShareProcessNamespace = &no
		c.Env = []corev1.EnvVar{{Name: "MINE"}}
		c.VolumeMounts = []corev1.VolumeMount{{MountPath: "/data"}}
		t.Spec.Containers[0].Command = []string{"sleep"}
	})},
	"a label of ours": {template(func(t *tmpl, _ *ctr) { t.Labels = map[string]string{"heliostat.dev/slot": "1"} }),
		at + "template.metadata.labels[heliostat.dev/slot]", "operator's own"},
	"an annotation of ours": {template(func(t *tmpl, _ *ctr) { t.Annotations = map[string]string{"heliostat.dev/intent": "1"} }),
		at + "template.metadata.annotations[heliostat.dev/intent]", "operator's own"},
	"a volume of ours": {template(func(t *tmpl, _ *ctr) { t.Spec.Volumes = []corev1.Volume{{Name: "a"}, {Name: "ray-shm"}} }),
		at + "template.spec.volumes[1]", "another"},
	"the token's volume": {template(func(t *tmpl, _ *ctr) { t.Spec.Volumes = []corev1.Volume{{Name: "ray-token"}} }),
		at + "template.spec.volumes[0]", "another"},
	"a shared process namespace": {template(func(t *tmpl, _ *ctr) { t.Spec.ShareProcessNamespace = &yes }),
		at + "template.spec.shareProcessNamespace", "credentials"},
	"a command":   {template(func(_ *tmpl, c *ctr) { c.Command = []string{"bash"} }), inRay + "command", "init container"},
	"arguments":   {template(func(_ *tmpl, c *ctr) { c.Args = []string{"-c"} }), inRay + "command", "rayStartParams"},
	"our address": {template(func(_ *tmpl, c *ctr) { c.Env = []corev1.EnvVar{{Name: "A"}, {Name: "RAY_ADDRESS"}} }), inRay + "env[1]", "RAY_ADDRESS"},
	"our path": {template(func(_ *tmpl, c *ctr) { c.VolumeMounts = []corev1.VolumeMount{{MountPath: "/dev/shm/"}} }),
		inRay + "volumeMounts[0]", "/dev/shm"},
	"our port's name": {template(func(_ *tmpl, c *ctr) { c.Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9090}} }),
		inRay + "ports[0]", "8080"},
	"the token's path": {template(func(_ *tmpl, c *ctr) {
		c.VolumeMounts = []corev1.VolumeMount{{MountPath: "/var/run/secrets/heliostat.dev/token"}}
	}), inRay + "volumeMounts[0]", "choose another path"},
	"size beside resources": {func(c *v1alpha1.ComputeCluster) {
		template(func(_ *tmpl, c *ctr) { c.Resources.Limits = testkit.Resources("cpu", "1") })(c)
		c.Spec.WorkerGroups[0].Size = testkit.Resources("cpu", "1")
	}, at + "size", "keep one"},
	"size beside a sidecar's resources": {edit: func(c *v1alpha1.ComputeCluster) {
		template(func(t *tmpl, _ *ctr) { t.Spec.Containers[0].Resources.Limits = testkit.Resources("cpu", "1") })(c)
		c.Spec.WorkerGroups[0].Size = testkit.Resources("cpu", "1")
	}},
}

func TestCluster(t *testing.T) {
	for _, rows := range []map[string]row{clusterRows, templateRows} {
		for name, row := range rows {
			t.Run(name, func(t *testing.T) {
				cluster := testkit.Cluster("demo", testkit.Group("cpu", 1), testkit.Group("gpu", 1))
				row.edit(cluster)
				errs := validate.Cluster(cluster)
				switch {
				case row.path == "" && len(errs) > 0:
					t.Errorf("a good cluster was refused: %v", errs)
				case row.path != "" && (len(errs) != 1 || errs[0].Field != row.path || !strings.Contains(errs[0].Error(), row.says)):
					t.Errorf("%v, want one error at %s that says %q", errs, row.path, row.says)
				}
			})
		}
	}
}

// TestEveryRuleHasARow counts the errors that the source can give against those that
// the rows bring about.
func TestEveryRuleHasARow(t *testing.T) {
	brought := map[string]bool{}
	for _, rows := range []map[string]row{clusterRows, templateRows} {
		for _, row := range rows {
			cluster := testkit.Cluster("demo", testkit.Group("cpu", 1), testkit.Group("gpu", 1))
			row.edit(cluster)
			for _, err := range validate.Cluster(cluster) {
				brought[rule(err)] = true
			}
		}
	}
	if have, want := len(brought), rulesInSource(t); have < want {
		t.Errorf("the rows bring about %d different errors, the source has %d places that make one", have, want)
	}
}

// rule is the part of an error that does not depend on names and values.
func rule(err *field.Error) string {
	detail := err.Detail
	for _, word := range []string{"RAY_ADDRESS", "/dev/shm", "/var/run/secrets/heliostat.dev/token"} {
		detail = strings.ReplaceAll(detail, word, "")
	}
	path := err.Field[strings.LastIndex(strings.TrimRight(err.Field, "0123456789[]"), ".")+1:]
	return string(err.Type) + " " + path[:len(path)-len(path[strings.IndexAny(path+"[", "["):])] + " " + detail
}

func rulesInSource(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("find the source: %v", err)
	}
	count := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if from, ok := of.X.(*ast.Ident); ok && from.Name == "field" && of.Sel.Name != "NewPath" {
				count++
			}
			return true
		})
	}
	return count
}
