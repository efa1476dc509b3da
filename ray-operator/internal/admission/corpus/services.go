package corpus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

type (
	offer    = v1beta1.ClusterService
	offers   = v1beta1.ClusterServiceSpec
	offerRow = Row[*offer]
	change   = func(*offer)
)

// Services are ClusterServices, with one row or more for each side of each of their rules, and
// a service on a cluster of its own for each row about a cluster.
func Services() Kind[*offer] {
	return newKind(Kind[*offer]{
		Good: GoodService, Rows: slices.Concat(ServiceRows(), servedTemplates()),
		kind: "ClusterService",
		// Those of its cluster are a cluster's.
		pods: func(*offer) []*corev1.Pod { return nil },
	})
}

// ServiceRows are the rows about a service's own rules.
func ServiceRows() []Row[*offer] {
	return slices.Concat(serviceRows, serviceReachRows, healthRows, upgradeRows, gatewayRows, ownServiceRows, serveRows, proxyRows, applicationRows, deploymentRows, numberRows, scalingRows, fullRows)
}

// GoodService runs one application on a cluster that exists, with nothing else said.
func GoodService() *offer {
	return &offer{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterService"},
		ObjectMeta: metav1.ObjectMeta{Name: "text"},
		Spec: offers{
			ClusterRef:  &v1beta1.ClusterReference{Name: "demo"},
			ServeConfig: runtime.RawExtension{Raw: []byte(`{"applications":[{"name":"text","import_path":"app.main:app"}]}`)},
		},
	}
}

// servedTemplates are the rows about clusters, said of the cluster that a service describes.
// They keep their rules' names, but for changes: of a changed template another cluster is made.
func servedTemplates() []offerRow {
	var all []offerRow
	for _, r := range Clusters().Rows {
		derived := offerRow{Name: inService + r.Name, Rule: r.Rule, Edit: inServed(r.Edit)}
		if r.Before != nil {
			derived.Rule, derived.Before = "", inServed(r.Before)
			before := GoodService()
			if derived.Before(before); len(create("ClusterService", before)) > 0 {
				continue // no service is ever in that state
			}
		}
		all = append(all, derived)
	}
	return all
}

// inServed edits the cluster that a service describes.
func inServed(edits ...edit) change {
	return func(o *offer) {
		onOwn(o)
		described := &cluster{Spec: o.Spec.ClusterTemplate.Spec}
		both(edits...)(described)
		o.Spec.ClusterTemplate.Spec = described.Spec
	}
}

// onOwn gives a service a cluster of its own, if it has none.
func onOwn(o *offer) {
	o.Spec.ClusterRef = nil
	if o.Spec.ClusterTemplate == nil {
		o.Spec.ClusterTemplate = &v1beta1.ClusterTemplate{Spec: Good().Spec}
	}
}

func onExisting(name string) change {
	return serviceSpec(func(s *offers) {
		s.ClusterRef, s.ClusterTemplate, s.UpgradeStrategy = &v1beta1.ClusterReference{Name: name}, nil, nil
	})
}

// serviceSpec edits the spec of a service.
func serviceSpec(edit func(*offers)) change {
	return func(o *offer) { edit(&o.Spec) }
}

func serviceNamed(name string) change { return func(o *offer) { o.Name = name } }

func serviceManaged(by string) change { return serviceSpec(func(s *offers) { s.ManagedBy = by }) }

func servedMeta(labels, annotations map[string]string) change {
	return both(onOwn, func(o *offer) {
		o.Spec.ClusterTemplate.Metadata = v1beta1.TemplateMetadata{Labels: labels, Annotations: annotations}
	})
}

func front(edit func(*v1beta1.ServeService)) change {
	return serviceSpec(func(s *offers) {
		if s.Service == nil {
			s.Service = &v1beta1.ServeService{}
		}
		edit(s.Service)
	})
}

func frontPeers(peers ...networkingv1.NetworkPolicyPeer) change {
	return front(func(s *v1beta1.ServeService) {
		for _, peer := range peers {
			s.AllowFrom = append(s.AllowFrom, v1beta1.ServePeer{NetworkPolicyPeer: peer})
		}
	})
}

// frontServer lets the server in to a service, by a peer that also has something else.
func frontServer(beside networkingv1.NetworkPolicyPeer) change {
	return front(func(s *v1beta1.ServeService) {
		s.AllowFrom = append(s.AllowFrom, v1beta1.ServePeer{NetworkPolicyPeer: beside, Server: &v1beta1.ServerPeer{}})
	})
}

