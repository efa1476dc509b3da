package sweep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const redis = "redis://redis:6379"

// away is a Redis that does not answer.
func away(context.Context) error {
	return &fault.Terminal{Finding: reason.StoreUnreachable.Of(redis, "connection refused")}
}

// hung is one that never answers.
func hung(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("sweep: %w", ctx.Err())
}

// tells reports whether a text holds all words.
func tells(text string, words ...string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// TestKeysOfALivingClusterStay, and looking after them costs no call.
func TestKeysOfALivingClusterStay(t *testing.T) {
	note := open(1, redis)
	run(t, []client.Object{note.ConfigMap("heliostat"), clusterOf(note)}, func(b *bed) {
		b.begin()
		b.pass(10 * time.Minute)
		if n := b.calls(""); n > 0 || len(b.sweeps()) > 0 || b.only() == nil {
			t.Errorf("%d calls, swept %v", n, b.sweeps())
		}
		if got := b.unswept(); got != [3]float64{} {
			t.Errorf("unswept: %v", got)
		}
	})
}

func TestKeysGoWithinSecondsOfTheirCluster(t *testing.T) {
	note := whole()
	cluster := clusterOf(note)
	objects := []client.Object{
		note.ConfigMap("heliostat"), cluster, podOf(note, note.UID, "n1"), secret("redis", map[string]string{"user": "ray", "password": "secret"}),
		secret("redis-tls", map[string]string{"ca.crt": "CA", "tls.crt": "CRT", "tls.key": "KEY"}),
	}
	run(t, objects, func(b *bed) {
		b.begin()
		b.delete(cluster)
		b.pass(7 * time.Second) // its pod is on its way
		if len(b.sweeps()) > 0 {
			t.Fatal("swept beside a pod")
		}
		if got := b.unswept(); got != [3]float64{1, 0, 0} {
			t.Errorf("unswept: %v", got)
		}
		if n := b.calls("patch *v1.ConfigMap"); n > 0 || b.calls("list *v1.PodList") > 0 {
			t.Errorf("%d writes for what is normal, %d lists past the cache", n, b.calls("list *v1.PodList"))
		}
		b.delete(podOf(note, "", ""))
		b.pass(3 * time.Second)
		want := []swept{{controlstore.Server{
			Address: note.Address, Given: true, Namespace: "team", ServerName: note.ServerName, Username: "ray", Password: "secret", CA: []byte("CA"), Certificate: []byte("CRT"), Key: []byte("KEY"),
		}, "a:b", "uid-1"}}
		if diff := cmp.Diff(want, b.sweeps(), cmp.AllowUnexported(swept{})); diff != "" {
			t.Error(diff)
		}
		if b.only() != nil || b.unswept() != [3]float64{} {
			t.Errorf("the note is still there: %v, unswept %v", b.only(), b.unswept())
		}
		if len(b.logs) != 1 || strings.Contains(b.logs[0], "secret") || !strings.Contains(b.logs[0], `"keys"=7`) {
			t.Errorf("logged %q", b.logs)
		}
		b.pass(time.Minute)
		if len(b.sweeps()) != 1 {
			t.Errorf("swept %d times", len(b.sweeps()))
		}
	})
}

// TestRedisAwayThenBack: the note says why, is written once, and the keys go soon after.
func TestRedisAwayThenBack(t *testing.T) {
	note := open(1, redis)
	run(t, []client.Object{note.ConfigMap("heliostat")}, func(b *bed) {
		b.serve(redis, away)
		b.begin()
		b.pass(10 * time.Minute)
		kept := b.only()
		wanted := map[string]string{
			keyState: StateFailing, keyWhy: reason.StoreUnreachable.Of(redis, "connection refused").Text, keyCommand: controlstore.CleanUp(redis, "", "ns-1"),
			keySince: kept[keySince],
		}
		for key, value := range wanted {
			if kept[key] != value || value == "" {
				t.Errorf("%s is %q, want %q", key, kept[key], value)
			}
		}
		b.counts(0, 1, 0, 1)
		if n := len(b.sweeps()); n < 38 || n > 46 {
			t.Errorf("tried %d times in 10 min instead of about each 15 s", n)
		}
		if n := b.calls("get *v1beta1.ComputeCluster"); n != 1 || len(b.logs) != 1 {
			t.Errorf("asked %d times for the cluster, logged %q", n, b.logs)
		}
		b.serve(redis, func(context.Context) error { return &fault.Terminal{Finding: reason.StoreLoading.Of(redis)} })
		b.pass(longest + time.Second)
		if now := b.only(); now[keyWhy] != reason.StoreLoading.Of(redis).Text || now[keySince] != kept[keySince] {
			t.Errorf("another cause since the same time reads %v", now)
		}
		b.serve(redis, nil)
		b.pass(longest + time.Second)
		b.nothingLeft(-1)
	})
}

// TestFirstTriesAreClose: 1, 2, 4 and 8 s apart.
func TestFirstTriesAreClose(t *testing.T) {
	run(t, []client.Object{open(1, redis).ConfigMap("heliostat")}, func(b *bed) {
		b.serve(redis, func(context.Context) error { return errors.New("no finding") })
		b.begin()
		b.pass(settles + 20*time.Second)
		if n := len(b.sweeps()); n != 5 {
			t.Errorf("tried %d times in 20 s", n)
		}
		if b.only()[keyWhy] != "no finding" {
			t.Errorf("the note says %v", b.only())
		}
	})
}

// TestCredentialGone: it is said, with the command, and the note stays until someone acts.
func TestCredentialGone(t *testing.T) {
	note := open(1, redis)
	note.Username, note.Password = v1beta1.SecretKey{Name: "redis", Key: "user"}, v1beta1.SecretKey{Name: "redis", Key: "password"}
	for what, there := range map[string][]client.Object{
		"the Secret or its namespace": nil,
		"one key":                     {secret("redis", map[string]string{"user": "ray"})},
		"a value":                     {secret("redis", map[string]string{"user": "ray", "password": ""})},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, append(there, note.ConfigMap("heliostat")), func(b *bed) {
				b.begin()
				b.pass(65 * time.Minute)
				kept := b.only()
				if kept[keyState] != StateStuck || !strings.Contains(kept[keyWhy], "the credential is gone") || !tells(kept[keyCommand], "redis-cli -h redis -p 6379", "--user USER", "RAYns-1@") {
					t.Errorf("the note says %v", kept)
				}
				b.counts(0, 0, 1, 1)
				if n := b.calls("get *v1.Secret"); n < 6 || n > 8 {
					t.Errorf("looked for it %d times in an hour", n)
				}
				for _, former := range there {
					b.delete(former)
				}
				b.create(secret("redis", map[string]string{"user": "ray", "password": "new"}))
				b.pass(stuckPause + time.Second)
				b.nothingLeft(1) // so it was never tried without a credential
				if got := b.sweeps()[0].server.Password; got != "new" {
					t.Errorf("tried with the password %q", got)
				}
			})
		})
	}
}

