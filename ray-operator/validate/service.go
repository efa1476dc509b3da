package validate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

var (
	ownOfServices = slices.Concat(serviceRules, gatewayRules, serveFormRules, serveRules, applicationRules, deploymentRules, scalingRules, healthRules, homeRules)
	allOfServices = slices.Concat(all, ownOfServices)
)

// ServiceRules are the rules about a service beside Rules, which hold for the cluster that it
// describes, and of which some are asked of the rest of a service too.
func ServiceRules() []Rule { return slices.Clone(ownOfServices) }

// Service returns all that is wrong with a service. The cluster of its own is refused where the
// ComputeCluster would be, with the same words.
func Service(service *v1beta1.ClusterService) Findings {
	var found Findings
	s := servingOf(service)
	for i := range allOfServices {
		bad := report{rule: &allOfServices[i], found: &found}
		if bad.rule.service != nil {
			bad.rule.service(s, bad)
		}
		bad.rule.askHome(&s.home, bad)
	}
	return found
}

// ServiceChange returns all that is wrong with a change of a service: what is wrong with its new
// state, and what cannot be changed. What cannot be changed of a cluster can be of a template:
// another cluster is made of it. What the API server fills in counts as given.
func ServiceChange(before, after *v1beta1.ClusterService) Findings {
	found := Service(after)
	was, is := servingOf(before), servingOf(after)
	for i := range allOfServices {
		if allOfServices[i].serviceChange != nil {
			allOfServices[i].serviceChange(was, is, report{rule: &allOfServices[i], found: &found})
		}
	}
	return found
}

// serving is a service with what most of its rules ask of it at hand.
type serving struct {
	service *v1beta1.ClusterService
	spec    *v1beta1.ClusterServiceSpec
	home
	// config is the serveConfig as JSON has it, nil where it is none or no object; missing and
	// noObject tell which.
	config            map[string]any
	missing, noObject bool
	// parts are the objects of the configuration by their kinds.
	parts map[string][]part
	// applications and deployments are how many there are, also where they are too many.
	applications, deployments int
}

func servingOf(service *v1beta1.ClusterService) *serving {
	s := &serving{
		service: service, spec: &service.Spec, missing: len(service.Spec.ServeConfig.Raw) == 0,
		home: homeOf(service.Spec.ClusterRef, service.Spec.ClusterTemplate),
	}
	if !s.missing {
		s.noObject = json.Unmarshal(service.Spec.ServeConfig.Raw, &s.config) != nil || s.config == nil
	}
	s.takeApart()
	return s
}

func serviceManagedBy(s *serving) string {
	if s.spec.ManagedBy == "" {
		return v1beta1.ManagedByOperator
	}
	return s.spec.ManagedBy
}

// given parts of a service; what is empty is never changed.

func (s *serving) front() *v1beta1.ServeService {
	if s.spec.Service == nil {
		return &noFront
	}
	return s.spec.Service
}

func (s *serving) upgrade() *v1beta1.ServiceUpgradeStrategy {
	if s.spec.UpgradeStrategy == nil {
		return &noUpgrade
	}
	return s.spec.UpgradeStrategy
}

var (
	noFront   v1beta1.ServeService
	noUpgrade v1beta1.ServiceUpgradeStrategy
)

// headAlone reports whether the cluster of the service's own has no workers.
func (s *serving) headAlone() bool { return s.cluster != nil && len(s.cluster.Spec.WorkerGroups) == 0 }

var (
	frontPath  = specPath.Child("service")
	configPath = specPath.Child("serveConfig")
	pathForm   = regexp.MustCompile(`^/[!-~]*$`)
)

// Defaults of an upgrade, as the schema has them.
const (
	usualStep     = 20
	usualSurge    = 100
	usualInterval = 10
)

