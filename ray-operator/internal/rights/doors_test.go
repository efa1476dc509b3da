package rights_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
)

type (
	peer     = networkingv1.NetworkPolicyPeer
	selector = metav1.LabelSelector
)

func block(cidr string, except ...string) peer {
	return peer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

// doors are clusters by what they open, with what they need.
var doors = map[string]struct {
	spec v1beta1.ComputeClusterSpec
	want string
}{
	"no authentication": {v1beta1.ComputeClusterSpec{
		Authentication: &v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled},
	}, "open spec.authentication.mode"},
	"authentication": {v1beta1.ComputeClusterSpec{
		Authentication: &v1beta1.Authentication{Mode: v1beta1.AuthenticationToken},
	}, ""},
	"no isolation": {v1beta1.ComputeClusterSpec{
		Network: &v1beta1.Network{Isolation: v1beta1.Disabled},
	}, "open spec.network.isolation"},
	"isolation": {v1beta1.ComputeClusterSpec{Network: &v1beta1.Network{Isolation: v1beta1.Enabled}}, ""},
	"metadata": {v1beta1.ComputeClusterSpec{
		Network: &v1beta1.Network{CloudMetadata: v1beta1.Enabled},
	}, "metadata spec.network.cloudMetadata"},
	"no metadata": {v1beta1.ComputeClusterSpec{
		Network: &v1beta1.Network{CloudMetadata: v1beta1.Disabled},
	}, ""},
	"a load balancer": {
		ofHead(corev1.ServiceTypeLoadBalancer), "service spec.head.service.type; open spec.head.service.type",
	},
	"a node port": {
		ofHead(corev1.ServiceTypeNodePort), "service spec.head.service.type; open spec.head.service.type",
	},
	"a Service": {ofHead(corev1.ServiceTypeClusterIP), ""},
	"an Ingress": {v1beta1.ComputeClusterSpec{
		Head: v1beta1.HeadSpec{Ingress: &v1beta1.IngressSpec{}},
	}, "ingress spec.head.ingress; open spec.head.ingress"},
	"an Ingress with TLS": {v1beta1.ComputeClusterSpec{
		Head: v1beta1.HeadSpec{Ingress: &v1beta1.IngressSpec{TLSSecretName: "tls"}},
	}, "ingress spec.head.ingress"},
	"an Ingress with a certificate of cert-manager": {ofIngress("cert-manager.io/issuer"), "ingress spec.head.ingress"},
	"an Ingress with another annotation": {
		ofIngress("nginx.ingress.kubernetes.io/ssl-redirect"), "ingress spec.head.ingress; open spec.head.ingress",
	},
	"an annotated Service": {v1beta1.ComputeClusterSpec{
		Head: v1beta1.HeadSpec{Service: &v1beta1.HeadServiceSpec{Annotations: map[string]string{"tailscale.com/expose": "true"}}},
	}, "service spec.head.service.annotations"},
}

func ofIngress(annotation string) v1beta1.ComputeClusterSpec {
	return v1beta1.ComputeClusterSpec{Head: v1beta1.HeadSpec{Ingress: &v1beta1.IngressSpec{
		TLSSecretName: "tls", Annotations: map[string]string{annotation: "true"},
	}}}
}

func ofHead(kind corev1.ServiceType) v1beta1.ComputeClusterSpec {
	return v1beta1.ComputeClusterSpec{Head: v1beta1.HeadSpec{Service: &v1beta1.HeadServiceSpec{Type: kind}}}
}

func TestDemands_AreForWhatOpensClusters(t *testing.T) {
	t.Parallel()
	for name, c := range doors {
		t.Run(name, func(t *testing.T) {
			if have := ofSpec(t, &c.spec); have != c.want {
				t.Errorf("needs %q, want %q", have, c.want)
			}
		})
	}
}