// TestSweeper_RemembersACredential that went with its namespace. A Secret that is there again comes first.
func TestSweeper_RemembersACredential(t *testing.T) {
	note := open(1, redis)
	note.Password = v1beta1.SecretKey{Name: "redis", Key: "password"}
	other := note
	other.Address = "redis://other:6379"
	for what, c := range map[string]struct {
		read  Note
		there []client.Object
		want  string
	}{
		"it was read by the note":        {note, nil, "old"},
		"the Secret is there":            {note, []client.Object{secret("redis", map[string]string{"password": "new"})}, "new"},
		"it was read by another note":    {other, nil, ""},
		"it was read of another cluster": {open(2, redis), nil, ""},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, append(c.there, note.ConfigMap("heliostat")), func(b *bed) {
				known := &Credentials{}
				known.Remember(c.read, controlstore.Server{Address: redis, Password: "old"})
				b.begin(func(s *Sweeper) { s.Credentials = known })
				b.pass(time.Minute)
				if c.want == "" {
					b.counts(0, 0, 1, 1)
					return
				}
				b.nothingLeft(1)
				if got := b.sweeps()[0].server.Password; got != c.want {
					t.Errorf("tried with the password %q, want %q", got, c.want)
				}
				if _, is := known.Find(note); is {
					t.Error("it is remembered though nothing is left to remove")
				}
			})
		})
	}
}

// TestSecretThatCannotBeRead is no Secret that is gone.
func TestSecretThatCannotBeRead(t *testing.T) {
	note := open(1, redis)
	note.Password = v1beta1.SecretKey{Name: "redis", Key: "password"}
	run(t, []client.Object{note.ConfigMap("heliostat"), secret("redis", map[string]string{"password": "x"})}, func(b *bed) {
		b.refuse("get *v1.Secret", errors.New("the server is away"))
		b.begin()
		b.pass(time.Minute)
		if kept := b.only(); kept[keyState] != StateFailing || len(b.sweeps()) > 0 {
			t.Errorf("the note says %v, swept %v", kept, b.sweeps())
		}
		b.refuse("get *v1.Secret", nil)
		b.pass(longest + time.Second)
		if b.only() != nil {
			t.Errorf("left %v", b.only())
		}
	})
}

