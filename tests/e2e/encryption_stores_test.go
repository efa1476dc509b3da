package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
	"github.com/heliostat-dev/heliostat/tests/redistest"
)

// What encryption_test.go shows with a managed Redis, with the other stores, and of the certificate authority.

var _ = Describe("a cluster with encryption and its memory on a volume", Ordered, Label(storeLabel, live.AcceptLabel, localkubeLabel), func() {
	var team *steady

	BeforeAll(func(ctx SpecContext) {
		e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: "sealed"}}
		team = steadily(ctx, e, "sealed-embedded", values{"Encrypted": true, "Store": embedded})
		team.encryption = certificatesOf(ctx, &team.workers[0])
	}, NodeTimeout(2*limit))

	killed("sealed-embedded", func() *steady { return team })
	renewed(func() *steady { return team })
})

var _ = Describe("a cluster with encryption and its memory in a Redis of the user's", Ordered, Label(storeLabel, live.AcceptLabel, localkubeLabel), func() {
	var team *steady

	BeforeAll(func(ctx SpecContext) {
		server := servingBy(ctx, "~RAYsealed@*", redistest.NewAuthority(GinkgoT()))
		e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: "sealed"}}
		credentials(ctx, e.Namespace)
		server.trusted(ctx, e.Namespace)
		team = steadily(ctx, e, "sealed-redis", server.store("sealed").and(values{"Encrypted": true}))
		team.encryption = certificatesOf(ctx, &team.workers[0])
	}, NodeTimeout(2*limit))

	killed("sealed-redis", func() *steady { return team })
	renewed(func() *steady { return team })
})

// renewed are the specs of a certificate authority that is lost while the head lives, and of the next one. The second ends
// all work.
func renewed(cluster func() *steady, labels ...string) {
	label := Label(append(labels, live.EncryptionRenewedLabel)...)

	It("goes on without its certificate authority, says that it makes no pod, and makes it once that is restored", func(ctx SpecContext) {
		team := cluster()
		former := team.authority(ctx)
		Expect(kubernetes.Delete(ctx, former)).To(Succeed())
		team.scale(ctx, 3)
		said := team.says(ctx, v1beta1.ConditionReady, "False", reason.CAMissing.Code)
		Expect(said.Message).To(ContainSubstring(former.Name))
		Consistently(ctx, func() []types.UID { return uids(team.pods(ctx, "")) }, 5*time.Second, time.Second).Should(HaveLen(3))
		Expect(team.ask(ctx).changed).To(BeZero(), "actors that are not what they were")
		team.sound(ctx)

		former.ResourceVersion, former.UID = "", ""
		Expect(kubernetes.Create(ctx, former)).To(Succeed())
		begin := time.Now()
		team.ready(ctx)
		told("certificate authority restored to one more worker", begin)
		team.scale(ctx, 2)
		team.env.workers(ctx, 2)
		team.ready(ctx)
		team.sound(ctx)
	}, label, SpecTimeout(2*limit))

	It("has another certificate authority after a suspension without it, and its head has its memory", func(ctx SpecContext) {
		team := cluster()
		former, session := team.authority(ctx), team.ready(ctx).Status.ControlStore.Session
		team.notes(ctx, "kept")
		team.suspends(ctx, true)
		Expect(kubernetes.Delete(ctx, former)).To(Succeed())
		begin := time.Now()
		team.suspends(ctx, false)
		told("resumed with another certificate authority to Ready", begin)
		now := team.authority(ctx).Data[v1beta1.AuthorityCertificateKey]
		Expect(now).NotTo(BeEmpty())
		Expect(bytes.Equal(former.Data[v1beta1.AuthorityCertificateKey], now)).To(BeFalse(), "the certificate authority is the former one")
		Expect(team.noted(ctx)).To(Equal("kept"))
		Expect(team.ready(ctx).Status.ControlStore.Session).To(Equal(session))
		workers := team.staying(ctx, 2)
		for i := range workers { // Serve's controller is an actor that the head remembers
			eventually(ctx, "Serve on "+workers[i].Name, func(ctx context.Context) error { return hello(ctx, &workers[i]) })
		}
	}, label, SpecTimeout(3*limit))
}

// authority is the Secret of the cluster's certificate authority, empty where there is none.
func (e *env) authority(ctx context.Context) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{}
	err := kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Name + "-ca"}, secret)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return secret
}

// scaleLink is the port on which an autoscaler listens to the operator.
const scaleLink = 6380

var _ = Describe("a cluster with encryption that scales by itself", Label(live.EncryptionScalingLabel, live.AcceptLabel), func() {
	It("has workers while tasks wait, and none when they are done", func(ctx SpecContext) {
		team := made(ctx, "elastic", "clusters/elastic.yaml", values{"Encrypted": true})
		team.scales(ctx, "Autoscaled")
		head := team.head(ctx)
		trust := certificatesOf(ctx, &head)
		trust.ServerName = head.Status.PodIP
		listens, err := (&tls.Dialer{NetDialer: &net.Dialer{}, Config: trust}).DialContext(ctx, "tcp", forward(ctx, &head, scaleLink))
		Expect(err).NotTo(HaveOccurred(), "the autoscaler has a certificate of the cluster")
		Expect(listens.Close()).To(Succeed())
		team.bursts(ctx)
	}, SpecTimeout(limit))
})
