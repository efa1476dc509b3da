package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// lease is the one that the chart's role lets the operator hold, for one test: others have a Lease of their own.
var lease = types.NamespacedName{Namespace: live.ReleaseNamespace, Name: live.ReleaseName}

// electing are the flags by which operators share a Lease.
func electing(of types.NamespacedName) []string {
	return []string{"--leader-elect", "--leader-election-namespace=" + of.Namespace, "--leader-election-name=" + of.Name}
}

// scrape gives the lines of the operator's metrics.
func (o *operator) scrape(ctx context.Context) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.metrics+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("build a request: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	var lines []string
	scanner := bufio.NewScanner(answer.Body)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	return lines, scanner.Err()
}

// leads waits until the operator says of itself that it leads, and gives how long that
// took since a moment.
func (o *operator) leads(since time.Time) time.Duration {
	o.t.Helper()
	must(o.t, live.Until(o.t.Context(), limit, "the operator to lead", func(ctx context.Context) error {
		lines, err := o.scrape(ctx)
		if err != nil {
			return err
		}
		for _, line := range lines {
			if strings.HasPrefix(line, "leader_election_master_status{") && strings.HasSuffix(line, " 1") {
				return nil
			}
		}
		return errors.New("it does not")
	}))
	return time.Since(since)
}

// ended waits until the program has ended by itself, and gives how long that took.
func (o *operator) ended() time.Duration {
	o.t.Helper()
	begin := time.Now()
	done := make(chan struct{})
	go o.end.Do(func() {
		_ = o.command.Wait() // how it ends is not judged
		close(done)
	})
	select {
	case <-done:
	case <-time.After(limit):
		_ = o.command.Process.Kill() // else the end of the test would wait for it
		o.t.Fatal("the operator did not end")
	}
	return time.Since(begin)
}

// pair starts a leader and a standby that share a Lease.
func pair(t *testing.T, of types.NamespacedName, flags ...string) (leader, standby *operator) {
	t.Helper()
	leader = startOperator(t, append(electing(of), flags...)...)
	leader.leads(time.Now())
	standby = startOperator(t, append(electing(of), flags...)...)
	must(t, live.Until(t.Context(), limit, "the standby to wait for the Lease", func(ctx context.Context) error {
		if _, err := standby.scrape(ctx); err != nil {
			return err
		}
		if !strings.Contains(standby.log.String(), "Attempting to acquire leader lease") {
			return errors.New("it does not yet")
		}
		return nil
	}))
	return leader, standby
}

// unclaimed deletes the chart's Lease, so that none of a former run has to run out first.
func unclaimed(t *testing.T) {
	t.Helper()
	must(t, shared.DeleteAllOf(t.Context(), &coordinationv1.Lease{}, client.InNamespace(lease.Namespace)))
}

func TestAStandbyFollowsAKilledLeader(t *testing.T) {
	t.Parallel()
	const clusters, workers = 6, 2
	unclaimed(t)
	namespace := newNamespace(t)
	began := shared.audit.now(t)
	leader, standby := pair(t, lease, "--watch-namespaces="+namespace)
	names := create(t, namespace, clusters, workers)
	after(t, 30*time.Millisecond) // in the middle of the work
	killed := time.Now()
	leader.stop(syscall.SIGKILL)
	took := standby.leads(killed)
	for _, name := range names {
		same(t, name, workers)
	}
	t.Logf("killed: the standby led after %v, all %d clusters were ready after %v", rounded(took), clusters, rounded(time.Since(killed)))
	inTime(t, "the succession of a leader that was killed", took, 22*time.Second)
	standby.quiet()
	onePodPerPlace(t, began, namespace, clusters*(1+workers))
}

