package job

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// shaped is a group with so many workers of so much CPU, and what else is said.
func shaped(name string, workers int32, cpu string, edits ...func(*v1beta1.WorkerGroup)) v1beta1.WorkerGroup {
	group := v1beta1.WorkerGroup{Name: name, Replicas: number(workers), NodeSpec: v1beta1.NodeSpec{Size: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu),
	}}}
	for _, edit := range edits {
		edit(&group)
	}
	return group
}

// role is a role that needs so many places of some resources, given as "CPU=4".
func role(name string, replicas int32, needs ...string) v1beta1.GangRole {
	one := v1beta1.GangRole{Name: name, Replicas: replicas, Resources: map[string]resource.Quantity{}}
	for i := range needs {
		at := slices.Index([]byte(needs[i]), '=')
		one.Resources[needs[i][:at]] = resource.MustParse(needs[i][at+1:])
	}
	return one
}

// roomCase is a cluster, a gang, and why it can never hold that.
type roomCase struct {
	groups    []v1beta1.WorkerGroup
	cluster   func(*v1beta1.ComputeCluster)
	placement v1beta1.GangPlacement
	roles     []v1beta1.GangRole
	want      string
}

func judgeRooms(t *testing.T, cases map[string]roomCase) {
	t.Helper()
	for name, test := range cases {
		cluster := demo()
		cluster.Spec.WorkerGroups = test.groups
		test.cluster(cluster)
		if have := roomOf(cluster).lacks(&v1beta1.Gang{Placement: test.placement, Roles: test.roles}); have != test.want {
			t.Errorf("%s:\n%q, want\n%q", name, have, test.want)
		}
	}
}

func asIs(*v1beta1.ComputeCluster) {}

