package fakehead_test

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

// TestWhatProxiesLeadTo: nowhere before a replica runs, to the former replicas while others
// start, and nowhere once the application is gone.
func TestWhatProxiesLeadTo(t *testing.T) {
	head, clock, _ := staffed(t)
	leadsTo := func(instance, state, code string) {
		t.Helper()
		seen := head.Proxied(instance)
		if seen.State != state || !strings.Contains(string(seen.Routes["/a"]["runtime_env"]), code) || (code == "") != (len(seen.Routes) == 0) {
			t.Errorf("the proxy of %s is %+v, want %q and %q", instance, seen, state, code)
		}
	}
	leadsTo("one", "", "")
	put(t, head, app("a", "1", ""))
	leadsTo("one", "", "")
	clock.Step(fakehead.DeployDelay)
	leadsTo("one", "STARTING", `"CODE": "1"`)
	leadsTo("two", "", `"CODE": "1"`)
	leadsTo("nobody", "", `"CODE": "1"`)
	clock.Step(fakehead.DeployDelay)
	leadsTo("one", "HEALTHY", `"CODE": "1"`)
	put(t, head, app("a", "2", ""))
	clock.Step(fakehead.DeployDelay / 2)
	leadsTo("one", "HEALTHY", `"CODE": "1"`)
	put(t, head)
	leadsTo("one", "DRAINING", "")
}

// TestTargetsHaveTheAddressesOfTheirNodes, where those were told.
func TestTargetsHaveTheAddressesOfTheirNodes(t *testing.T) {
	head, clock := fake(t)
	head.Join(fakehead.Member{Instance: "head", Head: true})
	head.Join(fakehead.Member{Instance: "one", IP: "10.0.0.7"})
	put(t, head, app("a", "1", ""))
	clock.Step(fakehead.DeployDelay)
	serving(t, head)
	clock.Step(fakehead.DeployDelay)
	found := map[string]string{}
	for _, target := range serving(t, head).Targets {
		found[target.Instance] = target.IP
	}
	if found["one"] != "10.0.0.7" || found["head"] != "127.0.0.1" {
		t.Errorf("the targets are %v", found)
	}
}
