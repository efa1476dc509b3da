package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const log = `{"verb":"list","user":{"username":"system:serviceaccount:heliostat-system:heliostat"},"objectRef":{"resource":"pods"}}
{"verb":"create","user":{"username":"someone"},"objectRef":{"resource":"nodes"}}
{"verb":"patch","user":{"username":"system:serviceaccount:heliostat-system:heliostat"},"objectRef":{"apiGroup":"heliostat.dev","resource":"computeclusters","subresource":"status"}}
{"verb":"get","user":{"username":"system:serviceaccount:heliostat-system:heliostat"},"requestURI":"/api"}
{"verb":"list","userAgent":"stolen-token","user":{"username":"system:serviceaccount:heliostat-system:heliostat"},"objectRef":{"resource":"secrets"}}
{"verb":"list","user":{"username":"system:serviceaccount:heliostat-system:heliostat"},"objectRef":{"resource":"pods"}}
{"verb":"del`

const manifests = `
kind: ClusterRole
metadata: {name: heliostat}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list]}
- {apiGroups: [heliostat.dev], resources: [computeclusters/finalizers, clusterjobs/finalizers, clusterservices/finalizers,
    clusterjobschedules/finalizers], verbs: [update]}
---
kind: ClusterRoleBinding
metadata: {name: heliostat}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: heliostat}
subjects: [{kind: ServiceAccount, namespace: heliostat-system, name: heliostat}]
---
kind: Role
metadata: {name: more, namespace: a}
rules: [{apiGroups: [heliostat.dev], resources: [computeclusters/status], verbs: [patch]}]
---
kind: RoleBinding
metadata: {name: more, namespace: a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: more}
subjects: [{kind: ServiceAccount, namespace: heliostat-system, name: heliostat}]
---
kind: ClusterRole
metadata: {name: someone-else}
rules: [{apiGroups: [""], resources: [secrets], verbs: [list]}]
`

func TestUsedAndGranted(t *testing.T) {
	did, err := used(strings.NewReader(log), userOf(operator))
	if want := []string{"core pods list", "heliostat.dev computeclusters/status patch"}; err != nil || !slices.Equal(did.sorted(), want) {
		t.Errorf("used %v, %v, want %v", did.sorted(), err, want)
	}
	may, err := granted(manifests, operator)
	want := []string{
		"core pods list", "heliostat.dev clusterjobs/finalizers update", "heliostat.dev clusterjobschedules/finalizers update",
		"heliostat.dev clusterservices/finalizers update",
		"heliostat.dev computeclusters/finalizers update",
		"heliostat.dev computeclusters/status patch",
	}
	if err != nil || !slices.Equal(may.sorted(), want) {
		t.Errorf("granted %v, %v, want %v", may.sorted(), err, want)
	}
	if problems := compare(may, did, unasked[operator]); len(problems) > 0 {
		t.Errorf("what is the same differs: %v", problems)
	}
	for _, bad := range []struct{ manifests, says string }{
		{"kind: [", "read a manifest"}, {"kind: Role", "no role is bound"}, {strings.Replace(manifests, "name: heliostat}\nrules", "name: x}\nrules", 1), "not among the manifests"},
	} {
		if _, err := granted(bad.manifests, operator); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("the error is %v, want %q", err, bad.says)
		}
	}
}

