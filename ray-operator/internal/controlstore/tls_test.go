package controlstore

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/redistest"
)

// Any public authority would vouch for a server of anybody's, so that it must be the one of the address.
func TestCertifiedName_IsOfAnAddress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		server Server
		want   string
	}{
		"public authorities, the host":     {Server{}, "redis.example.com"},
		"public authorities, a given name": {Server{ServerName: "other.example.com"}, "other.example.com"},
		"a given authority, any name":      {Server{CA: []byte("CA")}, ""},
		"a given authority and name":       {Server{CA: []byte("CA"), ServerName: "other.example.com"}, "other.example.com"},
	} {
		l := &connection{errand: errand{server: test.server}, place: place{host: "redis.example.com", port: "6379", tls: true}}
		if have := l.certifiedName(); have != test.want {
			t.Errorf("%s: %q", name, have)
		}
	}
}

// TestTrust: a chain to an authority that is trusted, whatever the certificate's name.
func TestTrust(t *testing.T) {
	t.Parallel()
	authority, other := redistest.NewAuthority(t), redistest.NewAuthority(t)
	certificate, key := authority.Issue("client.test")
	foreign, foreignKey := other.Issue("client.test")
	open := redistest.StartTLS(t, authority)
	chained := redistest.StartTLS(t, authority.Intermediate())
	strict := redistest.StartTLS(t, authority, "--tls-auth-clients", "yes")
	plain := redistest.Start(t)
	text := startFake(t, &fake{hello: "-ERR what do you want?\r\n"})
	for name, test := range map[string]struct {
		server Server
		want   reason.Reason
		words  []string
	}{
		"trusted, of another name":   {Server{Address: open.Address(), CA: authority.Certificate}, reason.StoreServes, nil},
		"trusted by way of another":  {Server{Address: chained.Address(), CA: authority.Certificate}, reason.StoreServes, nil},
		"the name that is asked for": {Server{Address: open.Address(), CA: authority.Certificate, ServerName: "redis.test"}, reason.StoreServes, nil},
		"another than asked for":     {Server{Address: open.Address(), CA: authority.Certificate, ServerName: "x.test"}, reason.StoreNotTrusted, []string{"another name"}},
		"another authority":          {Server{Address: open.Address(), CA: other.Certificate}, reason.StoreNotTrusted, []string{"authority"}},
		"the machine's authorities":  {Server{Address: open.Address()}, reason.StoreNotTrusted, []string{"authority"}},
		"an authority that is none":  {Server{Address: open.Address(), CA: []byte("none")}, reason.StoreNotTrusted, []string{"holds no certificate"}},
		"no certificate of ours":     {Server{Address: strict.Address(), CA: authority.Certificate}, reason.StoreNotTrusted, []string{"certificate"}},
		"a foreign one of ours":      {Server{Address: strict.Address(), CA: authority.Certificate, Certificate: foreign, Key: foreignKey}, reason.StoreNotTrusted, nil},
		"one of ours":                {Server{Address: strict.Address(), CA: authority.Certificate, Certificate: certificate, Key: key}, reason.StoreServes, nil},
		"a key of another":           {Server{Address: strict.Address(), CA: authority.Certificate, Certificate: certificate, Key: foreignKey}, reason.StoreNotTrusted, []string{"cannot be used"}},
		"a certificate without key":  {Server{Address: strict.Address(), CA: authority.Certificate, Certificate: certificate}, reason.StoreNotTrusted, nil},
		"TLS where there is none":    {Server{Address: "rediss://" + plain.HostPort(), CA: authority.Certificate}, reason.StoreUnreachable, []string{"no answer in time to TLS", "redis://"}},
		"TLS, and text comes":        {Server{Address: strings.Replace(text.address, "redis", "rediss", 1)}, reason.StoreNotTrusted, []string{"does not speak TLS"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, answer(test.server, claim()), test.want, test.words...)
		})
	}
	t.Run("none where there is TLS", func(t *testing.T) {
		t.Parallel()
		have := answer(Server{Address: "redis://" + open.HostPort()}, claim())
		if have.Admitted || have.Finding.Code != reason.StoreUnsupported.Code && have.Finding.Code != reason.StoreUnreachable.Code {
			t.Errorf("%+v", have)
		}
	})
}
