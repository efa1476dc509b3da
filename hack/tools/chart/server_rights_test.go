package chart

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// impersonating has the server impersonate callers in every way that there is, on a Kubernetes that bounds it.
var impersonating = append([]string{
	"--kube-version", "1.36.0", "--set", "server.identity.mode=Impersonate", "--set", "server.identity.audience=heliostat",
	"--set-json", `server.identity.frontProxy={"certificateAuthority":"PEM\nof two lines","names":["proxy"],"extra":["scopes"]}`,
}, issuing...)

// issuing has the server know an issuer.
var issuing = []string{
	"--set-json", `server.identity.issuers=[{"url":"https://sso.example.com","audience":"heliostat","prefix":"sso:","groupsClaim":"groups"}]`,
}

// serverRights are the rules that are bound to the server's account, by the role's name; of cluster-wide ones without a
// namespace before it.
func serverRights(t *testing.T, options ...string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	options = slices.Concat(withoutCRDs, withoutPolicies, options, serving)
	bound := map[string]bool{}
	isServer := func(subjects []rbacv1.Subject) bool {
		return len(subjects) == 1 && subjects[0].Kind == "ServiceAccount" && subjects[0].Name == "test-heliostat-server" && subjects[0].Namespace == "there"
	}
	found := map[string][]rbacv1.PolicyRule{}
	for _, object := range of[runtime.Object](t, options...) {
		switch object := object.(type) {
		case *rbacv1.RoleBinding:
			bound[object.Namespace+"/"+object.RoleRef.Name] = isServer(object.Subjects)
		case *rbacv1.ClusterRoleBinding:
			bound[object.RoleRef.Name] = isServer(object.Subjects)
		case *rbacv1.Role:
			found[object.Namespace+"/"+object.Name] = object.Rules
		case *rbacv1.ClusterRole:
			found[object.Name] = object.Rules
		}
	}
	maps.DeleteFunc(found, func(name string, _ []rbacv1.PolicyRule) bool { return !bound[name] })
	return found
}

// TestServerRights_AreLeast: it writes nothing as itself, lists no Secrets, and impersonates where the values ask for it.
func TestServerRights_AreLeast(t *testing.T) {
	for _, options := range [][]string{nil, {"--set", "watchNamespaces={a,b}"}, {"--kube-version", "1.36.0"}, {"--kube-version", "1.34.0"}} {
		for role, rules := range serverRights(t, options...) {
			for _, rule := range rules {
				for _, verb := range rule.Verbs {
					if !slices.Contains([]string{"get", "list", "watch"}, verb) || verb != "get" && slices.Contains(rule.Resources, "secrets") {
						t.Errorf("%s lets the server %s %v", role, verb, rule.Resources)
					}
				}
				checkRule(t, role, rule)
			}
		}
	}
	for _, options := range [][]string{impersonating, append(slices.Clone(impersonating), "--set", "watchNamespaces={a,b}")} {
		for role, rules := range serverRights(t, options...) {
			for _, rule := range rules {
				if slices.Contains(rule.Verbs, "impersonate") || slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*") {
					t.Errorf("%s has no bound: %v", role, rule)
				}
			}
		}
	}
}

func TestServerRights_AreWhereClustersAre(t *testing.T) {
	for want, options := range map[string][]string{
		"test-heliostat-server there/test-heliostat-server-presets":                                  nil,
		"a/test-heliostat-server b/test-heliostat-server there/test-heliostat-server-presets":        {"--set", "watchNamespaces={a,b}"},
		"test-heliostat-server test-heliostat-server-identity there/test-heliostat-server-presets":   impersonating,
		"a/test-heliostat-server test-heliostat-server-identity there/test-heliostat-server-presets": append(slices.Clone(impersonating), "--set", "watchNamespaces={a}"),
	} {
		if got := strings.Join(names(serverRights(t, options...)), " "); got != want {
			t.Errorf("the roles are %s, want %s", got, want)
		}
	}
	all, some := serverRights(t, impersonating...), serverRights(t, append(slices.Clone(impersonating), "--set", "watchNamespaces={a}")...)
	if want := all["test-heliostat-server"]; len(want) == 0 || !slices.EqualFunc(some["a/test-heliostat-server"], want, sameRule) {
		t.Errorf("in a namespace the rights are %v, in all %v", some["a/test-heliostat-server"], want)
	}
}

