// Package headstest is a namespace with clusters and their heads, in process, for tests.
//
// In: what a test wants to be there. Out: what heads.Heads are made of: objects as a cache and as the API server have
// them, and a network without sockets, so that it may be used where time is not the world's.
//
// It must never be kinder than Kubernetes: a pod that is gone is gone from what is read live at once, and from the cache
// when the test says so. It must never be part of what users run.
package headstest

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Namespace is where everything is.
const Namespace = "team"

// Token is that of each cluster, unless a test changes its Secret.
const Token = "token-of-the-cluster"

// Site is a namespace. Its methods may be called at any time.
type Site struct {
	mu       sync.Mutex
	clusters map[string]*v1beta1.ComputeCluster
	jobs     map[string]*v1beta1.ClusterJob
	// pods are those of the cache, live those of the API server.
	pods, live map[string]*corev1.Pod
	secrets    map[string]*corev1.Secret
	reads      map[string]int
	failure    error
}

// New makes an empty namespace.
func New() *Site {
	return &Site{
		clusters: map[string]*v1beta1.ComputeCluster{}, jobs: map[string]*v1beta1.ClusterJob{},
		pods: map[string]*corev1.Pod{}, live: map[string]*corev1.Pod{}, secrets: map[string]*corev1.Secret{}, reads: map[string]int{},
	}
}

// PutCluster adds a cluster with its token, or replaces it; the change may be nil.
func (s *Site) PutCluster(name string, change func(*v1beta1.ComputeCluster)) *v1beta1.ComputeCluster {
	cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-of-" + name)}}
	if change != nil {
		change(cluster)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters[name] = cluster
	secret := naming.TokenSecret(name)
	if s.secrets[secret] == nil {
		s.secrets[secret] = Secret(cluster, secret, v1beta1.TokenKey, Token)
	}
	return cluster
}

// Secret is one that the operator made for a cluster.
func Secret(owner *v1beta1.ComputeCluster, name, key, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, OwnerReferences: Owned(owner)},
		Data:       map[string][]byte{key: []byte(value)},
	}
}

// Owned is what an object has whose controller is a cluster.
func Owned(cluster *v1beta1.ComputeCluster) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1beta1.GroupVersion.WithKind("ComputeCluster"))}
}

// Head is the ready head of a cluster's epoch.
func Head(cluster *v1beta1.ComputeCluster, epoch int64, ip string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: naming.Pod(cluster.Name, cluster.UID, naming.Place{Epoch: epoch}),
			UID:             types.UID(fmt.Sprintf("head-%s-%d", cluster.Name, epoch)),
			Labels:          map[string]string{v1beta1.LabelRole: v1beta1.RoleHead, v1beta1.LabelEpoch: strconv.FormatInt(epoch, 10)},
			Annotations:     map[string]string{v1beta1.AnnotationToken: naming.TokenHash(Token)},
			OwnerReferences: Owned(cluster),
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: v1beta1.ContainerRay, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		},
	}
}

// PutPod adds a pod, or replaces it.
func (s *Site) PutPod(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[pod.Name], s.live[pod.Name] = pod.DeepCopy(), pod.DeepCopy()
}

// PutLive changes a pod that the cache still has as it was; nil removes it.
func (s *Site) PutLive(name string, pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[name] = pod; pod == nil {
		delete(s.live, name)
	}
}

// RemovePod removes a pod.
func (s *Site) RemovePod(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, name)
	delete(s.live, name)
}

// PutSecret adds a Secret, or replaces it.
func (s *Site) PutSecret(secret *corev1.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[secret.Name] = secret
}

// RemoveSecret removes a Secret.
func (s *Site) RemoveSecret(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.secrets, name)
}

// RemoveCluster removes a cluster, and nothing of what it owns.
func (s *Site) RemoveCluster(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clusters, name)
}

// PutJob adds a ClusterJob, or replaces it; its UID follows from its name.
func (s *Site) PutJob(name string, status v1beta1.ClusterJobStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[name] = &v1beta1.ClusterJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-of-" + name)}, Status: status,
	}
}

// RemoveJob removes a ClusterJob.
func (s *Site) RemoveJob(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, name)
}

// Fail lets all live reads fail; nil lets them succeed.
func (s *Site) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// Reads is how often an object was read live, by "Pod NAME" or "Secret NAME".
func (s *Site) Reads(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads[what]
}

// FindCluster is that of a cache.
func (s *Site) FindCluster(namespace, name string) (*v1beta1.ComputeCluster, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, is := s.clusters[name]
	return found, is && namespace == Namespace
}

// FindJob is that of a cache.
func (s *Site) FindJob(namespace, name string) (*v1beta1.ClusterJob, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, is := s.jobs[name]
	return found, is && namespace == Namespace
}

// HeadPods are those of a cache: all pods that say that they are heads of the owner.
func (s *Site) HeadPods(namespace string, owner types.UID) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*corev1.Pod
	for _, pod := range s.pods {
		if controller := metav1.GetControllerOf(pod); namespace == Namespace && controller != nil && controller.UID == owner {
			all = append(all, pod)
		}
	}
	return all
}

// Pod is a live read.
func (s *Site) Pod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads["Pod "+name]++
	if s.failure != nil {
		return nil, s.failure
	}
	if found, is := s.live[name]; is && namespace == Namespace {
		return found.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

// Secret is a live read.
func (s *Site) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads["Secret "+name]++
	if s.failure != nil {
		return nil, s.failure
	}
	if found, is := s.secrets[name]; is && namespace == Namespace {
		return found.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}