// serviceRules are about the service as a whole.
var serviceRules = []Rule{
	{
		ID: "service-name", Field: "metadata.name", By: Expression,
		Refused: "metadata.name must be a DNS-1035 label of at most 50 characters: lower-case letters, digits and '-', starting with a letter",
		Remedy:  "choose a shorter or simpler name",
		service: func(s *serving, bad report) {
			if !label.MatchString(s.service.Name) || len(s.service.Name) > naming.MaxCluster {
				bad.at(field.NewPath("metadata", "name"), s.service.Name)
			}
		},
	},
	{
		ID: "service-where", Field: "spec", By: Expression,
		Refused: "a service must run either on an existing cluster or on its own", Remedy: "set exactly one of clusterRef and clusterTemplate",
		service: func(s *serving, bad report) {
			if (s.ref != nil) == (s.template != nil) {
				bad.at(specPath, nil)
			}
		},
	},
	{
		ID: "service-stays", Field: "spec", By: Expression,
		Refused: "a service must not change between clusterRef and clusterTemplate", Remedy: "create a new service",
		serviceChange: func(before, after *serving, bad report) {
			if (before.ref != nil) != (after.ref != nil) {
				bad.at(specPath, nil)
			}
		},
	},
	{
		ID: "service-cluster-fixed", Field: "spec.clusterRef", By: Expression,
		Refused: "clusterRef is immutable", Remedy: "create a new service",
		serviceChange: func(before, after *serving, bad report) {
			if before.ref != nil && after.ref != nil && *before.ref != *after.ref {
				bad.at(specPath.Child("clusterRef"), after.ref.Name)
			}
		},
	},
	{
		ID: "service-managed-by-fixed", Field: "spec.managedBy", By: Expression,
		Refused: "managedBy is immutable", Remedy: "create a new service",
		serviceChange: func(before, after *serving, bad report) {
			if serviceManagedBy(before) != serviceManagedBy(after) {
				bad.at(specPath.Child("managedBy"), after.spec.ManagedBy)
			}
		},
	},
	{
		ID: "service-upgrade-where", Field: "spec.upgradeStrategy", By: Expression,
		Refused: "upgradeStrategy must be used with clusterTemplate only", Remedy: "leave upgradeStrategy out, or use clusterTemplate",
		service: func(s *serving, bad report) {
			if s.spec.UpgradeStrategy != nil && s.template == nil {
				bad.at(specPath.Child("upgradeStrategy"), nil)
			}
		},
	},
	{
		ID: "service-upgrade-step", Field: "spec.upgradeStrategy.surge", By: Expression,
		Refused: "stepPercent (default 20) must not be above maxSurgePercent (default 100)", Remedy: "lower it or raise the other",
		service: func(s *serving, bad report) {
			surge := s.upgrade().Surge
			if surge == nil {
				return
			}
			if step := given(surge.StepPercent, usualStep); step > given(surge.MaxSurgePercent, usualSurge) {
				bad.at(below(specPath, "upgradeStrategy.surge.stepPercent"), step)
			}
		},
	},
	{
		ID: "service-upgrade-in-place", Field: "spec.upgradeStrategy.surge", By: Expression,
		Refused: "surge has no effect with type InPlace", Remedy: "leave surge out, or use type Surge",
		service: func(s *serving, bad report) {
			if s.upgrade().Surge != nil && s.upgrade().Type == v1beta1.ServiceUpgradeInPlace {
				bad.at(below(specPath, "upgradeStrategy.surge"), string(s.upgrade().Type))
			}
		},
	},
	{
		ID: "service-store", Field: "spec.clusterTemplate.spec.controlStore.redis.namespace, spec.clusterTemplate.spec.controlStore.embedded.existingClaim", By: Policy,
		Refused: "namespace and existingClaim of a control store must not be set in a clusterTemplate, because the second cluster of an upgrade would share them", Remedy: "leave it out; each cluster then has its own",
		Holds: "variables.cluster.?controlStore.?redis.?namespace.orValue('') == '' && variables.cluster.?controlStore.?embedded.?existingClaim.orValue('') == ''",
		service: func(s *serving, bad report) {
			if s.cluster == nil {
				return
			}
			if r := storeOf(s.cluster).Redis; r != nil && r.Namespace != "" {
				bad.at(below(templateSpec, "controlStore.redis.namespace"), r.Namespace)
			}
			if e := storeOf(s.cluster).Embedded; e != nil && e.ExistingClaim != "" {
				bad.at(below(templateSpec, "controlStore.embedded.existingClaim"), e.ExistingClaim)
			}
		},
	},
	{
		ID: "service-metadata", Field: "spec.service.labels, spec.service.annotations", By: Expression,
		Refused: "a key must not have the prefix heliostat.dev, which is reserved for the operator", Remedy: chooseOther,
		service: func(s *serving, bad report) {
			keys(bad, frontPath, "labels", s.front().Labels, isOwnKey)
			keys(bad, frontPath, "annotations", s.front().Annotations, isOwnKey)
		},
	},
	{
		ID: "service-labels", Field: "spec.service.labels", By: Policy,
		Refused: labelGrammar, Remedy: "correct the key or the value", Holds: goodIn(goodLabels, "labels"),
		service: func(s *serving, bad report) {
			keys(bad, frontPath, "labels", s.front().Labels, badLabels(s.front().Labels))
		},
	},
	{
		ID: "service-annotations", Field: "spec.service.annotations", By: Policy,
		Refused: "a key of an annotation must have Kubernetes' syntax", Remedy: "use letters, digits, '-', '_' and '.', at most 63, with an optional DNS prefix and '/'",
		Holds: goodIn(goodAnnotations, "annotations"),
		service: func(s *serving, bad report) {
			keys(bad, frontPath, "annotations", s.front().Annotations, badAnnotation)
		},
	},
	{
		ID: "service-port-twice", Field: "spec.service.ports", By: Expression,
		Refused: "port numbers must be unique", Remedy: "give each port its own",
		service: func(s *serving, bad report) {
			twice(bad, frontPath, "ports", s.front().Ports, func(p *v1beta1.ServePort) string { return numberOrName(p.Port, p.Name) })
		},
	},
	{
		ID: "service-port-default", Field: "spec.service.ports", By: Policy,
		Refused: "port 8000 is that of http, and 9000 that of grpc, unless ports gives them another", Remedy: "choose another port, or list http or grpc with one",
		Holds: fmt.Sprintf("[object.spec.?service.?ports.orValue([])].all(l, (l.exists(p, p.name == 'http' && has(p.port)) || !l.exists(p, p.?port.orValue(0) == %d)) && "+
			"(l.exists(p, p.name == 'grpc' && has(p.port)) || !l.exists(p, p.?port.orValue(0) == %d) || !(%s)))", serveconfig.DefaultHTTPPort, serveconfig.DefaultGRPCPort, speaksGRPC),
		service: func(s *serving, bad report) {
			refuseDefault(s, portHTTP, serveconfig.DefaultHTTPPort, bad)
			if s.speaksGRPC() {
				refuseDefault(s, portGRPC, serveconfig.DefaultGRPCPort, bad)
			}
		},
	},
	{
		ID: "service-port-proxy", Field: "spec.service.ports[*]", By: Expression,
		Refused: "targetPort must not be set for http and grpc, whose proxies listen where serveConfig says", Remedy: "set http_options.port or grpc_options.port there",
		service: func(s *serving, bad report) {
			each(bad, frontPath, "ports", s.front().Ports, func(p *v1beta1.ServePort) bool { return isOfProxies(p) && p.TargetPort != 0 })
		},
	},
	{
		ID: "service-port-number", Field: "spec.service.ports[*]", By: Expression,
		Refused: "port must be set for ports other than http and grpc", Remedy: "set it",
		service: func(s *serving, bad report) {
			each(bad, frontPath, "ports", s.front().Ports, func(p *v1beta1.ServePort) bool { return !isOfProxies(p) && !isSet(p.Port) })
		},
	},
	{
		ID: "service-port-ray", Field: "spec.service.ports[*]", By: Expression,
		Refused: "targetPort (default: port) must not be " + portList(" or ") + ", which are Ray's own ports in a pod", Remedy: "choose another",
		service: func(s *serving, bad report) {
			each(bad, frontPath, "ports", s.front().Ports, func(p *v1beta1.ServePort) bool {
				return !isOfProxies(p) && slices.Contains(portsOfRay, cmp.Or(p.TargetPort, p.Port))
			})
		},
	},
	{
		ID: "service-peer", Field: "spec.service.allowFrom", By: Expression,
		Refused: "a peer must be one of ipBlock, selectors and server, and must not be empty", Remedy: "split it into two peers, or fill it in",
		service: func(s *serving, bad report) {
			each(bad, frontPath, "allowFrom", s.front().AllowFrom, func(p *v1beta1.ServePeer) bool {
				isServer, isOther := p.Server != nil, p.IPBlock != nil || p.PodSelector != nil || p.NamespaceSelector != nil
				return isServer == isOther || isOther && isNoPeer(&p.NetworkPolicyPeer)
			})
		},
	},
	{
		ID: "service-block", Field: "spec.service.allowFrom[*].ipBlock", By: Policy,
		Refused: badBlocks, Remedy: giveBlocks,
		Holds: "object.spec.?service.?allowFrom.orValue([]).all(p, " + goodBlocks + ")",
		service: func(s *serving, bad report) {
			each(bad, frontPath, "allowFrom", s.front().AllowFrom, func(p *v1beta1.ServePeer) bool { return hasBadBlock(&p.NetworkPolicyPeer) })
		},
	},
	{
		ID: "service-grpc", Field: "spec.service.ports", By: Policy,
		Refused: "a grpc port must be used with grpc_servicer_functions, without which the proxies serve no gRPC", Remedy: "set grpc_options.grpc_servicer_functions in serveConfig, or leave the port out",
		Holds: "!object.spec.?service.?ports.orValue([]).exists(p, p.name == 'grpc') || " + speaksGRPC,
		service: func(s *serving, bad report) {
			if !s.speaksGRPC() {
				each(bad, frontPath, "ports", s.front().Ports, func(p *v1beta1.ServePort) bool { return p.Name == portGRPC })
			}
		},
	},
	{
		ID: "service-head", Field: "spec.service.headEndpoints", By: Policy,
		Refused: "headEndpoints must not be false for a cluster without workers, where the head's proxy is the only one", Remedy: "leave headEndpoints out, or add a worker group",
		Holds: "object.spec.?service.?headEndpoints.orValue(true) || !" + headAlone,
		service: func(s *serving, bad report) {
			if head := s.front().HeadEndpoints; head != nil && !*head && s.headAlone() {
				bad.at(frontPath.Child("headEndpoints"), nil)
			}
		},
	},
}

// isOfProxies reports whether a port of a service's Service leads to Serve's proxies.
func isOfProxies(p *v1beta1.ServePort) bool { return p.Name == portHTTP || p.Name == portGRPC }

// refuseDefault reports a port with the number that a port of the proxies has while the spec gives that one no other.
func refuseDefault(s *serving, name string, number int32, bad report) {
	ports := s.front().Ports
	if !slices.ContainsFunc(ports, func(p v1beta1.ServePort) bool { return p.Name == name && isSet(p.Port) }) {
		each(bad, frontPath, "ports", ports, func(p *v1beta1.ServePort) bool { return p.Port == number })
	}
}

// headAlone is an expression for serving.headAlone.
const headAlone = "(has(object.spec.clusterTemplate) && size(variables.cluster.?workerGroups.orValue([])) == 0)"
