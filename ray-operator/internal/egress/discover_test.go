package egress

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The API server is known by the address that the operator reaches it at, and by the one that it tells.
func TestDiscover_KnowsTheAPIServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: "192.0.2.10:6443"}},
		})
	}))
	defer server.Close()
	rules, err := Discover(context.Background(), &rest.Config{Host: server.URL}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{strings.TrimPrefix(server.URL, "http://"), "192.0.2.10:6443"} {
		if sort := rules.refuses(netip.MustParseAddrPort(at)); sort != "the API server" {
			t.Errorf("%s is refused as %q", at, sort)
		}
	}
	if len(rules.Own) == 0 {
		t.Error("the operator knows no address of its own")
	}
	server.Close()
	if _, err := Discover(context.Background(), &rest.Config{Host: server.URL}, true); err == nil {
		t.Error("an API server that is away is taken for none")
	}
}
