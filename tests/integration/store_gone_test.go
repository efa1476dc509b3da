package integration

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// storesGone is how many clusters are deleted at once, unless HELIOSTAT_STORES gives
	// another number.
	storesGone = 10
	// storesOneByOne is how many are deleted one after another while their Redis is there.
	storesOneByOne = 3
)

// TestStoresGo deletes many clusters with keys in a real Redis. Nothing may hold up a
// deletion, and no key may stay of which nobody tells. Times are judged by make accept.
func TestStoresGo(t *testing.T) {
	t.Parallel()
	sweeps := &live.Sweeps{Clusters: number(t, "HELIOSTAT_STORES", storesGone)}
	t.Run("with their keys", func(t *testing.T) { withTheirKeys(t, sweeps) })
	t.Run("without their Secret", func(t *testing.T) { withoutTheirSecret(t, sweeps) })
	t.Log(sweeps)
	must(t, jobs.Save(sweeps))
}

func withTheirKeys(t *testing.T, sweeps *live.Sweeps) {
	b := newBed(t)
	o := watching(t, b.namespace)
	all := b.create(b.namespace, "c", sweeps.Clusters)
	losesHeads(t, b, all, sweeps)
	for _, one := range b.create(b.namespace, "early", storesOneByOne) {
		sweeps.Gone = append(sweeps.Gone, b.drop(t, one).Seconds())
	}

	b.Kill()
	begin := time.Now()
	must(t, shared.DeleteAllOf(t.Context(), &v1beta1.ComputeCluster{}, client.InNamespace(b.namespace)))
	emptied(t, b.namespace)
	sweeps.AwayGone = time.Since(begin).Seconds()
	notesSay(t, b.namespace, sweeps.Clusters, "failing", "does not answer")
	o.counts(t, "failing", sweeps.Clusters)
	keepsSecret(t, o, b.namespace)

	b.Restart()
	begin = time.Now()
	b.swept(t)
	sweeps.KeysGone = time.Since(begin).Seconds()
	noNotes(t, b.namespace)
	o.counts(t, "failing", 0)
	sweeps.Lost += b.othersLost()
	if sweeps.Lost > 0 {
		t.Errorf("%d keys of others are lost", sweeps.Lost)
	}
}

// swept waits until all keys are gone that are not others'.
func (b *bed) swept(t *testing.T) {
	t.Helper()
	eventually(t, "the keys to be gone", func(context.Context) error {
		if left := b.left(); len(left) > 0 {
			return fmt.Errorf("%d are there, one of them is %s", len(left), left[0])
		}
		return nil
	})
}

// losesHeads ends the head of each cluster: it gets another, and keeps its workers and its
// session.
func losesHeads(t *testing.T, b *bed, all []member, sweeps *live.Sweeps) {
	t.Helper()
	for _, one := range all {
		workers := uids(podsOf(t, one.NamespacedName, v1beta1.RoleWorker))
		sweeps.NewHead = append(sweeps.NewHead, anotherHead(t, one.NamespacedName).Seconds())
		s := storied{bed: b, member: one}
		s.isAt(t, 2, 1)
		if now := uids(podsOf(t, one.NamespacedName, v1beta1.RoleWorker)); !maps.Equal(now, workers) {
			t.Errorf("the workers of %s are %v, they were %v", one, now, workers)
		}
	}
}

// counts waits until the operator's metrics tell of as many clusters with keys left in a state.
func (o *operator) counts(t *testing.T, state string, n int) {
	t.Helper()
	want := fmt.Sprintf(`heliostat_stores_unswept{state="%s"} %d`, state, n)
	eventually(t, want, func(ctx context.Context) error {
		lines, err := o.scrape(ctx)
		if err == nil && !slices.Contains(lines, want) {
			err = fmt.Errorf("there is %v", slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "heliostat_stores_unswept{") }))
		}
		return err
	})
}

// withoutTheirSecret deletes the Secrets, then one half of the clusters, and the whole
// namespace of the other half.
func withoutTheirSecret(t *testing.T, sweeps *live.Sweeps) {
	b := newBed(t)
	doomed := newNamespace(t)
	b.opens(doomed)
	b.cleansUp(doomed)
	o := watching(t, b.namespace, doomed)
	half := (sweeps.Clusters + 1) / 2
	stripped, dropped := b.create(b.namespace, "s", half), b.create(doomed, "d", sweeps.Clusters-half)

	begin := time.Now()
	// A namespace's end alone would take the Secret too, but sometimes after the operator had read it.
	for _, namespace := range []string{b.namespace, doomed} {
		must(t, shared.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "store"}}))
	}
	o.stop(syscall.SIGTERM) // it remembers the password
	o = watching(t, b.namespace, doomed)
	must(t, shared.DeleteAllOf(t.Context(), &v1beta1.ComputeCluster{}, client.InNamespace(b.namespace)))
	emptied(t, b.namespace)
	sweeps.StrippedGone = time.Since(begin).Seconds()
	begin = time.Now()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: doomed}}
	must(t, shared.Delete(t.Context(), space))
	gone(t, space)
	sweeps.DroppedGone = time.Since(begin).Seconds()

	why := "the credential is gone"
	sweeps.Recorded = len(notesSay(t, b.namespace, len(stripped), "stuck", why)) + len(notesSay(t, doomed, len(dropped), "stuck", why))
	o.counts(t, "stuck", sweeps.Clusters)
	byHand(t, b, dropped)
	o.counts(t, "stuck", len(stripped))

	// With the Secret there again, the next operator sees to the rest; this one would too,
	// some minutes later.
	o.stop(syscall.SIGTERM)
	b.opens(b.namespace)
	watching(t, b.namespace, doomed)
	noNotes(t, b.namespace)
	b.swept(t)
	sweeps.Lost += b.othersLost()
}