// TestClusterCreatedAgain under the same name with the same namespace of Ray's: the former's
// note is swept by its own UID, and the successor's stays.
func TestClusterCreatedAgain(t *testing.T) {
	former, later := open(1, redis), open(2, redis)
	later.Cluster, later.Namespace = former.Cluster, former.Namespace
	objects := []client.Object{former.ConfigMap("heliostat"), later.ConfigMap("heliostat"), clusterOf(later), podOf(later, later.UID, "n1")}
	for what, answer := range map[string]func(context.Context) error{
		"its keys are there": nil,
		"the namespace is the successor's by now": func(context.Context) error {
			return &fault.Terminal{Finding: reason.StoreInUse.Of("team/c1", "x")}
		},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, objects, func(b *bed) {
				b.serve(redis, answer)
				b.begin()
				b.pass(time.Minute)
				if got := b.sweeps(); len(got) != 1 || got[0].owner != former.UID || got[0].namespace != former.Namespace {
					t.Errorf("swept %v", got)
				}
				if kept := b.only(); kept[keyUID] != string(later.UID) {
					t.Errorf("left %v", kept)
				}
			})
		})
	}
}

// TestOperatorRestarted: nothing but the notes is needed to go on, and since when is kept.
func TestOperatorRestarted(t *testing.T) {
	run(t, []client.Object{open(1, redis).ConfigMap("heliostat")}, func(b *bed) {
		b.serve(redis, away)
		b.begin()
		b.pass(time.Minute)
		since := b.only()[keySince]
		b.end()
		b.pass(time.Hour)
		writes := b.calls("patch *v1.ConfigMap")
		b.begin()
		if b.unswept() != [3]float64{0, 1, 0} {
			t.Errorf("unswept right after the start: %v", b.unswept())
		}
		b.pass(time.Minute)
		if kept := b.only(); since == "" || kept[keySince] != since || b.calls("patch *v1.ConfigMap") != writes {
			t.Errorf("since %q reads %v, %d more writes", since, kept, b.calls("patch *v1.ConfigMap")-writes)
		}
		b.serve(redis, nil)
		b.pass(longest + time.Second)
		if b.only() != nil {
			t.Errorf("left %v", b.only())
		}
	})
}

// TestDamagedNote is never swept by and never deleted; a person who mends it is enough.
func TestDamagedNote(t *testing.T) {
	kept := open(1, redis).ConfigMap("heliostat")
	kept.Data["rayNamespace"] = "*"
	empty := open(2, redis).ConfigMap("heliostat")
	empty.Data = nil
	run(t, []client.Object{kept, empty}, func(b *bed) {
		b.begin()
		b.pass(25 * time.Minute)
		left := b.notes()
		for name := range left {
			if data := left[name].Data; data[keyState] != StateStuck || !strings.Contains(data[keyWhy], "read the note "+name) || data[keyCommand] != "" {
				t.Errorf("the note says %v", data)
			}
		}
		b.counts(0, 0, 2, 2)
		if len(left) != 2 {
			t.Errorf("%d notes are left", len(left))
		}
		mended := left[kept.Name]
		mended.Data["rayNamespace"] = "ns-1"
		if err := b.api.Update(t.Context(), &mended); err != nil {
			t.Fatal(err)
		}
		b.delete(empty)
		b.pass(10 * time.Second)
		b.nothingLeft(1)
	})
}

// TestHungRedisDelaysNoOther: a hundred notes of one that hangs, a hundred of one that is well.
func TestHungRedisDelaysNoOther(t *testing.T) {
	var objects []client.Object
	for i := range 100 {
		objects = append(objects, open(i, "redis://hung:6379").ConfigMap("heliostat"), open(1000+i, redis).ConfigMap("heliostat"))
	}
	run(t, objects, func(b *bed) {
		b.serve("redis://hung:6379", hung)
		b.begin()
		b.pass(5 * time.Second)
		if n := len(b.notes()); n != 100 {
			t.Errorf("%d notes are left after 5 s, want the hundred of the Redis that hangs", n)
		}
		begun := map[types.UID]bool{}
		for _, call := range b.sweeps() {
			if call.server.Address != redis {
				begun[call.owner] = true
			}
		}
		if len(begun) != atOneRedis {
			t.Errorf("%d are under way with the one that hangs", len(begun))
		}
		b.pass(tryLimit)
		b.serve("redis://hung:6379", nil)
		b.pass(tryLimit + longest)
		if n := len(b.notes()); n > 0 {
			t.Errorf("%d notes are left", n)
		}
	})
}

