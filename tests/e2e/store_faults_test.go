package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// trouble is something that befalls a store, and its end.
type trouble struct {
	name string
	// reason is what the condition ControlStoreReady must give, with these words.
	reason reason.Reason
	words  string
	befall func(ctx context.Context)
	end    func(ctx context.Context)
	// lasts is for how long at least.
	lasts time.Duration
	// spares tells that a head that runs goes on all the time.
	spares bool
}

// away is for how long a Redis is away; make accept adds ten minutes and other troubles.
const away, awayLong = 10 * time.Second, 10 * time.Minute

// troubled are the specs of what befalls a Redis of the user's, those that lose workers last.
func troubled(cluster func() (*steady, *redis)) {
	label := Label(live.StoreFaultsLabel)

	It("is told of a Redis that is slow or knows another password, and goes on with its head", func(ctx SpecContext) {
		team, server := cluster()
		for _, one := range []trouble{slowed(server), rotated(team.env, server)} {
			team.bears(ctx, one)
		}
		team.sound(ctx)
	}, label, Label(live.AcceptLabel), SpecTimeout(3*limit))

	It("has no head while Redis cannot serve one, and has it back as soon as it can", func(ctx SpecContext) {
		team, server := cluster()
		var more []trouble
		if *full {
			more = []trouble{narrowed(server), frozen(server), filled(server), absent(server, awayLong)}
		}
		for _, one := range append(more, absent(server, away)) {
			team.bears(ctx, one)
		}
		team.sound(ctx)
	}, label, SpecTimeout(6*limit+2*awayLong))

	restored(cluster)

	It("begins anew when Redis was flushed, and says so", func(ctx SpecContext) {
		team, server := cluster()
		team.forgets(ctx, "flushed", func() { server.cli(ctx, "FLUSHALL") })
	}, label, Label(live.AcceptLabel), SpecTimeout(2*limit))

	It("takes its keys along", func(ctx SpecContext) {
		team, server := cluster()
		Expect(server.keys(ctx, "kept")).NotTo(BeEmpty())
		begin := time.Now()
		Expect(kubernetes.Delete(ctx, team.ready(ctx))).To(Succeed())
		Expect(kubernetes.UntilGone(ctx, team.NamespacedName, limit)).To(Succeed())
		told(live.StoreGoneEntry, begin)
		swept(ctx, server, "kept")
		told("cluster deleted to keys gone", begin)
	}, Label(live.StoreGoneLabel), SpecTimeout(limit))
}

// restored is the spec of a Redis of the user's that is restored while the cluster is suspended.
func restored(cluster func() (*steady, *redis)) {
	It("has after a restore what was in the backup", func(ctx SpecContext) {
		team, server := cluster()
		session := team.ready(ctx).Status.ControlStore.Session
		team.notes(ctx, "kept")
		server.cli(ctx, "SAVE")
		server.shell(ctx, "cp /data/dump.rdb /data/backup.rdb")
		team.notes(ctx, "later")
		team.suspends(ctx, true)
		server.shell(ctx, "touch /data/off; redis-cli --user admin --pass any SHUTDOWN NOSAVE; cp /data/backup.rdb /data/dump.rdb")
		server.start(ctx)
		team.suspends(ctx, false)
		Expect(team.noted(ctx)).To(Equal("kept"))
		Expect(team.ready(ctx).Status.ControlStore.Session).To(Equal(session))
	}, Label(live.StoreFaultsLabel, live.AcceptLabel), SpecTimeout(2*limit))
}

func slowed(server *redis) trouble {
	return trouble{
		name: "slowed to two seconds an operation", reason: reason.StoreSlow, spares: true, lasts: away,
		befall: server.slow, end: server.fast,
	}
}

func rotated(e *env, server *redis) trouble {
	const another = "another-password-of-the-tests"
	return trouble{
		name: "password changed", reason: reason.StoreWrongPassword, words: "usernameSecret", spares: true,
		befall: func(ctx context.Context) { server.cli(ctx, "ACL", "SETUSER", "ray", "resetpass", ">"+another) },
		end: func(ctx context.Context) {
			secret := &corev1.Secret{}
			Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: "store"}, secret)).To(Succeed())
			secret.Data["password"] = []byte(another)
			Expect(kubernetes.Update(ctx, secret)).To(Succeed())
			server.cli(ctx, "ACL", "SAVE")
		},
	}
}

