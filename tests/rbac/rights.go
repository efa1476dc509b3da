package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// right is to do something with a resource. Resource has its subresource behind a slash.
type right struct{ group, resource, verb string }

// String is the form in which rights are noted: the core group is "core".
func (r right) String() string {
	return cmp.Or(r.group, "core") + " " + r.resource + " " + r.verb
}

// userOf returns the name of an account's user.
func userOf(account string) string {
	return "system:serviceaccount:" + strings.Replace(account, "/", ":", 1)
}

func parse(line string) (right, error) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return right{}, fmt.Errorf("read a right: %q is not of the form GROUP RESOURCE VERB", line)
	}
	if fields[0] == "core" {
		fields[0] = ""
	}
	return right{fields[0], fields[1], fields[2]}, nil
}

// rights is a set.
type rights map[right]bool

// sorted are the rights as lines.
func (r rights) sorted() []string {
	var lines []string
	for one := range r {
		lines = append(lines, one.String())
	}
	slices.Sort(lines)
	return lines
}

// read adds rights that were noted.
func (r rights) read(from io.Reader) error {
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		one, err := parse(scanner.Text())
		if err != nil {
			return err
		}
		r[one] = true
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read noted rights: %w", err)
	}
	return nil
}

// used are the rights that a user made use of, by an audit log of the API server with one
// event a line. A request that was refused for want of a right is one that is missing,
// and counts as well. A test that acts with the token as a thief would says so by its user agent, and is left out.
// The log's last line may be one that is being written.
func used(log io.Reader, user string) (rights, error) {
	found := rights{}
	for reader := bufio.NewReader(log); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		var event struct {
			Verb, UserAgent        string
			User, ImpersonatedUser struct{ Username string }
			ObjectRef              struct{ APIGroup, Resource, Subresource string }
		}
		if err == nil {
			err = json.Unmarshal(line, &event)
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if event.User.Username != user || event.ObjectRef.Resource == "" || event.UserAgent == live.StolenTokenAgent {
			continue
		}
		resource := event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			resource += "/" + event.ObjectRef.Subresource
		}
		found[right{event.ObjectRef.APIGroup, resource, as(event.ImpersonatedUser.Username) + event.Verb}] = true
	}
}

// as returns what a verb begins with that is used as somebody else, by constrained impersonation; of whom that is done, the
// log does not say what was asked.
func as(impersonated string) string {
	switch {
	case impersonated == "":
		return ""
	case strings.HasPrefix(impersonated, "system:serviceaccount:"):
		return "impersonate-on:serviceaccount:"
	}
	return "impersonate-on:user-info:"
}

// granted are the rights that the roles of rendered manifests give to a service account,
// as NAMESPACE/NAME.
func granted(manifests, account string) (rights, error) {
	found, bound := map[string][]rbacv1.PolicyRule{}, map[string]bool{}
	for document := range strings.SplitSeq(manifests, "\n---") {
		var object struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
			Rules    []rbacv1.PolicyRule
			RoleRef  rbacv1.RoleRef
			Subjects []rbacv1.Subject
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("read a manifest: %w", err)
		}
		switch object.Kind {
		case "Role", "ClusterRole":
			found[object.Kind+" "+object.Metadata.Namespace+"/"+object.Metadata.Name] = object.Rules
		case "RoleBinding", "ClusterRoleBinding":
			for _, subject := range object.Subjects {
				if subject.Kind == "ServiceAccount" && subject.Namespace+"/"+subject.Name == account {
					bound[object.RoleRef.Kind+" "+object.Metadata.Namespace+"/"+object.RoleRef.Name] = true
				}
			}
		}
	}
	all := rights{}
	for role := range bound {
		if found[role] == nil {
			return nil, fmt.Errorf("find the rights of %s: it is bound to %s, which is not among the manifests", account, role)
		}
		for _, rule := range found[role] {
			all.add(rule)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("find the rights of %s: no role is bound to it", account)
	}
	return all, nil
}

func (r rights) add(rule rbacv1.PolicyRule) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				r[right{group, resource, verb}] = true
			}
		}
	}
}

// Accounts of the operator and the server for portals that tests install.
const (
	operator = "heliostat-system/heliostat"
	server   = "heliostat-system/heliostat-server"
)

// unasked are rights of accounts that no request shows, each with its reason.
var unasked = map[string]map[string]string{
	operator: {
		"heliostat.dev computeclusters/finalizers update":     "asked for at admission, by the chart's policy and by OwnerReferencesPermissionEnforcement, never requested",
		"heliostat.dev clusterjobs/finalizers update":         "asked for at admission by OwnerReferencesPermissionEnforcement, never requested",
		"heliostat.dev clusterservices/finalizers update":     "asked for at admission by OwnerReferencesPermissionEnforcement, never requested",
		"heliostat.dev clusterjobschedules/finalizers update": "asked for at admission by OwnerReferencesPermissionEnforcement, never requested",
	},
	server: {},
}

// spare tells of a right that a run need not show although the operator needs it, because
// another was used. It lists what it watches only where the API server cannot stream what
// there is. It gets what it creates only where that is there already. It gives gangs of Kubernetes another size only from 1.37
// on, and the tests run on 1.36.
func (r rights) spare(one right) bool {
	if (one == right{"scheduling.k8s.io", "podgroups", "patch"}) {
		return true
	}
	needs := map[string]string{"list": "watch", "get": "create"}[one.verb]
	return needs != "" && r[right{one.group, one.resource, needs}]
}

// isOfOthers reports whether a right is one to act as somebody else. It holds for whatever that one asks for, and no run
// shows all of it.
func (r right) isOfOthers() bool { return strings.HasPrefix(r.verb, "impersonate") }

// comparison returns what is wrong between rights that are granted and those used, and rights that nothing is to ask for.
type comparison func(granted, used rights, unasked map[string]string) []string

// missing returns the rights that are used and not granted.
func missing(granted, used rights, _ map[string]string) []string {
	var problems []string
	for _, line := range used.sorted() {
		if one, _ := parse(line); !granted[one] { // its own form
			problems = append(problems, "used, but not granted: "+line)
		}
	}
	return problems
}

// compare gives what differs between the rights that were granted and those used, in
// words: nothing where they are the same.
func compare(granted, used rights, unasked map[string]string) []string {
	var problems []string
	for _, line := range used.sorted() {
		one, _ := parse(line) // its own form
		switch {
		case !granted[one]:
			problems = append(problems, "used, but not granted: "+line)
		case unasked[line] != "":
			problems = append(problems, "used, though it is listed as one that is never: "+line)
		}
	}
	for _, line := range granted.sorted() {
		if one, _ := parse(line); !used[one] && !used.spare(one) && !one.isOfOthers() && unasked[line] == "" {
			problems = append(problems, "granted, but never used: "+line)
		}
	}
	for line := range unasked {
		if one, _ := parse(line); !granted[one] {
			problems = append(problems, "listed as never used, but not granted either: "+line)
		}
	}
	return problems
}
