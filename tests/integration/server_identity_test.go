package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// impersonations is how many mixtures of a principal, a verb and an object are sent by impersonation.
const impersonations = 200

// signedIn is somebody as the server knows them, and as the API server is told of them.
type signedIn struct {
	token string
	as    rest.ImpersonationConfig
}

// startImpersonating starts a server that knows an issuer which the API server does not, and its own audience.
func startImpersonating(t *testing.T) (*portal, *accesstest.Issuer) {
	t.Helper()
	issuer := accesstest.StartIssuer(t)
	file := filepath.Join(t.TempDir(), "identity.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "{mode: Impersonate, audience: heliostat, issuers: [{url: %q, audience: heliostat, prefix: 'sso:', groupsClaim: groups, certificateAuthority: %q}]}",
		issuer.URL, issuer.Authority()), 0o600))
	return startServer(t, "--identity-file="+file), issuer
}

// user returns somebody by a token of the issuer.
func user(t *testing.T, issuer *accesstest.Issuer, name string, groups ...string) signedIn {
	t.Helper()
	one := signedIn{
		token: issuer.Token(t, map[string]any{"sub": name, "groups": groups, "aud": "heliostat", "exp": time.Now().Add(time.Hour).Unix()}),
		as:    rest.ImpersonationConfig{UserName: "sso:" + name},
	}
	for _, group := range groups {
		one.as.Groups = append(one.as.Groups, "sso:"+group)
	}
	return one
}

// bindRole binds a role of Kubernetes' own in a namespace.
func bindRole(t *testing.T, namespace, role string, to rbacv1.Subject) {
	t.Helper()
	if to.Kind != "ServiceAccount" {
		to.APIGroup = rbacv1.GroupName
	}
	must(t, shared.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: role + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{to},
	}))
}

// asOthers are clients of the API server that act as each of some principals, with an administrator's right to.
func asOthers(t *testing.T, principals map[string]signedIn) map[string]end {
	t.Helper()
	clients := map[string]end{}
	for name, one := range principals {
		config := rest.CopyConfig(shared.Config)
		config.Impersonate = one.as
		client, err := rest.HTTPClientFor(config)
		must(t, err)
		clients[name] = end{shared.Config.Host, client}
	}
	return clients
}

// signIn makes callers with different rights in the first of two namespaces, and clients that act as each of them, when the
// rights are in force.
func signIn(t *testing.T, issuer *accesstest.Issuer, namespaces []string) (map[string]signedIn, map[string]end) {
	t.Helper()
	for _, namespace := range namespaces {
		must(t, shared.Create(t.Context(), newCluster(namespace, "there", 0)))
		must(t, shared.Create(t.Context(), newCluster(namespace, "named", 0)))
	}
	must(t, shared.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespaces[0], Name: "portal"}}))
	portalToken, err := shared.tokenOf(t.Context(), namespaces[0], "portal", "heliostat")
	must(t, err)
	group := "editors-of-" + namespaces[0]
	principals := map[string]signedIn{
		"nobody": user(t, issuer, "nobody"), "viewer": user(t, issuer, "viewer-of-"+namespaces[0], "x", "y", "z", "more"), "editor": user(t, issuer, "editor", group),
		"portal": {portalToken, rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespaces[0] + ":portal"}},
	}
	bindRole(t, namespaces[0], "view", rbacv1.Subject{Kind: "User", Name: principals["viewer"].as.UserName})
	bindRole(t, namespaces[0], "edit", rbacv1.Subject{Kind: "Group", Name: "sso:" + group})
	bindRole(t, namespaces[0], "edit", rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespaces[0], Name: "portal"})
	direct := asOthers(t, principals)
	eventually(t, "all roles to be in force", func(ctx context.Context) error {
		for _, who := range []string{"viewer", "editor", "portal"} {
			if _, err := direct[who].reads(ctx, "", "/apis/heliostat.dev/v1beta1/namespaces/"+namespaces[0]+"/computeclusters/named"); err != nil {
				return fmt.Errorf("%s: %w", who, err)
			}
		}
		return nil
	})
	return principals, direct
}

// TestServer_ImpersonatesItsCallers: people of an issuer that the API server does not know, and an account by a token that
// the API server refuses, may exactly what the API server lets them.
func TestServer_ImpersonatesItsCallers(t *testing.T) {
	t.Parallel()
	p, issuer := startImpersonating(t)
	namespaces := []string{newNamespace(t), newNamespace(t)}
	principals, direct := signIn(t, issuer, namespaces)
	began := shared.audit.now(t)
	random := rand.New(rand.NewPCG(22, 2))
	where := []string{namespaces[0], namespaces[0], namespaces[1], ""}
	var all errgroup.Group
	all.SetLimit(8)
	count := countOf(t, impersonations)
	codes := make(chan int, count)
	for range count {
		m := newMixture(random, append(slices.Sorted(maps.Keys(principals)), "editor", "portal"), where)
		for strings.Contains(m.path, "/unknowns") { // of what is no kind of ours, the API server tells the server and not its caller
			m = newMixture(random, append(slices.Sorted(maps.Keys(principals)), "editor", "portal"), where)
		}
		all.Go(func() error {
			want, err := direct[m.principal].asks(t.Context(), "", m)
			if err != nil {
				return err
			}
			got, err := p.asks(t.Context(), principals[m.principal].token, m)
			if err == nil && verdictOf(got) != verdictOf(want) {
				t.Errorf("%s %s %s: the server says %s, the API server %s", m.principal, m.method, m.path, verdictOf(got), verdictOf(want))
			}
			codes <- got.code
			return err
		})
	}
	must(t, all.Wait())
	close(codes)
	counts := map[int]int{}
	for code := range codes {
		counts[code]++
	}
	t.Logf("%d decisions, answers by code: %v", count, counts)
	for _, code := range []int{200, 201, 403, 404} {
		if counts[code] == 0 {
			t.Errorf("no answer was %d", code)
		}
	}
	p.actsAsItsCallers(t, principals, func(visit func([]byte) error) error { return shared.audit.Since(began, visit) })
}

