package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// attempt is a write, and what the answer says where it is refused; nothing: it is allowed.
type attempt struct {
	what  string
	do    func(context.Context) error
	words string
}

// check makes the attempts.
func (a attempt) check(t *testing.T) {
	t.Helper()
	err := a.do(t.Context())
	switch {
	case a.words == "" && err != nil:
		t.Errorf("%s: %v, want it allowed", a.what, err)
	case a.words != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), a.words)):
		t.Errorf("%s: %v, want it refused with %q", a.what, err, a.words)
	}
}

// setOf is a StatefulSet without pods whose template has labels.
func setOf(namespace string, labels map[string]string) *appsv1.StatefulSet {
	labels["app"] = "a"
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "s-"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podWith(namespace, nil).Spec},
		},
	}
}

// TestGuards_LabelsThatLeadRequests: those who can make pods lead no requests of a service or a store to them.
func TestGuards_LabelsThatLeadRequests(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	ana := tenant(t, namespace)
	const pods, sets = "only the operator makes pods", "in a StatefulSet's template are the operator's own"
	must(t, live.Until(t.Context(), limit, "ana's rights and the guards to be in force", func(ctx context.Context) error {
		if err := ana.Create(ctx, podWith(namespace, nil), client.DryRunAll); err != nil {
			return err
		}
		err := ana.Create(ctx, setOf(namespace, map[string]string{v1alpha1.LabelStore: "x"}), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("a StatefulSet with a label of ours is answered with %w", err)
		}
		return nil
	}))
	plain := podWith(namespace, map[string]string{"app": "a"})
	must(t, ana.Create(t.Context(), plain))
	for _, key := range []string{v1alpha1.LabelServePrefix + "echo", v1alpha1.LabelRoutePrefix + "echo", v1alpha1.LabelStore, v1alpha1.LabelCluster} {
		labels := map[string]string{key: "true"}
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, key))
		for _, one := range []attempt{
			{"a pod with " + key, func(ctx context.Context) error { return ana.Create(ctx, podWith(namespace, labels), client.DryRunAll) }, pods},
			{key + " on a pod that is there", func(ctx context.Context) error {
				return ana.Patch(ctx, plain.DeepCopy(), patch, client.DryRunAll)
			}, pods},
			{key + " in a StatefulSet", func(ctx context.Context) error { return ana.Create(ctx, setOf(namespace, labels), client.DryRunAll) }, sets},
		} {
			one.check(t)
		}
	}
	for _, one := range []attempt{
		{"a StatefulSet with labels of the user's", func(ctx context.Context) error {
			return ana.Create(ctx, setOf(namespace, map[string]string{"team": "a"}), client.DryRunAll)
		}, ""},
		{"a pod with labels of another domain", func(ctx context.Context) error {
			return ana.Create(ctx, podWith(namespace, map[string]string{"notheliostat.dev/cluster": "a"}), client.DryRunAll)
		}, ""},
	} {
		one.check(t)
	}
	must(t, ana.Delete(t.Context(), plain))
}

