package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Heads whose node is lost: what must not happen is that two of them write.
var _ = Describe("a head with a control store on a node that is lost", Ordered, Label(storeLabel, localkubeLabel), func() {
	fencedOff() // the one that waits for nobody
	onLostNodes()
})

func onLostNodes() {
	label := Label(live.StoreLostLabel, live.AcceptLabel)

	It("is followed by one on another node when it can hardly write any more, in a Redis of the user's", func(ctx SpecContext) {
		server := serving(ctx, "~RAYlost@*")
		e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: "given"}}
		credentials(ctx, e.Namespace)
		begin := losing(ctx, e, server.store("lost"), "partition")
		said := e.says(ctx, v1beta1.ConditionReady, "False", reason.OldHeadRemains.Code) // the store itself serves
		Expect(said.Message).To(ContainSubstring("kubectl taint node " + nodes(ctx)[1].Name))
		e.movedOn(ctx, begin)
		e.heals(ctx)
	}, label, SpecTimeout(3*limit))

	It("is followed by none on a volume until its node is declared to be off", func(ctx SpecContext) {
		lost := nodes(ctx)[1].Name
		e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: "shared"}}
		begin := losing(ctx, e, values{"Store": "{embedded: {storage: 100Mi, storageClassName: shared, accessModes: [ReadWriteMany]}}"}, "stop")
		said := e.says(ctx, v1beta1.ConditionControlStoreReady, "False", reason.VolumeHeldByLostNode.Code)
		Expect(said.Message).To(ContainSubstring("kubectl taint node " + lost))
		Consistently(ctx, func() error { return e.oneHead(ctx) }, 10*time.Second, time.Second).Should(Succeed())
		declareOff(ctx, lost)
		e.movedOn(ctx, begin)
		e.heals(ctx)
	}, label, SpecTimeout(3*limit))

	It("waits for its node on a volume that is bound to it", func(ctx SpecContext) {
		e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: "bound"}}
		losing(ctx, e, values{"Store": embedded}, "stop")
		e.says(ctx, v1beta1.ConditionControlStoreReady, "False", reason.VolumeHeldByLostNode.Code)
		Consistently(ctx, func() error { return e.oneHead(ctx) }, 10*time.Second, time.Second).Should(Succeed())
		e.heals(ctx)
		e.says(ctx, v1beta1.ConditionControlStoreReady, "True", reason.StoreServes.Code)
		e.ready(ctx)
		Expect(e.noted(ctx)).To(Equal("before"))
	}, label, SpecTimeout(3*limit))
}

// fencedOff is the spec of a head that is cut off from its Redis before the next one starts.
func fencedOff() {
	It("is locked out of the operator's Redis before there is another on another node", func(ctx SpecContext) {
		e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: "fenced"}}
		begin := losing(ctx, e, values{"Store": managedRedis}, "partition")
		server := managed(ctx, e)
		e.movedOn(ctx, begin)
		users, clients := server.cli(ctx, "ACL", "USERS"), server.cli(ctx, "CLIENT", "LIST")
		Expect(strings.Fields(users)).To(And(ContainElement("head-2"), Not(ContainElement("head-1"))))
		Expect(clients).To(And(ContainSubstring("user=head-2"), Not(ContainSubstring("user=head-1"))))
		e.heals(ctx)
	}, Label(live.StoreLostLabel), SpecTimeout(3*limit))
}

// losing makes a cluster whose head is on the second node and cuts that off, or stops it.
func losing(ctx context.Context, e *env, store values, verb string) time.Time {
	GinkgoHelper()
	keep, lost := nodes(ctx)[0].Name, nodes(ctx)[1].Name
	aside(ctx, lost)
	placed := store.and(values{"Keep": keep, "Lost": lost, "Impatient": !*full})
	if store["Store"] == managedRedis { // which must be on the other node
		cordon(ctx, lost, true)
		e.apply(ctx, "clusters/head-cut-off.yaml", placed)
		eventually(ctx, "the Redis to have a place", e.redisPlaced)
		cordon(ctx, lost, false)
	} else {
		e.apply(ctx, "clusters/head-cut-off.yaml", placed)
	}
	e.ready(ctx)
	head := e.head(ctx)
	Expect(head.Spec.NodeName).To(Equal(lost))
	e.notes(ctx, "before")
	localkube(ctx, verb, lost)
	DeferCleanup(mended, lost, NodeTimeout(limit))
	return time.Now()
}

