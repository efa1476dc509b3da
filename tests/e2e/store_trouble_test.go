package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cli is try where nothing may fail. redis-cli prints what Redis refuses.
func (r *redis) cli(ctx context.Context, command ...string) string {
	GinkgoHelper()
	out, err := r.try(ctx, command...)
	Expect(err).NotTo(HaveOccurred())
	Expect(out).NotTo(MatchRegexp(`^(ERR|NOPERM|NOAUTH|WRONGPASS|OOM|READONLY|LOADING|MASTERDOWN|Could not connect)`))
	return out
}

// shell runs a command in the server's container.
func (r *redis) shell(ctx context.Context, command string) string {
	GinkgoHelper()
	out, err := kubernetes.Exec(ctx, client.ObjectKeyFromObject(&r.pod), r.container, "sh", "-c", command)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// stop ends it with what it holds kept on its disk, and start has it back.
func (r *redis) stop(ctx context.Context) {
	GinkgoHelper()
	r.shell(ctx, "touch /data/off; redis-cli "+strings.Join(r.login, " ")+" SHUTDOWN SAVE")
}

func (r *redis) start(ctx context.Context) {
	GinkgoHelper()
	r.shell(ctx, "rm -f /data/off")
	r.answers(ctx)
}

// slow has each command take up to two seconds, until fast. Each pause begins when the one
// before has ended and what waited meanwhile has got a moment.
func (r *redis) slow(ctx context.Context) {
	GinkgoHelper()
	r.shell(ctx, `touch /data/slow /data/slowing; (setsid sh -c 'while [ -e /data/slow ]; do redis-cli `+strings.Join(r.login, " ")+
		` CLIENT PAUSE 1950 ALL; done; rm /data/slowing' >/dev/null 2>&1 </dev/null &)`)
}

func (r *redis) fast(ctx context.Context) {
	GinkgoHelper()
	r.shell(ctx, "rm /data/slow; while [ -e /data/slowing ]; do sleep 0.05; done")
	r.answers(ctx)
}

// keys of a namespace of Ray's.
func (r *redis) keys(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	return strings.Fields(r.cli(ctx, "--scan", "--pattern", "RAY"+namespace+"@*"))
}

// managed is the Redis that the operator made for a cluster.
func managed(ctx context.Context, e *env) *redis {
	GinkgoHelper()
	name := types.NamespacedName{Namespace: e.Namespace, Name: e.Name + "-redis"}
	var secret corev1.Secret
	Expect(kubernetes.Get(ctx, name, &secret)).To(Succeed())
	r := &redis{container: "redis", login: []string{"--user", "operator", "--pass", string(secret.Data["operator"]), "--no-auth-warning"}}
	name.Name += "-0"
	Expect(kubernetes.Get(ctx, name, &r.pod)).To(Succeed())
	if len(r.pod.Spec.InitContainers) > 0 { // it takes TLS alone
		r.login = append(r.login, "--tls", "--cacert", certificates+"ca.crt", "--sni", e.Name+"-redis."+e.Namespace+".svc")
	}
	return r
}
