package corpus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

type (
	job     = v1beta1.ClusterJob
	jobEdit = func(*job)
	jobRow  = Row[*job]
)

// inJob and inService begin the names of rows about a cluster that a job or a service describes.
const (
	inJob     = "a job of its own cluster: "
	inService = "a service of its own cluster: "
)

// Jobs are ClusterJobs, with one row or more for each side of each of their rules, and a job
// on a cluster of its own for each row about a cluster.
func Jobs() Kind[*job] {
	return newKind(Kind[*job]{
		Good: GoodJob, Rows: slices.Concat(JobRows(), templates()),
		kind: "ClusterJob", pods: podsOfJob,
	})
}

// JobRows are the rows about a job's own rules.
func JobRows() []Row[*job] {
	return slices.Concat(jobRows, commandRows, runtimeEnvRows, variableRows, placementRows, gangRows, gangPlaceRows, tuneRows, ownClusterRows, changeRows)
}

// GoodJob runs a line on a cluster that exists, with nothing else said.
func GoodJob() *job {
	return &job{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterJob"},
		ObjectMeta: metav1.ObjectMeta{Name: "train"},
		Spec:       v1beta1.ClusterJobSpec{ClusterRef: &v1beta1.ClusterReference{Name: "demo"}, Entrypoint: "python train.py --epochs 3"},
	}
}

// templates are the rows about clusters, said of the cluster that a job describes. They
// keep their rules' names: the one about a cluster's name finds nothing there.
func templates() []jobRow {
	var all []jobRow
	for _, r := range Clusters().Rows {
		derived := jobRow{Name: inJob + r.Name, Rule: r.Rule, Edit: ofCluster(r.Edit)}
		if r.Before != nil {
			derived.Before = both(suspended, ofCluster(r.Before))
			before := GoodJob()
			if derived.Before(before); len(create("ClusterJob", before)) > 0 {
				continue // no job is ever in that state
			}
		}
		all = append(all, derived)
	}
	return all
}

// ofCluster edits the cluster that a job describes.
func ofCluster(change edit) jobEdit {
	return func(j *job) {
		ownCluster(j)
		described := &cluster{Spec: j.Spec.ClusterTemplate.Spec}
		change(described)
		j.Spec.ClusterTemplate.Spec = described.Spec
	}
}

// podsOfJob are those of the job's own cluster with the variables that its pods get, if there
// are any: without them they are those of a cluster.
func podsOfJob(j *job) []*corev1.Pod {
	secret := slices.DeleteFunc(slices.Clone(j.Spec.Env), func(e corev1.EnvVar) bool { return e.ValueFrom == nil })
	if len(secret) == 0 {
		return nil
	}
	described := Good()
	described.Spec = j.Spec.ClusterTemplate.Spec
	defaults(func(d *v1beta1.PodDefaults) { d.Env = append(d.Env, secret...) })(described)
	return podsOf(described)
}

// ownCluster gives a job a cluster of its own, if it has none.
func ownCluster(j *job) {
	j.Spec.ClusterRef = nil
	if j.Spec.ClusterTemplate == nil {
		j.Spec.ClusterTemplate = &v1beta1.ClusterTemplate{Spec: Good().Spec}
	}
}

func suspended(j *job) { j.Spec.Suspend = new(true) }

// jobSpec edits the spec of a job.
func jobSpec(change func(*v1beta1.ClusterJobSpec)) jobEdit {
	return func(j *job) { change(&j.Spec) }
}

func jobNamed(name string) jobEdit { return func(j *job) { j.Name = name } }

func onCluster(name string) jobEdit {
	return jobSpec(func(s *v1beta1.ClusterJobSpec) {
		s.ClusterRef, s.ClusterTemplate = &v1beta1.ClusterReference{Name: name}, nil
	})
}

func line(text string) jobEdit {
	return jobSpec(func(s *v1beta1.ClusterJobSpec) { s.Entrypoint, s.Command = text, nil })
}

func command(words ...string) jobEdit {
	return jobSpec(func(s *v1beta1.ClusterJobSpec) { s.Entrypoint, s.Command = "", words })
}

func retry(change func(*v1beta1.Retry)) jobEdit {
	return jobSpec(func(s *v1beta1.ClusterJobSpec) {
		if s.Retry == nil {
			s.Retry = &v1beta1.Retry{}
		}
		change(s.Retry)
	})
}

func onExitCodes(in, notIn []int32) jobEdit {
	return retry(func(r *v1beta1.Retry) { r.OnExitCodes = &v1beta1.ExitCodes{In: in, NotIn: notIn} })
}

func backoff(first, most *int32) jobEdit {
	return retry(func(r *v1beta1.Retry) { r.BackoffSeconds, r.MaxBackoffSeconds = first, most })
}

func runtimeEnv(text string) jobEdit {
	return jobSpec(func(s *v1beta1.ClusterJobSpec) { s.RuntimeEnv = &runtime.RawExtension{Raw: []byte(text)} })
}

func env(variables ...corev1.EnvVar) jobEdit {
	return jobSpec(func(s *v1beta1.ClusterJobSpec) { s.Env = variables })
}

func fromSecret(name string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k",
	}}}
}

func takes(pairs ...string) jobEdit {
	return jobSpec(func(s *v1beta1.ClusterJobSpec) { s.EntrypointResources = quantities(pairs...) })
}

func selects(key, value string) jobEdit {
	return jobSpec(func(s *v1beta1.ClusterJobSpec) { s.EntrypointLabelSelector = map[string]string{key: value} })
}

func jobMetadata(key, value string) jobEdit {
	return jobSpec(func(s *v1beta1.ClusterJobSpec) { s.Metadata = map[string]string{key: value} })
}

func cleanup(rules ...v1beta1.CleanupRule) jobEdit {
	return jobSpec(func(s *v1beta1.ClusterJobSpec) { s.Cleanup = rules })
}

func templateMeta(labels, annotations map[string]string) jobEdit {
	return both(ownCluster, func(j *job) {
		j.Spec.ClusterTemplate.Metadata = v1beta1.TemplateMetadata{Labels: labels, Annotations: annotations}
	})
}
