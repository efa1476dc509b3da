package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/tests/internal/packets"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Secrets that people give to their programs, and a text that nobody keeps secret.
const (
	inTask    = "argument-of-a-task-f3a61c"
	inJob     = "variable-of-a-job-90bd27"
	inObject  = "large-object-5ac0e8"
	inCommand = "word-of-a-command-e17f44"
	openly    = "said-openly-2b8d90"
)

// certificates are where a pod with encryption has its own.
const certificates = "/var/run/secrets/heliostat.dev/certificates/"

// With encryption a Redis of the operator's is shown too. Only make accept has one without encryption, heads that
// end, and a volume that a later cluster takes.
var _ = Describe("a cluster with encryption", Ordered, Label(storeLabel, "managed-store", localkubeLabel), func() {
	var o *office
	var team *steady
	var captured *packets.Capture

	BeforeAll(func(ctx SpecContext) {
		o = opened(ctx)
		e := &env{o.named("sealed")}
		var err error
		captured, err = live.Capture(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(captured.Close)
		spec := values{"Encrypted": true, "Store": managedRedis}
		e.apply(ctx, "clusters/steady.yaml", spec)
		seekSecrets(ctx, e, captured)
		team = steadily(ctx, e, "sealed", spec)
		team.encryption = certificatesOf(ctx, &team.workers[0])
	}, NodeTimeout(2*limit))

	It("says no token, no password and no argument in clear text", func(ctx SpecContext) {
		first, second := team.workers[0], team.workers[1]
		job := o.submit(ctx, "told", "jobs/shared.yaml", values{"Cluster": "sealed", "Mark": inJob, "Entrypoint": "echo $MARK | rev"})
		var place string
		ray(ctx, &first, rendered("programs/secret-words.py", values{"Pod": second.Name, "Argument": inTask, "Object": inObject, "Size": len(inObject)}), &place)
		Expect(place).To(Equal(second.Name))
		// Ray's log has the command. What exec gives back passes the node's loopback interface in clear text.
		out := exec(ctx, &first, "sh", "-c", `ray job submit --verify "$1" -- python3 -c "$2" | grep -o "$3"`, "sh",
			certificates+"ca.crt", "print('"+inCommand+"'[::-1])", reversed(inCommand))
		Expect(out).To(ContainSubstring(reversed(inCommand)))
		Expect(last(job.is(ctx, v1beta1.PhaseSucceeded)).LastLines).To(ContainElement(reversed(inJob)))
		exec(ctx, &first, "python3", "-c", "import urllib.request; urllib.request.urlopen('http://"+net.JoinHostPort(second.Status.PodIP, "8080")+"/metrics?"+openly+"').read(100)")

		eventually(ctx, "the capture to see what was said openly", func(context.Context) error {
			if captured.Found()[openly] == 0 {
				return fmt.Errorf("it found %v", captured.Found())
			}
			return nil
		})
		found := captured.Found()
		seen, dropped := captured.Count()
		AddReportEntry("packets", fmt.Sprintf("%d, %d of them not looked at", seen, dropped), ReportEntryVisibilityAlways)
		Expect(dropped).To(BeZero())
		for name, times := range found {
			Expect(name == openly || times == 0).To(BeTrue(), "%s was seen %d times", name, times)
		}
	}, SpecTimeout(limit))

	It("lets in nobody without a certificate of its own", func(ctx SpecContext) {
		head := team.head(ctx)
		token := team.token(ctx)
		for name, test := range map[string]struct {
			trust headclient.Trust
			is    bool
		}{
			"in clear text":         {nil, false},
			"without a certificate": {trusting{&tls.Config{RootCAs: team.encryption.RootCAs, NextProtos: []string{"h2"}}}, false},
			"with a certificate":    {trusting{team.encryption}, true},
		} {
			at := forward(ctx, &head, gcs) // one ends with a connection that fails
			asked, err := headclient.Dial(at, headclient.Options{Trust: test.trust, Token: func(context.Context) (string, error) { return token, nil }})
			Expect(err).NotTo(HaveOccurred())
			_, err = asked.Alive(ctx)
			Expect(err == nil).To(Equal(test.is), "%s: %v", name, err)
			Expect(asked.Close()).To(Succeed())
		}
		out := exec(ctx, &team.workers[0], "python3", "-c", "import socket\ntry:\n  socket.create_connection(('"+head.Status.PodIP+"', 8265), 3)\n  print('open')\nexcept OSError as e:\n  print(type(e).__name__)")
		Expect(out).NotTo(ContainSubstring("open"), "the dashboard itself")
	}, SpecTimeout(limit))

	killed("sealed", func() *steady { return team }, live.AcceptLabel)
	guarded(func() *steady { return team })
	redisLost(func() *steady { return team })
	renewed(func() *steady { return team }, live.AcceptLabel)
})

// seekSecrets has a capture look for all secrets of a cluster, as soon as they are made.
func seekSecrets(ctx context.Context, e *env, captured *packets.Capture) {
	GinkgoHelper()
	for _, text := range []string{inTask, inJob, inObject, inCommand, openly} {
		captured.Seek(text, []byte(text))
	}
	for _, name := range []string{"-token", "-redis", "-ca"} {
		var secret corev1.Secret
		eventually(ctx, "Secret "+e.Name+name, func(ctx context.Context) error {
			return kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Name + name}, &secret)
		})
		for key, value := range secret.Data {
			if key != "ca.crt" && key != v1beta1.StoreDigestKey { // which are public
				captured.Seek(name+" "+key, value)
			}
		}
	}
}

