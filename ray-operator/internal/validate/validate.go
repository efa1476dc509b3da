// Package validate says what is wrong with a spec, field by field, with the remedy.
//
// In: a ComputeCluster. Out: field errors, none for a good one. The CRD's schema
// holds the rules that it can express; here are all of them, because the schema does
// not reach into pod templates, and because servers and tests want the same answer
// without an API server.
//
// It is pure, never changes what it looks at, and never asks whether an object that
// the spec names exists.
package validate

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
)

var (
	labelName  = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	rayVersion = regexp.MustCompile(`^2[.](5[2-9]|60)[.][0-9]+$`)
)

const maxReplicas = 10000

// Cluster gives all that is wrong with a cluster, in the order of its fields.
func Cluster(cluster *v1alpha1.ComputeCluster) field.ErrorList {
	var errs field.ErrorList
	name := field.NewPath("metadata", "name")
	if !labelName.MatchString(cluster.Name) || len(cluster.Name) > naming.MaxCluster {
		errs = append(errs, field.Invalid(name, cluster.Name,
			"must be a DNS-1035 label of at most 50 characters; choose a shorter or simpler name"))
	}
	spec := field.NewPath("spec")
	if !rayVersion.MatchString(cluster.Spec.RayVersion) {
		errs = append(errs, field.Invalid(spec.Child("rayVersion"), cluster.Spec.RayVersion,
			`must be a Ray release from 2.52.0 to 2.60.x, such as "2.60.0"`))
	}
	errs = append(errs, pullPolicy(spec.Child("imagePullPolicy"), cluster.Spec.ImagePullPolicy)...)
	errs = append(errs, node(spec.Child("head"), &cluster.Spec.Head.NodeSpec)...)
	return append(errs, groups(spec.Child("workerGroups"), cluster.Spec.WorkerGroups)...)
}

func pullPolicy(path *field.Path, policy corev1.PullPolicy) field.ErrorList {
	known := []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	if policy == "" || slices.Contains(known, policy) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, policy, known)}
}

func groups(path *field.Path, all []v1alpha1.WorkerGroup) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	if len(all) > 64 {
		errs = append(errs, field.TooMany(path, len(all), 64))
	}
	for i := range all {
		group, at := &all[i], path.Index(i)
		switch {
		case !labelName.MatchString(group.Name) || len(group.Name) > naming.MaxGroup:
			errs = append(errs, field.Invalid(at.Child("name"), group.Name,
				"must be at most 40 lower-case letters, digits and '-', starting with a letter and ending with a letter or digit"))
		case group.Name == "head" || group.Name == "headgroup":
			errs = append(errs, field.Invalid(at.Child("name"), group.Name, "stands for the head itself; choose another name"))
		case seen[group.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), group.Name))
		}
		seen[group.Name] = true
		if n := group.Replicas; n != nil && (*n < 0 || *n > maxReplicas) {
			errs = append(errs, field.Invalid(at.Child("replicas"), *n, fmt.Sprintf("must be between 0 and %d", maxReplicas)))
		}
		errs = append(errs, node(at, &group.NodeSpec)...)
	}
	return errs
}

func node(path *field.Path, spec *v1alpha1.NodeSpec) field.ErrorList {
	errs := size(path.Child("size"), spec)
	errs = append(errs, rayResources(path.Child("rayResources"), spec.RayResources)...)
	errs = append(errs, startParams(path.Child("rayStartParams"), spec.RayStartParams)...)
	errs = append(errs, rayLabels(path.Child("labels"), spec.Labels)...)
	if spec.Template != nil {
		errs = append(errs, template(path.Child("template"), spec.Template)...)
	}
	return errs
}