// TestGuards_RecordsAreTheOperatorsOwn: nobody forges what an operator remembers; to remove it is free.
func TestGuards_RecordsAreTheOperatorsOwn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	ana := tenant(t, namespace)
	const words = "are the operator's own"
	with := func(annotations, labels map[string]string) *v1alpha1.ClusterJob {
		job := newJob(namespace, "forged")
		job.Annotations, job.Labels = annotations, labels
		return job
	}
	record := map[string]string{v1alpha1.AnnotationRecord: "{}"}
	must(t, live.Until(t.Context(), limit, "ana's rights and the guards to be in force", func(ctx context.Context) error {
		if err := ana.Create(ctx, with(nil, nil), client.DryRunAll); err != nil {
			return err
		}
		if err := ana.Create(ctx, with(record, nil), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a job with a record is answered with %w", err)
		}
		return nil
	}))
	suspended := newCluster(namespace, "kept", 0)
	suspended.Spec.Suspend = true
	suspended.Annotations = map[string]string{v1alpha1.AnnotationRecord: "{}", v1alpha1.AnnotationResume: "a"}
	must(t, shared.Create(t.Context(), suspended)) // as the operator leaves it
	patch := func(text string) func(context.Context) error { return patches(ana, suspended, text) }
	for _, one := range []attempt{
		{"a job with a record", func(ctx context.Context) error { return ana.Create(ctx, with(record, nil), client.DryRunAll) }, words},
		{"a job with a label of ours", func(ctx context.Context) error {
			return ana.Create(ctx, with(nil, map[string]string{v1alpha1.LabelService: "a"}), client.DryRunAll)
		}, words},
		{"another record", patch(`{"metadata":{"annotations":{"heliostat.dev/record":"{\"v\":1}"}}}`), words},
		{"an annotation of ours beside it", patch(`{"metadata":{"annotations":{"heliostat.dev/revision-cluster":"1"}}}`), words},
		{"no record any more", patch(`{"metadata":{"annotations":{"heliostat.dev/record":null}}}`), ""},
		{"resume", patch(`{"metadata":{"annotations":{"heliostat.dev/resume":"b"}}}`), ""},
		{"retry", patch(`{"metadata":{"annotations":{"heliostat.dev/retry":"b"}}}`), ""},
		{"kept until a time", patch(`{"metadata":{"annotations":{"heliostat.dev/keep-until":"2026-11-27T18:00:00.5+01:00"}}}`), ""},
		{"kept for somebody", patch(`{"metadata":{"annotations":{"heliostat.dev/keep-requested-by":"ana"}}}`), ""},
		{"kept until something", patch(`{"metadata":{"annotations":{"heliostat.dev/keep-until":"tomorrow"}}}`), "and a time"},
		{"kept until no month", patch(`{"metadata":{"annotations":{"heliostat.dev/keep-until":"2026-13-27T18:00:00Z"}}}`), "and a time"},
		{"a job kept until a time", func(ctx context.Context) error {
			return ana.Create(ctx, with(map[string]string{v1alpha1.AnnotationKeepUntil: "2026-11-27T18:00:00Z"}, nil), client.DryRunAll)
		}, "is of ComputeClusters"},
		{"an annotation of the user's", patch(`{"metadata":{"annotations":{"team":"a"},"labels":{"team":"a"}}}`), ""},
		{"an edit of the spec", patch(`{"spec":{"suspend":false}}`), ""},
	} {
		one.check(t)
	}
	must(t, ana.Delete(t.Context(), suspended))
}

// patches is a change of an object that is not kept.
func patches(by client.Client, object client.Object, text string) func(context.Context) error {
	return func(ctx context.Context) error {
		copied, _ := object.DeepCopyObject().(client.Object) // the copy of an object is one
		return by.Patch(ctx, copied, client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
	}
}

// TestGuards_StopIsFreeOnJobs: who may patch a job stops it, with a word that cannot be mistaken.
func TestGuards_StopIsFreeOnJobs(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	ana := tenant(t, namespace)
	const words = "the annotation heliostat.dev/stop is of ClusterJobs"
	job, cluster := newJob(namespace, "stops"), newCluster(namespace, "stays", 0)
	job.Spec.Suspend, cluster.Spec.Suspend = true, true
	must(t, shared.Create(t.Context(), cluster))
	must(t, shared.Create(t.Context(), job))
	to := func(value string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.AnnotationStop, value)
	}
	must(t, live.Until(t.Context(), limit, "ana's rights and the guards to be in force", func(ctx context.Context) error {
		if err := patches(ana, job, to(`"true"`))(ctx); err != nil {
			return err
		}
		if err := patches(ana, job, to(`"now"`))(ctx); !apierrors.IsForbidden(err) {
			return fmt.Errorf("another value is answered with %w", err)
		}
		return nil
	}))
	bad := newJob(namespace, "bad")
	bad.Annotations = map[string]string{v1alpha1.AnnotationStop: "yes"}
	for _, one := range []attempt{
		{"true", patches(ana, job, to(`"true"`)), ""},
		{"false", patches(ana, job, to(`"false"`)), ""},
		{"removed", patches(ana, job, to(`null`)), ""},
		{"another value", patches(ana, job, to(`"now"`)), words},
		{"nothing", patches(ana, job, to(`""`)), words},
		{"a new job with another value", func(ctx context.Context) error { return ana.Create(ctx, bad, client.DryRunAll) }, words},
		{"a cluster", patches(ana, cluster, to(`"true"`)), words},
	} {
		one.check(t)
	}
	must(t, ana.Delete(t.Context(), job))
	must(t, ana.Delete(t.Context(), cluster))
}