// trusting is a Trust that says always the same.
type trusting struct{ config *tls.Config }

func (t trusting) Config(context.Context) (*tls.Config, error) { return t.config, nil }

// certificatesOf returns what a pod with encryption connects to others with: what it trusts, and its own certificate.
func certificatesOf(ctx context.Context, pod *corev1.Pod) *tls.Config {
	GinkgoHelper()
	read := func(name string) []byte { return []byte(exec(ctx, pod, "cat", certificates+name)) }
	pool := x509.NewCertPool()
	Expect(pool.AppendCertsFromPEM(read("ca.crt"))).To(BeTrue())
	own, err := tls.X509KeyPair(read("tls.crt"), read("tls.key"))
	Expect(err).NotTo(HaveOccurred())
	return &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{own}}
}

func reversed(text string) string {
	letters := []rune(text)
	for i, j := 0, len(letters)-1; i < j; i, j = i+1, j-1 {
		letters[i], letters[j] = letters[j], letters[i]
	}
	return string(letters)
}

var _ = Describe("what encryption costs", Label(live.AcceptLabel, live.EncryptionCostLabel, localkubeLabel), func() {
	It("is measured beside a cluster without it", func(ctx SpecContext) {
		namespace := fresh(ctx)
		var heads []corev1.Pod
		for name, encrypted := range map[string]bool{"plain": false, "sealed": true} {
			e := &env{types.NamespacedName{Namespace: namespace, Name: name}}
			e.apply(ctx, "clusters/steady.yaml", values{"Encrypted": encrypted, "Replicas": 1})
			e.ready(ctx)
			heads = append(heads, e.head(ctx))
		}
		var cost live.EncryptionCost
		for range *rounds {
			for i := range heads {
				var speed live.Speed
				ray(ctx, &heads[i], rendered("programs/speed.py", nil), &speed)
				if heads[i].Labels[v1beta1.LabelCluster] == "plain" {
					cost.Plain = append(cost.Plain, speed)
				} else {
					cost.Encrypted = append(cost.Encrypted, speed)
				}
			}
		}
		GinkgoWriter.Println(cost)
		AddReportEntry(live.EncryptionCostEntry, cost, ReportEntryVisibilityAlways)
	}, SpecTimeout(3*limit))
})