func TestAStandbyFollowsALeaderThatEnds(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	leader, standby := pair(t, leaseIn(t, namespace), "--watch-namespaces="+namespace)
	names := create(t, namespace, 1, 1)
	ready(t, names[0])
	if seen, err := standby.activity(t.Context()); err != nil || seen.waiting > 0 {
		t.Errorf("the standby, which nobody tells what is done, keeps %v keys: %v", seen.waiting, err)
	}
	began := shared.audit.now(t)
	told := time.Now()
	leader.stop(syscall.SIGTERM)
	ended, took := time.Since(told), standby.leads(told)
	created := time.Now()
	must(t, shared.Create(t.Context(), newCluster(namespace, "late", 1)))
	ready(t, types.NamespacedName{Namespace: namespace, Name: "late"})
	t.Logf("told to end: the leader was gone after %v, the standby led after %v and had a new cluster ready after another %v",
		rounded(ended), rounded(took), rounded(time.Since(created)))
	inTime(t, "the end of a leader", ended, 10*time.Second)
	inTime(t, "the succession of a leader that ended", took, 6*time.Second)
	standby.quiet()
	onePodPerPlace(t, began, namespace, 2)
}

func TestALeaderThatWasPausedEndsWhenItGoesOn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	began := shared.audit.now(t)
	leader, standby := pair(t, leaseIn(t, namespace), "--watch-namespaces="+namespace)
	paused := time.Now()
	must(t, leader.command.Process.Signal(syscall.SIGSTOP))
	names := create(t, namespace, 2, 2)
	took := standby.leads(paused)
	for _, name := range names {
		same(t, name, 2)
	}
	must(t, leader.command.Process.Signal(syscall.SIGCONT))
	ended := leader.ended()
	t.Logf("paused: the standby led after %v; the former leader ended %v after it went on", rounded(took), rounded(ended))
	inTime(t, "the succession of a leader that was paused", took, 22*time.Second)
	inTime(t, "the end of a leader that was paused", ended, 12*time.Second)
	for _, name := range names {
		same(t, name, 2)
	}
	standby.quiet()
	onePodPerPlace(t, began, namespace, 6)
}

func TestADeletedLeaseIsMadeAnew(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	began := shared.audit.now(t)
	lease := leaseIn(t, namespace)
	pair(t, lease, "--watch-namespaces="+namespace)
	deleted := time.Now()
	must(t, shared.Delete(t.Context(), &coordinationv1.Lease{ObjectMeta: at(lease)}))
	eventually(t, "a new Lease", func(ctx context.Context) error { return shared.Get(ctx, lease, &coordinationv1.Lease{}) })
	took := time.Since(deleted)
	t.Logf("a deleted Lease was there again after %v", rounded(took))
	inTime(t, "another Lease", took, 22*time.Second)
	// One of the two holds it now, or both for a moment: the work is done once.
	for _, name := range create(t, namespace, 5, 1) {
		same(t, name, 1)
	}
	onePodPerPlace(t, began, namespace, 10)
}

// onePodPerPlace checks how many pods were made since a mark. It may be fewer than there
// are: the log has no answer for a request whose sender was killed.
func onePodPerPlace(t *testing.T, since live.Mark, namespace string, places int) {
	t.Helper()
	if made := podsMade(t, since, namespace); made > places {
		t.Errorf("%d pods were made, want at most %d: one for each place", made, places)
	}
}

// podsMade counts those that were made since a mark.
func podsMade(t *testing.T, since live.Mark, namespace string) int {
	t.Helper()
	made := 0
	for _, r := range shared.audit.since(t, since, namespace) {
		if r.what() == "create pods" && r.ResponseStatus.Code == http.StatusCreated {
			made++
		}
	}
	return made
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// after waits for a moment that is itself what is tested.
func after(t *testing.T, pause time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), pause)
	defer stop()
	<-ctx.Done()
}

// same checks that a cluster has come to the end it would have come to undisturbed.
func same(t *testing.T, name types.NamespacedName, workers int) {
	t.Helper()
	cluster := ready(t, name)
	heads, others := podsOf(t, name, v1beta1.RoleHead), podsOf(t, name, v1beta1.RoleWorker)
	if len(heads) != 1 || len(others) != workers || cluster.Status.Epoch != 1 {
		t.Errorf("%s has %d heads and %d workers in epoch %d, want 1, %d and 1", name, len(heads), len(others), cluster.Status.Epoch, workers)
	}
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &corev1.SecretList{}} {
		must(t, shared.List(t.Context(), list, client.InNamespace(name.Namespace), client.MatchingLabels{v1beta1.LabelCluster: name.Name}))
		if n := meta.LenList(list); n != 1 {
			t.Errorf("%s has %d of %T, want 1", name, n, list)
		}
	}
}