// everybodies are peers, and of which objects they are everybody.
var everybodies = map[string]struct {
	peers               []peer
	ofCluster, ofServed bool
}{
	"all of IPv4":             {[]peer{block("0.0.0.0/0")}, true, true},
	"all of IPv6":             {[]peer{block("::/0")}, true, true},
	"a wide block":            {[]peer{block("10.0.0.0/7")}, true, true},
	"a wide block but some":   {[]peer{block("10.0.0.0/7", "10.0.0.0/8")}, true, true},
	"a network of pods":       {[]peer{block("10.0.0.0/8")}, false, true},
	"a wide part of it":       {[]peer{block("10.0.0.0/15")}, false, true},
	"a part of it":            {[]peer{block("10.1.0.0/16")}, false, false},
	"what is no block":        {[]peer{block("everything")}, true, true},
	"an IPv4 block as IPv6":   {[]peer{block("::ffff:10.0.0.0/120")}, true, true},
	"the private blocks":      {[]peer{block("10.0.0.0/8"), block("172.16.0.0/12"), block("192.168.0.0/16")}, false, true},
	"the same and IPv6's":     {[]peer{block("10.0.0.0/8"), block("172.16.0.0/12"), block("192.168.0.0/16"), block("fd00::/8")}, false, true},
	"two wide blocks":         {[]peer{block("10.0.0.0/8"), block("11.0.0.0/8")}, true, true},
	"64 wide blocks":          {blocks(64, 8, 24), true, true},
	"four blocks of /9":       {blocks(4, 9, 23), true, true},
	"three blocks of /9":      {blocks(3, 9, 23), false, true},
	"two blocks of /16":       {blocks(2, 16, 16), false, true},
	"511 addresses":           {blocks(511, 32, 0), false, false},
	"512 addresses":           {blocks(512, 32, 0), true, true},
	"a site's block of IPv6":  {[]peer{block("2001:db8:1::/48")}, false, false},
	"a wider block of IPv6":   {[]peer{block("2001:db8::/32")}, false, true},
	"all namespaces":          {[]peer{{NamespaceSelector: &selector{}}}, true, true},
	"pods of all namespaces":  {[]peer{{NamespaceSelector: &selector{}, PodSelector: &selector{MatchLabels: some}}}, true, true},
	"namespaces by a label":   {[]peer{{NamespaceSelector: &selector{MatchLabels: some}}}, false, false},
	"namespaces by their key": {[]peer{{NamespaceSelector: by(corev1.LabelMetadataName, metav1.LabelSelectorOpExists)}}, true, true},
	"namespaces by any key":   {[]peer{{NamespaceSelector: by("team", metav1.LabelSelectorOpExists)}}, true, true},
	"namespaces without one":  {[]peer{{NamespaceSelector: by("no-such-label", metav1.LabelSelectorOpDoesNotExist)}}, true, true},
	"all namespaces but one":  {[]peer{{NamespaceSelector: by("team", metav1.LabelSelectorOpNotIn, "b")}}, true, true},
	"namespaces in a list":    {[]peer{{NamespaceSelector: by("team", metav1.LabelSelectorOpIn, "a", "b")}}, false, false},
	"a list but some": {[]peer{{NamespaceSelector: &selector{MatchExpressions: append(
		by("team", metav1.LabelSelectorOpIn, "a", "b").MatchExpressions, by("closed", metav1.LabelSelectorOpDoesNotExist).MatchExpressions...,
	)}}}, false, false},
	"a label and a key": {[]peer{{NamespaceSelector: &selector{
		MatchLabels: some, MatchExpressions: by("team", metav1.LabelSelectorOpExists).MatchExpressions,
	}}}, false, false},
	"all pods beside it": {[]peer{{PodSelector: &selector{}}}, false, false},
}

var some = map[string]string{"team": "a"}

