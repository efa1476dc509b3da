package route

import (
	"net/url"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// everything knows the labels of a few objects.
type everything [][2]string

// FindLabel implements Labels.
func (e everything) FindLabel(label string) (kind Kind, namespace, name string, found bool) {
	for _, one := range e {
		switch label {
		case naming.ClusterHost(one[0], one[1]):
			return Cluster, one[0], one[1], true
		case naming.ServiceHost(one[0], one[1]):
			return Service, one[0], one[1], true
		}
	}
	return "", "", "", false
}

// TestSite_ReadsTheAddressesThatItGives: each address leads to its object, at its start.
func TestSite_ReadsTheAddressesThatItGives(t *testing.T) {
	objects := everything{{"team-a", "demo"}, {"team-a", "de--mo"}, {"services", "demo"}, {strings.Repeat("s", 60), "demo"}}
	for _, wildcard := range []string{"", "ray.example.com:8444"} {
		site := Site{Wildcard: wildcard, Labels: objects}
		for _, one := range objects {
			for _, kind := range []Kind{Cluster, Service} {
				address := site.AddressOf("https://d.example.com", kind, one[0], one[1])
				at, err := url.Parse(address)
				if err != nil {
					t.Fatal(err)
				}
				got, err := site.Read(Request{Method: "GET", Host: at.Host, Target: at.Path})
				isThere := got.Kind == kind && got.Namespace == one[0] && got.Name == one[1] && got.Path == "/"
				if err != nil || !isThere || got.IsBelowWildcard != (wildcard != "") {
					t.Errorf("%s %v is at %s, which leads to %+v, %v", kind, one, address, got, err)
				}
			}
		}
	}
}
