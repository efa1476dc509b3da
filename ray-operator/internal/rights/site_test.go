package rights_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
)

const (
	appArmorKey = "container.apparmor.security.beta.kubernetes.io/ray"
	multusKey   = "k8s.v1.cni.cncf.io/networks"
)

// annotationsOfPods and labelsOfPods are keys by what they need. AT stands for the path of the metadata.
var (
	annotationsOfPods = map[string]string{
		"note":                  "",
		"prometheus.io/scrape":  "",
		"prometheus.iox/scrape": "pod-metadata AT.annotations[prometheus.iox/scrape]",
		"cluster-autoscaler.kubernetes.io/safe-to-evict":    "",
		"cluster-autoscaler.kubernetes.io/safe-to-evict-by": "pod-metadata AT.annotations[cluster-autoscaler.kubernetes.io/safe-to-evict-by]",
		"kubectl.kubernetes.io/default-container":           "",
		multusKey:                                multusNeed,
		"iam.amazonaws.com/role":                 "pod-metadata AT.annotations[iam.amazonaws.com/role]",
		"sidecar.istio.io/userVolume":            "pod-metadata AT.annotations[sidecar.istio.io/userVolume]",
		"vault.hashicorp.com/agent-inject":       "pod-metadata AT.annotations[vault.hashicorp.com/agent-inject]",
		"scheduling.volcano.sh/queue-name":       "pod-metadata AT.annotations[scheduling.volcano.sh/queue-name]",
		"seccomp.security.alpha.kubernetes.io/x": "pod-metadata AT.annotations[seccomp.security.alpha.kubernetes.io/x]",
		appArmorKey:                              "host AT.annotations; pod-metadata AT.annotations[" + appArmorKey + "]",
	}
	labelsOfPods = map[string]string{
		"app.kubernetes.io/component":      "",
		"app.kubernetes.io/part-of":        "",
		"app.kubernetes.io/version":        "",
		"app":                              "pod-metadata AT.labels[app]",
		"app.kubernetes.io/component-of":   "pod-metadata AT.labels[app.kubernetes.io/component-of]",
		"azure.workload.identity/use":      "pod-metadata AT.labels[azure.workload.identity/use]",
		"sidecar.istio.io/inject":          "pod-metadata AT.labels[sidecar.istio.io/inject]",
		"kai.scheduler/queue":              "pod-metadata AT.labels[kai.scheduler/queue]",
		"kueue.x-k8s.io/queue-name":        "pod-metadata AT.labels[kueue.x-k8s.io/queue-name]",
		"prometheus.io/scrape":             "pod-metadata AT.labels[prometheus.io/scrape]",
		"kubectl.kubernetes.io/restarted":  "pod-metadata AT.labels[kubectl.kubernetes.io/restarted]",
		"cluster.x-k8s.io/cluster-name":    "pod-metadata AT.labels[cluster.x-k8s.io/cluster-name]",
		"pod-security.kubernetes.io/audit": "pod-metadata AT.labels[pod-security.kubernetes.io/audit]",
	}
)

const multusNeed = "pod-metadata AT.annotations[" + multusKey + "]"

// metadataNeeds checks what keys of pods need in podDefaults, in the head's template and in a group's.
func metadataNeeds(t *testing.T, site rights.Site, annotations, labels map[string]string, want string) {
	t.Helper()
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations, Labels: labels}}
	for at, spec := range map[string]*v1beta1.ComputeClusterSpec{
		"spec.podDefaults":                       {PodDefaults: &v1beta1.PodDefaults{Annotations: annotations, Labels: labels}},
		"spec.head.template.metadata":            {Head: v1beta1.HeadSpec{NodeSpec: v1beta1.NodeSpec{Template: template}}},
		"spec.workerGroups[1].template.metadata": {WorkerGroups: []v1beta1.WorkerGroup{{}, {NodeSpec: v1beta1.NodeSpec{Template: template}}}},
	} {
		if have, want := ofSpecAt(t, spec, site), strings.ReplaceAll(want, "AT", at); have != want {
			t.Errorf("needs %q, want %q", have, want)
		}
	}
}

func TestDemands_AreForKeysOfPods(t *testing.T) {
	t.Parallel()
	for key, want := range annotationsOfPods {
		metadataNeeds(t, rights.ChartSite(), map[string]string{key: "a"}, nil, want)
		metadataNeeds(t, rights.ChartSite(), map[string]string{"a": "a", key: "a", "prometheus.io/port": "1"}, nil, want)
	}
	for key, want := range labelsOfPods {
		metadataNeeds(t, rights.ChartSite(), nil, map[string]string{key: "a"}, want)
		metadataNeeds(t, rights.ChartSite(), map[string]string{"a": "a"}, map[string]string{"app.kubernetes.io/version": "1", key: "a"}, want)
	}
}

// An administrator may list other keys and prefixes, but AppArmor's stays a right to the host.
func TestDemands_OfKeysAreByTheChart(t *testing.T) {
	t.Parallel()
	closed := rights.Site{}
	metadataNeeds(t, closed, map[string]string{"prometheus.io/port": "1"}, nil, "pod-metadata AT.annotations[prometheus.io/port]")
	metadataNeeds(t, closed, map[string]string{"note": "a"}, nil, "")
	metadataNeeds(t, closed, nil, map[string]string{"app.kubernetes.io/version": "1"}, "pod-metadata AT.labels[app.kubernetes.io/version]")
	open := rights.Site{Annotations: []string{"k8s.v1.cni.cncf.io/", "container.apparmor.security.beta.kubernetes.io/"}, Labels: []string{"team", "example.com/"}}
	metadataNeeds(t, open, map[string]string{multusKey: "a"}, map[string]string{"team": "a", "example.com/owner": "b"}, "")
	metadataNeeds(t, open, nil, map[string]string{"teams": "a"}, "pod-metadata AT.labels[teams]")
	metadataNeeds(t, open, map[string]string{appArmorKey: "unconfined"}, nil, "host AT.annotations")
}

