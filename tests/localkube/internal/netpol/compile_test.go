package netpol

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// meaning is a case of what the NetworkPolicy API promises, in either family: written for IPv4.
type meaning struct {
	name string
	// specs are policies of the namespace shop, separated by "---".
	specs        string
	open, closed []string
}

func check(t *testing.T, cases []meaning) {
	t.Helper()
	for _, c := range cases {
		for _, family := range families {
			t.Run(c.name+" "+string(family), func(t *testing.T) {
				cluster := testCluster()
				cluster.Policies = policies(t, in(family, c.specs))
				m := newModel(t, cluster, family)
				for _, connection := range c.open {
					if !m.passes(connection) {
						t.Errorf("refused: %s", connection)
					}
				}
				for _, connection := range c.closed {
					if m.passes(connection) {
						t.Errorf("not refused: %s", connection)
					}
				}
			})
		}
	}
}

func TestIsolation(t *testing.T) {
	check(t, []meaning{{
		name:  "deny all ingress of the namespace",
		specs: `{podSelector: {}, policyTypes: [Ingress]}`,
		open: []string{
			"shop/web > ops/web tcp:80", "shop/web > 192.0.2.1 tcp:443", "out/web > ops/web tcp:80",
			"shop/db > shop/db tcp:5432",
		},
		closed: []string{
			"shop/web > shop/db tcp:5432", "shop/web > shop/api tcp:9090", "shop/web > shop/api udp:53",
			"out/web > shop/web tcp:8080", "10.89.0.1 > shop/web tcp:8080", "10.89.0.11 > shop/api tcp:9090",
		},
	}, {
		name:  "without policyTypes and egress rules it is about ingress",
		specs: `{podSelector: {}}`,
		open:  []string{"shop/web > ops/web tcp:80"}, closed: []string{"ops/web > shop/web tcp:8080"},
	}, {
		name:   "without policyTypes egress rules make it about egress as well",
		specs:  `{podSelector: {}, egress: [{ports: [{port: 53, protocol: UDP}]}]}`,
		open:   []string{"shop/web > ops/web udp:53"},
		closed: []string{"shop/web > ops/web tcp:80", "shop/web > ops/web tcp:53", "ops/web > shop/web tcp:8080"},
	}, {
		name:   "egress alone leaves ingress open",
		specs:  `{podSelector: {}, policyTypes: [Egress]}`,
		open:   []string{"ops/web > shop/web tcp:8080", "shop/web > shop/web tcp:8080"},
		closed: []string{"shop/web > ops/web tcp:80", "shop/web > shop/api tcp:9090", "shop/web > 192.0.2.1 udp:53"},
	}, {
		name:   "only selected pods are isolated",
		specs:  `{podSelector: {matchLabels: {role: db}}}`,
		open:   []string{"out/web > shop/web tcp:8080", "shop/web > shop/api tcp:9090"},
		closed: []string{"shop/web > shop/db tcp:5432"},
	}, {
		name:   "expressions select",
		specs:  `{podSelector: {matchExpressions: [{key: tier, operator: In, values: [back, none]}, {key: role, operator: NotIn, values: [api]}]}}`,
		open:   []string{"out/web > shop/web tcp:8080", "shop/web > shop/api tcp:9090"},
		closed: []string{"shop/web > shop/db tcp:5432"},
	}, {
		name:  "an empty rule allows everything, whatever else denies",
		specs: "{podSelector: {}, policyTypes: [Ingress, Egress]}\n---\n{podSelector: {}, ingress: [{}]}\n---\n{podSelector: {}, policyTypes: [Egress], egress: [{}]}",
		open:  []string{"out/web > shop/web tcp:8080", "10.89.0.1 > shop/db tcp:5432", "shop/web > 192.0.2.1 udp:53"},
	}, {
		name: "policies add up",
		specs: `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{podSelector: {matchLabels: {role: web}}}]}]}
---
{podSelector: {matchLabels: {tier: back}}, ingress: [{from: [{podSelector: {matchLabels: {role: api}}}]}]}`,
		open:   []string{"shop/web > shop/db tcp:5432", "shop/api > shop/db tcp:5432"},
		closed: []string{"shop/web > shop/api tcp:9090", "shop/mesh > shop/db tcp:5432"},
	}, {
		name: "both ends have to allow",
		specs: `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{podSelector: {}}]}]}
---
{podSelector: {matchLabels: {role: web}}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {role: api}}}]}]}`,
		open:   []string{"shop/api > shop/db tcp:5432", "shop/web > shop/api tcp:9090"},
		closed: []string{"shop/web > shop/db tcp:5432", "ops/web > shop/db tcp:5432"},
	}})
}

