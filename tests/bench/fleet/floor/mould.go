package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// mould holds the objects that the operator made of one cluster, from which those of
// others are cast.
type mould struct {
	Name, Namespace string
	Service         corev1.Service
	Head, Worker    corev1.Pod
}

func readMould(path string) (mould, error) {
	var m mould
	text, err := os.ReadFile(path)
	if err != nil {
		return m, fmt.Errorf("read the objects to make: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("parse the objects to make: %w", err)
	}
	return m, m.check()
}

// check casts once and looks whether the first cluster's name is left anywhere.
func (m mould) check() error {
	other := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "u"}}
	for _, obj := range []any{m.service(other), m.head(other), m.worker(other, 0)} {
		text, err := json.Marshal(obj)
		if err != nil {
			return fmt.Errorf("print a cast object: %w", err)
		}
		for _, old := range []string{m.Name, m.Namespace} {
			if i := strings.Index(string(text), old); i >= 0 {
				return fmt.Errorf("cast a %T: %q is left where the mould does not rename: …%s…", obj, old, text[max(0, i-80):min(len(text), i+80)])
			}
		}
	}
	return nil
}

func (m mould) service(cluster *v1beta1.ComputeCluster) *corev1.Service {
	service, names := m.Service.DeepCopy(), m.names(cluster)
	owned(&service.ObjectMeta, cluster, names.Replace(service.Name))
	renameAll(names, service.Labels, service.Annotations, service.Spec.Selector)
	return service
}

func (m mould) head(cluster *v1beta1.ComputeCluster) *corev1.Pod {
	return m.pod(&m.Head, cluster, cluster.Name+"-head")
}

func (m mould) worker(cluster *v1beta1.ComputeCluster, slot int) *corev1.Pod {
	pod := m.pod(&m.Worker, cluster, fmt.Sprintf("%s-cpu-%d", cluster.Name, slot))
	pod.Labels[v1beta1.LabelSlot] = fmt.Sprint(slot)
	return pod
}

// pod casts a pod. Where the operator begins to use the cluster's name in another place,
// check says so.
func (m mould) pod(of *corev1.Pod, cluster *v1beta1.ComputeCluster, name string) *corev1.Pod {
	pod, names := of.DeepCopy(), m.names(cluster)
	owned(&pod.ObjectMeta, cluster, name)
	renameAll(names, pod.Labels, pod.Annotations)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			renameList(names, containers[i].Args)
			for e := range containers[i].Env {
				containers[i].Env[e].Value = names.Replace(containers[i].Env[e].Value)
			}
		}
	}
	for i := range pod.Spec.Volumes {
		if secret := pod.Spec.Volumes[i].Secret; secret != nil {
			secret.SecretName = names.Replace(secret.SecretName)
		}
	}
	return pod
}

// names replaces the first cluster's names by those of another.
func (m mould) names(cluster *v1beta1.ComputeCluster) *strings.Replacer {
	return strings.NewReplacer(m.Name, cluster.Name, m.Namespace, cluster.Namespace)
}

func owned(meta *metav1.ObjectMeta, cluster *v1beta1.ComputeCluster, name string) {
	yes := true
	meta.Namespace, meta.Name = cluster.Namespace, name
	meta.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1beta1.GroupVersion.String(), Kind: "ComputeCluster", Name: cluster.Name, UID: cluster.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	}}
}

func renameAll(names *strings.Replacer, maps ...map[string]string) {
	for _, values := range maps {
		for key, value := range values {
			values[key] = names.Replace(value)
		}
	}
}

func renameList(names *strings.Replacer, values []string) {
	for i := range values {
		values[i] = names.Replace(values[i])
	}
}
