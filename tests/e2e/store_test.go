package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Heads with a control store that end and come back. What the same does to a cluster
// without one is in sample_test.go: a new epoch with fresh workers.

var _ = Describe("a cluster with its memory in a Redis of the user's", Ordered, Label(storeLabel, localkubeLabel), func() {
	var team *steady
	var server *redis

	BeforeAll(func(ctx SpecContext) {
		server = serving(ctx, "~RAYkept@*")
		e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: "kept"}}
		credentials(ctx, e.Namespace)
		team = steadily(ctx, e, "redis", server.store("kept"))
	}, NodeTimeout(2*limit))

	// What troubled does to it brings heads back as well.
	killed("redis", func() *steady { return team }, live.AcceptLabel)
	troubled(func() (*steady, *redis) { return team, server })
})

var _ = Describe("a cluster with its memory in a Redis of the operator's", Ordered, Label(storeLabel, "managed-store", live.AcceptLabel, localkubeLabel), func() {
	var team *steady

	BeforeAll(func(ctx SpecContext) {
		e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: "managed"}}
		team = steadily(ctx, e, "managed", values{"Store": managedRedis})
	}, NodeTimeout(2*limit))

	killed("managed", func() *steady { return team })
	guarded(func() *steady { return team }, live.StoreFaultsLabel)
	redisLost(func() *steady { return team }, live.StoreFaultsLabel)
	volumeRestored(func() *steady { return team }, "appendonlydir", live.StoreFaultsLabel)
	retained(func() *steady { return team }, live.StoreFaultsLabel)
})

var _ = Describe("a cluster with its memory on a volume", Ordered, Label(storeLabel, localkubeLabel), func() {
	var team *steady

	BeforeAll(func(ctx SpecContext) {
		e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: "embedded"}}
		team = steadily(ctx, e, "embedded", values{"Store": embedded})
	}, NodeTimeout(2*limit))

	killed("embedded", func() *steady { return team })
	volumeRestored(func() *steady { return team }, "gcs", live.StoreFaultsLabel)
})

// byHandRounds is how often a head is made again by hand, for what is compared with it.
const byHandRounds = 5

// killed is the spec of heads that end in both ways. It has further labels.
func killed(store string, cluster func() *steady, labels ...string) {
	It("has its head back with all that it knew, in its pod and in another", func(ctx SpecContext) {
		team := cluster()
		memory := live.Memory{Store: store}
		defer func() {
			GinkgoWriter.Println(memory)
			AddReportEntry(live.StoreKillsEntry, memory, ReportEntryVisibilityAlways)
		}()
		for round := range *rounds {
			head := team.head(ctx)
			if round == 0 {
				team.onHead(ctx, &head)
			}
			team.loses(ctx, live.InPlace, &memory)
			if round == 0 {
				team.tellsOfHead(ctx)
			}
			team.loses(ctx, live.NewPod, &memory)
		}
		team.settle(ctx, &memory)
		if *full {
			memory.ByHand = team.byHand(ctx)
		}
		Expect(memory.Broken()).To(BeEmpty(), memory.String())
	}, Label(append(labels, live.StoreKillsLabel+"-"+store)...), SpecTimeout(limit*time.Duration(2+2**rounds)))
}

// onHead begins a driver on the head, with an actor on a worker.
func (s *steady) onHead(ctx context.Context, head *corev1.Pod) {
	GinkgoHelper()
	s.begin(ctx, rendered("programs/passing.py", nil)).reaches(ctx, head, "/tmp/holds")
}

// tellsOfHead asserts that what was on the head is gone, and that events say so.
func (s *steady) tellsOfHead(ctx context.Context) {
	GinkgoHelper()
	head := s.head(ctx)
	var gone bool
	ray(ctx, &head, rendered("programs/gone.py", nil), &gone)
	Expect(gone).To(BeTrue(), "an actor whose driver ended with the head's container")
	Eventually(ctx, s.events).WithTimeout(limit).WithPolling(time.Second).
		Should(ContainElement(ContainSubstring("work on the head is lost")), "events are written after the status")
}

// loses ends the head in a way, and adds to a count how it came back.
func (s *steady) loses(ctx context.Context, how string, memory *live.Memory) {
	GinkgoHelper()
	before, head := s.ready(ctx), s.head(ctx)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	created := watch(watching, s.Namespace, &corev1.PodList{}, func(object client.Object) bool {
		return object.GetLabels()[v1beta1.LabelRole] == v1beta1.RoleHead && object.GetUID() != head.UID
	})
	recovery, begin := live.Recovery{How: how}, time.Now()
	if how == live.InPlace {
		signal(syscall.SIGKILL, "gcs_server", string(head.UID)) // Ray's start command, which is process 1, ends with it
	} else {
		kill(ctx, &head)
		seen, err := created(ctx, limit, "another head pod")
		Expect(err).NotTo(HaveOccurred())
		recovery.Created = seen.At.Sub(begin).Seconds()
		head = *seen.Object.(*corev1.Pod)
	}
	s.returns(ctx, &head, &recovery, begin, func(ctx context.Context) (bool, error) {
		now, err := kubernetes.Find(ctx, s.NamespacedName)
		if err != nil {
			return false, err
		}
		return recorded(before, now), live.IsReady(now)
	})
	memory.Recoveries = append(memory.Recoveries, recovery)
	memory.Recorded++ // else it would not have been ready
	memory.Asked += len(s.workers)
	if how == live.NewPod {
		eventually(ctx, "an event about "+head.Name, s.hasEvent(reason.HeadRecovered.Code, head.Name))
	}
	Expect(s.head(ctx).UID).To(Equal(head.UID))
}