// TestRoom_SaysWhatIsTooLarge: what can never fit is refused with the arithmetic, and nothing else.
func TestRoom_SaysWhatIsTooLarge(t *testing.T) {
	gpus := func(group *v1beta1.WorkerGroup) { group.Size["nvidia.com/gpu"] = resource.MustParse("2") }
	judgeRooms(t, map[string]roomCase{
		"fits":      {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{role("worker", 4, "CPU=2")}, ""},
		"too many":  {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{role("worker", 5, "CPU=2")}, "role worker needs 5 × {CPU: 2}, and at most 4 fit: group cpu has at most 2 × 2"},
		"too large": {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4", gpus)}, asIs, "", []v1beta1.GangRole{role("worker", 1, "CPU=1", "GPU=4")}, "role worker needs 1 × {CPU: 1, GPU: 4}, and no node holds one: the head has {CPU: 0, GPU: 0}, group cpu has {CPU: 4, GPU: 2}"},
		"no label": {
			[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{selecting(role("worker", 1, "CPU=1"), "ray.io/node-group", "gpu")},
			"role worker needs 1 × {CPU: 1}, and no group has the labels ray.io/node-group=gpu",
		},
		"one of several labels": {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{selecting(role("worker", 1, "CPU=1"), "ray.io/node-group", "in(gpu, cpu)")}, ""},
		"another label":         {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{selecting(role("worker", 1, "CPU=1"), "ray.io/node-group", "!cpu")}, "role worker needs 1 × {CPU: 1}, and no node holds one: the head has {CPU: 0}"},
		"a label of machines":   {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{selecting(role("worker", 1, "CPU=1"), "ray.io/availability-zone", "a")}, ""},
		"a label of nobody":     {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{selecting(role("worker", 1, "CPU=1"), "team", "a")}, "role worker needs 1 × {CPU: 1}, and no group has the labels team=a"},
		"devices of machines":   {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{role("worker", 1, "accelerator_type:A100=0.001")}, ""},
		"a resource of nobody":  {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{role("worker", 1, "blue=1")}, "role worker needs 1 × {blue: 1}, and no node holds one: the head has {blue: 0}, group cpu has {blue: 0}"},
		"with a minimum":        {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{withLeast(role("worker", 9, "CPU=2"), 4)}, ""},
		"two roles": {
			[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, "", []v1beta1.GangRole{role("ps", 3, "CPU=2"), role("worker", 3, "CPU=2")},
			"all roles need 12 CPU, and at most 8 are there: group cpu has at most 2 × 4",
		},
	})
}

// TestRoom_CountsNodes: those that autoscaling may add, those that are there, and the head.
func TestRoom_CountsNodes(t *testing.T) {
	upTo := func(most int32) func(*v1beta1.WorkerGroup) {
		return func(group *v1beta1.WorkerGroup) { group.MaxReplicas = number(most) }
	}
	scaled := func(most *int32) func(*v1beta1.ComputeCluster) {
		return func(c *v1beta1.ComputeCluster) { c.Spec.Autoscaling = &v1beta1.Autoscaling{MaxNodes: most} }
	}
	judgeRooms(t, map[string]roomCase{
		"up to the maximum of a group": {[]v1beta1.WorkerGroup{shaped("cpu", 0, "4", upTo(3))}, scaled(nil), "", []v1beta1.GangRole{role("worker", 3, "CPU=4")}, ""},
		"above it":                     {[]v1beta1.WorkerGroup{shaped("cpu", 0, "4", upTo(3))}, scaled(nil), "", []v1beta1.GangRole{role("worker", 4, "CPU=4")}, "role worker needs 4 × {CPU: 4}, and at most 3 fit: group cpu has at most 3 × 1"},
		"above that of the cluster": {
			[]v1beta1.WorkerGroup{shaped("small", 0, "2", upTo(9)), shaped("large", 0, "8", upTo(2))}, scaled(number(3)), "",
			[]v1beta1.GangRole{role("worker", 10, "CPU=2")}, "role worker needs 10 × {CPU: 2}, and at most 9 fit: group large has at most 2 × 4, group small has at most 1 × 1",
		},
		"on one node": {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, v1beta1.PlacementStrictPack, []v1beta1.GangRole{role("worker", 3, "CPU=2")}, "StrictPack needs {CPU: 6} on one node, and no group has such nodes"},
		"on nodes of their own": {
			[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, v1beta1.PlacementStrictSpread, []v1beta1.GangRole{role("worker", 3, "CPU=1")},
			"role worker needs 3 × {CPU: 1}, and at most 2 fit: group cpu has at most 2 × 1",
		},
		"two roles on nodes of their own": {
			[]v1beta1.WorkerGroup{shaped("cpu", 2, "4")}, asIs, v1beta1.PlacementStrictSpread, []v1beta1.GangRole{role("ps", 1, "CPU=1"), role("worker", 2, "CPU=1")},
			"StrictSpread needs 3 nodes, and at most 2 are there: group cpu has at most 2 × 1",
		},
		"on the head":          {nil, asIs, "", []v1beta1.GangRole{role("worker", 1, "CPU=1")}, ""},
		"more than it has":     {nil, asIs, "", []v1beta1.GangRole{role("worker", 2, "CPU=1")}, "role worker needs 2 × {CPU: 1}, and at most 1 fit: the head has at most 1 × 1"},
		"several hosts":        {[]v1beta1.WorkerGroup{shaped("cpu", 2, "4", func(g *v1beta1.WorkerGroup) { g.HostsPerReplica = 2 })}, asIs, "", []v1beta1.GangRole{role("worker", 4, "CPU=4")}, ""},
		"workers above it":     {[]v1beta1.WorkerGroup{shaped("cpu", 1, "4")}, created(3), "", []v1beta1.GangRole{role("worker", 3, "CPU=4")}, ""},
		"GPUs that Ray counts": {[]v1beta1.WorkerGroup{shaped("cpu", 1, "4", ofPod(corev1.PodSpec{RuntimeClassName: new("nvidia")}))}, asIs, "", []v1beta1.GangRole{role("worker", 1, "GPU=8")}, ""},
		"resources that a variable gives": {[]v1beta1.WorkerGroup{shaped("cpu", 1, "4", ofPod(corev1.PodSpec{Containers: []corev1.Container{
			{Name: "ray", Env: []corev1.EnvVar{{Name: "RAY_OVERRIDE_RESOURCES", Value: `{"CPU":64}`}}},
		}}))}, asIs, "", []v1beta1.GangRole{role("worker", 1, "CPU=64")}, ""},
		"labels that a variable gives": {[]v1beta1.WorkerGroup{shaped("cpu", 1, "4", ofPod(corev1.PodSpec{Containers: []corev1.Container{
			{Name: "ray", Env: []corev1.EnvVar{{Name: "RAY_OVERRIDE_LABELS", Value: `{"disk":"fast"}`}}},
		}}))}, asIs, "", []v1beta1.GangRole{selecting(role("worker", 1, "CPU=4"), "disk", "fast")}, ""},
		"resources of Ray's": {[]v1beta1.WorkerGroup{shaped("cpu", 1, "4", func(g *v1beta1.WorkerGroup) {
			g.RayResources = map[string]resource.Quantity{"CPU": resource.MustParse("64")}
		})}, asIs, "", []v1beta1.GangRole{role("worker", 16, "CPU=4")}, ""},
	})
}

func selecting(of v1beta1.GangRole, label, value string) v1beta1.GangRole {
	of.LabelSelector = map[string]string{label: value}
	return of
}

// ofPod gives a group a template.
func ofPod(spec corev1.PodSpec) func(*v1beta1.WorkerGroup) {
	return func(group *v1beta1.WorkerGroup) { group.Template = &corev1.PodTemplateSpec{Spec: spec} }
}

func withLeast(of v1beta1.GangRole, least int32) v1beta1.GangRole {
	of.MinReplicas = least
	return of
}

// created is that the group cpu has so many workers.
func created(workers int32) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) {
		c.Status.Groups = []v1beta1.GroupStatus{{Name: "cpu", WorkerCounts: v1beta1.WorkerCounts{Created: workers}}}
	}
}

// TestCutLack: whatever names a gang has, what is told fits into a condition and an event.
func TestCutLack(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("é", 100_000), "x" + strings.Repeat("é", 100_000)} {
		have := cutLack(text)
		if !utf8.ValidString(have) || len(have) > mostLack+len("…") || len(text) <= mostLack && have != text {
			t.Errorf("of %d bytes it leaves %d: %.20q", len(text), len(have), have)
		}
	}
}

// TestRoom_RefusesNothingThatFits compares with a search over all placements: what is refused never fits, and what surely fits
// together does.
func TestRoom_RefusesNothingThatFits(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 46))
	refused, missed, together, apart := 0, 0, 0, 0
	for range 3000 {
		cluster, nodes := anyCluster(chance)
		one, places := anyGang(chance, 0)
		why, fits := roomOf(cluster).lacks(one), canPlace(nodes, places)
		switch {
		case why != "" && fits:
			t.Fatalf("%+v holds %+v, and is refused: %s", nodes, one, why)
		case why != "":
			refused++
		case !fits:
			missed++
		}
		other, more := anyGang(chance, 1)
		sure, fits := roomOf(cluster).holdsTogether([]*v1beta1.Gang{one, other}), canPlace(nodes, append(places, more...))
		switch {
		case sure && !fits:
			t.Fatalf("%+v does not hold %+v and %+v together", nodes, one, other)
		case sure:
			together++
		case fits:
			apart++
		}
	}
	if refused < 500 || missed > refused/3 || together < 100 || apart > together/3 {
		t.Errorf("%d were refused, and %d more do not fit; %d fit together for sure, and %d more do", refused, missed, together, apart)
	}
}

