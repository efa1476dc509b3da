package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// countsOfRights is how many mixtures are sent, by somebody with some of the rights; HELIOSTAT_RIGHTS asks for others.
const countsOfRights = "-n 20 -seed 1"

// claimedObject is what the program inputs gives of rights: an object, and the rights that it needs.
type claimedObject struct {
	Name     string          `json:"name"`
	Resource string          `json:"resource"`
	Object   json.RawMessage `json:"object"`
	Demands  []claimedRight  `json:"demands"`
}

type claimedRight struct {
	Need        string `json:"need"`
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	ClusterWide bool   `json:"clusterWide"`
	OrPods      bool   `json:"orPods"`
	Most        int    `json:"most"`
	Name        string `json:"name"`
	Says        string `json:"says"`
}

func claimedRights(t *testing.T) []claimedObject {
	t.Helper()
	options := countsOfRights
	if full := os.Getenv("HELIOSTAT_RIGHTS"); full != "" {
		options = full
	}
	args := append(append([]string{"run", "../../ray-operator/internal/testkit/inputs"}, strings.Fields(options)...), "rights")
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	must(t, err)
	var all []claimedObject
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var one claimedObject
		must(t, json.Unmarshal(lines.Bytes(), &one))
		all = append(all, one)
	}
	return all
}

// as gives a client for a user with rules in a namespace.
func as(t *testing.T, namespace, user string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	must(t, shared.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: rules}))
	bind(t, namespace, user, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user})
	return impersonated(t, user)
}

func bind(t *testing.T, namespace, user string, role rbacv1.RoleRef) {
	t.Helper()
	must(t, shared.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user + "-" + role.Name}, RoleRef: role,
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))
}

