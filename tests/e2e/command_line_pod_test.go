package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// A client with the service account of its pod, and the server by its Service.
var _ = Describe("Ray's own client with heliostat:// in a pod", Label(live.RayAddressLabel, live.AcceptLabel, localkubeLabel), func() {
	It("wakes a cluster with the token of its pod, which it writes nowhere, and sessions go on", func(ctx SpecContext) {
		dev := made(ctx, "dev", "clusters/head.yaml", nil)
		d := deskOf(ctx, dev.Namespace)
		beside := besideIn(ctx, d.namespace, "portal")
		session := d.terminal(ctx, "session", "dev")
		session.until(ctx, "until Ctrl-C")
		api := regexp.MustCompile(`RAY_API_SERVER_ADDRESS=(http://\S+)`).FindStringSubmatch(session.text())[1]
		d.does(ctx, "suspend cluster/dev")
		d.does(ctx, "wait cluster/dev --for suspended")
		said := exec(ctx, beside, "sh", "-c", rendered("programs/rays-client.sh", values{"Address": "heliostat://" + d.namespace + "/dev"}))
		GinkgoWriter.Println(said)
		Expect(said).To(And(ContainSubstring("is suspended; resume it: heliostat resume cluster/dev"), ContainSubstring("is suspended; resuming it"),
			ContainSubstring("\nfrom beside\n"), ContainSubstring("logs: from beside\n"), ContainSubstring("was stopped")))

		head, token := dev.head(ctx), exec(ctx, beside, "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
		Expect(len(token)).To(BeNumerically(">", 100))
		for _, pod := range []*corev1.Pod{&head, beside} {
			seen := exec(ctx, pod, "sh", "-c", "cat /proc/[0-9]*/cmdline; find /tmp /home/ray -type f -size -2M -exec cat {} + 2>/dev/null || true")
			Expect(strings.Contains(seen, token)).To(BeFalse(), "the token is in an argument list or a file of "+pod.Name)
		}
		Expect(strings.Contains(said, token)).To(BeFalse())
		Expect(fetch(ctx, http.DefaultClient, api+"/api/version", dev.token(ctx))).To(ContainSubstring(release), "through the ports of before")
		code, _ := session.interrupt()
		Expect(code).To(BeZero())
	}, SpecTimeout(2*limit))
})

// besideIn makes a pod with Ray's client and the module of heliostat://, and waits for it.
func besideIn(ctx context.Context, namespace, account string) *corev1.Pod {
	GinkgoHelper()
	module, err := os.ReadFile(root + "/python/heliostat.py")
	Expect(err).NotTo(HaveOccurred())
	files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "module"},
		Data: map[string]string{"heliostat.py": string(module), "ca.crt": string(serverAuthority(ctx))}}
	Expect(kubernetes.Create(ctx, files)).To(Succeed())
	Expect(kubernetes.Apply(ctx, namespace, []byte(rendered("clusters/beside.yaml", values{"Account": account})))).To(Succeed())
	pod := &corev1.Pod{}
	eventually(ctx, "the pod beside", func(ctx context.Context) error {
		err := kubernetes.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "beside"}, pod)
		if err == nil && !isReady(pod) {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	})
	return pod
}
