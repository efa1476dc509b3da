package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// namespaces is how many the objects are in.
const namespaces = 50

func namespaceOf(i int) string { return fmt.Sprintf("team-%d", i%namespaces) }

// newObject returns the object of a number, and what gives it a status such as the operator writes.
func newObject(i int) (object client.Object, setStatus func()) {
	at := metav1.ObjectMeta{
		Namespace: namespaceOf(i), Labels: map[string]string{"team": namespaceOf(i), "example.com/project": "forecast"},
		Annotations: map[string]string{v1beta1.AnnotationOwner: fmt.Sprintf("user-%d@example.com", i%200)},
	}
	switch i % 10 {
	case 0, 1, 2, 3:
		at.Name = fmt.Sprintf("cluster-%d", i)
		cluster := &v1beta1.ComputeCluster{ObjectMeta: at, Spec: newSpec()}
		return cluster, func() { cluster.Status = clusterStatus(cluster) }
	case 4:
		at.Name = fmt.Sprintf("service-%d", i)
		service := &v1beta1.ClusterService{ObjectMeta: at, Spec: v1beta1.ClusterServiceSpec{
			ServeConfig:     runtime.RawExtension{Raw: []byte(`{"applications":[{"name":"hello","import_path":"hello:app"}]}`)},
			ClusterTemplate: &v1beta1.ClusterTemplate{Spec: newSpec()},
		}}
		return service, func() {
			service.Status.Phase = "Ready"
			service.Status.Conditions = conditions(service.Generation, reason.AllReady)
		}
	}
	at.Name = fmt.Sprintf("job-%d", i)
	job := &v1beta1.ClusterJob{ObjectMeta: at, Spec: v1beta1.ClusterJobSpec{
		Entrypoint: "python -m forecast.train --epochs 20 --data s3://example/forecast", ClusterTemplate: &v1beta1.ClusterTemplate{Spec: newSpec()},
	}}
	return job, func() {
		job.Status.Phase, job.Status.Attempt, job.Status.ClusterName = "Running", 1, job.Name+"-1"
		job.Status.Conditions = conditions(job.Generation, reason.JobRunning)
	}
}

func newSpec() v1beta1.ComputeClusterSpec {
	two, one := int32(2), int32(1)
	return v1beta1.ComputeClusterSpec{
		RayVersion: "2.60.0",
		WorkerGroups: []v1beta1.WorkerGroup{
			{Name: "cpu", Replicas: &two}, {Name: "large", Replicas: &one},
		},
	}
}

func clusterStatus(of *v1beta1.ComputeCluster) v1beta1.ComputeClusterStatus {
	counts := v1beta1.WorkerCounts{Desired: 1, Created: 1, Ready: 1}
	now := metav1.Now()
	return v1beta1.ComputeClusterStatus{
		ObservedGeneration: of.Generation, Phase: "Ready", Epoch: 1, ServiceName: of.Name + "-head",
		Summary: v1beta1.ClusterSummary{Ready: "1/1", CPUs: "16", Memory: "64Gi"}, Conditions: conditions(of.Generation, reason.AllReady),
		Head:         &v1beta1.HeadStatus{PodName: of.Name + "-head", UID: of.UID, NodeName: "node-1", IP: "10.0.0.1", CreationTime: &now},
		DashboardURL: "http://" + of.Name + "-head." + of.Namespace + ".svc:8265", TokenSecretName: of.Name + "-token", Workers: counts,
		Groups: []v1beta1.GroupStatus{{Name: "cpu", WorkerCounts: counts}, {Name: "large", WorkerCounts: counts}},
		Resources: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		},
	}
}

// conditions are those of an object that is well.
func conditions(generation int64, why reason.Reason) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range []string{v1beta1.ConditionReady, v1beta1.ConditionHeadReady, v1beta1.ConditionWorkersReady, v1beta1.ConditionUpToDate} {
		all = append(all, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
			Reason: why.Code, Message: "all is as the spec asks",
		})
	}
	return all
}

// newPod returns a pod such as the operator makes. No scheduler takes it, and so no kubelet is missed.
func newPod(of *v1beta1.ComputeCluster, role string) *corev1.Pod {
	isTrue := true
	quantities := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: of.Name + "-" + role,
			Labels: map[string]string{v1beta1.LabelCluster: of.Name, v1beta1.LabelRole: role, v1beta1.LabelGroup: "cpu"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1beta1.GroupVersion.String(), Kind: "ComputeCluster", Name: of.Name, UID: of.UID, Controller: &isTrue, BlockOwnerDeletion: &isTrue,
			}},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "none",
			Containers: []corev1.Container{{
				Name: "ray", Image: "rayproject/ray:2.60.0", Command: []string{"/bin/sh", "-c"}, Args: []string{"ulimit -n 65536; exec ray start --block"},
				Env:       []corev1.EnvVar{{Name: "RAY_ADDRESS", Value: of.Name + "-head:6379"}, {Name: "RAY_AUTH_MODE", Value: "token"}},
				Resources: corev1.ResourceRequirements{Requests: quantities, Limits: quantities},
			}},
		},
	}
}