func narrowed(server *redis) trouble {
	return trouble{
		name: "permissions narrowed", reason: reason.StoreNotPermitted, words: "ACL SETUSER ray",
		befall: func(ctx context.Context) { server.cli(ctx, "ACL", "SETUSER", "ray", "-@hash") },
		end: func(ctx context.Context) {
			server.cli(ctx, append([]string{"ACL", "SETUSER", "ray"}, strings.Fields(storeRights)...)...)
		},
	}
}

// frozen makes it a replica of nobody.
func frozen(server *redis) trouble {
	return trouble{
		name: "made read-only", reason: reason.StoreReadOnly,
		befall: func(ctx context.Context) { server.cli(ctx, "REPLICAOF", "127.0.0.1", "1") },
		end:    func(ctx context.Context) { server.cli(ctx, "REPLICAOF", "NO", "ONE") },
	}
}

func filled(server *redis) trouble {
	return trouble{
		name: "full", reason: reason.StoreFull,
		befall: func(ctx context.Context) { server.cli(ctx, "CONFIG", "SET", "maxmemory", "1") },
		end:    func(ctx context.Context) { server.cli(ctx, "CONFIG", "SET", "maxmemory", "0") },
	}
}

func absent(server *redis, lasts time.Duration) trouble {
	return trouble{
		name: fmt.Sprintf("stopped for %.0f s", lasts.Seconds()), reason: reason.StoreUnreachable, words: "does not answer", lasts: lasts,
		befall: server.stop, end: server.start,
	}
}

// bears goes through a trouble, and reports what the cluster made of it.
func (s *steady) bears(ctx context.Context, one trouble) {
	GinkgoHelper()
	head := s.head(ctx)
	fault := live.StoreFault{Fault: one.name}
	begin := time.Now()
	one.befall(ctx)
	said := s.says(ctx, v1beta1.ConditionControlStoreReady, metav1.ConditionFalse, one.reason.Code)
	fault.Told, fault.Reason, fault.Message = time.Since(begin).Seconds(), said.Reason, said.Message
	Expect(said.Message).To(ContainSubstring(one.words))
	if rest := one.lasts - time.Since(begin); rest > 0 {
		Consistently(ctx, func() int { return s.touched(ctx) }, rest, time.Second).Should(BeZero())
	}
	fault.Lasted = time.Since(begin).Seconds()
	one.end(ctx)
	ended := time.Now()
	s.served(ctx, head.UID, one.spares)
	fault.Back = time.Since(ended).Seconds()
	fault.Head, fault.Touched = uids(s.pods(ctx, v1beta1.RoleHead))[0] == head.UID, s.touched(ctx)
	GinkgoWriter.Println(fault)
	AddReportEntry(live.StoreFaultsEntry, fault, ReportEntryVisibilityAlways)
	Expect(fault.Touched).To(BeZero(), fault.String())
	Expect(s.ask(ctx).changed).To(BeZero(), "actors that are not what they were")
}

// served waits until the store serves and the cluster is Ready, with the head that it had if
// that was spared.
func (s *steady) served(ctx context.Context, head types.UID, spared bool) {
	GinkgoHelper()
	s.says(ctx, v1beta1.ConditionControlStoreReady, metav1.ConditionTrue, reason.StoreServes.Code)
	s.ready(ctx)
	if spared {
		now := s.head(ctx)
		Expect(now.UID).To(Equal(head), "a head that runs is not touched because its store has trouble")
	}
}

// sound asserts that no work was lost so far.
func (s *steady) sound(ctx context.Context) {
	GinkgoHelper()
	memory := live.Memory{Store: s.store}
	s.settle(ctx, &memory)
	GinkgoWriter.Println(memory)
	Expect(memory).To(And(HaveField("Touched", 0), HaveField("TasksLost", 0), HaveField("Failed", 0)), memory.String())
}