// rightsText returns each right as GROUP RESOURCE VERB.
func rightsText(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, resource := range append(slices.Clone(rule.Resources), rule.NonResourceURLs...) {
			for _, verb := range rule.Verbs {
				all = append(all, strings.TrimSpace(strings.Join(rule.APIGroups, "+")+" "+resource+" "+verb))
			}
		}
	}
	return all
}

// TestServerRights_NeedWhatIsConfigured: each way to sign in has rights of its own, and Kubernetes' version says which.
func TestServerRights_NeedWhatIsConfigured(t *testing.T) {
	audience := []string{"--set", "server.identity.mode=Impersonate", "--set", "server.identity.audience=heliostat"}
	issuers := append([]string{"--set", "server.identity.mode=Impersonate"}, issuing...)
	const (
		users, accounts = "authentication.k8s.io users impersonate:user-info", "authentication.k8s.io serviceaccounts impersonate:serviceaccount"
		asUser          = "heliostat.dev computeclusters impersonate-on:user-info:patch"
		asAccount       = "heliostat.dev computeclusters impersonate-on:serviceaccount:patch"
		oldUsers        = "users impersonate"
		oldAccounts     = "serviceaccounts impersonate"
		reviews         = "authentication.k8s.io tokenreviews create"
		rights          = "authorization.k8s.io subjectaccessreviews create"
		scopes          = "authentication.k8s.io userextras/scopes impersonate:user-info"
	)
	all := []string{users, accounts, asUser, asAccount, oldUsers, oldAccounts, reviews, rights, scopes}
	for name, c := range map[string]struct {
		options, want []string
	}{
		"none":                     {nil, nil},
		"an audience":              {append(slices.Clone(audience), "--kube-version", "1.36.1"), []string{accounts, asAccount, reviews, rights}},
		"issuers":                  {append(slices.Clone(issuers), "--kube-version", "1.37.0"), []string{users, asUser, rights}},
		"a version that is built":  {append(slices.Clone(issuers), "--kube-version", "v1.36.2-gke.100"), []string{users, asUser, rights}},
		"all":                      {impersonating, []string{users, accounts, asUser, asAccount, reviews, rights, scopes}},
		"an audience before 1.36":  {append(slices.Clone(audience), "--kube-version", "1.35.9"), []string{oldAccounts, reviews, rights}},
		"issuers before 1.36":      {append(slices.Clone(issuers), "--kube-version", "1.34.0"), []string{oldUsers, rights}},
		"unbounded by its value":   {append(slices.Clone(issuers), "--kube-version", "1.36.0", "--set", "server.identity.impersonation=Unbounded"), []string{oldUsers, rights}},
		"constrained by its value": {append(slices.Clone(issuers), "--kube-version", "1.35.0", "--set", "server.identity.impersonation=Constrained"), []string{users, asUser, rights}},
	} {
		var have []string
		for _, rules := range serverRights(t, c.options...) {
			have = append(have, rightsText(rules)...)
		}
		for _, one := range all {
			if slices.Contains(have, one) != slices.Contains(c.want, one) {
				t.Errorf("%s: has %q: %t", name, one, slices.Contains(have, one))
			}
		}
	}
}