// anyCluster returns a small cluster with its nodes.
func anyCluster(chance *rand.Rand) (*v1beta1.ComputeCluster, []node) {
	cluster := demo()
	cluster.Spec.WorkerGroups = nil
	var nodes []node
	for i := range 1 + chance.IntN(2) {
		workers, cpus, blues := chance.IntN(3), 1+chance.IntN(8), chance.IntN(4)
		group := shaped(fmt.Sprint("g", i), int32(workers), strconv.Itoa(cpus), func(g *v1beta1.WorkerGroup) {
			g.RayResources = map[string]resource.Quantity{"blue": *resource.NewQuantity(int64(blues), resource.DecimalSI)}
		})
		cluster.Spec.WorkerGroups = append(cluster.Spec.WorkerGroups, group)
		for range workers {
			nodes = append(nodes, node{cpus, blues, group.Name, nil})
		}
	}
	return cluster, nodes
}

// anyGang returns a small gang of a number with its places.
func anyGang(chance *rand.Rand, number int) (*v1beta1.Gang, []place) {
	of := &v1beta1.Gang{Placement: []v1beta1.GangPlacement{
		v1beta1.PlacementPack, v1beta1.PlacementStrictPack, v1beta1.PlacementStrictSpread,
	}[chance.IntN(3)]}
	var places []place
	for i := range 1 + chance.IntN(2) {
		one := place{cpus: 1 + chance.IntN(3), blues: chance.IntN(2), gang: number, as: of.Placement}
		as := role(fmt.Sprint("r", i), int32(1+chance.IntN(3)), fmt.Sprint("CPU=", one.cpus), fmt.Sprint("blue=", one.blues))
		if chance.IntN(3) == 0 {
			one.group = "g0"
			as = selecting(as, "ray.io/node-group", one.group)
		}
		of.Roles = append(of.Roles, as)
		for range as.Replicas {
			places = append(places, one)
		}
	}
	return of, places
}

type node struct {
	cpus, blues int
	group       string
	gangs       []int
}

type place struct {
	cpus, blues int
	group       string
	gang        int
	as          v1beta1.GangPlacement
}

// canPlace tries all ways to put places on nodes.
func canPlace(nodes []node, places []place) bool {
	if len(places) == 0 {
		return true
	}
	next := places[0]
	for i := range nodes {
		at := &nodes[i]
		has := func(of node) bool { return slices.Contains(of.gangs, next.gang) }
		switch {
		case at.cpus < next.cpus || at.blues < next.blues || next.group != "" && next.group != at.group,
			next.as == v1beta1.PlacementStrictSpread && has(*at), next.as == v1beta1.PlacementStrictPack && slices.ContainsFunc(nodes, has) && !has(*at):
			continue
		}
		before := *at
		at.cpus, at.blues, at.gangs = at.cpus-next.cpus, at.blues-next.blues, append(slices.Clone(at.gangs), next.gang)
		ok := canPlace(nodes, places[1:])
		if *at = before; ok {
			return true
		}
	}
	return false
}