// forgets has the store lose its memory, and waits until all is new.
func (s *steady) forgets(ctx context.Context, how string, lose func()) {
	GinkgoHelper()
	before, former := s.ready(ctx), s.pods(ctx, "")
	fault := live.StoreFault{Fault: how, NewSession: true}
	begin := time.Now()
	lose()
	eventually(ctx, "an event that tells of it", s.hasEvent(reason.StoreDataLost.Code, "a new session starts with new workers"))
	fault.Told, fault.Reason = time.Since(begin).Seconds(), reason.StoreDataLost.Code
	eventually(ctx, "another session", func(ctx context.Context) error {
		now, err := kubernetes.Find(ctx, s.NamespacedName)
		if err == nil && (now.Status.ControlStore == nil || now.Status.ControlStore.Session == before.Status.ControlStore.Session) {
			err = fmt.Errorf("it is that of before: %+v", now.Status.ControlStore)
		}
		return err
	})
	now := s.ready(ctx)
	fault.Back = time.Since(begin).Seconds()
	Expect(now.Status.ControlStore.Session).To(Equal(now.Status.Epoch))
	s.staying(ctx, 2)
	s.listed(ctx, 3)
	for _, uid := range uids(former) {
		Expect(uids(s.pods(ctx, ""))).NotTo(ContainElement(uid))
	}
	fault.Touched = s.touched(ctx)
	GinkgoWriter.Println(fault)
	AddReportEntry(live.StoreFaultsEntry, fault, ReportEntryVisibilityAlways)
}

// notes has the head remember a word, and noted gives it.
func (e *env) notes(ctx context.Context, word string) {
	GinkgoHelper()
	head := e.head(ctx)
	var done bool
	ray(ctx, &head, fmt.Sprintf(`
from ray.experimental.internal_kv import _internal_kv_put
_internal_kv_put(b"a word", b%q, overwrite=True)
result = True`, word), &done)
}

func (e *env) noted(ctx context.Context) (word string) {
	GinkgoHelper()
	head := e.head(ctx)
	ray(ctx, &head, `
from ray.experimental.internal_kv import _internal_kv_get
result = (_internal_kv_get(b"a word") or b"").decode()`, &word)
	return word
}

// suspends suspends a cluster until none of its Ray pods is left, or has it back.
func (e *env) suspends(ctx context.Context, on bool) {
	GinkgoHelper()
	e.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(on) })
	if !on {
		e.ready(ctx)
		return
	}
	e.is(ctx, v1beta1.ConditionSuspended)
	Expect(e.pods(ctx, "")).To(BeEmpty())
}

// redisLost is the spec of a Redis of the operator's whose pod ends.
func redisLost(cluster func() *steady, labels ...string) {
	It("has its head back when the pod of the Redis was lost", func(ctx SpecContext) {
		team := cluster()
		server := managed(ctx, team.env)
		kill(ctx, &server.pod)
		eventually(ctx, "another Redis", func(ctx context.Context) error {
			var now corev1.Pod
			err := kubernetes.Get(ctx, client.ObjectKeyFromObject(&server.pod), &now)
			if err == nil && (now.UID == server.pod.UID || !isReady(&now)) {
				err = errors.New("it is not ready")
			}
			return err
		})
		eventually(ctx, "the Redis to know the head again", func(ctx context.Context) error {
			out, err := server.try(ctx, "CLIENT", "LIST")
			if err == nil && !strings.Contains(out, fmt.Sprintf("user=head-%d", team.ready(ctx).Status.Epoch)) {
				err = errors.New(out)
			}
			return err
		})
		team.says(ctx, v1beta1.ConditionControlStoreReady, metav1.ConditionTrue, reason.StoreServes.Code)
		team.sound(ctx)
	}, Label(labels...), SpecTimeout(2*limit))
}

