package validate

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

var (
	ownOfServices = slices.Concat(serviceSchemaRules, serviceExpressions, serviceRules, gatewayRules, serveFormRules, serveRules, applicationRules, deploymentRules, scalingRules, healthRules, homeRules)
	allOfServices = slices.Concat(all, ownOfServices)
)

// ServiceRules are the rules about a service beside Rules, which hold for the cluster that it
// describes, and of which some are asked of the rest of a service too.
func ServiceRules() []Rule { return slices.Clone(ownOfServices) }

// Service returns all that is wrong with a service, but for what the CRD alone refuses. The cluster of its own is refused where the
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

// serving is a service with what most of its rules ask of it at hand.
type serving struct {
	service *v1beta1.ClusterService
	spec    *v1beta1.ClusterServiceSpec
	home
	// config is the serveConfig as JSON has it, nil where it is none or no object.
	config map[string]any
	// parts are the objects of the configuration by their kinds.
	parts map[string][]part
	// applications and deployments are how many there are, also where they are too many.
	applications, deployments int
}

func servingOf(service *v1beta1.ClusterService) *serving {
	s := &serving{service: service, spec: &service.Spec, home: homeOf(service.Spec.ClusterTemplate)}
	if json.Unmarshal(service.Spec.ServeConfig.Raw, &s.config) != nil {
		s.config = nil
	}
	s.takeApart()
	return s
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
)

// Ports of a service's Service that lead to Serve's proxies.
const (
	portHTTP = "http"
	portGRPC = "grpc"
)

// goodIn is an expression about the labels or annotations of the Service.
func goodIn(good, which string) string {
	return fmt.Sprintf(good, "object.spec.?service.?"+which+".orValue({})")
}

// serviceRules are about the service as a whole.
var serviceRules = []Rule{
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
		ID: "service-shared-volume", Field: "spec.clusterTemplate.spec.sharedVolumes", By: Policy,
		Refused: "a shared volume in the clusterTemplate of a service must not have claim, because each cluster of an upgrade would have an empty volume of its own", Remedy: "make a PersistentVolumeClaim, and name it in claimName",
		Holds: "!variables.cluster.?sharedVolumes.orValue([]).exists(v, has(v.claim))",
		service: func(s *serving, bad report) {
			if s.cluster != nil {
				each(bad, templateSpec, "sharedVolumes", s.cluster.Spec.SharedVolumes, func(v *v1beta1.SharedVolume) bool { return v.Claim != nil })
			}
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

// refuseDefault reports a port with the number that a port of the proxies has while the spec gives that one no other.
func refuseDefault(s *serving, name string, number int32, bad report) {
	ports := s.front().Ports
	if !slices.ContainsFunc(ports, func(p v1beta1.ServePort) bool { return p.Name == name && isSet(p.Port) }) {
		each(bad, frontPath, "ports", ports, func(p *v1beta1.ServePort) bool { return p.Port == number })
	}
}

// headAlone is an expression for serving.headAlone.
const headAlone = "(has(object.spec.clusterTemplate) && size(variables.cluster.?workerGroups.orValue([])) == 0)"
