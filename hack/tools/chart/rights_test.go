package chart

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// granted are the rules of the operator's own roles, by the role's name; cluster-wide ones
// have no namespace before it.
func granted(t *testing.T, options ...string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range of[*rbacv1.ClusterRole](t, append(options, "--set", "rbac.aggregate=false")...) {
		rules[role.Name] = role.Rules
	}
	for _, role := range of[*rbacv1.Role](t, options...) {
		rules[role.Namespace+"/"+role.Name] = role.Rules
	}
	return rules
}

// never are rights by which an operator, or an attacker who takes it over, could do more
// than its work.
var never = map[string][]string{
	"*": {"*", "escalate", "bind", "impersonate", "deletecollection"}, "secrets": {"list", "watch", "update", "patch", "delete"},
	"computeclusters": {"update"}, "clusterjobs": {"update"}, "clusterservices": {"create", "update", "delete"}, "clusterjobschedules": {"create", "update", "delete"}, "controllerrevisions": {"update", "patch"},
	"nodes":             {"create", "update", "patch", "delete"},
	"persistentvolumes": {"list", "watch", "create", "update", "patch", "delete"}, "persistentvolumeclaims": {"update"}, "statefulsets": {"update"},
	"configmaps": {"update"}, "pods/exec": {"create", "get"}, "pods/log": {"get"}, "serviceaccounts/token": {"create"}, "roles": {"create"}, "clusterroles": {"create"},
}

func TestRightsAreLeast(t *testing.T) {
	for _, options := range [][]string{nil, {"--set", "watchNamespaces={a,b}"}, {"--set", "schedulers={Volcano,Kubernetes}"}, {"--set", "kueue.enabled=true"}} {
		for role, rules := range granted(t, options...) {
			for _, rule := range rules {
				checkRule(t, role, rule)
			}
		}
	}
	certificate := "there/test-heliostat-server-certificate"
	if rules := granted(t, serving...)[certificate]; len(rules) != 1 {
		t.Errorf("%s has %d rules, want 1", certificate, len(rules))
	} else {
		checkRule(t, certificate, rules[0])
	}
}

// ofHistory are the Secrets whose certificates the operator keeps for the archive.
var ofHistory = []string{"test-heliostat-history-authority", "test-heliostat-history-archiver", "test-heliostat-history-server"}

func checkRule(t *testing.T, role string, rule rbacv1.PolicyRule) {
	t.Helper()
	for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
		if strings.Contains(word, "*") {
			t.Errorf("%s: a wildcard in %v", role, rule)
		}
	}
	for _, resource := range rule.Resources {
		for _, verb := range slices.Concat(never["*"], never[resource]) {
			isOwn := resource == "secrets" && verb == "patch" && (slices.Equal(rule.ResourceNames, []string{"test-heliostat-server-tls"}) || slices.Equal(rule.ResourceNames, ofHistory)) ||
				resource == "pods" && verb == "deletecollection" // the admission policies judge each pod, as with delete
			if slices.Contains(rule.Verbs, verb) && !isOwn {
				t.Errorf("%s lets the operator %s %s", role, verb, resource)
			}
		}
	}
	if slices.Contains(rule.Resources, "leases") && !slices.Equal(rule.Verbs, []string{"create"}) && len(rule.ResourceNames) != 1 {
		t.Errorf("%s reaches others' leases: %v", role, rule)
	}
}

func TestSchedulers_GiveRightsOnTheirKindsAlone(t *testing.T) {
	for _, test := range []struct {
		options []string
		want    string
	}{
		{nil, ""},
		{[]string{"--set", "schedulers={KAI}"}, "scheduling.run.ai"},
		{[]string{"--set", "schedulers={Volcano,SchedulerPlugins,Kubernetes}"}, "scheduling.volcano.sh scheduling.x-k8s.io scheduling.k8s.io"},
	} {
		var groups []string
		for _, rule := range granted(t, test.options...)["test-heliostat"] {
			if slices.Contains(rule.Resources, "podgroups") {
				groups = append(groups, rule.APIGroups...)
			}
		}
		if have := strings.Join(groups, " "); have != test.want {
			t.Errorf("%v gives rights on PodGroups of %q, want %q", test.options, have, test.want)
		}
	}
}

func TestKueue_GivesRightsWhereItIsAskedFor(t *testing.T) {
	for _, test := range []struct {
		options []string
		want    []string
	}{
		{nil, nil},
		{[]string{"--set", "kueue.enabled=true"}, []string{"test-heliostat workloads", "test-heliostat workloads/status", "test-heliostat-kueue resourceflavors", "test-heliostat-kueue workloadpriorityclasses"}},
		{
			[]string{"--set", "kueue.enabled=true", "--set", "watchNamespaces={a}"},
			[]string{"a/test-heliostat workloads", "a/test-heliostat workloads/status", "test-heliostat-kueue resourceflavors", "test-heliostat-kueue workloadpriorityclasses"},
		},
	} {
		var have []string
		for role, rules := range granted(t, test.options...) {
			for _, rule := range rules {
				for _, resource := range rule.Resources {
					if slices.Contains(rule.APIGroups, "kueue.x-k8s.io") {
						have = append(have, role+" "+resource)
					}
				}
			}
		}
		if slices.Sort(have); !slices.Equal(have, test.want) {
			t.Errorf("%v gives rights on %v, want %v", test.options, have, test.want)
		}
		flag := slices.ContainsFunc(of[*appsv1.Deployment](t, test.options...), func(made *appsv1.Deployment) bool {
			return slices.Contains(made.Spec.Template.Spec.Containers[0].Args, "--kueue=true")
		})
		if flag != (len(test.want) > 0) {
			t.Errorf("%v starts the operator with Kueue: %v", test.options, flag)
		}
	}
}