// recorded reports whether the status of now tells of exactly one more recovery than before, with the
// same memory.
func recorded(before, now *v1beta1.ComputeCluster) bool {
	if before.Status.Head == nil || now.Status.Head == nil || before.Status.ControlStore == nil || now.Status.ControlStore == nil {
		return false
	}
	kept := now.Status.ControlStore.Session == before.Status.ControlStore.Session
	inPlace := now.Status.Epoch == before.Status.Epoch && now.Status.Head.UID == before.Status.Head.UID && now.Status.Head.Restarts == before.Status.Head.Restarts+1
	anew := now.Status.Epoch == before.Status.Epoch+1 && now.Status.Head.UID != before.Status.Head.UID && now.Status.Head.Restarts == 0
	return kept && (inPlace || anew)
}

// hasEvent looks for an event with a reason that names something.
func (e *env) hasEvent(why, about string) func(context.Context) error {
	return func(ctx context.Context) error {
		var list corev1.EventList
		if err := kubernetes.List(ctx, &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		var others []string
		for i := range list.Items {
			event := &list.Items[i]
			if event.Reason == why && strings.Contains(event.Message, about) {
				return nil
			}
			if event.InvolvedObject.Kind == "ComputeCluster" {
				others = append(others, event.Reason+": "+event.Message)
			}
		}
		return fmt.Errorf("there are %q", others)
	}
}

// returns waits until a head is back, and measures when the head lists its workers, when it
// is ready, and when an actor answers. ready reports whether it is recorded, and what keeps it.
func (s *steady) returns(ctx context.Context, head *corev1.Pod, recovery *live.Recovery, begin time.Time, ready func(context.Context) (bool, error)) {
	GinkgoHelper()
	token := s.token(ctx)
	var said answered
	waiting, ctx := errgroup.WithContext(ctx)
	waiting.Go(func() error {
		err := s.lists(ctx, head, token)
		recovery.Listed = time.Since(begin).Seconds()
		return err
	})
	waiting.Go(func() error {
		err := live.Until(ctx, limit, s.Name+" to be Ready again", func(ctx context.Context) error {
			noted, err := ready(ctx)
			if err == nil && !noted {
				err = errors.New("its status does not tell of it")
			}
			return err
		})
		recovery.Ready = time.Since(begin).Seconds()
		return err
	})
	waiting.Go(func() (err error) {
		said, err = s.question(ctx, strings.Join(s.heads, ","))
		recovery.Answered = said.at.Sub(begin).Seconds()
		return err
	})
	Expect(waiting.Wait()).To(Succeed())
	Expect(said.changed).To(BeZero(), "actors that are not what they were")
	GinkgoWriter.Printf("%+v\n", *recovery)
}

// lists waits until a head lists all workers as alive.
func (s *steady) lists(ctx context.Context, head *corev1.Pod, token string) error {
	address := ""
	err := live.Until(ctx, limit, "the head to have an address", func(ctx context.Context) error {
		var now corev1.Pod
		if err := kubernetes.Get(ctx, client.ObjectKeyFromObject(head), &now); err != nil {
			return err
		}
		if address = now.Status.PodIP; address == "" || now.UID != head.UID {
			return errors.New("it has none")
		}
		return nil
	})
	if err != nil {
		return err
	}
	asked, err := live.DialGCS(address, token, s.encryption)
	if err != nil {
		return err
	}
	defer func() { _ = asked.Close() }()
	return live.Until(ctx, limit, "the head to list all workers", func(ctx context.Context) error {
		listed, err := asked.Instances(ctx)
		for _, uid := range uids(s.workers) {
			if err == nil && !slices.Contains(listed, string(uid)) {
				err = fmt.Errorf("it lists %v", listed)
			}
		}
		return err
	})
}

// byHand deletes the head pod and makes it again, as a person would who has no operator.
func (s *steady) byHand(ctx context.Context) []live.Recovery {
	GinkgoHelper()
	scaleOperator(ctx, 0)
	defer func() {
		scaleOperator(ctx, 1)
		s.ready(ctx)
	}()
	var all []live.Recovery
	for range min(*rounds, byHandRounds) {
		head := s.head(ctx)
		again := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: head.Namespace, Name: head.Name, Labels: head.Labels, Annotations: head.Annotations, OwnerReferences: head.OwnerReferences,
			},
			Spec: *head.Spec.DeepCopy(),
		}
		again.Spec.NodeName = ""
		recovery, begin := live.Recovery{How: live.NewPod}, time.Now()
		kill(ctx, &head)
		Expect(kubernetes.Create(ctx, again)).To(Succeed())
		recovery.Created = time.Since(begin).Seconds()
		s.returns(ctx, again, &recovery, begin, func(ctx context.Context) (bool, error) {
			var now corev1.Pod
			err := kubernetes.Get(ctx, client.ObjectKeyFromObject(again), &now)
			return isReady(&now), err
		})
		all = append(all, recovery)
	}
	return all
}
