package rights_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
)

// asked says of each need what the API server is asked, in the order of the families. The words are written by hand: a
// need that asks for less, or that the right to create pods newly stands for, lets somebody in.
const asked = `
pods account: use serviceaccounts/NAME, at most 8, or create pods
pods priority-class: use priorityclasses/NAME of scheduling.k8s.io in no namespace, at most 4, or create pods
pods runtime-class: use runtimeclasses/NAME of node.k8s.io in no namespace, at most 4, or create pods
pods host: create pods, or create pods
pods node: create pods, or create pods
pods toleration: create pods, or create pods
pods pod-metadata: create pods, or create pods
objects secret: get secrets/NAME, at most 9, or create pods
objects config-map: get configmaps/NAME, at most 6, or create pods
objects claim: use persistentvolumeclaims/NAME, at most 5, or create pods
objects resource-claim: use resourceclaims/NAME of resource.k8s.io, at most 2, or create pods
objects resource-claim-template: use resourceclaimtemplates/NAME of resource.k8s.io, at most 2, or create pods
objects shared-claim: create persistentvolumeclaims
objects data: create persistentvolumeclaims, or create pods
doors own-secret: get secrets/NAME, at most 6
doors ingress: create ingresses of networking.k8s.io
doors service: create services
doors route: create httproutes of gateway.networking.k8s.io
doors cluster: use computeclusters/NAME of heliostat.dev, at most 1
doors open: update computeclusters/open of heliostat.dev
doors metadata: update computeclusters/open of heliostat.dev, or create pods
doors workload-priority: use workloadpriorityclasses/NAME of kueue.x-k8s.io in no namespace, at most 3, or create pods
doors queue-volcano: use queues/NAME of scheduling.volcano.sh in no namespace, at most 1, or create pods
doors queue-kai: use queues/NAME of scheduling.run.ai in no namespace, at most 1, or create pods
doors queue-yunikorn: use queues/NAME of yunikorn.apache.org in no namespace, at most 1, or create pods
`

func TestNeeds_AskForTheRightsOfTheList(t *testing.T) {
	t.Parallel()
	var have strings.Builder
	for _, n := range rights.Needs() {
		fmt.Fprintf(&have, "%s %s: %s %s", n.Family, n.ID, n.Verb, n.Resource)
		for _, part := range []struct {
			is   bool
			text string
		}{
			{n.Subresource != "", "/" + n.Subresource},
			{n.IsNamed, "/NAME"},
			{n.Group != "", " of " + n.Group},
			{n.IsClusterWide, " in no namespace"},
			{n.Most != 0, fmt.Sprint(", at most ", n.Most)},
			{n.OrPods, ", or create pods"},
		} {
			if part.is {
				have.WriteString(part.text)
			}
		}
		have.WriteString("\n")
	}
	if diff := gocmp.Diff(strings.Split(asked[1:], "\n"), strings.Split(have.String(), "\n")); diff != "" {
		t.Errorf("needs differ (-list +have):\n%s", diff)
	}
}

func TestFamilies_AreThoseOfTheChart(t *testing.T) {
	t.Parallel()
	if have, want := rights.Families(), []rights.Family{"pods", "objects", "doors"}; !slices.Equal(have, want) {
		t.Errorf("the families are %q, want %q", have, want)
	}
}

// The chart's values are what the rights and their tests take for them, and its template gives them to the policies.
func TestChartSite_IsOfTheChartsValues(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../helm-chart/heliostat/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Tenancy     struct{ PodAnnotations, PodLabels, Tolerations []string }
		PodDefaults struct{ ServiceAccountName string }
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	want := rights.Site{
		Annotations: values.Tenancy.PodAnnotations, Labels: values.Tenancy.PodLabels, Tolerations: values.Tenancy.Tolerations,
		Account: cmp.Or(values.PodDefaults.ServiceAccountName, "default"),
	}
	if diff := gocmp.Diff(want, rights.ChartSite()); diff != "" {
		t.Errorf("the site differs from the chart's values (-values +site):\n%s", diff)
	}
}

func TestNeedText_NamesTheRight(t *testing.T) {
	t.Parallel()
	const remedy = "; ask an administrator for the right, or leave the field out"
	secret := rights.Need{Verb: "get", Resource: "secrets", IsNamed: true}
	service := rights.Need{Verb: "create", Resource: "services"}
	pods := rights.Need{Verb: "create", Resource: "pods", OrPods: true}
	open := rights.Need{Verb: "update", Resource: "clusters", Subresource: "open"}
	orPods, root, refused := secret, pods, open
	orPods.OrPods, root.Refused, refused.Refused = true, "it is root", "it is open"
	for want, need := range map[string]rights.Need{
		"you may not get secrets/a":                        secret,
		"you may neither get secrets/a nor create pods":    orPods,
		"you may not create services":                      service,
		"you may not create pods":                          pods,
		"you may not update clusters/open":                 open,
		"it is root, and you may not create pods":          root,
		"it is open, and you may not update clusters/open": refused,
	} {
		want += remedy
		if have := need.Text("a"); have != want {
			t.Errorf("the text is %q, want %q", have, want)
		}
		demand := rights.Demand{Need: &need, Field: "spec.env", Name: "a"}
		if have := demand.Text(); have != "spec.env: "+want {
			t.Errorf("the text of a demand is %q, want the field and %q", have, want)
		}
	}
}

// What is missing is refused at its field. The first name beyond the most is refused at the spec, and later ones add
// nothing.
func TestMissing_IsRefusedAtTheField(t *testing.T) {
	t.Parallel()
	secrets := &rights.Need{Verb: "get", Resource: "secrets", IsNamed: true, Most: 2}
	doors := &rights.Need{Verb: "create", Resource: "services"}
	all := []rights.Demand{{Need: doors, Field: "spec.service"}}
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, rights.Demand{Need: secrets, Field: "spec." + name, Name: name})
	}
	refused := func(at, text string) *field.Error {
		return &field.Error{Type: field.ErrorTypeForbidden, Field: at, BadValue: "", Detail: text}
	}
	service := refused("spec.service", doors.Text(""))
	a, b := refused("spec.a", secrets.Text("a")), refused("spec.b", secrets.Text("b"))
	more := refused("spec", "more than 2 names need the right to get secrets/NAME; "+
		"name fewer, or ask an administrator for the right to create pods")
	nothing := func(rights.Demand) bool { return false }
	for count, want := range []field.ErrorList{
		nil, {service}, {service, a}, {service, a, b}, {service, a, b, more}, {service, a, b, more},
	} {
		if diff := gocmp.Diff(want, rights.Missing(all[:count], false, nothing)); diff != "" {
			t.Errorf("of %d demands the refusals differ (-want +have):\n%s", count, diff)
		}
	}
	// The right to create pods does not stand for one that a pod has not.
	if have := rights.Missing(all[:1], true, nothing); len(have) != 1 {
		t.Errorf("with pods %v is missing, want the service", have)
	}
}