func TestPeers(t *testing.T) {
	check(t, []meaning{{
		name:   "pods of the policy's namespace",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{podSelector: {matchLabels: {role: web}}}]}]}`,
		open:   []string{"shop/web > shop/db tcp:5432"},
		closed: []string{"ops/web > shop/db tcp:5432", "out/web > shop/db tcp:5432", "shop/api > shop/db tcp:5432"},
	}, {
		name:   "all pods of the policy's namespace",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{podSelector: {}}]}]}`,
		open:   []string{"shop/web > shop/db tcp:5432", "shop/api > shop/db tcp:5432"},
		closed: []string{"ops/web > shop/db tcp:5432", "10.89.0.1 > shop/db tcp:5432"},
	}, {
		name:   "all pods of chosen namespaces",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: ops}}}]}]}`,
		open:   []string{"ops/web > shop/db tcp:5432", "ops/monitor > shop/db tcp:5432"},
		closed: []string{"shop/web > shop/db tcp:5432", "out/web > shop/db tcp:5432"},
	}, {
		name:   "all pods of all namespaces, and none but pods",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{namespaceSelector: {}}]}]}`,
		open:   []string{"ops/web > shop/db tcp:5432", "out/web > shop/db tcp:5432"},
		closed: []string{"10.89.0.1 > shop/db tcp:5432", "10.89.0.11 > shop/db tcp:5432"},
	}, {
		name:   "chosen pods of chosen namespaces: one peer with both selectors",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: ops}}, podSelector: {matchLabels: {role: web}}}]}]}`,
		open:   []string{"ops/web > shop/db tcp:5432"},
		closed: []string{"ops/monitor > shop/db tcp:5432", "shop/web > shop/db tcp:5432", "out/web > shop/db tcp:5432"},
	}, {
		name:   "either of them: two peers",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: ops}}}, {podSelector: {matchLabels: {role: web}}}]}]}`,
		open:   []string{"ops/monitor > shop/db tcp:5432", "shop/web > shop/db tcp:5432"},
		closed: []string{"shop/api > shop/db tcp:5432", "out/web > shop/db tcp:5432"},
	}, {
		name:   "on the way out",
		specs:  `{podSelector: {matchLabels: {role: web}}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {team: ops}}, podSelector: {}}]}]}`,
		open:   []string{"shop/web > ops/monitor tcp:80", "shop/web > ops/web udp:80"},
		closed: []string{"shop/web > shop/db tcp:5432", "shop/web > out/web tcp:80", "shop/web > 192.0.2.1 tcp:80"},
	}, {
		name:   "pods that have ended, or are the host, are no peers",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{podSelector: {matchLabels: {role: web}}}]}]}`,
		open:   []string{"shop/web > shop/db tcp:5432"},
		closed: []string{"shop/done > shop/db tcp:5432", "shop/failed > shop/db tcp:5432", "shop/host > shop/db tcp:5432"},
	}})
}

func TestBlocks(t *testing.T) {
	check(t, []meaning{{
		name:   "a block of addresses without its exceptions",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{ipBlock: {cidr: 172.17.0.0/16, except: [172.17.1.0/24, 172.17.2.7/32]}}]}]}`,
		open:   []string{"172.17.0.1 > shop/db tcp:5432", "172.17.2.6 > shop/db tcp:5432", "172.17.255.255 > shop/db udp:1"},
		closed: []string{"172.17.1.1 > shop/db tcp:5432", "172.17.2.7 > shop/db tcp:5432", "172.18.0.1 > shop/db tcp:5432", "shop/web > shop/db tcp:5432"},
	}, {
		name:   "a block that is everything",
		specs:  `{podSelector: {matchLabels: {role: web}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: "0.0.0.0/0", except: [10.0.0.0/8, 128.0.0.0/1]}}]}]}`,
		open:   []string{"shop/web > 8.8.8.8 tcp:443", "shop/web > 11.0.0.1 tcp:443"},
		closed: []string{"shop/web > shop/db tcp:5432", "shop/web > 192.0.2.1 tcp:443"},
	}, {
		name:   "a block may hold pods, and be given with host bits",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{ipBlock: {cidr: 10.244.2.77/24}}]}]}`,
		open:   []string{"out/web > shop/db tcp:5432"},
		closed: []string{"shop/web > shop/db tcp:5432"},
	}, {
		name:   "the same block with other exceptions is another one",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{ipBlock: {cidr: 172.17.0.0/16, except: [172.17.1.0/24]}}], ports: [{port: 1}]}, {from: [{ipBlock: {cidr: 172.17.0.0/16}}], ports: [{port: 2}]}]}`,
		open:   []string{"172.17.1.1 > shop/db tcp:2", "172.17.2.1 > shop/db tcp:1"},
		closed: []string{"172.17.1.1 > shop/db tcp:1"},
	}})
}

