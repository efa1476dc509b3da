package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// openshift is what the operator and its pods meet on OpenShift: the kind of its constraints, and in one namespace the ranges of
// users and groups of restricted-v2. All else that restricted-v2 asks for, Pod Security's level restricted asks for as well.
const openshift = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: securitycontextconstraints.security.openshift.io}
spec:
  group: security.openshift.io
  scope: Cluster
  names: {kind: SecurityContextConstraints, plural: securitycontextconstraints, singular: securitycontextconstraints, listKind: SecurityContextConstraintsList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME-restricted-v2}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  variables:
  - {name: containers, expression: "object.spec.containers + object.spec.?initContainers.orValue([])"}
  validations:
  - expression: "variables.containers.all(c, c.?securityContext.?runAsUser.orValue(1000680000) in [1000680000, 1000680001])"
    message: a container's user is outside the range
  - expression: "object.spec.?securityContext.?runAsUser.orValue(1000680000) in [1000680000, 1000680001]"
    message: the user is outside the range
  - expression: "object.spec.?securityContext.?fsGroup.orValue(1000680000) in [1000680000, 1000680001]"
    message: the group is outside the range
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME-restricted-v2}
spec: {policyName: NAME-restricted-v2, validationActions: [Deny]}
`

// TestOpenShift_TakesEveryPod: heads, workers and a Redis, with every container that the operator adds. The operator must not be
// refused anything while it runs, and Kubernetes makes the pod of Redis. It runs alone: other operators would take the API server
// for one of OpenShift.
func TestOpenShift_TakesEveryPod(t *testing.T) {
	namespace := newNamespace(t)
	restrict(t, namespace)
	applyObjects(t, strings.ReplaceAll(openshift, "NAME", namespace))
	served, err := discovery.NewDiscoveryClientForConfig(shared.Config)
	must(t, err)
	eventually(t, "the constraints to be served", func(context.Context) error {
		_, err := served.ServerResourcesForGroupVersion("security.openshift.io/v1")
		return err
	})
	fixed := podWith(namespace, nil)
	fixed.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(999)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	fixed.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	eventually(t, "a fixed user to be refused", func(ctx context.Context) error {
		if err := shared.Create(ctx, fixed.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "the user is outside the range") {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})

	startOperator(t, "--namespace="+live.ReleaseNamespace, "--watch-namespaces="+namespace, "--autoscaler-image=operator")
	embedded, encrypted, redis := newCluster(namespace, "embedded", 1), newCluster(namespace, "encrypted", 1), newCluster(namespace, "redis", 1)
	embedded.Spec.ControlStore = &v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{}}
	embedded.Spec.Autoscaling = &v1beta1.Autoscaling{}
	embedded.Spec.WorkerGroups[0].Replicas, embedded.Spec.WorkerGroups[0].MinReplicas, embedded.Spec.WorkerGroups[0].MaxReplicas = nil, new(int32(1)), new(int32(1))
	encrypted.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
	redis.Spec.ControlStore = &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{}}
	for _, cluster := range []*v1beta1.ComputeCluster{embedded, encrypted, redis} {
		must(t, shared.Create(t.Context(), cluster))
	}
	for _, cluster := range []*v1beta1.ComputeCluster{embedded, encrypted} {
		for _, role := range []string{v1beta1.RoleHead, v1beta1.RoleWorker} {
			podsLeft(t, types.NamespacedName{Namespace: namespace, Name: cluster.Name}, role, 1)
		}
	}
	redisMade(t, namespace, "redis")
}

// redisMade waits until the pod of a cluster's managed Redis is there.
func redisMade(t *testing.T, namespace, cluster string) {
	t.Helper()
	eventually(t, "the pod of Redis", func(ctx context.Context) error {
		var pods metav1.PartialObjectMetadataList
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := shared.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1beta1.LabelStore: cluster})
		if err == nil && len(pods.Items) != 1 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		return err
	})
}
