package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// The life of a cluster with a Secret of the user's, which is not there at first.
var _ = Describe("a cluster's token", Ordered, Label(live.TokenLabel, live.AcceptLabel), func() {
	var team *env
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, StringData: map[string]string{v1beta1.TokenKey: userToken}}

	BeforeAll(func(ctx SpecContext) {
		team = &env{types.NamespacedName{Namespace: fresh(ctx), Name: "team"}}
		secret.Namespace = team.Namespace
		undoing(ctx, team.Namespace)
		team.apply(ctx, "clusters/token.yaml", nil)
	}, NodeTimeout(limit))

	It("is waited for where its Secret is not there", func(ctx SpecContext) {
		said := team.says(ctx, v1beta1.ConditionReady, metav1.ConditionFalse, "TokenSecretInvalid")
		Expect(said.Message).To(And(ContainSubstring("Secret mine"), ContainSubstring("is not there"), ContainSubstring("Create it")))
		Expect(team.pods(ctx, "")).To(BeEmpty())
		begin := time.Now()
		Expect(kubernetes.Create(ctx, secret)).To(Succeed())
		team.ready(ctx)
		told("Secret made to Ready", begin)
		Expect(team.alive(ctx, userToken)).To(Equal(2))
	}, SpecTimeout(limit))

	It("is named when it was changed under the pods, which go on until the head is deleted", func(ctx SpecContext) {
		const changed = "fedcba9876543210fedcba9876543210"
		before := uids(team.pods(ctx, ""))
		begin := time.Now()
		secret.StringData = map[string]string{v1beta1.TokenKey: changed}
		Expect(kubernetes.Update(ctx, secret)).To(Succeed())
		said := team.says(ctx, v1beta1.ConditionUpToDate, metav1.ConditionFalse, "TokenChanged")
		told("token changed to told", begin)
		Expect(said.Message).To(And(ContainSubstring("2 of 2 pods"), ContainSubstring("Delete the head pod")))
		Expect(uids(team.pods(ctx, ""))).To(ConsistOf(before))
		team.ready(ctx)
		Expect(team.alive(ctx, userToken)).To(Equal(2), "the pods have the token that they were started with")
		head := team.head(ctx)
		var sum int
		ray(ctx, &head, squares, &sum)
		Expect(sum).To(Equal(285), "and so has what is started in them later")

		team.anew(ctx, 2)
		Expect(team.alive(ctx, changed)).To(Equal(2))
		_, err := team.nodes(ctx, userToken)
		Expect(headclient.KindOf(err)).To(Equal(headclient.Unauthenticated), "the former token")
	}, SpecTimeout(limit))

	It("of the operator's own making is not replaced under a head that lives", func(ctx SpecContext) {
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) { spec.Authentication = nil })
		team.says(ctx, v1beta1.ConditionUpToDate, metav1.ConditionFalse, "PodsOutdated")
		team.anew(ctx, 3)
		Expect(team.alive(ctx, team.token(ctx))).To(Equal(2))

		former := team.token(ctx)
		Expect(kubernetes.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team.Namespace, Name: team.Name + "-token"}})).To(Succeed())
		worker := team.workers(ctx, 1)[0]
		kill(ctx, &worker)
		said := team.says(ctx, v1beta1.ConditionReady, metav1.ConditionFalse, "TokenMissing")
		Expect(said.Message).To(And(ContainSubstring("Secret team-token"), ContainSubstring("delete the head pod")))
		Expect(team.pods(ctx, v1beta1.RoleWorker)).To(BeEmpty(), "it could not join")
		team.says(ctx, v1beta1.ConditionHeadReady, metav1.ConditionTrue, "HeadReady")

		team.anew(ctx, 4)
		Expect(team.token(ctx)).NotTo(Equal(former))
		Expect(team.alive(ctx, team.token(ctx))).To(Equal(2))
	}, SpecTimeout(limit))

	It("is another one in a cluster that is deleted and made again at once", func(ctx SpecContext) {
		former := team.token(ctx)
		Expect(kubernetes.Delete(ctx, team.ready(ctx))).To(Succeed())
		eventually(ctx, "the name to be free", func(ctx context.Context) error {
			err := kubernetes.Get(ctx, team.NamespacedName, &v1beta1.ComputeCluster{})
			if err == nil {
				err = errors.New("it is there")
			}
			return client.IgnoreNotFound(err)
		})
		begin := time.Now()
		team.apply(ctx, "clusters/workers.yaml", nil)
		team.ready(ctx)
		told("made again to Ready", begin)
		Expect(team.token(ctx)).NotTo(Equal(former))
		Expect(team.alive(ctx, team.token(ctx))).To(Equal(2))
	}, SpecTimeout(limit))
})

// undoing makes the ConfigMap that clusters/token.yaml names. Variables that undo the spec come unseen from it.
func undoing(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(kubernetes.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "undo"}, Data: map[string]string{
		"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": "another", "RAY_ENABLE_K8S_TOKEN_AUTH": "1",
		"RAY_gcs_storage": "nowhere",
	}})).To(Succeed())
}

// says waits until a condition has a status for a reason, and gives it.
func (e *env) says(ctx context.Context, kind string, status metav1.ConditionStatus, why string) metav1.Condition {
	GinkgoHelper()
	var said metav1.Condition
	eventually(ctx, fmt.Sprintf("%s of %s to be %s for %s", kind, e.Name, status, why), func(ctx context.Context) error {
		cluster, err := kubernetes.Find(ctx, e.NamespacedName)
		if err != nil {
			return err
		}
		found := meta.FindStatusCondition(cluster.Status.Conditions, kind)
		if found == nil || found.Status != status || found.Reason != why {
			return fmt.Errorf("it is %+v", found)
		}
		said = *found
		return nil
	})
	return said
}

// again deletes the head pod, as a person does who wants a fresh start, and waits until
// the cluster is ready in an epoch with the spec that it has.
func (e *env) anew(ctx context.Context, epoch int64) {
	GinkgoHelper()
	head := e.head(ctx)
	begin := time.Now()
	Expect(kubernetes.Delete(ctx, &head)).To(Succeed())
	eventually(ctx, fmt.Sprintf("epoch %d", epoch), func(ctx context.Context) error { return e.inEpoch(ctx, epoch) })
	e.upToDate(ctx)
	told("head deleted to Ready", begin)
}

// inEpoch looks whether the cluster has got to an epoch.
func (e *env) inEpoch(ctx context.Context, epoch int64) error {
	cluster, err := kubernetes.Find(ctx, e.NamespacedName)
	if err == nil && cluster.Status.Epoch != epoch {
		err = fmt.Errorf("it is in epoch %d", cluster.Status.Epoch)
	}
	return err
}

// nodes asks the head with a token how many nodes are alive.
func (e *env) nodes(ctx context.Context, token string) (int, error) {
	GinkgoHelper()
	head := e.head(ctx)
	state, err := dial(forward(ctx, &head, gcs), token).State(ctx)
	alive := 0
	for _, node := range state.Nodes {
		if node.State != headclient.Dead {
			alive++
		}
	}
	return alive, err
}

func (e *env) alive(ctx context.Context, token string) int {
	GinkgoHelper()
	alive, err := e.nodes(ctx, token)
	Expect(err).NotTo(HaveOccurred())
	return alive
}
