package heads_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func (b *bed) way(t *testing.T) *heads.Way {
	t.Helper()
	head, err := b.heads.FindHead(b.on)
	if err != nil {
		t.Fatal(err)
	}
	way, err := b.heads.FindWay(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	return way
}

func TestWay_LeadsToTheHead(t *testing.T) {
	plain := newBed(t, nil)
	over, ca := encrypted(t)
	over.PutSecret(headstest.Secret(over.cluster, naming.AuthoritySecret("demo"), v1beta1.AuthorityCertificateKey, string(ca)))
	for _, c := range []struct {
		bed  *bed
		want string
	}{{plain, headIP + ":8265"}, {over, headIP + ":8266"}} {
		way := c.bed.way(t)
		connection, err := way.Connect(t.Context())
		if err != nil || way.Address() != c.want || way.Token() != headstest.Token || c.bed.network.Dials(c.want) != 1 {
			t.Fatalf("it leads to %s, %v", way.Address(), err)
		}
		_ = connection.Close()
	}
}

func TestWay_ExplainsHeads(t *testing.T) {
	b := newBed(t, nil)
	if way := b.way(t); way.Starting() != nil {
		t.Errorf("a ready head starts: %v", way.Starting())
	}
	unavailable(t, b.way(t).Refused(), "HeadUnauthorized")
	b.pod.Status.Conditions[0].Status = corev1.ConditionFalse
	b.PutPod(b.pod)
	unavailable(t, b.way(t).Starting(), "HeadStarting")
	b.network.Lead(headIP+":8265", nil)
	if _, err := b.way(t).Connect(t.Context()); err == nil || errors.Is(err, t.Context().Err()) {
		t.Errorf("it connects: %v", err)
	}
}