// by selects by one requirement.
func by(key string, operator metav1.LabelSelectorOperator, values ...string) *selector {
	return &selector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

// blocks are so many that follow each other, of a length of prefix, whose rest has so many bits.
func blocks(count, bits, rest int) []peer {
	all := make([]peer, count)
	for i := range all {
		at := (64<<24 + uint32(i)<<rest)
		all[i] = block(fmt.Sprintf("%d.%d.%d.%d/%d", at>>24, at>>16&255, at>>8&255, at&255, bits))
	}
	return all
}

// Everybody may be the only peers or beside another, in one rule or spread over two.
func TestDemands_AreForEverybody(t *testing.T) {
	t.Parallel()
	one := peer{PodSelector: &selector{MatchLabels: some}}
	for name, c := range everybodies {
		t.Run(name, func(t *testing.T) {
			inCluster, inService := "", ""
			if c.ofCluster {
				inCluster = "open spec.network.allowFrom"
			}
			if c.ofServed {
				inService = "open spec.service.allowFrom"
			}
			half := len(c.peers) / 2
			for _, rules := range [][]v1beta1.IngressRule{
				{{From: c.peers}}, {{From: append([]peer{one}, c.peers...)}},
				{{From: append([]peer{one}, c.peers[:half]...)}, {From: append([]peer{one}, c.peers[half:]...)}},
			} {
				spec := &v1beta1.ComputeClusterSpec{Network: &v1beta1.Network{AllowFrom: rules}}
				if have := ofSpec(t, spec); have != inCluster {
					t.Errorf("a cluster needs %q, want %q", have, inCluster)
				}
			}
			service := &v1beta1.ServeService{AllowFrom: []v1beta1.ServePeer{{NetworkPolicyPeer: one}, {Server: &v1beta1.ServerPeer{}}}}
			for _, p := range c.peers {
				service.AllowFrom = append(service.AllowFrom, v1beta1.ServePeer{NetworkPolicyPeer: p})
			}
			if have := ofService(v1beta1.ClusterServiceSpec{Service: service}); have != inService {
				t.Errorf("a service needs %q, want %q", have, inService)
			}
		})
	}
	open := []v1beta1.IngressRule{{From: []peer{one}}, {}}
	want := "open spec.network.allowFrom"
	if have := ofSpec(t, &v1beta1.ComputeClusterSpec{Network: &v1beta1.Network{AllowFrom: open}}); have != want {
		t.Errorf("a rule without peers needs %q, want %q", have, want)
	}
}

// ways are peers to be reached, and whether an address of the cloud's metadata is among them.
var ways = map[string]struct {
	peer peer
	is   bool
}{
	"the address of most clouds":   {block("169.254.169.254/32"), true},
	"another address of it":        {block("169.254.169.252/32"), true},
	"the address between them":     {block("169.254.169.253/32"), true},
	"Tencent's address":            {block("169.254.0.23/32"), true},
	"the address of Azure's host":  {block("168.63.129.16/32"), true},
	"the address of an older one":  {block("192.0.0.192/32"), true},
	"a part of link-local ones":    {block("169.254.0.0/17"), true},
	"EKS Pod Identity":             {block("169.254.170.23/32"), false},
	"EKS Pod Identity by IPv6":     {block("fd00:ec2::23/128"), false},
	"more than EKS Pod Identity":   {block("169.254.170.22/31"), true},
	"link-local ones of IPv6":      {block("fe80::1/128"), true},
	"an address of IPv4 in IPv6":   {block("::ffff:169.254.169.254/128"), true},
	"Alibaba's address":            {block("100.100.100.200/32"), true},
	"Amazon's address of IPv6":     {block("fd00:ec2::254/128"), true},
	"Google's address of IPv6":     {block("fd20:ce::254/128"), true},
	"all of IPv4":                  {block("0.0.0.0/0"), true},
	"all of IPv6":                  {block("::/0"), true},
	"all but one of them":          {block("0.0.0.0/0", "169.254.169.254/32"), true},
	"all but the two of one block": {block("0.0.0.0/0", "169.254.169.0/24"), true},
	"all but all of them":          {block("0.0.0.0/0", "10.0.0.0/8", "169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32"), false},
	"all but those of some clouds": {block("0.0.0.0/0", "169.254.169.0/24", "100.100.100.200/32"), true},
	"all but what is no block":     {block("169.254.0.0/16", "169.254.169.254"), true},
	"all of IPv6 but one":          {block("::/0", "fd00:ec2::254/128"), true},
	"all of IPv6 but private ones": {block("::/0", "fc00::/7"), true},
	"all of IPv6 but local ones":   {block("::/0", "fc00::/7", "fe80::/10"), true},
	"all but local ones and NAT64": {block("::/0", "fc00::/7", "fe80::/10", "64:ff9b::/96"), false},
	"IPv4 by NAT64":                {block("64:ff9b::/96"), true},
	"Azure's address by NAT64":     {block("64:ff9b::a83f:8110/128"), true},
	"another address by NAT64":     {block("64:ff9b::808:808/128"), false},
	"a network":                    {block("10.0.0.0/8"), false},
	"a network of IPv6":            {block("2001:db8::/32"), false},
	"what is no block":             {block("everything"), true},
	"all namespaces":               {peer{NamespaceSelector: &selector{}}, false},
	"all pods beside it":           {peer{PodSelector: &selector{}}, false},
}

func TestDemands_AreForWaysToMetadata(t *testing.T) {
	t.Parallel()
	one := block("10.0.0.0/8")
	reached := func(t *testing.T, want string, rules ...v1beta1.EgressRule) {
		t.Helper()
		if have := ofSpec(t, &v1beta1.ComputeClusterSpec{Network: &v1beta1.Network{AllowTo: rules}}); have != want {
			t.Errorf("%+v needs %q, want %q", rules, have, want)
		}
	}
	const needed = "metadata spec.network.allowTo"
	for name, c := range ways {
		t.Run(name, func(t *testing.T) {
			want := ""
			if c.is {
				want = needed
			}
			reached(t, want, v1beta1.EgressRule{To: []peer{c.peer}})
			reached(t, want, v1beta1.EgressRule{To: []peer{one, c.peer}})
			reached(t, want, v1beta1.EgressRule{To: []peer{one}}, v1beta1.EgressRule{To: []peer{c.peer, one}})
		})
	}
	reached(t, needed, v1beta1.EgressRule{})
	reached(t, needed, v1beta1.EgressRule{To: []peer{one}}, v1beta1.EgressRule{To: []peer{}})
	reached(t, "")
}

func ofService(spec v1beta1.ClusterServiceSpec) string {
	return written(rights.OfService(&v1beta1.ClusterService{Spec: spec}, rights.ChartSite()))
}

// services are by what they open or use, with what they need.
var services = map[string]struct {
	spec v1beta1.ClusterServiceSpec
	want string
}{
	"a load balancer": {v1beta1.ClusterServiceSpec{
		Service: &v1beta1.ServeService{Type: corev1.ServiceTypeLoadBalancer},
	}, "service spec.service.type; open spec.service.type"},
	"a node port": {v1beta1.ClusterServiceSpec{
		Service: &v1beta1.ServeService{Type: corev1.ServiceTypeNodePort},
	}, "service spec.service.type; open spec.service.type"},
	"a Service": {v1beta1.ClusterServiceSpec{Service: &v1beta1.ServeService{Type: corev1.ServiceTypeClusterIP}}, ""},
	"a gateway": {v1beta1.ClusterServiceSpec{
		UpgradeStrategy: &v1beta1.ServiceUpgradeStrategy{Gateway: &v1beta1.ServiceGateway{}},
	}, "route spec.upgradeStrategy.gateway"},
	"a strategy": {v1beta1.ClusterServiceSpec{UpgradeStrategy: &v1beta1.ServiceUpgradeStrategy{Type: v1beta1.ServiceUpgradeInPlace}}, ""},
	"a cluster": {v1beta1.ClusterServiceSpec{
		ClusterRef: &v1beta1.ClusterReference{Name: "theirs"},
	}, "cluster spec.clusterRef theirs"},
	"doors of both": {v1beta1.ClusterServiceSpec{
		Service:         &v1beta1.ServeService{Type: corev1.ServiceTypeNodePort},
		ClusterTemplate: &v1beta1.ClusterTemplate{Spec: ofHead(corev1.ServiceTypeNodePort)},
	}, "service spec.clusterTemplate.spec.head.service.type; open spec.clusterTemplate.spec.head.service.type"},
}

func TestDemands_AreForDoorsOfServices(t *testing.T) {
	t.Parallel()
	for name, c := range services {
		t.Run(name, func(t *testing.T) {
			if have := ofService(c.spec); have != c.want {
				t.Errorf("needs %q, want %q", have, c.want)
			}
		})
	}
}

// A job uses a cluster by the same right, and its variables are asked about with those of its own cluster.
func TestDemands_OfJobsAreForTheirCluster(t *testing.T) {
	t.Parallel()
	for want, spec := range map[string]v1beta1.ClusterJobSpec{
		"cluster spec.clusterRef theirs": {ClusterRef: &v1beta1.ClusterReference{Name: "theirs"}},
		"secret spec.env s; secret spec.clusterTemplate.spec.podDefaults.imagePullSecrets p": {
			Env: []corev1.EnvVar{{ValueFrom: secretKey("s")}},
			ClusterTemplate: &v1beta1.ClusterTemplate{Spec: v1beta1.ComputeClusterSpec{PodDefaults: &v1beta1.PodDefaults{
				ImagePullSecrets: []corev1.LocalObjectReference{named("p"), named("s")},
			}}},
		},
	} {
		if have := written(rights.OfJob(&v1beta1.ClusterJob{Spec: spec}, rights.ChartSite())); have != want {
			t.Errorf("a job needs %q, want %q", have, want)
		}
	}
}