// retained is the spec of a claim that outlives its cluster.
func retained(cluster func() *steady, labels ...string) {
	It("leaves what is to be retained to a later cluster of its name", func(ctx SpecContext) {
		team := cluster()
		team.notes(ctx, "retained")
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) { spec.ControlStore.ManagedRedis.Retain = new(true) })
		team.ready(ctx)
		name := types.NamespacedName{Namespace: team.Namespace, Name: team.Name + "-store"}
		var claim corev1.PersistentVolumeClaim
		eventually(ctx, "the claim to be nobody's", func(ctx context.Context) error {
			err := kubernetes.Get(ctx, name, &claim)
			if err == nil && len(claim.OwnerReferences) > 0 {
				err = fmt.Errorf("it is owned by %v", claim.OwnerReferences)
			}
			return err
		})
		begin := time.Now()
		Expect(kubernetes.Delete(ctx, team.ready(ctx))).To(Succeed())
		Expect(kubernetes.UntilGone(ctx, team.NamespacedName, limit)).To(Succeed())
		told("cluster with a managed Redis deleted to gone", begin)

		team.apply(ctx, "clusters/head.yaml", values{"Store": managedRedis})
		Expect(team.ready(ctx).Status.Epoch).To(BeEquivalentTo(1))
		Expect(team.noted(ctx)).To(Equal("retained"))
		uid := claim.UID
		Expect(kubernetes.Get(ctx, name, &claim)).To(Succeed())
		Expect(claim.UID).To(Equal(uid))
		Expect(kubernetes.Delete(ctx, &claim)).To(Succeed()) // it goes when nobody uses it
	}, Label(labels...), SpecTimeout(2*limit))
}

// volumeRestored is the spec of a volume of which a folder is copied and restored while
// nobody uses it.
func volumeRestored(cluster func() *steady, folder string, labels ...string) {
	It("has after a restore of its volume what was in the backup", func(ctx SpecContext) {
		team := cluster()
		visits := func(command string) {
			team.suspends(ctx, true)
			pod := visitor(ctx, team.Namespace, team.Name+"-store")
			exec(ctx, &pod, "sh", "-c", "cd /store && "+command)
			kill(ctx, &pod)
			team.suspends(ctx, false)
		}
		team.notes(ctx, "kept")
		visits("cp -a " + folder + " backup")
		team.notes(ctx, "later")
		visits("rm -r " + folder + " && mv backup " + folder)
		Expect(team.noted(ctx)).To(Equal("kept"))
	}, Label(append(labels, live.AcceptLabel)...), SpecTimeout(4*limit))
}

// visitor is a pod of nobody's that sees the volume of a claim.
func visitor(ctx context.Context, namespace, claim string) corev1.Pod {
	GinkgoHelper()
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "visitor"}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64),
		SecurityContext:               &corev1.PodSecurityContext{RunAsUser: new(int64)}, // any user may own the files
		Containers: []corev1.Container{{
			Name: v1beta1.ContainerRay, Image: rayImage, Command: []string{"sleep", "infinity"},
			VolumeMounts: []corev1.VolumeMount{{Name: "store", MountPath: "/store"}},
		}},
		Volumes: []corev1.Volume{{Name: "store", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}},
	}}
	Expect(kubernetes.Create(ctx, &pod)).To(Succeed())
	eventually(ctx, "a visitor", func(ctx context.Context) error {
		err := kubernetes.Get(ctx, client.ObjectKeyFromObject(&pod), &pod)
		if err == nil && !isReady(&pod) {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	})
	return pod
}

// guarded are the specs of who reaches a Redis of the operator's.
func guarded(cluster func() *steady, labels ...string) {
	It("lets nobody but its head and the operator into it, and tells its passwords to nobody", func(ctx SpecContext) {
		team := cluster()
		stranger, server, head := bystander(ctx, team.Namespace), managed(ctx, team.env), team.head(ctx)
		for from, on := range map[*corev1.Pod][]string{&stranger: nil, &team.workers[0]: nil, &head: {"GCS"}} {
			Expect(slices.DeleteFunc(reached(ctx, from, &server.pod), func(name string) bool { return ports[name] != redisPort })).To(ConsistOf(on), from.Name)
		}
		var secret corev1.Secret
		Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: team.Namespace, Name: team.Name + "-redis"}, &secret)).To(Succeed())
		Expect(secret.Data).To(HaveLen(3))
		for _, list := range []client.ObjectList{&corev1.PodList{}, &v1beta1.ComputeClusterList{}, &corev1.EventList{}, &corev1.ConfigMapList{}} {
			Expect(kubernetes.List(ctx, list, client.InNamespace(team.Namespace))).To(Succeed())
			text, err := json.Marshal(list)
			Expect(err).NotTo(HaveOccurred())
			for name, password := range secret.Data {
				Expect(len(password)).To(BeNumerically(">", 16), name)
				Expect(strings.Contains(string(text), string(password))).To(BeFalse(), "the password %s stands in a %T", name, list)
			}
		}
	}, Label(labels...), SpecTimeout(limit))
}
