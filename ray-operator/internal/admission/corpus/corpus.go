// Package corpus makes ComputeClusters, good and bad, with what package validate says of each.
//
// In: counts and a seed. Out: inputs for a real API server, which must come to the same
// answers: a row for each side of each rule, mixtures of rows, and a rich cluster in which
// one field after the other has an odd value. The same counts and seed give the same inputs.
//
// It never asks a server itself, and nothing that users run imports it.
package corpus

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/validate"
)

// Options say how many inputs there are beside the rows, and from which seed.
type Options struct {
	Random, Mutations int
	Seed              uint64
}

// Input is a cluster as a user would send it.
type Input struct {
	Name string `json:"name"`
	// Before is the state that the object is changed from; absent: it is created.
	Before json.RawMessage `json:"before,omitempty"`
	Object json.RawMessage `json:"object"`
	// Refusals are what is wrong with it; none for a good one.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Pods are those of a good row or mixture, which Kubernetes must take: the head, and one
	// worker of each of the first groups.
	Pods []*corev1.Pod `json:"pods,omitempty"`
}

// somePods is of how many groups an input has a worker.
const somePods = 3

// Refusal is one thing that is wrong.
type Refusal struct {
	Field string `json:"field"`
	// Says is a part of what the API server must answer if it names this one.
	Says string `json:"says"`
}

// Row is an edit of the good cluster, named after the rule that it breaks.
type Row struct {
	Name string
	// Rule is empty where the cluster stays good.
	Rule string
	// Before makes the state that Edit then changes; nil: the cluster is created.
	Before, Edit func(*v1alpha1.ComputeCluster)
}

// Good is the cluster that rows edit: a head and two groups with nothing else said.
func Good() *v1alpha1.ComputeCluster {
	one := int32(1)
	return &v1alpha1.ComputeCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ComputeCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: "demo"},
		Spec: v1alpha1.ComputeClusterSpec{
			RayVersion: "2.60.0", WorkerGroups: []v1alpha1.WorkerGroup{{Name: "cpu", Replicas: &one}, {Name: "gpu", Replicas: &one}},
		},
	}
}

// Make carries out the row and gives the state before, nil where the cluster is created,
// and the state after.
func (r Row) Make() (before, after *v1alpha1.ComputeCluster) {
	after = Good()
	if r.Before != nil {
		r.Before(after)
		before = after.DeepCopy()
	}
	r.Edit(after)
	return before, after
}

// All gives all inputs, or an error where one cannot be written down.
func All(options Options) iter.Seq2[Input, error] {
	return func(yield func(Input, error) bool) {
		for _, row := range Rows() {
			before, after := row.Make()
			input, err := typed(row.Name, before, after)
			if !yield(input.withPods(after), err) {
				return
			}
		}
		source := rand.New(rand.NewPCG(options.Seed, 0))
		for i := range options.Random {
			name, cluster := mixture(source)
			input, err := typed(fmt.Sprintf("mixture %d of seed %d: %s", i, options.Seed, name), nil, cluster)
			if !yield(input.withPods(cluster), err) {
				return
			}
		}
		all := mutations()
		source.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, mutation := range all[:min(len(all), options.Mutations)] {
			if !yield(mutation.input()) {
				return
			}
		}
	}
}

// mixture lays some rows over each other: good ones, and in half of the mixtures any.
func mixture(source *rand.Rand) (string, *v1alpha1.ComputeCluster) {
	goodOnly := source.IntN(2) == 0
	rows := slices.DeleteFunc(Rows(), func(r Row) bool { return r.Before != nil || goodOnly && r.Rule != "" })
	cluster := Good()
	var names []string
	for range 1 + source.IntN(5) {
		row := rows[source.IntN(len(rows))]
		if cannot := apply(row, cluster); cannot {
			continue
		}
		names = append(names, row.Name)
	}
	return fmt.Sprint(names), cluster
}

// apply edits a cluster, unless what the row edits went with an earlier edit.
func apply(row Row, cluster *v1alpha1.ComputeCluster) (cannot bool) {
	kept := cluster.DeepCopy()
	defer func() {
		if recover() != nil {
			*cluster, cannot = *kept, true
		}
	}()
	row.Edit(cluster)
	return false
}

func typed(name string, before, after *v1alpha1.ComputeCluster) (Input, error) {
	input := Input{Name: name}
	errs := validate.Cluster(after)
	var err error
	if before != nil {
		errs = validate.Update(before, after)
		if input.Before, err = json.Marshal(before); err != nil {
			return input, fmt.Errorf("write down %s: %w", name, err)
		}
	}
	if input.Object, err = json.Marshal(after); err != nil {
		return input, fmt.Errorf("write down %s: %w", name, err)
	}
	input.Refusals = refusals(errs)
	return input, nil
}

// withPods adds the pods to a good input.
func (in Input) withPods(cluster *v1alpha1.ComputeCluster) Input {
	if len(in.Refusals) > 0 {
		return in
	}
	cluster = cluster.DeepCopy()
	cluster.UID = "11111111-1111-1111-1111-111111111111" // an owner needs one
	in.Pods = append(in.Pods, pod.Head(cluster, 1))
	for i := range cluster.Spec.WorkerGroups[:min(somePods, len(cluster.Spec.WorkerGroups))] {
		in.Pods = append(in.Pods, pod.Worker(cluster, &cluster.Spec.WorkerGroups[i], 0, 1))
	}
	for _, made := range in.Pods {
		made.APIVersion, made.Kind = "v1", "Pod"
	}
	return in
}

func refusals(errs field.ErrorList) []Refusal {
	words := map[string]string{}
	for _, rule := range validate.Rules() {
		if words[rule.Text()] = rule.Text(); rule.By == validate.Schema {
			words[rule.Text()] = rule.Says
		}
	}
	var all []Refusal
	for _, err := range errs {
		all = append(all, Refusal{Field: err.Field, Says: words[err.Detail]})
	}
	return all
}
