package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/tests/redistest"
)

const (
	redisImage = "redis:7"
	redisPort  = 6379
	// storePassword is that of the user that clusters have in a Redis of the tests'.
	storePassword = "a-password-of-the-tests"
	// storeRights are what docs/control-store.md tells people to grant.
	storeRights = "+ping +info +del +hset +hsetnx +hget +hmget +hexists +hdel +hscan +incrby +scan +unlink"
)

// redis is a server as users have one: in a namespace of its own, with a password, and a user
// that may do what Ray does and no more. It is stopped and started without its pod.
type redis struct {
	pod corev1.Pod
	// container that it runs in, and what redis-cli is told so that it may do everything.
	container string
	login     []string
	// authority of its certificate where it speaks TLS alone, else nil.
	authority *redistest.Authority
}

// serving makes a Redis whose user is let to keys of a pattern, and waits until it answers.
func serving(ctx context.Context, pattern string) *redis {
	GinkgoHelper()
	return servingBy(ctx, pattern, nil)
}

// servingBy is serving, by TLS where there is an authority for it.
func servingBy(ctx context.Context, pattern string, authority *redistest.Authority) *redis {
	GinkgoHelper()
	namespace, err := kubernetes.Namespace(ctx, "redis")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(leaving.dropLast, namespace)
	labels := map[string]string{"app": "redis"}
	users := "user default off\nuser admin on nopass ~* &* +@all\nuser ray on >" + storePassword + " " + pattern + " ~DUMMY " + storeRights
	variables := []corev1.EnvVar{{Name: "USERS", Value: users}}
	login := []string{"--user", "admin", "--pass", "any", "--no-auth-warning"}
	if authority != nil {
		certificate, key := authority.Issue("redis." + namespace + ".svc")
		variables = append(variables, corev1.EnvVar{Name: "CERTIFICATE", Value: string(certificate)}, corev1.EnvVar{Name: "KEY", Value: string(key)},
			corev1.EnvVar{Name: "LISTEN", Value: fmt.Sprintf("--port 0 --tls-port %d --tls-auth-clients no --tls-cert-file /data/tls.crt --tls-key-file /data/tls.key", redisPort)})
		login = append(login, "--tls", "--insecure")
	}
	few := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "redis", Labels: labels},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			NodeSelector:                  map[string]string{corev1.LabelHostname: nodes(ctx)[0].Name}, // others may be lost
			Containers: []corev1.Container{{
				Name: "redis", Image: redisImage, Command: []string{"sh", "-c", rendered("programs/redis.sh", nil)}, Env: variables,
				Resources: corev1.ResourceRequirements{Requests: few},
			}},
		},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "redis"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: redisPort, TargetPort: intstr.FromInt32(redisPort)}}},
	}
	Expect(kubernetes.Create(ctx, &pod)).To(Succeed())
	Expect(kubernetes.Create(ctx, service)).To(Succeed())
	r := &redis{pod: pod, container: "redis", login: login, authority: authority}
	r.answers(ctx)
	return r
}

// address is where clusters find it.
func (r *redis) address() string {
	scheme := "redis"
	if r.authority != nil {
		scheme = "rediss"
	}
	return fmt.Sprintf("%s://redis.%s.svc:%d", scheme, r.pod.Namespace, redisPort)
}

// store is it as a control store with a namespace of Ray's.
func (r *redis) store(namespace string) values {
	return values{"Redis": r.address(), "Keys": namespace, "TLS": r.authority != nil}
}

// trusted makes the Secret by which a cluster with the store knows it.
func (r *redis) trusted(ctx context.Context, namespace string) {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "trusted"}, Data: map[string][]byte{"ca.crt": r.authority.Certificate},
	}
	Expect(kubernetes.Create(ctx, secret)).To(Succeed())
}

// credentials makes the Secret that a cluster with the store needs.
func credentials(ctx context.Context, namespace string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "store"},
		StringData: map[string]string{"username": "ray", "password": storePassword},
	}
	Expect(kubernetes.Create(ctx, secret)).To(Succeed())
	return secret
}

// try runs redis-cli in the server's pod, as a user who may do everything.
func (r *redis) try(ctx context.Context, command ...string) (string, error) {
	out, err := kubernetes.Exec(ctx, client.ObjectKeyFromObject(&r.pod), r.container, append(append([]string{"redis-cli"}, r.login...), command...)...)
	return strings.TrimSpace(out), err
}

// answers waits until it answers.
func (r *redis) answers(ctx context.Context) {
	GinkgoHelper()
	eventually(ctx, "the Redis to answer", func(ctx context.Context) error {
		out, err := r.try(ctx, "PING")
		if err == nil && out != "PONG" {
			err = fmt.Errorf("it says %s", out)
		}
		return err
	})
}