// TestManyAfterRedisReturns: a hundred clusters deleted while it is away are swept within 60 s.
func TestManyAfterRedisReturns(t *testing.T) {
	var objects []client.Object
	for i := range 100 {
		objects = append(objects, open(i, redis).ConfigMap("heliostat"))
	}
	run(t, objects, func(b *bed) {
		b.serve(redis, func(ctx context.Context) error {
			timer := time.NewTimer(2 * time.Second) // as one whose packets go nowhere
			defer timer.Stop()
			<-timer.C
			return away(ctx)
		})
		b.begin()
		b.pass(10 * time.Minute)
		b.serve(redis, func(context.Context) error {
			timer := time.NewTimer(time.Second)
			defer timer.Stop()
			<-timer.C
			return nil
		})
		b.pass(time.Minute)
		if n := len(b.notes()); n > 0 {
			t.Errorf("%d notes are left", n)
		}
	})
}

// TestNoteThatCannotBeWrittenOrDeleted: it is tried again.
func TestNoteThatCannotBeWrittenOrDeleted(t *testing.T) {
	for _, err := range []error{errors.New("the server is away"), apierrors.NewConflict(corev1.Resource("configmaps"), "x", nil)} {
		run(t, []client.Object{open(1, redis).ConfigMap("heliostat")}, func(b *bed) {
			b.serve(redis, away)
			b.refuse("patch *v1.ConfigMap", err)
			b.refuse("delete *v1.ConfigMap", err)
			b.begin()
			b.pass(time.Minute)
			if b.only()[keyState] != "" {
				t.Error("it was written")
			}
			b.refuse("patch *v1.ConfigMap", nil)
			b.pass(longest)
			if b.only()[keyState] != StateFailing {
				t.Errorf("the note says %v", b.only())
			}
			b.serve(redis, nil)
			b.pass(time.Minute)
			if b.only() == nil || b.unswept() != [3]float64{0, 1, 0} {
				t.Errorf("left %v, unswept %v", b.only(), b.unswept())
			}
			b.refuse("delete *v1.ConfigMap", nil)
			b.pass(longest)
			if b.only() != nil {
				t.Errorf("left %v", b.only())
			}
		})
	}
}

// TestNoteDeletedByHand ends what is done for it.
func TestNoteDeletedByHand(t *testing.T) {
	kept := open(1, redis).ConfigMap("heliostat")
	run(t, []client.Object{kept}, func(b *bed) {
		b.serve(redis, away)
		b.begin()
		b.pass(time.Minute)
		b.delete(kept)
		b.pass(longest)
		tried := len(b.sweeps())
		b.pass(time.Minute)
		if len(b.sweeps()) != tried || b.unswept() != [3]float64{} {
			t.Errorf("%d tries more, unswept %v", len(b.sweeps())-tried, b.unswept())
		}
	})
}

// TestEndsWhileARedisHangs: an operator that is told to end does.
func TestEndsWhileARedisHangs(t *testing.T) {
	run(t, []client.Object{open(1, redis).ConfigMap("heliostat")}, func(b *bed) {
		b.serve(redis, hung)
		b.begin()
		b.pass(5 * time.Second)
		at := time.Now()
		b.end()
		if took := time.Since(at); took > 0 || b.only()[keyState] != "" {
			t.Errorf("it took %s, and the note says %v", took, b.only())
		}
		if !b.sweeper.NeedLeaderElection() {
			t.Error("a standby would sweep too")
		}
	})
}

// TestNothingIsTouchedAtOnce: what was under way for a cluster that has just gone, such as a
// question to its Redis, ends first.
func TestNothingIsTouchedAtOnce(t *testing.T) {
	note := open(1, redis)
	cluster := clusterOf(note)
	run(t, []client.Object{note.ConfigMap("heliostat"), cluster}, func(b *bed) {
		b.begin()
		b.pass(every - 10*time.Millisecond)
		b.delete(cluster)
		b.pass(settles - 10*time.Millisecond) // it was seen to be gone 10 ms later
		if b.calls("") > 0 || len(b.sweeps()) > 0 {
			t.Errorf("%d calls, swept %v", b.calls(""), b.sweeps())
		}
		b.pass(3 * time.Second)
		if len(b.sweeps()) != 1 {
			t.Errorf("swept %d times", len(b.sweeps()))
		}
	})
}
