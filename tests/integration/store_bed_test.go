package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
	"github.com/heliostat-dev/heliostat/tests/redistest"
)

// storePassword is nowhere but in Secrets and in the Redis itself.
const storePassword = "a-password-that-nobody-tells"

// others are keys in the same Redis that are no cluster's of these tests.
var others = []string{"RAY", "RAY@KV", "RAYother@KV", "RAYother@heliostat", "a-cache", "ray"}

// bed is a Redis of users', and the clusters that keep their memory in it. As no pod holds
// a Ray here, the tests write what Ray would have written.
type bed struct {
	*redistest.Server
	t         *testing.T
	namespace string
}

// newBed starts a Redis that keeps on its disk what it is told, and makes a namespace with
// the Secret that opens it.
func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, namespace: newNamespace(t)}
	b.Server = redistest.Start(t, "--requirepass", storePassword, "--appendonly", "yes", "--appendfsync", "always")
	b.addOthers()
	b.opens(b.namespace)
	b.cleansUp(b.namespace)
	return b
}

// watching starts an operator that manages the clusters of namespaces.
func watching(t *testing.T, namespaces ...string) *operator {
	t.Helper()
	return startOperator(t, "--namespace="+live.ReleaseNamespace, "--watch-namespaces="+strings.Join(namespaces, ","))
}

func (b *bed) addOthers() {
	b.t.Helper()
	for _, key := range others {
		b.Do("SET", key, "theirs")
	}
}

// othersLost counts the keys of others that are not as they were.
func (b *bed) othersLost() int {
	b.t.Helper()
	lost := 0
	for _, key := range others {
		if b.Do("GET", key) != "theirs" {
			lost++
		}
	}
	return lost
}

// opens makes the Secret in a namespace.
func (b *bed) opens(namespace string) {
	b.t.Helper()
	must(b.t, shared.Create(b.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "store"}, StringData: map[string]string{"password": storePassword},
	}))
}

// cleansUp removes the notes about the clusters of a namespace when the test ends.
func (b *bed) cleansUp(namespace string) {
	b.t.Cleanup(func() {
		ctx := context.WithoutCancel(b.t.Context())
		kept, err := notesOf(ctx, namespace)
		must(b.t, err)
		for i := range kept {
			must(b.t, client.IgnoreNotFound(shared.Delete(ctx, &kept[i])))
		}
	})
}

// cluster is one whose memory is in the Redis, under a namespace of Ray's or, where that
// is empty, under its own.
func (b *bed) cluster(namespace, name, ray string, workers int32) *v1beta1.ComputeCluster {
	cluster := newCluster(namespace, name, workers)
	// A namespace that goes waits for half of the longest grace of the pods that it saw.
	cluster.Spec.WorkerGroups[0].Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(2)), Containers: []corev1.Container{{Name: "ray"}},
	}}
	cluster.Spec.ControlStore = &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{
		Address: b.Address(), Namespace: ray, PasswordSecret: &v1beta1.SecretKey{Name: "store", Key: "password"},
	}}
	return cluster
}

// member is a cluster in a bed.
type member struct {
	types.NamespacedName
	uid types.UID
	// ray is Ray's namespace.
	ray string
}

// create makes n clusters with a worker each in a namespace, waits until they are ready,
// and writes what Ray would write.
func (b *bed) create(namespace, prefix string, n int) []member {
	b.t.Helper()
	var all []member
	for i := range n {
		cluster := b.cluster(namespace, fmt.Sprintf("%s%d", prefix, i), "", 1)
		must(b.t, shared.Create(b.t.Context(), cluster))
		all = append(all, member{client.ObjectKeyFromObject(cluster), cluster.UID, string(cluster.UID)})
	}
	for _, one := range all {
		b.settle(one)
	}
	return all
}

// settle waits until a new cluster is ready, checks its marker, and writes as Ray does.
func (b *bed) settle(one member) {
	b.t.Helper()
	ready(b.t, one.NamespacedName)
	b.marks(one, 1, 1)
	b.write(one.ray)
}

// write writes what Ray keeps under a namespace of its own.
func (b *bed) write(ray string) {
	b.t.Helper()
	for _, table := range []string{"KV", "NODE", "JOB", "ACTOR", "ACTOR_TASK_SPEC", "PLACEMENT_GROUP", "WORKERS"} {
		b.Do("HSET", "RAY"+ray+"@"+table, "an id", "what Ray knows of it")
	}
	b.Do("INCR", "RAY"+ray+"@JobCounter")
}

// written are the keys under a namespace of Ray's, in order.
func (b *bed) written(ray string) []string {
	b.t.Helper()
	return slices.DeleteFunc(b.Keys(), func(key string) bool { return !strings.HasPrefix(key, "RAY"+ray+"@") })
}

// left are all keys but those of others.
func (b *bed) left() []string {
	b.t.Helper()
	return slices.DeleteFunc(b.Keys(), func(key string) bool { return slices.Contains(others, key) })
}

