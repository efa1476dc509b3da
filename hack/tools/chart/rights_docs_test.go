package chart

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// places names the roles as the page does.
var places = map[string]string{
	"test-heliostat": "clusters", "test-heliostat-nodes": "nodes",
	"there/test-heliostat-lease": "own namespace", "there/test-heliostat-notes": "own namespace", "there/test-heliostat-server-certificate": "own namespace",
}

// describeRule returns one line for each resource of a rule, as the page writes it.
func describeRule(place string, rule rbacv1.PolicyRule) []string {
	var lines []string
	for _, resource := range rule.Resources {
		if resource == "events" && slices.Contains(rule.APIGroups, "events.k8s.io") {
			resource += ".events.k8s.io"
		}
		if len(rule.ResourceNames) > 0 {
			resource += ": its own"
		}
		lines = append(lines, strings.Join([]string{place, resource, strings.Join(rule.Verbs, " ")}, " | "))
	}
	return lines
}

// documentedRights returns the lines of the page's table, one for each resource.
func documentedRights(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## What the operator may do\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return tableLines(section)
}

// tableLines returns the rows of tables of rights, one line for each resource.
func tableLines(section string) []string {
	var lines []string
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 4 || cells[0] == "where" {
			continue
		}
		resources := strings.Fields(cells[1])
		if strings.Contains(cells[1], ": ") {
			resources = cells[1:2]
		}
		for _, resource := range resources {
			lines = append(lines, strings.Join([]string{cells[0], resource, cells[2]}, " | "))
		}
	}
	return lines
}

func TestRightsAreDocumented(t *testing.T) {
	var rights []string
	all := granted(t, "--set", "schedulers={Volcano}")
	const certificate = "there/test-heliostat-server-certificate"
	all[certificate] = granted(t, serving...)[certificate]
	for role, rules := range all {
		place := places[role]
		if place == "" {
			t.Errorf("the page has no name for the role %s", role)
		}
		for _, rule := range rules {
			rights = append(rights, describeRule(place, rule)...)
		}
	}
	documented := documentedRights(t)
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
