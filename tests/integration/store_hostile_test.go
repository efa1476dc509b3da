package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/internal/hostile"
	"github.com/heliostat-dev/heliostat/tests/live"
	"github.com/heliostat-dev/heliostat/tests/redistest"
)

// TestStoresThatLeadElsewhere: the operator sends nothing to an address of a node's cloud, wherever it has it from, and
// with public authorities wants a certificate for the address.
func TestStoresThatLeadElsewhere(t *testing.T) {
	t.Parallel()
	authority := redistest.NewAuthority(t)
	roots := filepath.Join(t.TempDir(), "roots.crt")
	must(t, os.WriteFile(roots, authority.Certificate, 0o600))
	secure := redistest.StartTLS(t, authority)
	namespace := newNamespace(t)
	(&bed{t: t}).cleansUp(namespace)
	trusting := &operator{t: t, env: []string{"SSL_CERT_FILE=" + roots}}
	trusting.begin("--namespace="+live.ReleaseNamespace, "--watch-namespaces="+namespace)
	for name, c := range map[string]struct {
		redis v1beta1.GivenRedis
		want  string
	}{
		"metadata":       {v1beta1.GivenRedis{Address: "redis://169.254.169.254:80"}, "StoreNotAllowed: the operator must not connect to the control store at 169.254.169.254:80"},
		"another-name":   {v1beta1.GivenRedis{Address: secure.Address()}, "StoreNotTrusted: the control store at " + secure.HostPort() + " cannot be trusted: its certificate is for another name"},
		"the-given-name": {v1beta1.GivenRedis{Address: secure.Address(), TLS: &v1beta1.RedisTLS{ServerName: "redis.test"}}, "StoreServes"},
		"a-sentinel":     {v1beta1.GivenRedis{Address: "redis://" + opposing(t, []hostile.Manner{hostile.Leading("169.254.169.254:80")}, 0).Address()}, "StoreNotAllowed: the operator must not connect to the control store at 169.254.169.254:80 (to which"},
	} {
		cluster := newCluster(namespace, name, 0)
		cluster.Spec.ControlStore = &v1beta1.ControlStore{Redis: &c.redis}
		must(t, shared.Create(t.Context(), cluster))
		must(t, live.Until(t.Context(), limit, "the store of "+name+" to be told of", func(ctx context.Context) error {
			var now v1beta1.ComputeCluster
			if err := shared.Get(ctx, client.ObjectKeyFromObject(cluster), &now); err != nil {
				return err
			}
			told := meta.FindStatusCondition(now.Status.Conditions, v1beta1.ConditionControlStoreReady)
			if told == nil || !strings.HasPrefix(told.Reason+": "+told.Message, c.want) {
				return fmt.Errorf("it says %+v, want %q", told, c.want)
			}
			return nil
		}))
	}
}

// opposing listens at a free address of loopback, and answers each connection in the next of some hostile manners.
func opposing(t *testing.T, manners []hostile.Manner, first int) *hostile.Server {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	server := hostile.Serve(listener, manners, first)
	t.Cleanup(func() { _ = server.Close() })
	return server
}
