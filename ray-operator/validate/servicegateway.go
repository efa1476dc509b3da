package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// gateway is that of a service, nil where it has none.
func (s *serving) gateway() *v1beta1.ServiceGateway { return s.upgrade().Gateway }

func gatewayPath() *field.Path { return specPath.Child("upgradeStrategy", "gateway") }

// gatewayRules are about the gateway that divides a service's requests.
var gatewayRules = []Rule{
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
