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
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// decisions is how many mixtures of a principal, a verb and an object are sent; HELIOSTAT_DECISIONS asks for others.
const decisions = 300

// countOf returns how many mixtures a test sends.
func countOf(t *testing.T, byDefault int) int {
	t.Helper()
	text := os.Getenv("HELIOSTAT_DECISIONS")
	if text == "" {
		return byDefault
	}
	count, err := strconv.Atoi(text)
	must(t, err)
	return count
}

// mixture is a request that changes nothing.
type mixture struct {
	principal, method, path string
	body                    []byte
}

// newMixture makes one of some principals, in one of some namespaces, or in all where it is empty.
func newMixture(random *rand.Rand, principals, namespaces []string) mixture {
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	path, name := "/apis/heliostat.dev/v1beta1", pick([]string{"there", "missing", "named", "named"})
	if namespace := pick(namespaces); namespace != "" {
		path += "/namespaces/" + namespace
	}
	kind := pick([]string{"computeclusters", "computeclusters", "computeclusters", "clusterjobs", "clusterservices", "unknowns"})
	path += "/" + kind
	object := func(name string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"heliostat.dev/v1beta1","kind":"ComputeCluster","metadata":{"name":%q},"spec":{"rayVersion":"2.60.0"}}`, name)
	}
	m := mixture{principal: pick(principals)}
	switch pick([]string{"get", "list", "watch", "create", "create", "create", "update", "patch", "delete", "deletecollection", "status", "events"}) {
	case "get":
		m.method, m.path = http.MethodGet, path+"/"+name
	case "list":
		m.method, m.path = http.MethodGet, path+pick([]string{"", "?limit=1", "?fieldSelector=metadata.name%3Dnamed", "?limit=x"})
	case "watch":
		m.method, m.path = http.MethodGet, path+"?timeoutSeconds=1&watch=true"+pick([]string{"", "&fieldSelector=metadata.name%3Dnamed"})
	case "create":
		m.method, m.path, m.body = http.MethodPost, path+"?dryRun=All", object(pick([]string{"new", "new", "there", "Bad"}))
	case "update":
		m.method, m.path, m.body = http.MethodPut, path+"/"+name+"?dryRun=All", object(name)
	case "patch":
		m.method, m.path, m.body = http.MethodPatch, path+"/"+name+"?dryRun=All", []byte(pick([]string{`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"rayVersion":1}}`, `{`}))
	case "delete":
		m.method, m.path, m.body = http.MethodDelete, path+"/"+name, []byte(`{"dryRun":["All"]}`) // the query would not count beside a body
	case "deletecollection":
		m.method, m.path = http.MethodDelete, path+"?dryRun=All"
	case "status":
		m.method, m.path, m.body = http.MethodPatch, path+"/"+name+"/status?dryRun=All", []byte(`{}`)
	default:
		m.method, m.path = http.MethodGet, strings.Replace(strings.TrimSuffix(path, kind), "heliostat.dev/v1beta1", "events.k8s.io/v1", 1)+"events"
	}
	return m
}

// verdictOf is what is the same in two answers to one request: the code, and a Status that is no success.
func verdictOf(of answer) string {
	var status metav1.Status
	if json.Unmarshal(of.text, &status) != nil || status.Kind != "Status" || status.Status != metav1.StatusFailure {
		return fmt.Sprint(of.code)
	}
	return fmt.Sprint(of.code, " ", status.Reason, " ", status.Message)
}

// principals makes accounts with different rights in a namespace, and returns their tokens, when they are in force.
func (p *portal) principals(t *testing.T, namespace string) map[string]string {
	t.Helper()
	tokens := map[string]string{
		"nobody": account(t, namespace, "nobody", ""), "viewer": account(t, namespace, "viewer", "view"), "editor": account(t, namespace, "editor", "edit"),
		"administrator": account(t, namespace, "administrator", "admin"), "named": account(t, namespace, "named", ""), "unknown": "ab.cd.ef", "broken": "x",
	}
	at := metav1.ObjectMeta{Namespace: namespace, Name: "named"}
	must(t, shared.Create(t.Context(), &rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"heliostat.dev"}, Resources: []string{"computeclusters"}, ResourceNames: []string{"named"}, Verbs: []string{"get", "list", "watch", "patch"},
	}}}))
	must(t, shared.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "named"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "named"}},
	}))
	eventually(t, "all roles to be in force", func(ctx context.Context) error {
		for _, who := range []string{"viewer", "editor", "administrator", "named"} {
			if _, err := p.direct.reads(ctx, tokens[who], "/apis/heliostat.dev/v1beta1/namespaces/"+namespace+"/computeclusters/named"); err != nil {
				return fmt.Errorf("%s: %w", who, err)
			}
		}
		return nil
	})
	return tokens
}

// decide sends a request to both ends, and returns the code where they agree.
func (p *portal) decide(t *testing.T, token string, m mixture) (int, error) {
	t.Helper()
	want, err := p.direct.asks(t.Context(), token, m)
	if err != nil {
		return 0, err
	}
	got, err := p.asks(t.Context(), token, m)
	if err == nil && verdictOf(got) != verdictOf(want) {
		t.Errorf("%s %s %s: the server says %s, the API server %s", m.principal, m.method, m.path, verdictOf(got), verdictOf(want))
	}
	return got.code, err
}

// TestServer_DecidesAsTheAPIServer sends the same requests with the same tokens to both.
func TestServer_DecidesAsTheAPIServer(t *testing.T) {
	t.Parallel()
	p, namespaces := startServer(t), []string{newNamespace(t), newNamespace(t)}
	for _, namespace := range namespaces {
		must(t, shared.Create(t.Context(), newCluster(namespace, "there", 0)))
		must(t, shared.Create(t.Context(), newCluster(namespace, "named", 0)))
	}
	began := shared.audit.now(t)
	tokens := p.principals(t, namespaces[0])
	// More often than by chance somebody is where they have rights.
	principals := append(slices.Sorted(maps.Keys(tokens)), "editor", "editor", "administrator", "administrator", "named", "viewer")
	where := []string{namespaces[0], namespaces[0], namespaces[0], namespaces[1], ""}
	random := rand.New(rand.NewPCG(22, 1))
	var group errgroup.Group
	group.SetLimit(8)
	count := countOf(t, decisions)
	codes := make(chan int, count)
	for range count {
		m := newMixture(random, principals, where)
		group.Go(func() error {
			code, err := p.decide(t, tokens[m.principal], m)
			codes <- code
			return err
		})
	}
	must(t, group.Wait())
	close(codes)
	counts := map[int]int{}
	for code := range codes {
		counts[code]++
	}
	t.Logf("%d decisions, answers by code: %v", count, counts)
	for _, code := range []int{200, 201, 400, 401, 403, 404} {
		if counts[code] == 0 {
			t.Errorf("no answer was %d", code)
		}
	}
	if found := strangers(t, began); len(found) > 0 {
		t.Errorf("the server asked as somebody else than its callers: %v", found)
	}
}

// serverUser is the account of servers.
const serverUser = "system:serviceaccount:" + live.ReleaseNamespace + ":" + live.ReleaseName + "-server"

// strangers are requests of servers that are neither with a caller's own token nor what a server may do as itself: read, ask
// about callers, and act as one of them. Other tests run servers beside this one, which are asked by other means.
func strangers(t *testing.T, since live.Mark) []string {
	t.Helper()
	var found []string
	reviews := 0
	must(t, shared.audit.Since(since, func(line []byte) error {
		if !bytes.Contains(line, []byte("heliostat-server")) {
			return nil
		}
		var r request
		err := json.Unmarshal(line, &r)
		if r.UserAgent != "heliostat-server" {
			return err
		}
		reviews++
		own := strings.HasPrefix(r.User.Username, "system:serviceaccount:integration-") || r.ResponseStatus.Code == http.StatusUnauthorized
		isServer, as := r.User.Username == serverUser, r.ImpersonatedUser.Username
		reads := isServer && as == "" && slices.Contains([]string{"get", "list", "watch"}, r.Verb)
		asks := isServer && as == "" && slices.Contains([]string{"create tokenreviews", "create subjectaccessreviews"}, r.what())
		acts := isServer && as != "" && as != serverUser
		if !own && !reads && !asks && !acts {
			found = append(found, r.User.Username+" "+r.what())
		}
		return err
	}))
	if reviews == 0 {
		t.Error("the server asked nothing at all")
	}
	return found
}