// marks checks whose the marker says that a namespace is.
func (b *bed) marks(one member, session, epoch int) {
	b.t.Helper()
	fields, _ := b.Do("HGETALL", "RAY"+one.ray+"@heliostat").([]any)
	have := map[string]string{}
	for i := 0; i+1 < len(fields); i += 2 {
		have[fmt.Sprint(fields[i])] = fmt.Sprint(fields[i+1])
	}
	want := map[string]string{"owner": string(one.uid), "cluster": one.String(), "session": fmt.Sprint(session), "epoch": fmt.Sprint(epoch), "found": have["found"]}
	if !maps.Equal(have, want) {
		b.t.Errorf("the marker of %s is %v, want %v", one, have, want)
	}
}

// notesOf are the notes about the clusters of a namespace.
func notesOf(ctx context.Context, namespace string) ([]corev1.ConfigMap, error) {
	var list corev1.ConfigMapList
	err := shared.List(ctx, &list, client.InNamespace(live.ReleaseNamespace), client.HasLabels{v1beta1.LabelNote})
	return slices.DeleteFunc(list.Items, func(note corev1.ConfigMap) bool { return note.Data["clusterNamespace"] != namespace }), err
}

// noted checks that there is a note of a cluster, and gives it.
func noted(t *testing.T, one member) *corev1.ConfigMap {
	t.Helper()
	note := &corev1.ConfigMap{}
	must(t, shared.Get(t.Context(), noteOf(one), note))
	if note.Labels[v1beta1.LabelNote] != string(one.uid) || note.Data["clusterName"] != one.Name || note.Data["rayNamespace"] != one.ray {
		t.Errorf("the note of %s is %v with the labels %v", one, note.Data, note.Labels)
	}
	return note
}

// noteOf is where the note about a cluster's keys is.
func noteOf(one member) types.NamespacedName {
	return types.NamespacedName{Namespace: live.ReleaseNamespace, Name: "heliostat-store-" + string(one.uid)}
}

// at is how an object of a name is told of.
func at(name types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}
}

// noNotes waits until there is no note about clusters of a namespace.
func noNotes(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, "the notes to be gone", func(ctx context.Context) error {
		kept, err := notesOf(ctx, namespace)
		if err == nil && len(kept) > 0 {
			err = fmt.Errorf("%d are there, one of them says %v", len(kept), kept[0].Data)
		}
		return err
	})
}

// notesSay waits until the notes about n clusters of a namespace say what is the matter, and
// gives them.
func notesSay(t *testing.T, namespace string, n int, state, why string) []corev1.ConfigMap {
	t.Helper()
	var kept []corev1.ConfigMap
	eventually(t, "the notes to say "+state, func(ctx context.Context) error {
		var err error
		if kept, err = notesOf(ctx, namespace); err != nil {
			return err
		}
		said := 0
		for i := range kept {
			data := kept[i].Data
			if data["state"] == state && strings.Contains(data["why"], why) && data["since"] != "" && strings.Contains(data["command"], "'RAY"+data["rayNamespace"]+"@*'") {
				said++
			}
		}
		if said != n || len(kept) != n {
			err = fmt.Errorf("%d of %d do: %v", said, len(kept), kept)
		}
		return err
	})
	return kept
}

// keepsSecret checks that the password is in nothing that can be read but Secrets.
func keepsSecret(t *testing.T, o *operator, namespace string) {
	t.Helper()
	kept, err := notesOf(t.Context(), namespace)
	must(t, err)
	texts := map[string]any{"the notes": kept, "the operator's log": o.log.String()}
	for _, list := range []client.ObjectList{&v1beta1.ComputeClusterList{}, &corev1.PodList{}, &eventsv1.EventList{}, &corev1.ConfigMapList{}} {
		must(t, shared.List(t.Context(), list, client.InNamespace(namespace)))
		texts[fmt.Sprintf("a %T", list)] = list
	}
	for where, what := range texts {
		text, err := json.Marshal(what)
		must(t, err)
		if bytes.Contains(text, []byte(storePassword)) {
			t.Errorf("%s tells the password", where)
		}
	}
}

// anotherHead deletes a cluster's head by force, and gives the time until there was another.
func anotherHead(t *testing.T, name types.NamespacedName) time.Duration {
	t.Helper()
	lost := podsOf(t, name, v1beta1.RoleHead)[0]
	begin := time.Now()
	must(t, shared.Delete(t.Context(), &lost, client.GracePeriodSeconds(0)))
	eventually(t, "another head of "+name.Name, func(ctx context.Context) error {
		heads, err := shared.PodsOf(ctx, name, v1beta1.RoleHead)
		if err == nil && (len(heads) != 1 || heads[0].UID == lost.UID) {
			err = fmt.Errorf("there are %d heads", len(heads))
		}
		return err
	})
	return time.Since(begin)
}

// emptied waits until no cluster is in a namespace, nor anything that was made for one.
func emptied(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, "nothing of the clusters to be left", func(ctx context.Context) error {
		var clusters v1beta1.ComputeClusterList
		if err := shared.List(ctx, &clusters, client.InNamespace(namespace)); err != nil {
			return err
		}
		if n := len(clusters.Items); n > 0 {
			return fmt.Errorf("%d clusters are there", n)
		}
		var found []error
		for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ServiceList{}, &corev1.SecretList{}} {
			if err := shared.List(ctx, list, client.InNamespace(namespace), client.HasLabels{v1beta1.LabelCluster}); err != nil {
				return err
			}
			if n := meta.LenList(list); n > 0 {
				found = append(found, fmt.Errorf("%d of %T are there", n, list))
			}
		}
		return errors.Join(found...)
	})
}
