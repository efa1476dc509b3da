package validate

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Bounds of a service's gateway, which are those of Gateway API.
const (
	maxHostnames = 16
	maxNamespace = 63
)

// The forms of names that Gateway API has: its own patterns.
var (
	hostnameForm  = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	subdomainForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	namespaceForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
)

// gateway is that of a service, nil where it has none.
func (s *serving) gateway() *v1beta1.ServiceGateway { return s.upgrade().Gateway }

func gatewayPath() *field.Path { return specPath.Child("upgradeStrategy", "gateway") }

// gatewayRules are about the gateway that divides a service's requests.
var gatewayRules = []Rule{
	{
		ID: "gateway-name", Field: "spec.upgradeStrategy.gateway.parentRef.name", By: Expression,
		Refused: "the name of a Gateway must be lower-case DNS labels separated by dots", Remedy: "correct it",
		service: func(s *serving, bad report) {
			if g := s.gateway(); g != nil && !subdomainForm.MatchString(g.ParentRef.Name) {
				bad.at(gatewayPath().Child("parentRef", "name"), g.ParentRef.Name)
			}
		},
	},
	{
		ID: "gateway-namespace", Field: "spec.upgradeStrategy.gateway.parentRef.namespace", By: Expression,
		Refused: "a namespace must be a lower-case DNS label", Remedy: "correct it",
		service: func(s *serving, bad report) {
			if g := s.gateway(); g != nil && g.ParentRef.Namespace != "" && !namespaceForm.MatchString(g.ParentRef.Namespace) {
				bad.at(gatewayPath().Child("parentRef", "namespace"), g.ParentRef.Namespace)
			}
		},
	},
	{
		ID: "gateway-listener", Field: "spec.upgradeStrategy.gateway.parentRef.sectionName", By: Expression,
		Refused: "the name of a listener must be lower-case DNS labels separated by dots", Remedy: "correct it",
		service: func(s *serving, bad report) {
			if g := s.gateway(); g != nil && g.ParentRef.SectionName != "" && !subdomainForm.MatchString(g.ParentRef.SectionName) {
				bad.at(gatewayPath().Child("parentRef", "sectionName"), g.ParentRef.SectionName)
			}
		},
	},
	{
		ID: "gateway-hostnames", Field: "spec.upgradeStrategy.gateway.hostnames", By: Expression,
		Refused: "a hostname must be lower-case DNS labels separated by dots, with an optional '*' as the first", Remedy: "correct it",
		service: func(s *serving, bad report) {
			wrong := func(name string) bool { return !hostnameForm.MatchString(name) }
			if g := s.gateway(); g != nil && slices.ContainsFunc(g.Hostnames, wrong) {
				bad.at(gatewayPath().Child("hostnames"), fmt.Sprint(g.Hostnames))
			}
		},
	},
	{
		ID: "gateway-tls", Field: "spec.upgradeStrategy.gateway", By: Policy,
		Refused: "gateway must not be set with ssl_certfile, because a gateway speaks HTTP to the proxies",
		Remedy:  "terminate TLS at the gateway and leave ssl_certfile out, or leave gateway out",
		Holds:   "!object.spec.?upgradeStrategy.?gateway.hasValue() || !variables.http[0].exists(o, " + said("ssl_certfile") + ")",
		service: func(s *serving, bad report) {
			if s.gateway() != nil && isSaid(s.first("http"), "ssl_certfile") {
				bad.at(gatewayPath(), nil)
			}
		},
	},
}

func longGatewayTexts(s *serving, bad report) {
	g := s.gateway()
	if g == nil {
		return
	}
	at := gatewayPath().Child("parentRef")
	text(bad, at, "name", g.ParentRef.Name, maxText)
	text(bad, at, "namespace", g.ParentRef.Namespace, maxNamespace)
	text(bad, at, "sectionName", g.ParentRef.SectionName, maxText)
	for i := range g.Hostnames {
		text(bad, gatewayPath().Child("hostnames").Index(i), "", g.Hostnames[i], maxText)
	}
}
