package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// What becomes of the keys of clusters that are deleted: three heads in one Redis, in
// namespaces of which one is the beginning of another.
var _ = Describe("the keys of a cluster that is deleted", Ordered, Label(storeLabel, live.StoreGoneLabel, live.AcceptLabel), func() {
	var server *redis
	var first, second, third *env

	BeforeAll(func(ctx SpecContext) {
		server = serving(ctx, "~RAY*")
		namespace := fresh(ctx)
		credentials(ctx, namespace)
		for _, one := range []struct {
			into  **env
			named string
			keys  string
		}{{&first, "first", "a"}, {&second, "second", "a:b"}, {&third, "third", "a-b"}} {
			*one.into = &env{types.NamespacedName{Namespace: namespace, Name: one.named}}
			(*one.into).apply(ctx, "clusters/head.yaml", server.store(one.keys))
		}
		for _, e := range []*env{first, second, third} {
			e.ready(ctx)
		}
	}, NodeTimeout(limit))

	It("go with it, and no other's", func(ctx SpecContext) {
		knownToCollector(ctx, first.Namespace)
		others := [][]string{server.keys(ctx, "a:b"), server.keys(ctx, "a-b")}
		begin := time.Now()
		first.deleted(ctx)
		told(live.StoreGoneEntry, begin)
		swept(ctx, server, "a")
		told("cluster deleted to keys gone", begin)
		Expect([][]string{server.keys(ctx, "a:b"), server.keys(ctx, "a-b")}).To(Equal(others))
	}, SpecTimeout(limit))

	It("hold up nothing while Redis is away, and go when it is back", func(ctx SpecContext) {
		uid := second.ready(ctx).UID
		server.stop(ctx)
		begin := time.Now()
		second.deleted(ctx)
		told(live.AwayGoneEntry, begin)
		data := noteSays(ctx, uid, "does not answer")
		Expect(data["state"]).To(Equal("failing"))
		Expect(data["command"]).To(ContainSubstring("'RAYa:b@*'"))
		server.start(ctx)
		begin = time.Now()
		swept(ctx, server, "a:b")
		told(live.KeysGoneEntry, begin)
		noteGone(ctx, uid)
	}, SpecTimeout(limit))

	It("are told of with the command that removes them, where the password is gone too", func(ctx SpecContext) {
		uid := third.ready(ctx).UID
		Expect(server.keys(ctx, "a-b")).NotTo(BeEmpty())
		secret := &corev1.Secret{}
		Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: third.Namespace, Name: "store"}, secret)).To(Succeed())
		Expect(kubernetes.Delete(ctx, secret)).To(Succeed())
		killOperator(ctx) // it remembers the password
		Expect(leads(ctx)).To(Succeed())
		third.deleted(ctx)
		data := noteSays(ctx, uid, "the credential is gone")
		Expect(data["state"]).To(Equal("stuck"))
		command := strings.ReplaceAll(data["command"], "USER", "ray")
		Expect(command).NotTo(BeEmpty())
		GinkgoWriter.Println(command)
		_, err := kubernetes.Exec(ctx, types.NamespacedName{Namespace: server.pod.Namespace, Name: server.pod.Name}, server.container,
			"bash", "-c", `printf '%s\n' "$1" >/data/password && bash -c "$2" </data/password`, "bash", storePassword, command)
		Expect(err).NotTo(HaveOccurred())
		Expect(server.keys(ctx, "a-b")).To(BeEmpty())
		note := &corev1.ConfigMap{}
		Expect(kubernetes.Get(ctx, noteOf(uid), note)).To(Succeed())
		Expect(kubernetes.Delete(ctx, note)).To(Succeed())
	}, SpecTimeout(limit))
})

// knownToCollector waits until Kubernetes' garbage collector takes away what belongs to
// clusters: it looks for new kinds each 30 s, and on a Kubernetes that was just made a
// deletion would measure that.
func knownToCollector(ctx context.Context, namespace string) {
	GinkgoHelper()
	e := &env{types.NamespacedName{Namespace: namespace, Name: "known"}}
	e.apply(ctx, "clusters/head.yaml", values{"Suspend": true})
	eventually(ctx, "the cluster to have its Service", func(ctx context.Context) error {
		return kubernetes.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "known-head"}, &corev1.Service{})
	})
	e.deleted(ctx)
}

// deleted deletes the cluster and waits until nothing of it is left.
func (e *env) deleted(ctx context.Context) {
	GinkgoHelper()
	cluster, err := kubernetes.Find(ctx, e.NamespacedName)
	Expect(err).NotTo(HaveOccurred())
	Expect(kubernetes.Delete(ctx, cluster)).To(Succeed())
	Expect(kubernetes.UntilGone(ctx, e.NamespacedName, limit)).To(Succeed())
}

// swept waits until a Redis holds no key of a namespace of Ray's.
func swept(ctx context.Context, server *redis, namespace string) {
	GinkgoHelper()
	Eventually(ctx, func() []string { return server.keys(ctx, namespace) }, limit, "100ms").Should(BeEmpty())
}

// noteOf is where the operator notes whose keys are in a Redis.
func noteOf(cluster types.UID) types.NamespacedName {
	return types.NamespacedName{Namespace: live.ReleaseNamespace, Name: "heliostat-store-" + string(cluster)}
}

// noteSays waits until the note about a cluster's keys says why they are there.
func noteSays(ctx context.Context, cluster types.UID, words string) map[string]string {
	GinkgoHelper()
	var note corev1.ConfigMap
	eventually(ctx, "the note to say that "+words, func(ctx context.Context) error {
		err := kubernetes.Get(ctx, noteOf(cluster), &note)
		if err == nil && !strings.Contains(note.Data["why"], words) {
			err = fmt.Errorf("it says %v", note.Data)
		}
		return err
	})
	Expect(note.Labels).To(HaveKey(v1beta1.LabelNote))
	for key, value := range note.Data {
		Expect(value).NotTo(ContainSubstring(storePassword), key)
	}
	return note.Data
}

// noteGone waits until there is no note about a cluster's keys.
func noteGone(ctx context.Context, cluster types.UID) {
	GinkgoHelper()
	eventually(ctx, "the note to be gone", func(ctx context.Context) error {
		err := kubernetes.Get(ctx, noteOf(cluster), &corev1.ConfigMap{})
		if err == nil {
			return errors.New("it is there")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
