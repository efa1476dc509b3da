package naming_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func TestHosts_AreKept(t *testing.T) {
	long := strings.Repeat("n", 50)
	for have, want := range map[string]string{
		naming.ClusterHost("team-a", "demo"):                          "demo--team-a",
		naming.ClusterHost(strings.Repeat("s", 11), long):             long + "--" + strings.Repeat("s", 11),
		naming.ClusterHost(strings.Repeat("s", 12), long)[:49]:        long[:49],
		naming.ClusterHost("team-a", "de--mo")[:len("de-mo-team-a-")]: "de-mo-team-a-",
		naming.ClusterHost("a", "xn")[:len("xn-a-")]:                  "xn-a-",
		naming.ServiceHost("team-a", "demo")[:len("demo-team-a-")]:    "demo-team-a-",
	} {
		if have != want {
			t.Errorf("%s, want %s", have, want)
		}
	}
}

// TestHosts_AreEachOnesOwn: labels fit DNS, and no two objects share one, however alike their names are.
func TestHosts_AreEachOnesOwn(t *testing.T) {
	type object struct {
		isService       bool
		namespace, name string
	}
	draw := func(t *rapid.T) object {
		return object{rapid.Bool().Draw(t, "service"), label(63).Draw(t, "namespace"), label(naming.MaxCluster).Draw(t, "name")}
	}
	host := func(o object) string {
		if o.isService {
			return naming.ServiceHost(o.namespace, o.name)
		}
		return naming.ClusterHost(o.namespace, o.name)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		if all := a.name + "--" + a.namespace; rapid.Bool().Draw(t, "near") { // the same text, cut elsewhere
			if at := strings.LastIndex(all, "--"); at > 0 && at+2 < len(all) && all[at+2] != '-' {
				b = object{a.isService, all[at+2:], strings.TrimRight(all[:at], "-")}
			}
			b.isService = b.isService != rapid.Bool().Draw(t, "kind")
		}
		for _, one := range []object{a, b} {
			if errs := validation.IsDNS1123Label(host(one)); len(errs) > 0 || strings.HasPrefix(host(one), "xn--") {
				t.Fatalf("%+v is at %q: %v", one, host(one), errs)
			}
		}
		if a != b && host(a) == host(b) {
			t.Fatalf("%+v and %+v are both at %s", a, b, host(a))
		}
	})
}
