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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
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

// versions lets ana make bindings and ControllerRevisions, which the role admin does not, and returns what makes one of these.
func versions(t *testing.T, namespace string, ana client.Client) func(data string) func(context.Context) error {
	t.Helper()
	permit(t, namespace, "binds",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/binding"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"create"}})
	return func(data string) func(context.Context) error {
		return func(ctx context.Context) error {
			return ana.Create(ctx, &appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "r-"}, Data: runtime.RawExtension{Raw: []byte(data)}, Revision: 1,
			}, client.DryRunAll)
		}
	}
}

// TestGuards_LabelsThatLeadRequests: those who can make pods lead no requests of a service or a store to them.
func TestGuards_LabelsThatLeadRequests(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	ana := tenant(t, namespace)
	version := versions(t, namespace, ana)
	const pods, sets = "only the operator makes pods", "in the template of a StatefulSet, or in a version of it, are the operator's own"
	must(t, live.Until(t.Context(), limit, "ana's rights and the guards to be in force", func(ctx context.Context) error {
		if err := ana.Create(ctx, podWith(namespace, nil), client.DryRunAll); err != nil {
			return err
		}
		if err := version(`{"a":1}`)(ctx); err != nil {
			return err
		}
		err := ana.Create(ctx, setOf(namespace, map[string]string{v1beta1.LabelStore: "x"}), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("a StatefulSet with a label of ours is answered with %w", err)
		}
		return nil
	}))
	plain := podWith(namespace, map[string]string{"app": "a"})
	must(t, ana.Create(t.Context(), plain))
	for _, key := range []string{v1beta1.LabelServePrefix + "echo", v1beta1.LabelRoutePrefix + "echo", v1beta1.LabelStore, v1beta1.LabelCluster} {
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
		{"a binding with a label of ours", func(ctx context.Context) error {
			binding := &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1beta1.LabelServePrefix + "echo": "true"}},
				Target:     corev1.ObjectReference{Kind: "Node", Name: "n"},
			}
			return ana.SubResource("binding").Create(ctx, plain.DeepCopy(), binding, client.DryRunAll)
		}, pods},
		{"a StatefulSet with labels of the user's", func(ctx context.Context) error {
			return ana.Create(ctx, setOf(namespace, map[string]string{"team": "a"}), client.DryRunAll)
		}, ""},
		{"a pod with labels of another domain", func(ctx context.Context) error {
			return ana.Create(ctx, podWith(namespace, map[string]string{"notheliostat.dev/cluster": "a"}), client.DryRunAll)
		}, ""},
	} {
		one.check(t)
	}
	versionsAreJudged(t, version, sets)
	must(t, ana.Delete(t.Context(), plain))
}

// versionsAreJudged tries ControllerRevisions: the controller of StatefulSets takes their fields in any case, and those of other
// controllers have any data.
func versionsAreJudged(t *testing.T, version func(data string) func(context.Context) error, refused string) {
	t.Helper()
	for _, one := range []attempt{
		{"a version of a StatefulSet with a label of ours", version(`{"spec":{"template":{"metadata":{"labels":{"heliostat.dev/store":"a"}}}}}`), refused},
		{"such a version with fields in another case", version(`{"Spec":{"temPlate":{"metadata":{"Labels":{"heliostat.dev/store":"a"}}}}}`), refused},
		{"such a version with letters that Go folds", version(`{"\u017fpec":{"template":{"metadata":{"annotation\u017f":{"serve.heliostat.dev/a":"a"}}}}}`), refused},
		{"a version of another controller, whose spec is a list", version(`{"spec":[{"template":{}}]}`), ""},
		{"a version of another controller, whose labels are a text", version(`{"spec":{"template":{"metadata":{"labels":"a"}}}}`), ""},
		{"a version of a StatefulSet with labels of the user's", version(`{"spec":{"template":{"metadata":{"labels":{"app":"a"},"annotations":null}}}}`), ""},
	} {
		one.check(t)
	}
}

