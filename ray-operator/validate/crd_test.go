package validate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// TestChecks_JudgeAsTheCRDDoes: what is asked in Go of changes, of podDefaults and of the sizes of the operator's containers is
// refused by the same rules as in the API server, for each row about a cluster.
func TestChecks_JudgeAsTheCRDDoes(t *testing.T) {
	kind, asked := corpus.Clusters(), map[string]bool{}
	for _, row := range kind.Rows {
		before, after := kind.Good(), kind.Good()
		if row.Before != nil {
			row.Before(before)
			row.Before(after)
		}
		row.Edit(after)
		answer, err := crdcheck.Update("ComputeCluster", before, after)
		if err != nil {
			t.Fatal(err)
		}
		if answer.WithoutRules {
			continue
		}
		have, want := askedRules(validate.Update(before, after)), askedRules(answer.Findings)
		if !slices.Equal(have, want) {
			t.Errorf("%s: Go refuses it by %v, the CRD by %v", row.Name, have, want)
		}
		for _, rule := range have {
			asked[rule] = true
		}
	}
	if len(asked) < 20 {
		t.Errorf("only %d rules are asked: %v", len(asked), asked)
	}
}

// askedPlaces are what rules of the CRD are asked about in Go, beside changes.
var askedPlaces = []string{"spec.podDefaults", "spec.autoscaling.size", "spec.controlStore.managedRedis.size", "spec.network.encryptionSize"}

// askedRules are those of the CRD that Go asks too, each once.
func askedRules(found validate.Findings) []string {
	var all []string
	for _, finding := range found {
		at := slices.IndexFunc(validate.Rules(), func(r validate.Rule) bool { return r.ID == finding.Rule && r.By != validate.Policy })
		isThere := slices.ContainsFunc(askedPlaces, func(place string) bool { return strings.HasPrefix(finding.Path, place) })
		if at >= 0 && (isThere || validate.Rules()[at].IsOfChange) && finding.Rule != "encryption-size-unused" {
			all = append(all, finding.Rule)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestDefaults_HaveTheBoundsOfTheCRD: as much as the CRD takes of podDefaults is good, and one more is not.
func TestDefaults_HaveTheBoundsOfTheCRD(t *testing.T) {
	for name, test := range map[string]struct {
		most int
		fill func(d *v1beta1.PodDefaults, n int)
	}{
		"serviceAccountName": {253, func(d *v1beta1.PodDefaults, n int) { d.ServiceAccountName = strings.Repeat("a", n) }},
		"priorityClassName":  {253, func(d *v1beta1.PodDefaults, n int) { d.PriorityClassName = strings.Repeat("a", n) }},
		"imagePullSecrets": {16, func(d *v1beta1.PodDefaults, n int) {
			d.ImagePullSecrets = entries(n, func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} })
		}},
		"env": {256, func(d *v1beta1.PodDefaults, n int) {
			d.Env = entries(n, func(name string) corev1.EnvVar { return corev1.EnvVar{Name: name} })
		}},
		"envFrom": {16, func(d *v1beta1.PodDefaults, n int) {
			d.EnvFrom = entries(n, func(name string) corev1.EnvFromSource { return corev1.EnvFromSource{Prefix: name} })
		}},
		"tolerations": {64, func(d *v1beta1.PodDefaults, n int) {
			d.Tolerations = entries(n, func(name string) corev1.Toleration { return corev1.Toleration{Key: name} })
		}},
		"labels":       {64, func(d *v1beta1.PodDefaults, n int) { d.Labels = keyed(n) }},
		"annotations":  {64, func(d *v1beta1.PodDefaults, n int) { d.Annotations = keyed(n) }},
		"nodeSelector": {64, func(d *v1beta1.PodDefaults, n int) { d.NodeSelector = keyed(n) }},
	} {
		for n, isGood := range map[int]bool{test.most: true, test.most + 1: false} {
			cluster := corpus.Good()
			cluster.Spec.PodDefaults = &v1beta1.PodDefaults{}
			test.fill(cluster.Spec.PodDefaults, n)
			isBound := func(f validate.Finding) bool {
				return f.Path == "spec.podDefaults."+name && (f.Rule == "long-text" || f.Rule == "long-list")
			}
			answer, err := crdcheck.Create("ComputeCluster", cluster)
			if err != nil {
				t.Fatal(err)
			}
			for who, found := range map[string]validate.Findings{"Go": validate.Cluster(cluster), "the CRD": answer.Findings} {
				if slices.ContainsFunc(found, isBound) == isGood {
					t.Errorf("%d in %s: good is not %v for %s", n, name, isGood, who)
				}
			}
		}
	}
}

func entries[T any](n int, make func(name string) T) []T {
	var all []T
	for i := range n {
		all = append(all, make(fmt.Sprint("a", i)))
	}
	return all
}

func keyed(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint("a", i)] = "b"
	}
	return all
}