func frontPorts(ports ...v1beta1.ServePort) change {
	return front(func(s *v1beta1.ServeService) { s.Ports = ports })
}

// manyPorts are additional ports.
func manyPorts(n int32) []v1beta1.ServePort {
	var ports []v1beta1.ServePort
	for i := range n {
		ports = append(ports, v1beta1.ServePort{Name: fmt.Sprintf("port-%d", i), Port: 20000 + i})
	}
	return ports
}

func headTakes(requests bool) change {
	return front(func(s *v1beta1.ServeService) { s.HeadEndpoints = &requests })
}

// gated gives a service a gateway, with an edit of that.
func gated(edit func(*v1beta1.ServiceGateway)) change {
	return upgraded(func(u *v1beta1.ServiceUpgradeStrategy) {
		u.Gateway = &v1beta1.ServiceGateway{ParentRef: v1beta1.GatewayReference{Name: "public"}}
		edit(u.Gateway)
	})
}

// hosted gives a service a gateway for hostnames.
func hosted(names ...string) change {
	return gated(func(g *v1beta1.ServiceGateway) { g.Hostnames = names })
}

func upgraded(edit func(*v1beta1.ServiceUpgradeStrategy)) change {
	return both(onOwn, serviceSpec(func(s *offers) {
		if s.UpgradeStrategy == nil {
			s.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{}
		}
		edit(s.UpgradeStrategy)
	}))
}

func steps(step, surge *int32) change {
	return upgraded(func(u *v1beta1.ServiceUpgradeStrategy) {
		u.Surge = &v1beta1.Surge{StepPercent: step, MaxSurgePercent: surge}
	})
}

func asked(path string) change { return serviceSpec(func(s *offers) { s.HealthPath = path }) }

// config sets the whole serveConfig.
func config(text string) change {
	return serviceSpec(func(s *offers) { s.ServeConfig = runtime.RawExtension{Raw: []byte(text)} })
}

// serve lays a text over the serveConfig: objects and lists of them are laid over each other
// entry by entry, all else takes the place of what was there.
func serve(text string) change {
	return serviceSpec(func(s *offers) {
		var now any
		if len(s.ServeConfig.Raw) > 0 {
			now = parsed(s.ServeConfig.Raw)
		}
		s.ServeConfig = runtime.RawExtension{Raw: written(overlaid(now, parsed([]byte(text))))}
	})
}

// app does so with the first application, dep with its first deployment, and proxy with the
// options of the HTTP proxies.
func app(fields string) change { return serve(`{"applications":[{` + fields + `}]}`) }

func dep(fields string) change {
	return app(`"deployments":[{"name":"Model",` + fields + `}]`)
}

func proxy(fields string) change { return serve(`{"http_options":{` + fields + `}}`) }

func actor(fields string) change { return dep(`"ray_actor_options":{` + fields + `}`) }

func scaling(fields string) change { return dep(`"autoscaling_config":{` + fields + `}`) }

func gang(fields string) change { return dep(`"gang_scheduling_config":{` + fields + `}`) }

// many are so many applications with so many deployments each.
func many(applications, deployments int) change {
	var all []string
	for i := range applications {
		entries := make([]string, deployments)
		for j := range entries {
			entries[j] = fmt.Sprintf(`{"name":"d%d","num_replicas":1,"ray_actor_options":{"num_cpus":0.5,"runtime_env":{"working_dir":"s3://bucket/code.zip"}}}`, j)
		}
		all = append(all, fmt.Sprintf(`{"name":"a%[1]d","route_prefix":"/a%[1]d","import_path":"app.main:app","deployments":[%[2]s]}`, i, strings.Join(entries, ",")))
	}
	return config(`{"applications":[` + strings.Join(all, ",") + `]}`)
}

func overlaid(below, above any) any {
	if list, ok := above.([]any); ok && len(list) > 0 {
		return overlaidList(below, list)
	}
	object, ok := above.(map[string]any)
	now, was := below.(map[string]any)
	if !ok || !was {
		return above
	}
	for key, value := range object {
		now[key] = overlaid(now[key], value)
	}
	return now
}

func overlaidList(below any, list []any) any {
	now, _ := below.([]any)
	for i := range list {
		if _, ok := list[i].(map[string]any); !ok || len(now) == 0 {
			return list
		}
		if i < len(now) {
			list[i] = overlaid(now[i], list[i])
		}
	}
	return append(list, now[min(len(list), len(now)):]...)
}

func written(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("write down a serveConfig: %v", err)) // it was read as JSON
	}
	return text
}