func TestABlockHoldsItsOwnFamilyAlone(t *testing.T) {
	for i, block := range []string{"0.0.0.0/0", "::/0"} {
		cluster := testCluster()
		cluster.Policies = policies(t, `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{ipBlock: {cidr: "`+block+`"}}]}]}`)
		for j, family := range families {
			m := newModel(t, cluster, family)
			for _, connection := range []string{"out/web > shop/db tcp:5432", "10.89.0.1 > shop/db tcp:5432"} {
				if got := m.passes(connection); got != (i == j) {
					t.Errorf("the block %s lets %s pass in %s: %v", block, connection, family, got)
				}
			}
		}
	}
}

func TestPorts(t *testing.T) {
	check(t, []meaning{{
		name:   "a number is TCP unless it says otherwise",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{ports: [{port: 5432}]}]}`,
		open:   []string{"out/web > shop/db tcp:5432", "10.89.0.1 > shop/db tcp:5432"},
		closed: []string{"out/web > shop/db udp:5432", "out/web > shop/db tcp:5433"},
	}, {
		name:   "any of the peers on any of the ports",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{podSelector: {matchLabels: {role: web}}}, {ipBlock: {cidr: 10.89.0.0/24}}], ports: [{port: 5432}, {port: 53, protocol: UDP}]}]}`,
		open:   []string{"shop/web > shop/db tcp:5432", "shop/web > shop/db udp:53", "10.89.0.1 > shop/db udp:53"},
		closed: []string{"shop/web > shop/db tcp:53", "shop/api > shop/db tcp:5432", "10.88.0.1 > shop/db tcp:5432"},
	}, {
		name:   "peers and ports of different rules do not mix",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{podSelector: {matchLabels: {role: web}}}], ports: [{port: 1}]}, {from: [{podSelector: {matchLabels: {role: api}}}], ports: [{port: 2}]}]}`,
		open:   []string{"shop/web > shop/db tcp:1", "shop/api > shop/db tcp:2"},
		closed: []string{"shop/web > shop/db tcp:2", "shop/api > shop/db tcp:1"},
	}, {
		name:   "a range has both its ends",
		specs:  `{podSelector: {matchLabels: {role: web}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: 32000, endPort: 32768}]}]}`,
		open:   []string{"shop/web > out/web tcp:32000", "shop/web > out/web tcp:32768"},
		closed: []string{"shop/web > out/web tcp:31999", "shop/web > out/web tcp:32769", "shop/web > out/web udp:32000"},
	}, {
		name:   "a protocol without a port is all of its ports",
		specs:  `{podSelector: {matchLabels: {role: db}}, ingress: [{ports: [{protocol: UDP}]}]}`,
		open:   []string{"out/web > shop/db udp:1", "out/web > shop/db udp:65535"},
		closed: []string{"out/web > shop/db tcp:1"},
	}, {
		name:   "a name is what each guarded pod calls so",
		specs:  `{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}], ports: [{port: http}, {port: proxy}]}]}`,
		open:   []string{"out/web > shop/web tcp:8080", "out/web > shop/api tcp:9090", "out/web > shop/mesh tcp:15001"},
		closed: []string{"out/web > shop/web tcp:9090", "out/web > shop/api tcp:8080", "out/web > shop/db tcp:8080", "out/web > shop/mesh tcp:15002"},
	}, {
		name:   "a name goes with its protocol",
		specs:  `{podSelector: {}, ingress: [{ports: [{port: dns, protocol: UDP}, {port: http, protocol: UDP}, {port: sql}]}]}`,
		open:   []string{"out/web > shop/api udp:53", "out/web > shop/db tcp:5432"},
		closed: []string{"out/web > shop/api tcp:53", "out/web > shop/api udp:9090", "out/web > shop/web tcp:8080"},
	}, {
		name:   "a name on the way out is what each peer calls so",
		specs:  `{podSelector: {matchLabels: {role: mesh}}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {tier: front}}}, {podSelector: {matchLabels: {role: api}}}], ports: [{port: http}]}]}`,
		open:   []string{"shop/mesh > shop/web tcp:8080", "shop/mesh > shop/api tcp:9090"},
		closed: []string{"shop/mesh > shop/web tcp:9090", "shop/mesh > shop/api tcp:8080", "shop/mesh > shop/api udp:9090", "shop/mesh > ops/web tcp:8080"},
	}, {
		name:   "a name on the way out goes with its protocol",
		specs:  `{podSelector: {matchLabels: {role: mesh}}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}], ports: [{port: dns, protocol: UDP}, {port: dns}, {port: http, protocol: UDP}]}]}`,
		open:   []string{"shop/mesh > shop/api udp:53"},
		closed: []string{"shop/mesh > shop/api tcp:53", "shop/mesh > shop/api udp:9090", "shop/mesh > shop/api tcp:9090"},
	}, {
		name:   "a name on the way out to anyone means any pod that has it",
		specs:  `{podSelector: {matchLabels: {role: mesh}}, policyTypes: [Egress], egress: [{ports: [{port: http}]}]}`,
		open:   []string{"shop/mesh > shop/web tcp:8080", "shop/mesh > shop/api tcp:9090"},
		closed: []string{"shop/mesh > shop/db tcp:8080", "shop/mesh > 192.0.2.1 tcp:8080"},
	}, {
		name:   "a block of addresses has no names",
		specs:  `{podSelector: {matchLabels: {role: mesh}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: "0.0.0.0/0"}}], ports: [{port: http}]}]}`,
		closed: []string{"shop/mesh > shop/web tcp:8080", "shop/mesh > 192.0.2.1 tcp:8080"},
	}})
}

// A kernel without the match for SCTP would refuse the whole transaction.
func TestSCTPMakesNoRule(t *testing.T) {
	cluster := testCluster()
	cluster.Policies = policies(t, `{podSelector: {matchLabels: {role: db}}, ingress: [{ports: [{port: 5432, protocol: SCTP}]}]}`)
	chains := Compile(cluster, "north", plan.IPv4).Chains
	if len(chains) != 1 || len(chains[0].Rules) != 0 {
		t.Errorf("chains %v, want one without rules", chains)
	}
}

// An ipset refuses a member that is there already.
func TestASetHasEachMemberOnce(t *testing.T) {
	cluster := testCluster()
	twin := pod("shop/twin", "south", "10.244.1.2", "role=web", port("http", "TCP", 8080))
	cluster.Pods = append(cluster.Pods, twin)
	cluster.Policies = policies(t, `{podSelector: {matchLabels: {role: db}}, policyTypes: [Egress], egress: [
		{to: [{podSelector: {matchLabels: {role: web}}}], ports: [{port: 80}, {port: http}]},
		{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.1/16, 10.1.0.2/16]}}]}]}`)
	got := map[Kind][]string{}
	for _, set := range Compile(cluster, "north", plan.IPv4).Sets {
		got[set.Kind] = set.Members
	}
	want := map[Kind][]string{
		AddressSet: {"10.244.1.2"},
		PortSet:    {"10.244.1.2,tcp:8080"},
		NetSet:     {"10.0.0.0/8", "10.1.0.0/16 nomatch"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestWithoutPoliciesNothingIsEnforced(t *testing.T) {
	if diff := cmp.Diff(Ruleset{}, Compile(testCluster(), "north", families...)); diff != "" {
		t.Errorf("ruleset (-want +got):\n%s", diff)
	}
}

func TestANodeGuardsItsOwnPodsAlone(t *testing.T) {
	cluster := testCluster()
	cluster.Policies = policies(t, `{podSelector: {}, policyTypes: [Ingress, Egress]}`)
	got := map[string][]string{}
	for _, node := range nodes {
		for _, chain := range Compile(cluster, node, plan.IPv6).Chains {
			got[node] = append(got[node], chain.Pod+" "+string(chain.Direction))
		}
	}
	want := map[string][]string{
		"north": {"shop/db egress", "shop/db ingress", "shop/web egress", "shop/web ingress"},
		"south": {"shop/api egress", "shop/api ingress", "shop/mesh egress", "shop/mesh ingress"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("guarded pods (-want +got):\n%s", diff)
	}
}

// mixed has rules with each kind of set.
const mixed = `{podSelector: {}, policyTypes: [Ingress, Egress], ingress: [{from: [{podSelector: {}}, {namespaceSelector: {}}], ports: [{port: http}]}], egress: [{to: [{podSelector: {}}], ports: [{port: http}]}]}
---
{podSelector: {matchLabels: {tier: back}}, ingress: [{from: [{ipBlock: {cidr: "0.0.0.0/0", except: [10.0.0.0/8]}}], ports: [{port: 1, endPort: 9}]}, {}]}`

func TestTheOrderOfTheInputDoesNotMatter(t *testing.T) {
	cluster := testCluster()
	cluster.Policies = policies(t, mixed)
	want := Compile(cluster, "north", families...)
	if len(want.Sets) != 8 {
		t.Fatalf("%d sets, want one for each peer and family: %v", len(want.Sets), want.Sets)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		random.Shuffle(len(cluster.Pods), func(i, j int) { cluster.Pods[i], cluster.Pods[j] = cluster.Pods[j], cluster.Pods[i] })
		random.Shuffle(len(cluster.Policies), func(i, j int) {
			cluster.Policies[i], cluster.Policies[j] = cluster.Policies[j], cluster.Policies[i]
		})
		if diff := cmp.Diff(want, Compile(cluster, "north", families...), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Fatalf("ruleset (-want +got):\n%s", diff)
		}
	}
}

func TestNamesFitTheKernel(t *testing.T) {
	chain := Chain{Pod: "a-namespace/and-a-pod-with-a-very-long-name", Direction: Ingress}
	if name := chain.Name(); len(name) > 28 || name == (Chain{Pod: chain.Pod, Direction: Egress}).Name() {
		t.Errorf("chain %q is too long or has the name of the other direction", name)
	}
	if name := setName(plan.IPv4, "a key") + "t"; len(name) > 31 || name == setName(plan.IPv6, "a key")+"t" {
		t.Errorf("set %q is too long or has the name of the other family", name)
	}
}