// TestGuards_RecordsAreTheOperatorsOwn: nobody forges what an operator remembers; to remove it is free.
func TestGuards_RecordsAreTheOperatorsOwn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	ana := tenant(t, namespace)
	const words = "are the operator's own"
	with := func(annotations, labels map[string]string) *v1beta1.ClusterJob {
		job := newJob(namespace, "forged")
		job.Annotations, job.Labels = annotations, labels
		return job
	}
	record := map[string]string{v1beta1.AnnotationRecord: "{}"}
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
	suspended.Spec.Suspend = new(true)
	suspended.Annotations = map[string]string{v1beta1.AnnotationRecord: "{}", v1beta1.AnnotationResume: "a"}
	must(t, shared.Create(t.Context(), suspended)) // as the operator leaves it
	patch := func(text string) func(context.Context) error { return patches(ana, suspended, text) }
	for _, one := range []attempt{
		{"a job with a record", func(ctx context.Context) error { return ana.Create(ctx, with(record, nil), client.DryRunAll) }, words},
		{"a job with a label of ours", func(ctx context.Context) error {
			return ana.Create(ctx, with(nil, map[string]string{v1beta1.LabelService: "a"}), client.DryRunAll)
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
			return ana.Create(ctx, with(map[string]string{v1beta1.AnnotationKeepUntil: "2026-11-27T18:00:00Z"}, nil), client.DryRunAll)
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
	job.Spec.Suspend, cluster.Spec.Suspend = new(true), new(true)
	must(t, shared.Create(t.Context(), cluster))
	must(t, shared.Create(t.Context(), job))
	to := func(value string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1beta1.AnnotationStop, value)
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
	bad.Annotations = map[string]string{v1beta1.AnnotationStop: "yes"}
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
	stolenWrites(t, everywhere, watched)
}

// stolenWrites are writes that admission judges.
func stolenWrites(t *testing.T, everywhere client.Client, watched string) {
	t.Helper()
	elsewhere := podWith(metav1.NamespaceSystem, nil)
	must(t, shared.Create(t.Context(), elsewhere))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(shared.Delete(context.WithoutCancel(t.Context()), elsewhere))) })
	cluster := newCluster(watched, "anas", 0)
	cluster.Spec.Suspend = new(true)
	must(t, shared.Create(t.Context(), cluster))
	outside := podOf("demo", watched)
	outside.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	policyInForce(t, watched)
	ofCluster := metav1.ObjectMeta{Namespace: watched, Name: "stolen", Labels: map[string]string{v1beta1.LabelCluster: "demo"}}
	token := &corev1.Secret{ObjectMeta: ofCluster, Type: corev1.SecretTypeServiceAccountToken}
	token.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
	service := &corev1.Service{ObjectMeta: ofCluster, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Port: 80}}, ExternalIPs: []string{"192.0.2.1"},
	}}
	for _, one := range []attempt{
		{"a pod of a cluster", tries(everywhere, podOf("demo", watched)), ""},
		{"a Secret into which Kubernetes writes the token of an account", tries(everywhere, token), "creates only Secrets of type Opaque"},
		{"a Service that takes requests to an address", tries(everywhere, service), "gives Services no externalIPs"},
		{"a pod with the host's files", tries(everywhere, outside),
			"needs the label heliostat.dev/privileged=allowed for pods with hostPath volumes"},
		{"another size for a pod of kube-system", func(ctx context.Context) error {
			return everywhere.SubResource("resize").Patch(ctx, elsewhere, client.RawPatch("application/merge-patch+json", []byte(`{}`)), client.DryRunAll)
		}, "the operator writes nothing in kube-system"},
		{"another's image", patches(everywhere, cluster, `{"spec":{"image":"a"}}`), "changes only specs of clusters of ClusterJobs"},
		{"the end of another's cluster", func(ctx context.Context) error {
			return everywhere.Delete(ctx, cluster.DeepCopy(), client.DryRunAll)
		}, ""},
	} {
		one.check(t)
	}
	must(t, shared.Delete(t.Context(), cluster))
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
