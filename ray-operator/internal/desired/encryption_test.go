package desired_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func encrypted() *v1beta1.ComputeCluster {
	cluster := managed()
	cluster.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
	return cluster
}

func TestEncryption_Golden(t *testing.T) {
	cluster := encrypted()
	testkit.Golden(t, "encrypted-head-service", desired.HeadService(cluster, 1))
	testkit.Golden(t, "encrypted-network-policy", desired.NetworkPolicy(cluster, site))
	set := desired.StoreSet(cluster)
	desired.EncryptStore(set, cluster, site)
	testkit.Golden(t, "encrypted-store-set", set)
	testkit.Golden(t, "authority-secret", desired.AuthoritySecret(cluster, []byte("certificate"), []byte("key")))
}

// TestNetworkPolicy_ClosesAgentsWithEncryption: they take the token in clear text. Every other port is open among pods.
func TestNetworkPolicy_ClosesAgentsWithEncryption(t *testing.T) {
	open := func(number int32) bool {
		for _, rule := range desired.NetworkPolicy(encrypted(), site).Spec.Ingress {
			for _, port := range rule.Ports {
				if *port.Protocol == corev1.ProtocolTCP && number >= port.Port.IntVal && number <= max(port.Port.IntVal, ptr.Deref(port.EndPort, 0)) {
					return true
				}
			}
			if len(rule.Ports) == 0 {
				return true
			}
		}
		return false
	}
	for _, number := range []int32{1, naming.PortGCS, naming.PortAgent - 1, naming.PortAgent + 1, 65535} {
		if !open(number) {
			t.Errorf("port %d is closed among pods", number)
		}
	}
	if open(naming.PortAgent) {
		t.Error("agents are open among pods")
	}
	if ports := desired.NetworkPolicy(managed(), site).Spec.Ingress[0].Ports; len(ports) > 0 {
		t.Errorf("without encryption pods reach each other on %v alone", ports)
	}
}

// TestStoreSet_TakesTLSAlone: a port without it would take passwords in clear text.
func TestStoreSet_TakesTLSAlone(t *testing.T) {
	set := desired.StoreSet(managed())
	if desired.EncryptsStore(set) {
		t.Error("a Redis without encryption takes TLS")
	}
	desired.EncryptStore(set, managed(), site)
	args := set.Spec.Template.Spec.Containers[0].Args
	if at := slices.Index(args, "--port"); at < 0 || args[at+1] != "0" || !desired.EncryptsStore(set) {
		t.Errorf("the arguments are %v", args)
	}
}
