package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/internal/killafter"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// door stands between one operator and the API server, and holds one of the operator's writes back.
type door struct {
	*killafter.Gate
	// kubeconfig is the operator's, through the door.
	kubeconfig string
}

func openDoor(t *testing.T, hold string) *door {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	d := &door{Gate: killafter.NewGate(hold)}
	d.kubeconfig, err = lead(t, listener, killafter.Watch{Coming: d.Pass})
	must(t, err)
	return d
}

// lead leads the operator to the API server by way of a listener until the test ends, and gives the kubeconfig for it.
func lead(t *testing.T, listener net.Listener, watch killafter.Watch) (kubeconfig string, err error) {
	way, err := killafter.Lead(listener, shared.Config, watch)
	if err != nil {
		return "", err
	}
	t.Cleanup(way.Close)
	config, err := clientcmd.LoadFromFile(shared.kubeconfig)
	if err != nil {
		return "", fmt.Errorf("read the operator's kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthority, cluster.CertificateAuthorityData = way.Server, "", way.CA
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return "", fmt.Errorf("write the operator's kubeconfig: %w", err)
	}
	return kubeconfig, nil
}

// letThrough waits until the standby leads, and then lets the write through and its sender
// go on: also where it never does, as a paused program cannot be told to end.
func (d *door) letThrough(leader, standby *operator) {
	leader.t.Helper()
	defer func() {
		d.Release()
		if err := leader.command.Process.Signal(syscall.SIGCONT); err != nil {
			leader.t.Errorf("let the leader go on: %v", err)
		}
	}()
	standby.leads(time.Now())
}

// leaseIn lets the operator hold a Lease in a namespace of a test, so that several pairs
// can run at once.
func leaseIn(t *testing.T, namespace string) types.NamespacedName {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "lease"}
	must(t, shared.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"},
	}}}))
	must(t, shared.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: live.ReleaseNamespace, Name: live.ReleaseName}},
	}))
	return types.NamespacedName{Namespace: namespace, Name: "lease"}
}

// expire releases a Lease, as if its time had run out.
func expire(t *testing.T, of types.NamespacedName) {
	if err := shared.ExpireLease(t.Context(), of.Namespace, of.Name); err != nil {
		t.Error(err)
	}
}

// life is a cluster's: made with two workers, and begun again when its head is lost. pause
// is called between its steps.
func life(t *testing.T, name types.NamespacedName, pause func()) {
	t.Helper()
	must(t, shared.Create(t.Context(), newCluster(name.Namespace, name.Name, 2)))
	ready(t, name)
	pause()
	heads := podsOf(t, name, v1beta1.RoleHead)
	must(t, shared.Delete(t.Context(), &heads[0], client.GracePeriodSeconds(0)))
	secondEpoch(t, name)
	pause()
}

// secondEpoch waits until a cluster is ready with a second head and nothing of its first.
func secondEpoch(t *testing.T, name types.NamespacedName) {
	t.Helper()
	must(t, live.Until(t.Context(), limit, "the second epoch to be ready", func(ctx context.Context) error {
		cluster, err := shared.Find(ctx, name)
		if err != nil {
			return err
		}
		pods, err := shared.PodsOf(ctx, name, "")
		if err != nil {
			return err
		}
		roles := map[string]int{}
		for i := range pods {
			roles[pods[i].Labels[v1beta1.LabelRole]+" of epoch "+pods[i].Labels[v1beta1.LabelEpoch]]++
		}
		if cluster.Status.Epoch != 2 || len(roles) != 2 || roles["head of epoch 2"] != 1 || roles["worker of epoch 2"] != 2 {
			return fmt.Errorf("epoch %d has %v", cluster.Status.Epoch, roles)
		}
		return live.IsReady(cluster)
	}))
}

// TestALeaderPausedAtAnyWriteDoesNoHarm stops a leader in the middle of each write of a
// cluster's life, lets the standby go on, and then lets both the write and the former
// leader through, which for up to 10 s believes that it leads.
func TestALeaderPausedAtAnyWriteDoesNoHarm(t *testing.T) {
	t.Parallel()
	undisturbed := pausedAt(t, "nothing")
	t.Logf("the writes of a cluster's life: %v", undisturbed)
	points := map[string]bool{}
	for _, write := range undisturbed {
		// How many statuses are told differs from run to run; the first few always are.
		if what, number, _ := strings.Cut(write, " #"); what != "PATCH computeclusters/status" || number <= "3" {
			points[write] = true
		}
	}
	if len(points) < 10 {
		t.Fatalf("only %d writes were seen", len(points))
	}
	for write := range points {
		t.Run(write, func(t *testing.T) {
			t.Parallel()
			pausedAt(t, write)
		})
	}
}

// pausedAt runs the life with the leader paused at a write, and gives the leader's writes.
func pausedAt(t *testing.T, write string) []string {
	t.Helper()
	name := types.NamespacedName{Namespace: newNamespace(t), Name: "c"}
	of := leaseIn(t, name.Namespace)
	flags := append(electing(of), "--watch-namespaces="+name.Namespace)
	began := shared.audit.now(t)
	d := openDoor(t, write)
	leader := startOperator(t, append(flags, "--kubeconfig="+d.kubeconfig)...)
	leader.leads(time.Now())
	standby := startOperator(t, flags...)
	held, released := make(chan struct{}), false
	d.AtHold = func() {
		if err := leader.command.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Errorf("pause the leader: %v", err)
		}
		expire(t, of)
		close(held)
	}
	letGo := func() {
		select {
		case <-held:
		default:
			return // it has not come yet
		}
		if !released {
			released = true
			d.letThrough(leader, standby)
		}
	}
	t.Cleanup(letGo)
	life(t, name, letGo)

	if write == "nothing" {
		leader.quiet()
	} else {
		must(t, live.Until(t.Context(), limit, "the write "+write, func(context.Context) error {
			if letGo(); !released {
				return errors.New("it has not come")
			}
			return nil
		}))
		standby.quiet()
	}
	after(t, time.Second) // for whatever the former leader may still do
	secondEpoch(t, name)
	// Those of the plan that the former leader was applying may come when their places are free again: a head and two workers.
	// They are of the first epoch, and go at once.
	places := 6
	if write != "nothing" {
		places += 3
	}
	onePodPerPlace(t, began, name.Namespace, places)
	return d.Passed()
}