// A claim's annotations are for its driver, whether a group or a pod has it.
func TestDemands_AreForAnnotationsOfClaims(t *testing.T) {
	t.Parallel()
	for key, needs := range map[string]bool{"note": false, "prometheus.io/scrape": false, "cdi.kubevirt.io/storage.import.endpoint": true} {
		meta := metav1.ObjectMeta{Annotations: map[string]string{key: "a"}, Labels: map[string]string{"team": "a"}}
		inPod, inGroup := "", ""
		if needs {
			inPod, inGroup = "data NODE", "data spec.workerGroups[0]"
		}
		podNeeds(t, volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: meta},
		}}), inPod)
		spec := &v1beta1.ComputeClusterSpec{WorkerGroups: []v1beta1.WorkerGroup{{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: meta}}}}}
		if have := ofSpec(t, spec); have != inGroup {
			t.Errorf("a group whose claims have the annotation %s needs %q, want %q", key, have, inGroup)
		}
	}
}

// Where the chart names an account for all pods, a token is of that one.
func TestDemands_OfTokensAreForTheChartsAccount(t *testing.T) {
	t.Parallel()
	site := rights.ChartSite()
	site.Account = "ours"
	for account, want := range map[string]string{
		"":        "account spec.head.template.spec.automountServiceAccountToken ours",
		"default": "account spec.head.template.spec.automountServiceAccountToken default",
		"a":       "account spec.head.template.spec.serviceAccountName a",
	} {
		spec := &v1beta1.ComputeClusterSpec{}
		spec.Head.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: account, AutomountServiceAccountToken: new(true)}}
		if have := ofSpecAt(t, spec, site); have != want {
			t.Errorf("a token of a pod with the account %q needs %q, want %q", account, have, want)
		}
	}
	if have := ofSpecAt(t, &v1beta1.ComputeClusterSpec{}, site); have != "" {
		t.Errorf("a pod without a token needs %q", have)
	}
}

// A queue of a scheduler is one for all namespaces. Schedulers without queues have none to name.
func TestDemands_AreForQueues(t *testing.T) {
	t.Parallel()
	for scheduler, want := range map[v1beta1.SchedulerKind]string{
		v1beta1.SchedulerVolcano:    "queue-volcano spec.scheduler.queue research",
		v1beta1.SchedulerKAI:        "queue-kai spec.scheduler.queue research",
		v1beta1.SchedulerYuniKorn:   "queue-yunikorn spec.scheduler.queue research",
		v1beta1.SchedulerPlugins:    "",
		v1beta1.SchedulerKubernetes: "",
	} {
		spec := &v1beta1.ComputeClusterSpec{Scheduler: &v1beta1.Scheduler{Name: scheduler, Queue: "research"}}
		if have := ofSpec(t, spec); have != want {
			t.Errorf("a queue of %s needs %q, want %q", scheduler, have, want)
		}
		spec.Scheduler.Queue = ""
		if have := ofSpec(t, spec); have != "" {
			t.Errorf("%s without a queue needs %q", scheduler, have)
		}
	}
}

// The label that ranks an object among those of other teams counts on it, and where the operator copies it from.
func TestDemands_AreForPriorityLabels(t *testing.T) {
	t.Parallel()
	labels := func(class string) map[string]string {
		return map[string]string{rights.PriorityLabel: class, "kueue.x-k8s.io/queue-name": "team", "app": "a"}
	}
	meta := metav1.ObjectMeta{Labels: labels("own")}
	template := &v1beta1.ClusterTemplate{Metadata: v1beta1.TemplateMetadata{Labels: labels("cluster")}}
	schedule := &v1beta1.ClusterJobSchedule{ObjectMeta: meta}
	schedule.Spec.JobTemplate = v1beta1.JobTemplate{
		Metadata: v1beta1.TemplateMetadata{Labels: labels("job")}, Spec: v1beta1.ClusterJobSpec{ClusterTemplate: template},
	}
	const (
		own = "workload-priority metadata.labels[kueue.x-k8s.io/priority-class] own"
		of  = "; workload-priority spec.clusterTemplate.metadata.labels[kueue.x-k8s.io/priority-class] cluster"
		job = "; workload-priority spec.jobTemplate.metadata.labels[kueue.x-k8s.io/priority-class] job"
	)
	site := rights.ChartSite()
	for _, c := range []struct {
		have []rights.Demand
		want string
	}{
		{rights.OfCluster(&v1beta1.ComputeCluster{ObjectMeta: meta}, site), own},
		{rights.OfJob(&v1beta1.ClusterJob{ObjectMeta: meta, Spec: v1beta1.ClusterJobSpec{ClusterTemplate: template}}, site), own + of},
		{rights.OfService(&v1beta1.ClusterService{ObjectMeta: meta, Spec: v1beta1.ClusterServiceSpec{ClusterTemplate: template}}, site), own + of},
		{rights.OfSchedule(schedule, site), own + job + strings.Replace(of, "spec.", "spec.jobTemplate.spec.", 1)},
		{rights.OfCluster(&v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Labels: labels("")}}, site), ""},
	} {
		if have := written(c.have); have != c.want {
			t.Errorf("needs %q, want %q", have, c.want)
		}
	}
}