// TestGuards_HoldTheOperatorToClusters: the operator's token writes objects of clusters and nothing else.
func TestGuards_HoldTheOperatorToClusters(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	config := rest.CopyConfig(shared.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + live.ReleaseNamespace + ":" + live.ReleaseName}
	thief, err := client.New(config, client.Options{Scheme: shared.Scheme()})
	must(t, err)
	const labels, pods, elsewhere = "writes only objects with labels", "writes only pods of ComputeClusters", "writes nothing in kube-system"

	member := func(in string) *corev1.Pod {
		pod := podWith(in, map[string]string{v1alpha1.LabelCluster: "demo"})
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "ComputeCluster", Name: "demo", UID: "u", Controller: &yes,
		}}
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
		return pod
	}
	unowned := member(namespace)
	unowned.OwnerReferences = nil
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "anas", Labels: map[string]string{"app": "a"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	must(t, shared.Create(t.Context(), service))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}}
	job := newJob(namespace, "mine")
	job.Labels = map[string]string{v1alpha1.LabelCluster: "demo"}
	create := func(object client.Object) func(context.Context) error {
		return func(ctx context.Context) error { return thief.Create(ctx, object, client.DryRunAll) }
	}
	must(t, live.Until(t.Context(), limit, "the guards to be in force", func(ctx context.Context) error {
		if err := thief.Create(ctx, podWith(namespace, nil), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a pod of nobody's is answered with %w", err)
		}
		return nil
	}))
	for _, one := range []attempt{
		{"a pod of a cluster", create(member(namespace)), ""},
		{"a privileged pod in kube-system", create(member(metav1.NamespaceSystem)), elsewhere},
		{"a pod beside the operator", create(member(live.ReleaseNamespace)), elsewhere},
		{"a pod without our labels", create(podWith(namespace, nil)), labels},
		{"a pod of no cluster", create(unowned), pods},
		{"a Secret without our labels", create(secret), labels},
		{"a job of no schedule", create(job), "creates only jobs of ClusterJobSchedules"},
		{"another's Service made ours", func(ctx context.Context) error {
			return thief.Patch(ctx, service.DeepCopy(), client.RawPatch("application/merge-patch+json",
				[]byte(`{"metadata":{"labels":{"heliostat.dev/cluster":"demo"}}}`)), client.DryRunAll)
		}, labels},
		{"another's Service", func(ctx context.Context) error { return thief.Delete(ctx, service.DeepCopy(), client.DryRunAll) }, labels},
	} {
		one.check(t)
	}
	must(t, shared.Delete(t.Context(), service))
}

// TestStolenToken_DoesWhatTheDocsSay holds the last part of docs/security.md against tokens of both modes; what
// admission refuses them is above.
func TestStolenToken_DoesWhatTheDocsSay(t *testing.T) {
	t.Parallel()
	watched := newNamespace(t)
	i := newInstallation(t, "stolen", "--set", "watchNamespaces={"+watched+"}", "--set", "watchNodes=false")
	everywhere, narrow := thief(t, shared.kubeconfig), thief(t, i.kubeconfig(t))
	secret := func(namespace string) *corev1.Secret {
		one := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "s-"}}
		must(t, shared.Create(t.Context(), one))
		t.Cleanup(func() { must(t, client.IgnoreNotFound(shared.Delete(context.WithoutCancel(t.Context()), one))) })
		return one
	}
	theirs, system := secret(watched), secret(metav1.NamespaceSystem)
	read := func(by client.Client, what *corev1.Secret) func(context.Context) error {
		return func(ctx context.Context) error {
			return by.Get(ctx, client.ObjectKeyFromObject(what), &corev1.Secret{})
		}
	}
	pod := podWith(watched, nil)
	must(t, shared.Create(t.Context(), pod))
	debug := pod.DeepCopy()
	debug.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "none"}}}
	for _, one := range []attempt{
		{"with all namespaces, a Secret by its name", read(everywhere, theirs), ""},
		{"with all namespaces, a Secret of kube-system by its name", read(everywhere, system), ""},
		{"with watchNamespaces, a Secret by its name", read(narrow, theirs), ""},
		{"with watchNamespaces, a Secret of kube-system", read(narrow, system), `cannot get resource "secrets"`},
		{"a list of Secrets", func(ctx context.Context) error { return everywhere.List(ctx, &corev1.SecretList{}) }, `cannot list resource "secrets"`},
		{"a list of Secrets of a namespace", func(ctx context.Context) error {
			return narrow.List(ctx, &corev1.SecretList{}, client.InNamespace(watched))
		}, `cannot list resource "secrets"`},
		{"a Role", func(ctx context.Context) error {
			return everywhere.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: watched, Name: "r"}}, client.DryRunAll)
		}, `cannot create resource "roles"`},
		{"a token of an account", func(ctx context.Context) error {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: watched, Name: "default"}}
			return everywhere.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		}, `cannot create resource "serviceaccounts/token"`},
		{"a container in a pod that runs", func(ctx context.Context) error {
			return everywhere.SubResource("ephemeralcontainers").Update(ctx, debug)
		}, `cannot update resource "pods/ephemeralcontainers"`},
	} {
		one.check(t)
	}
	must(t, shared.Delete(t.Context(), pod))
}

// thief has nothing but the token in a kubeconfig. Its user agent keeps what it tries out of what the operator does.
func thief(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	config.UserAgent = live.StolenTokenAgent
	as, err := client.New(config, client.Options{Scheme: shared.Scheme()})
	must(t, err)
	return as
}