// TestStoreKeys_GoWithTheirNamespace: its Secret goes before its pods have ended, and the operator remembers what was in it.
func TestStoreKeys_GoWithTheirNamespace(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	doomed := newNamespace(t)
	b.opens(doomed)
	b.cleansUp(doomed)
	watching(t, b.namespace, doomed)
	b.create(doomed, "d", storesOneByOne)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: doomed}}
	must(t, shared.Delete(t.Context(), space))
	gone(t, space)
	b.swept(t)
	noNotes(t, doomed)
	if lost := b.othersLost(); lost > 0 {
		t.Errorf("%d keys of others are lost", lost)
	}
}

// byHand does what the notes about clusters say, and deletes them.
func byHand(t *testing.T, b *bed, all []member) {
	t.Helper()
	for _, one := range all {
		note := noted(t, one)
		if len(b.written(one.ray)) == 0 {
			t.Errorf("the keys of %s are gone, though nobody knew the password", one)
		}
		command := exec.CommandContext(t.Context(), "bash", "-c", note.Data["command"])
		command.Stdin = strings.NewReader(storePassword + "\n")
		if said, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", note.Data["command"], err, said)
		}
		if left := b.written(one.ray); len(left) > 0 {
			t.Errorf("%s leaves %v", note.Data["command"], left)
		}
		must(t, shared.Delete(t.Context(), note))
	}
}

// TestStoreIsSweptByTheNextOperator: an operator is killed while the Redis hangs. The next
// one knows what is left to do, and says so.
func TestStoreIsSweptByTheNextOperator(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	first := watching(t, b.namespace)
	all := b.create(b.namespace, "c", 3)
	b.Pause()
	first.stop(syscall.SIGKILL) // it knows of no deletion
	must(t, shared.Delete(t.Context(), &v1beta1.ComputeCluster{ObjectMeta: at(all[0].NamespacedName)}))
	second := watching(t, b.namespace)
	must(t, shared.Delete(t.Context(), &v1beta1.ComputeCluster{ObjectMeta: at(all[1].NamespacedName)}))
	eventually(t, "two notes to say why", func(ctx context.Context) error {
		for _, one := range all[:2] {
			note := &corev1.ConfigMap{}
			if err := shared.Get(ctx, noteOf(one), note); err != nil || note.Data["state"] != "failing" {
				return fmt.Errorf("that of %s says %v: %w", one, note.Data, err)
			}
		}
		return nil
	})
	second.stop(syscall.SIGKILL) // and this one is in the middle of it

	b.Resume()
	third := watching(t, b.namespace)
	for _, one := range all[:2] {
		gone(t, &corev1.ConfigMap{ObjectMeta: at(noteOf(one))})
		if left := b.written(one.ray); len(left) > 0 {
			t.Errorf("the note of %s is gone, and its keys are %v", one, left)
		}
	}
	if len(b.written(all[2].ray)) == 0 || b.othersLost() > 0 {
		t.Error("keys of a living cluster, or of others, are gone")
	}
	noted(t, all[2])
	ready(t, all[2].NamespacedName)
	third.counts(t, "failing", 0)
	keepsSecret(t, third, b.namespace)
}

// TestStoreThatNoHeadUsedIsSweptToo: a cluster whose head never came, and which marked a
// namespace of Ray's as its own. Its end leaves the namespace to the next one.
func TestStoreThatNoHeadUsedIsSweptToo(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	watching(t, b.namespace)
	cluster := b.cluster(b.namespace, "held", "shared", 0)
	cluster.Spec.Authentication = &v1beta1.Authentication{SecretName: "not-there"}
	must(t, shared.Create(t.Context(), cluster))
	s := storied{bed: b, member: member{client.ObjectKeyFromObject(cluster), cluster.UID, "shared"}}
	s.tells(t, "True StoreServes")
	s.marks(s.member, 1, 1)
	if pods := podsOf(t, s.NamespacedName, ""); len(pods) > 0 {
		t.Errorf("pod %s was made without a token", pods[0].Name)
	}
	b.drop(t, s.member)
}