// redisPlaced looks whether the operator's Redis has a node. No head is made before.
func (e *env) redisPlaced(ctx context.Context) error {
	var pod corev1.Pod
	err := kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Name + "-redis-0"}, &pod)
	if err == nil && pod.Spec.NodeName == "" {
		err = errors.New("it has none")
	}
	return err
}

// movedOn waits until there is a head on another node, with the same memory and worker.
func (e *env) movedOn(ctx context.Context, begin time.Time) {
	GinkgoHelper()
	lost := nodes(ctx)[1].Name
	worker := e.workers(ctx, 1)[0]
	eventually(ctx, "a head elsewhere", func(ctx context.Context) error {
		now, err := kubernetes.Find(ctx, e.NamespacedName)
		if err == nil && (now.Status.Epoch != 2 || now.Status.Head == nil || now.Status.Head.NodeName == lost) {
			err = fmt.Errorf("epoch %d, %+v, %+v", now.Status.Epoch, now.Status.Head, meta.FindStatusCondition(now.Status.Conditions, v1beta1.ConditionControlStoreReady))
		}
		if err != nil {
			return err
		}
		return live.IsReady(now)
	})
	told(live.StoreLostEntry, begin)
	Expect(e.workers(ctx, 1)[0].UID).To(Equal(worker.UID))
	var word string
	ray(ctx, e.living(ctx), `
from ray.experimental.internal_kv import _internal_kv_get
result = _internal_kv_get(b"a word").decode()`, &word)
	Expect(word).To(Equal("before"))
}

// living is the head of the epoch, beside which there may be one that is lost.
func (e *env) living(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	cluster, err := kubernetes.Find(ctx, e.NamespacedName)
	Expect(err).NotTo(HaveOccurred())
	head := &corev1.Pod{}
	Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: cluster.Status.Head.PodName}, head)).To(Succeed())
	return head
}

// oneHead tells by nil that there is no other head than the first.
func (e *env) oneHead(ctx context.Context) error {
	heads, err := kubernetes.PodsOf(ctx, e.NamespacedName, v1beta1.RoleHead)
	if err == nil && len(heads) != 1 {
		err = fmt.Errorf("there are %d", len(heads))
	}
	return err
}

// declareOff says that a node is off for good.
func declareOff(ctx context.Context, name string) {
	GinkgoHelper()
	var node corev1.Node
	Expect(kubernetes.Get(ctx, types.NamespacedName{Name: name}, &node)).To(Succeed())
	seen := node.DeepCopy()
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	Expect(kubernetes.Patch(ctx, &node, client.MergeFrom(seen))).To(Succeed())
}

// heals has the second node back, and waits until the pods that were lost with it are gone.
func (e *env) heals(ctx context.Context) {
	GinkgoHelper()
	mended(ctx, nodes(ctx)[1].Name)
	eventually(ctx, "the lost head to be gone", func(ctx context.Context) error {
		heads, err := kubernetes.PodsOf(ctx, e.NamespacedName, v1beta1.RoleHead)
		for i := range heads {
			if err == nil && heads[i].DeletionTimestamp != nil {
				err = fmt.Errorf("%s is there", heads[i].Name)
			}
		}
		return err
	})
	e.ready(ctx)
}

// mended connects and starts a node that is lost, and waits until Kubernetes takes it for sound.
func mended(ctx context.Context, name string) {
	GinkgoHelper()
	localkube(ctx, "start", name)
	localkube(ctx, "heal", name)
	eventually(ctx, name+" to be sound", func(ctx context.Context) error {
		var node corev1.Node
		if err := kubernetes.Get(ctx, types.NamespacedName{Name: name}, &node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				return errors.New("it is not ready")
			}
		}
		if len(node.Spec.Taints) == 0 {
			return nil
		}
		seen := node.DeepCopy()
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService })
		if err := kubernetes.Patch(ctx, &node, client.MergeFrom(seen)); err != nil {
			return err
		}
		return fmt.Errorf("it had the taints %v", seen.Spec.Taints)
	})
}
