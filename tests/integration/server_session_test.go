package integration

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// TestSessionKeys_RotateByTheChart: an upgrade keeps the key, another text of session.rotation puts a new one before it, and
// the next one takes the oldest away. The certificate stays through all of it.
func TestSessionKeys_RotateByTheChart(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	upgrade := func(settings ...string) (keys []string, certificate string) {
		t.Helper()
		_, err := live.Helm(t.Context(), "../..", slices.Concat([]string{"upgrade", "--install", "sealed", "../../helm-chart/heliostat", "--namespace", namespace,
			"--set", "crds.install=false,admission.enabled=false,rbac.aggregate=false,watchNodes=false", "--set", "watchNamespaces={" + namespace + "}",
			"--set", "server.enabled=true,server.dashboards.enabled=true"}, settings)...)
		must(t, err)
		var sealing, tls corev1.Secret
		must(t, shared.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "sealed-heliostat-server-session"}, &sealing))
		must(t, shared.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "sealed-heliostat-server-tls"}, &tls))
		return strings.Fields(string(sealing.Data["keys"])), string(tls.Data["tls.crt"])
	}
	t.Cleanup(func() {
		_, err := live.Helm(context.WithoutCancel(t.Context()), "../..", "uninstall", "sealed", "--namespace", namespace, "--ignore-not-found")
		must(t, err)
	})
	first, certificate := upgrade("--set-string", "server.session.rotation=1")
	if len(first) != 1 {
		t.Fatalf("a new installation has %d keys, want 1", len(first))
	}
	for _, c := range []struct {
		name, rotation string
		kept           func(before []string) []string
		isNew          bool
	}{
		{"an upgrade", "1", func(before []string) []string { return before }, false},
		{"a rotation", "2", func(before []string) []string { return before[:1] }, true},
		{"another rotation", "3", func(before []string) []string { return before[:1] }, true},
	} {
		second, shown := upgrade("--set-string", "server.session.rotation="+c.rotation)
		want := c.kept(first)
		if got := second[len(second)-len(want):]; !slices.Equal(got, want) || (len(second) == len(want)+1) != c.isNew {
			t.Errorf("after %s there are %d keys, of which the former ones are kept: %t", c.name, len(second), slices.Equal(got, want))
		}
		if shown != certificate {
			t.Errorf("after %s the certificate is another one", c.name)
		}
		first = second
	}
}
