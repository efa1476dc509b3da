package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func TestMake(t *testing.T) {
	a := Authority{Dir: filepath.Join(t.TempDir(), "pki"), Server: "https://10.89.0.2:6443"}
	now := time.Now()
	ids := []Identity{{
		File: "node1", User: "system:node:node1", Groups: []string{"system:nodes"},
		IPs: []netip.Addr{netip.MustParseAddr("10.89.0.11")}, Client: true,
	}}
	if err := a.Make(now, ids); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(a.Path("node1.crt"), a.Path("node1.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(a.Path("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: "10.89.0.11", Roots: pool}); err != nil {
		t.Errorf("the node's certificate does not serve its address: %v", err)
	}
	config, err := clientcmd.LoadFromFile(a.Path("node1.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Clusters["localkube"].Server; got != a.Server {
		t.Errorf("kubeconfig leads to %s, want %s", got, a.Server)
	}
	if err := a.Make(now, ids); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(a.Path("ca.crt")); string(again) != string(ca) {
		t.Error("a second Make replaced the authority")
	}
}

func TestMakeAfterAKilledOne(t *testing.T) {
	a := Authority{Dir: filepath.Join(t.TempDir(), "pki")}
	if err := os.MkdirAll(a.Dir+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.Make(time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(a.Path("service-accounts.key")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(a.Dir + ".new"); err == nil {
		t.Error("the draft is left")
	}
}