func impersonated(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(shared.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	made, err := client.New(config, client.Options{Scheme: shared.Scheme()})
	must(t, err)
	return made
}

var writesKinds = rbacv1.PolicyRule{
	APIGroups: []string{"heliostat.dev"}, Resources: []string{"computeclusters", "clusterjobs", "clusterservices", "clusterjobschedules"}, Verbs: []string{"create", "get", "update", "patch"},
}

// someRights are those of somebody who has a part of each sort.
var someRights = []rbacv1.PolicyRule{
	writesKinds,
	{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"reader"}, Verbs: []string{"use"}},
	{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"s", "s0", "s1", "ca", "tls"}, Verbs: []string{"get"}},
	{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
	{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses"}, Verbs: []string{"create"}},
	{APIGroups: []string{"heliostat.dev"}, Resources: []string{"computeclusters"}, ResourceNames: []string{"theirs"}, Verbs: []string{"use"}},
}

// TestRights_AreThoseOfWhoWrites: each field that names or opens something is refused or taken as the API server itself
// says of the user's rights, for a tenant, somebody with some rights, an editor and an administrator.
func TestRights_AreThoseOfWhoWrites(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	users := map[string]client.Client{
		"tenant": as(t, namespace, "tenant", writesKinds), "partner": as(t, namespace, "partner", someRights...),
		"editor": impersonated(t, "editor"), "administrator": impersonated(t, "administrator"),
	}
	bind(t, namespace, "editor", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"})
	bind(t, namespace, "administrator", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"})
	all := claimedRights(t)
	for user, client := range users {
		must(t, live.Until(t.Context(), limit, "the rights of "+user+" to be in force", func(ctx context.Context) error {
			return sendAs(ctx, client, namespace, &all[0])
		}))
	}
	known := &answers{namespace: namespace, of: map[string]bool{}}
	var group errgroup.Group
	group.SetLimit(4)
	disagreed := make(chan string, len(all)*len(users))
	sent, refused := 0, 0
	for i := range all {
		wants := map[string]string{}
		for user := range users {
			want, err := known.refusal(t.Context(), user, &all[i])
			must(t, err)
			wants[user] = want
		}
		for _, user := range senders(i, wants) {
			if sent++; wants[user] != "" {
				refused++
			}
			group.Go(func() error {
				err := sendAs(t.Context(), users[user], namespace, &all[i])
				if (err == nil) != (wants[user] == "") || err != nil && !strings.Contains(err.Error(), wants[user]) {
					disagreed <- fmt.Sprintf("%s, %s%s: the API server says %v, the rights %q", user, all[i].Name, all[i].Resource, err, wants[user])
				}
				if err != nil && !apierrors.IsForbidden(err) {
					return err
				}
				return nil
			})
		}
	}
	must(t, group.Wait())
	close(disagreed)
	for one := range disagreed {
		t.Error(one)
	}
	t.Logf("%d decisions, %d of them refusals, %d questions", sent, refused, len(known.of))
	onlyByItsLabel(t, namespace, users["tenant"])
}

// onlyByItsLabel checks that the label of a priority is asked about where a write changes nothing else, and no other label is.
func onlyByItsLabel(t *testing.T, namespace string, tenant client.Client) {
	t.Helper()
	cluster := newCluster(namespace, "ranked", 0)
	cluster.Spec.Suspend = new(true)
	must(t, shared.Create(t.Context(), cluster))
	label := func(key string) error {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"urgent"}}}`, key)
		return tenant.Patch(t.Context(), cluster.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)), client.DryRunAll)
	}
	must(t, label("team"))
	if err := label("kueue.x-k8s.io/priority-class"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "use workloadpriorityclasses/urgent") {
		t.Errorf("a priority that a tenant gives to a cluster is answered with %v", err)
	}
}

// senders returns who sends an input: one user who must be refused and one who must be allowed, if there are such. Which
// ones depends on the place of the input, so that each user sends some. With HELIOSTAT_RIGHTS all users send all inputs.
func senders(place int, wants map[string]string) []string {
	all := slices.Sorted(maps.Keys(wants))
	if os.Getenv("HELIOSTAT_RIGHTS") != "" {
		return all
	}
	chosen := map[bool]string{}
	for i := range all {
		user := all[(place+i)%len(all)]
		if isRefused := wants[user] != ""; chosen[isRefused] == "" {
			chosen[isRefused] = user
		}
	}
	return slices.Sorted(maps.Values(chosen))
}

func sendAs(ctx context.Context, user client.Client, namespace string, one *claimedObject) error {
	var object unstructured.Unstructured
	if err := json.Unmarshal(one.Object, &object.Object); err != nil {
		return err
	}
	object.SetNamespace(namespace)
	return user.Create(ctx, &object, client.DryRunAll)
}

// answers are what the API server said of users' rights.
type answers struct {
	namespace string
	of        map[string]bool
}

// refusal is what must be in the answer to a user, empty where the object must be taken: of the first right that is lacking.
func (a *answers) refusal(ctx context.Context, user string, one *claimedObject) (string, error) {
	pods, err := a.may(ctx, user, claimedRight{Verb: "create", Resource: "pods"})
	if err != nil {
		return "", err
	}
	counts, tooMany := map[string]int{}, ""
	for _, need := range one.Demands {
		if counts[need.Need]++; need.OrPods && pods {
			continue
		}
		if need.Most > 0 && counts[need.Need] > need.Most {
			tooMany = "more than"
			continue
		}
		may, err := a.may(ctx, user, need)
		if err != nil {
			return "", err
		}
		if !may { // of several the API server tells of any policy's first
			return "you may n", nil
		}
	}
	return tooMany, nil
}

func (a *answers) may(ctx context.Context, user string, need claimedRight) (bool, error) {
	attributes := &authorizationv1.ResourceAttributes{
		Namespace: a.namespace, Verb: need.Verb, Group: need.Group, Resource: need.Resource, Subresource: need.Subresource, Name: need.Name,
	}
	if need.ClusterWide {
		attributes.Namespace = ""
	}
	key := fmt.Sprint(user, *attributes)
	if known, is := a.of[key]; is {
		return known, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: []string{"system:authenticated"}, ResourceAttributes: attributes}}
	if err := shared.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask whether %s may %s %s: %w", user, need.Verb, need.Resource, err)
	}
	a.of[key] = review.Status.Allowed
	return review.Status.Allowed, nil
}