func TestDifferencesAreTold(t *testing.T) {
	pods, finalizers := right{"", "pods", "list"}, right{"heliostat.dev", "computeclusters/finalizers", "update"}
	ofJobs, ofServices := right{"heliostat.dev", "clusterjobs/finalizers", "update"}, right{"heliostat.dev", "clusterservices/finalizers", "update"}
	ofSchedules := right{"heliostat.dev", "clusterjobschedules/finalizers", "update"}
	watch, get, create := right{"", "pods", "watch"}, right{"", "pods", "get"}, right{"", "pods", "create"}
	for _, c := range []struct {
		granted, used rights
		want          string
	}{
		{rights{pods: true, finalizers: true}, rights{pods: true}, ""},
		{rights{pods: true, watch: true, finalizers: true}, rights{watch: true}, ""},
		{rights{pods: true, get: true, finalizers: true}, rights{pods: true}, "granted, but never used: core pods get"},
		{rights{get: true, create: true, finalizers: true}, rights{create: true}, ""},
		{rights{finalizers: true}, rights{pods: true}, "used, but not granted: core pods list"},
		{rights{pods: true, finalizers: true}, rights{}, "granted, but never used: core pods list"},
		{rights{finalizers: true}, rights{finalizers: true}, "used, though it is listed as one that is never: heliostat.dev computeclusters/finalizers update"},
		{rights{ofJobs: true}, rights{}, "listed as never used, but not granted either: heliostat.dev computeclusters/finalizers update"},
	} {
		c.granted[ofJobs], c.granted[ofServices], c.granted[ofSchedules] = true, true, true
		if got := strings.Join(compare(c.granted, c.used, unasked[operator]), "\n"); got != c.want {
			t.Errorf("granted %v, used %v: %q, want %q", c.granted.sorted(), c.used.sorted(), got, c.want)
		}
	}
}

func TestNotesAreKeptAndCompared(t *testing.T) {
	dir := t.TempDir()
	path, notes := filepath.Join(dir, "audit.log"), filepath.Join(dir, "notes")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	var kept, told strings.Builder
	if err := run([]string{"used", operator, path}, nil, &kept); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(notes, []byte(kept.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"compare", operator, notes}, strings.NewReader(manifests), &told); err != nil || !strings.Contains(told.String(), "6 rights are granted") {
		t.Errorf("compared: %v, %s", err, told.String())
	}
	more := manifests + "---\nkind: ClusterRole\nmetadata: {name: heliostat}\nrules: [{apiGroups: [\"\"], resources: [secrets], verbs: [list]}]\n"
	if err := run([]string{"compare", operator, notes}, strings.NewReader(more), &told); err == nil || !strings.Contains(err.Error(), "granted, but never used: core secrets list") {
		t.Errorf("a right too many is not told: %v", err)
	}
	more = strings.Replace(manifests, "[pods]", "[pods, secrets]", 1)
	if err := run([]string{"missing", operator, notes}, strings.NewReader(more), &told); err != nil {
		t.Errorf("a right that a part of the tests does not use is told: %v", err)
	}
	if err := os.WriteFile(notes, []byte(kept.String()+"core nodes delete\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"missing", operator, notes}, strings.NewReader(more), &told); err == nil || !strings.Contains(err.Error(), "used, but not granted: core nodes delete") {
		t.Errorf("a missing right is not told: %v", err)
	}
	for _, args := range [][]string{{}, {"used"}, {"used", operator}, {"used", operator, dir + "/none"}, {"used", server, path}, {"compare"}, {"compare", operator}, {"compare", operator, path}} {
		if err := run(args, strings.NewReader(manifests), &told); err == nil {
			t.Errorf("%v is no error", args)
		}
	}
}

// TestUsed_KnowsImpersonation: what is done as somebody else takes other rights than what is done as oneself.
func TestUsed_KnowsImpersonation(t *testing.T) {
	const text = `{"verb":"list","user":{"username":"system:serviceaccount:heliostat-system:heliostat-server"},"objectRef":{"resource":"pods"}}
{"verb":"list","user":{"username":"system:serviceaccount:heliostat-system:heliostat-server"},"impersonatedUser":{"username":"ana"},"objectRef":{"resource":"events"}}
{"verb":"get","user":{"username":"system:serviceaccount:heliostat-system:heliostat-server"},"impersonatedUser":{"username":"system:serviceaccount:a:b"},"objectRef":{"apiGroup":"heliostat.dev","resource":"clusterjobs"}}
`
	did, err := used(strings.NewReader(text), userOf(server))
	want := []string{"core events impersonate-on:user-info:list", "core pods list", "heliostat.dev clusterjobs impersonate-on:serviceaccount:get"}
	if err != nil || !slices.Equal(did.sorted(), want) {
		t.Errorf("used %v, %v, want %v", did.sorted(), err, want)
	}
}