// actsAsItsCallers checks that the server's account did nothing but as one of its callers, or to ask about them.
func (p *portal) actsAsItsCallers(t *testing.T, principals map[string]signedIn, each func(func([]byte) error) error) {
	t.Helper()
	acted := map[string]int{}
	must(t, each(func(line []byte) error {
		if !bytes.Contains(line, []byte(serverUser)) {
			return nil
		}
		var r request
		err := json.Unmarshal(line, &r)
		if r.User.Username == serverUser {
			acted[r.ImpersonatedUser.Username]++
			reads := slices.Contains([]string{"get", "list", "watch"}, r.Verb)
			if r.ImpersonatedUser.Username == "" && !reads && !slices.Contains([]string{"tokenreviews", "subjectaccessreviews"}, r.ObjectRef.Resource) {
				t.Errorf("the server's own account did %s", r.what())
			}
		}
		return err
	}))
	for who, one := range principals {
		if acted[one.as.UserName] == 0 {
			t.Errorf("nothing was done as %s", who)
		}
		delete(acted, one.as.UserName)
	}
	delete(acted, "")
	for name := range acted {
		if !strings.HasPrefix(name, "sso:") && !strings.HasPrefix(name, "system:serviceaccount:integration-") { // other tests' callers
			t.Errorf("the server acted as %s", name)
		}
	}
}

// TestServer_RefusesIdentities that are not its callers' own, and says which.
func TestServer_RefusesIdentities(t *testing.T) {
	t.Parallel()
	p, issuer := startImpersonating(t)
	namespace := newNamespace(t)
	plain := account(t, namespace, "plain", "view")
	good := map[string]any{"sub": "ana", "aud": "heliostat", "exp": time.Now().Add(time.Hour).Unix()}
	with := func(name string, value any) string {
		changed := maps.Clone(good)
		changed[name] = value
		return issuer.Token(t, changed)
	}
	for name, c := range map[string]struct{ token, says string }{
		"no token": {"", "no bearer token"}, "garbage": {"garbage", "not one that is accepted"}, "expired": {with("exp", 1), "has expired"},
		"another audience": {with("aud", "other"), "another audience"}, "a token for the API server": {plain, "another audience"},
		"nobody's":                     {accesstest.JWT(map[string]any{"iss": issuer.URL, "sub": "ana", "aud": "heliostat", "exp": time.Now().Add(time.Hour).Unix()}), "not one that is accepted"},
		"an account that is not there": {accesstest.JWT(map[string]any{"sub": "x", "aud": "heliostat"}), "not one that is accepted"},
	} {
		came, err := p.asks(t.Context(), c.token, mixture{method: http.MethodGet, path: "/apis/heliostat.dev/v1beta1/computeclusters"})
		if err != nil || came.code != http.StatusUnauthorized || !strings.Contains(string(came.text), c.says) {
			t.Errorf("%s: %d %s, %v", name, came.code, came.text, err)
		}
	}
}

// TestServer_EndsAWatchOfAnIdentity where its binding or its account is taken away, or its token has expired.
func TestServer_EndsAWatchOfAnIdentity(t *testing.T) {
	t.Parallel()
	p, issuer := startImpersonating(t)
	namespace := newNamespace(t)
	account(t, namespace, "deleted", "")
	deleted, err := shared.tokenOf(t.Context(), namespace, "deleted", "heliostat")
	must(t, err)
	group := "viewers-of-" + namespace
	bindRole(t, namespace, "view", rbacv1.Subject{Kind: "Group", Name: "sso:" + group})
	bindRole(t, namespace, "view", rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: "deleted"})
	must(t, shared.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bound"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "sso:bound-in-" + namespace}},
	}))
	// It is good for long enough to begin, and for less than a test waits.
	short := issuer.Token(t, map[string]any{"sub": "short", "groups": []string{group}, "aud": "heliostat", "exp": time.Now().Add(15 * time.Second).Unix()})
	endWatches(t, p, namespace, map[string]string{
		"bound": user(t, issuer, "bound-in-"+namespace).token, "deleted": deleted, "short": short, staying: user(t, issuer, "left", group).token,
	}, map[string]string{"bound": `"code":403`, "deleted": `"code":401`, "short": `has expired`})
}