func TestRightsAreWhereClustersAre(t *testing.T) {
	all := granted(t)
	if got, want := names(all), []string{"test-heliostat", "test-heliostat-nodes", "there/test-heliostat-lease", "there/test-heliostat-notes"}; !slices.Equal(got, want) {
		t.Errorf("watching all namespaces takes the roles %v, want %v", got, want)
	}
	some := granted(t, "--set", "watchNamespaces={a,b}", "--set", "watchNodes=false")
	if got, want := names(some), []string{"a/test-heliostat", "b/test-heliostat", "there/test-heliostat-lease", "there/test-heliostat-notes"}; !slices.Equal(got, want) {
		t.Errorf("watching two namespaces without nodes takes the roles %v, want %v", got, want)
	}
	if want := all["test-heliostat"]; len(want) == 0 || !slices.EqualFunc(some["a/test-heliostat"], want, sameRule) {
		t.Errorf("in a namespace the rights are %v, in all %v", some["a/test-heliostat"], want)
	}
	if bound := of[*rbacv1.ClusterRoleBinding](t, "--set", "watchNamespaces={a,b}", "--set", "watchNodes=false"); len(bound) > 0 {
		t.Errorf("watching two namespaces without nodes still has %d ClusterRoleBindings", len(bound))
	}
}

// TestRightsThatOneRoleAloneHas: ConfigMaps are the operator's in its own namespace, nodes and
// volumes where nodes are watched.
func TestRightsThatOneRoleAloneHas(t *testing.T) {
	for resource, want := range map[string]string{"configmaps": "there/test-heliostat-notes", "persistentvolumes": "test-heliostat-nodes", "nodes": "test-heliostat-nodes"} {
		var have []string
		for role, rules := range granted(t, "--set", "watchNamespaces={a}") {
			if slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, resource) }) {
				have = append(have, role)
			}
		}
		if !slices.Equal(have, []string{want}) {
			t.Errorf("%s are in the roles %v, want %s alone", resource, have, want)
		}
	}
}

func sameRule(a, b rbacv1.PolicyRule) bool { return a.String() == b.String() }

func names(rules map[string][]rbacv1.PolicyRule) []string {
	var all []string
	for name := range rules {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestEveryRoleIsBoundToTheOperator(t *testing.T) {
	options := []string{"--set", "watchNamespaces={a,b}"}
	roles := names(granted(t, options...))
	var bound []string
	check := func(name string, subjects []rbacv1.Subject) {
		bound = append(bound, name)
		if len(subjects) != 1 || subjects[0].Kind != "ServiceAccount" || subjects[0].Name != "test-heliostat" || subjects[0].Namespace != "there" {
			t.Errorf("%s is bound to %v", name, subjects)
		}
	}
	for _, binding := range of[*rbacv1.RoleBinding](t, options...) {
		check(binding.Namespace+"/"+binding.RoleRef.Name, binding.Subjects)
	}
	for _, binding := range of[*rbacv1.ClusterRoleBinding](t, options...) {
		check(binding.RoleRef.Name, binding.Subjects)
	}
	slices.Sort(bound)
	if !slices.Equal(bound, roles) {
		t.Errorf("bound are %v, of %v", bound, roles)
	}
}

func TestPeoplesRolesAreAggregated(t *testing.T) {
	want := map[string]string{"view": "get list watch", "edit": "create update patch delete deletecollection", "admin": "update patch"}
	found := 0
	for _, role := range of[*rbacv1.ClusterRole](t) {
		for to, verbs := range want {
			if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+to] != "true" {
				continue
			}
			found++
			if got := strings.Join(role.Rules[0].Verbs, " "); role.Name != "test-heliostat-"+to || got != verbs {
				t.Errorf("%s, added to %s, gives %s", role.Name, to, got)
			}
			for _, want := range map[string][]string{
				"view": {"heliostat.dev clusterjobs/log get", "heliostat.dev clusterservices/log get"},
				"edit": {"heliostat.dev computeclusters/proxy get", "heliostat.dev clusterservices/proxy patch", "heliostat.dev computeclusters use"},
			}[to] {
				if have := rightsText(role.Rules); !slices.Contains(have, want) {
					t.Errorf("%s has no right to %s: %v", role.Name, want, have)
				}
			}
			for _, rule := range role.Rules {
				if !slices.Equal(rule.APIGroups, []string{"heliostat.dev"}) {
					t.Errorf("%s gives rights on others' kinds: %v", role.Name, rule)
				}
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d roles are added to those of Kubernetes, want %d", found, len(want))
	}
}

func TestLeaseIsTheOneThatMayBeHeld(t *testing.T) {
	for _, options := range [][]string{nil, {"--set", "fullnameOverride=whole"}} {
		args := of[*appsv1.Deployment](t, options...)[0].Spec.Template.Spec.Containers[0].Args
		for _, role := range of[*rbacv1.Role](t, options...) {
			for _, rule := range role.Rules {
				if len(rule.ResourceNames) == 1 && !slices.Contains(args, "--leader-election-name="+rule.ResourceNames[0]) {
					t.Errorf("the right is for the Lease %s, the flags are %v", rule.ResourceNames[0], args)
				}
			}
		}
	}
}
