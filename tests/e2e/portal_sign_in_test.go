package e2e

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// People of an issuer that the API server does not know.
var _ = Describe("the server for portals that impersonates", Label(live.PortalSignInLabel, live.AcceptLabel, localkubeLabel), func() {
	It("signs in whom an issuer names that the API server does not know, with the rights of that name", func(ctx SpecContext) {
		issuer := accesstest.StartIssuerAt(GinkgoTB(), here(ctx))
		identity, err := json.Marshal(map[string]any{"mode": "Impersonate", "issuers": []any{map[string]any{
			"url": issuer.URL, "audience": "heliostat", "prefix": "sso:", "groupsClaim": "groups", "certificateAuthority": issuer.Authority(),
		}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(live.Install(ctx, root, append([]string{"--set-json", "server.identity=" + string(identity)}, withServer...)...)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(live.Install(ctx, root, withServer...)).To(Succeed()) }, NodeTimeout(limit))

		v := visit(ctx, fresh(ctx))
		account := v.token
		signIn := func(name string, groups ...string) {
			v.token = issuer.Token(GinkgoTB(), map[string]any{"sub": name, "groups": groups, "aud": "heliostat", "exp": time.Now().Add(time.Hour).Unix()})
		}
		Expect(kubernetes.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: v.namespace, Name: "people"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "sso:ml"}},
		})).To(Succeed())

		signIn("ana", "ml")
		Expect(direct(ctx, v.token)).To(Equal(http.StatusUnauthorized), "the API server does not know the issuer")
		out, err := v.kubectl(ctx, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(Equal("sso:ana"))
		create := v.kubectl(ctx, "create", "-f", "-")
		create.Stdin = strings.NewReader(rendered("clusters/watched.yaml", values{"Name": "of-ana"}))
		Expect(create.Run()).To(Succeed())
		cluster := &v1beta1.ComputeCluster{}
		Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: v.namespace, Name: "of-ana"}, cluster)).To(Succeed())

		signIn("bob")
		Expect(v.refusal(ctx)).To(ContainSubstring(`User "sso:bob" cannot list resource "computeclusters"`))
		v.token = account
		Expect(v.refusal(ctx)).To(ContainSubstring("audience"), "a token for the API server is none for the server")
	}, SpecTimeout(3*limit))
})

// refusal returns why kubectl cannot list clusters.
func (v *guest) refusal(ctx context.Context) string {
	GinkgoHelper()
	c := v.kubectl(ctx, "get", "cc")
	var said strings.Builder
	c.Stderr = &said
	Expect(c.Run()).NotTo(Succeed())
	return said.String()
}

// here is the address of this machine that pods reach.
func here(ctx context.Context) net.IP {
	GinkgoHelper()
	near, err := net.Dial("udp", net.JoinHostPort(nodes(ctx)[0].Status.Addresses[0].Address, "9"))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = near.Close() }() // nothing was sent
	return near.LocalAddr().(*net.UDPAddr).IP
}

// direct returns what the API server itself answers to a token.
func direct(ctx context.Context, token string) int {
	GinkgoHelper()
	config := rest.AnonymousClientConfig(kubernetes.Config)
	config.BearerToken = token
	caller, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/apis/heliostat.dev/v1beta1/computeclusters", nil)
	Expect(err).NotTo(HaveOccurred())
	answer, err := caller.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	return answer.StatusCode
}