// TestServerIdentity_IsWhatTheValuesSay, as the server reads it.
func TestServerIdentity_IsWhatTheValuesSay(t *testing.T) {
	file := called[*corev1.ConfigMap](t, theServer, slices.Concat(serving, impersonating)...)
	var got map[string]any
	if err := yaml.UnmarshalStrict([]byte(file.Data["identity.yaml"]), &got); err != nil {
		t.Fatalf("%v in\n%s", err, file.Data["identity.yaml"])
	}
	want := "map[audience:heliostat frontProxy:map[certificateAuthority:PEM\nof two lines extra:[scopes] names:[proxy]]" +
		" issuers:[map[audience:heliostat groupsClaim:groups prefix:sso: url:https://sso.example.com]] mode:Impersonate]"
	if fmt.Sprint(got) != want {
		t.Errorf("the file is %v, want %s", got, want)
	}
	pod := serverOf[*appsv1.Deployment](t, impersonating...).Spec.Template
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == file.Name }) {
		t.Errorf("the pod mounts %v", pod.Spec.Volumes)
	}
	other := serverOf[*appsv1.Deployment](t, append(slices.Clone(impersonating), "--set", "server.identity.audience=other")...).Spec.Template
	if sum := pod.Annotations["checksum/identity"]; sum == "" || sum == other.Annotations["checksum/identity"] {
		t.Errorf("another identity does not start servers again: %q", sum)
	}
	isFile := func(one *corev1.ConfigMap) bool { return one.Name == theServer }
	if slices.ContainsFunc(of[*corev1.ConfigMap](t, serving...), isFile) || serverOf[*appsv1.Deployment](t).Spec.Template.Annotations != nil {
		t.Error("there is a file though the API server judges callers")
	}
}

func TestServerIdentity_RefusesWhatNobodyCouldUse(t *testing.T) {
	for _, bad := range [][]string{
		{"--set", "server.identity.mode=Impersonate"}, {"--set", "server.identity.audience=a"}, {"--set", "server.identity.mode=Other"},
		{"--set", "server.identity.mode=Impersonate", "--set-json", `server.identity.issuers=[{"url":"https://a","audience":"b"}]`},
		{"--set", "server.identity.mode=Impersonate", "--set-json", `server.identity.issuers=[{"url":"https://a","audience":"b","prefix":"system:"}]`},
		{"--set", "server.identity.mode=Impersonate", "--set-json", `server.identity.frontProxy={"name":"a"}`},
	} {
		if _, err := Render(append(slices.Clone(serving), bad...)...); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// TestServer_HasATokenOfItsOwnAlone: its pods ask for it, and other pods with its account do not get one by the way.
func TestServer_HasATokenOfItsOwnAlone(t *testing.T) {
	account, pod := serverOf[*corev1.ServiceAccount](t), serverOf[*appsv1.Deployment](t).Spec.Template.Spec
	if pod.ServiceAccountName != account.Name || !*pod.AutomountServiceAccountToken || *account.AutomountServiceAccountToken {
		t.Errorf("the pod runs as %s with a token: %v, %v", pod.ServiceAccountName, *pod.AutomountServiceAccountToken, *account.AutomountServiceAccountToken)
	}
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			t.Errorf("the pod mounts %v", volume)
		}
	}
}

// TestServerRights_AreDocumented holds the tables of the page against the chart.
func TestServerRights_AreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## What the server for portals may do\n")
	section, _, _ = strings.Cut(section, "\n### ")
	documented := tableLines(section)
	places := map[string]string{"test-heliostat-server": "clusters", "there/test-heliostat-server-presets": "own namespace", "test-heliostat-server-identity": "identity"}
	var rights []string
	for role, rules := range serverRights(t, impersonating...) {
		for _, rule := range rules {
			verbs := verbsInShort(rule.Verbs)
			for _, resource := range append(slices.Clone(rule.Resources), rule.NonResourceURLs...) {
				rights = append(rights, strings.Join([]string{places[role], resource, verbs}, " | "))
			}
		}
	}
	for _, line := range rights {
		if !slices.Contains(documented, line) {
			t.Errorf("docs/security.md does not have: %s", line)
		}
	}
	for _, line := range documented {
		if !slices.Contains(rights, line) {
			t.Errorf("the chart does not grant: %s", line)
		}
	}
}

// verbsInShort writes verbs of impersonation as the page does: both ways have the same.
func verbsInShort(verbs []string) string {
	var short []string
	for _, verb := range verbs {
		if name, is := strings.CutPrefix(verb, "impersonate-on:user-info:"); is {
			short = append(short, name)
		} else if !strings.HasPrefix(verb, "impersonate-on:") {
			return strings.Join(verbs, " ")
		}
	}
	return "on: " + strings.Join(short, " ")
}
