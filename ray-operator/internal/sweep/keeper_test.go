package sweep

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// calls counts the writes, and the reads past the cache, of a Keeper.
type calls struct{ creates, patches, live int }

// keeper is one over a fake API server that holds some objects. Its cache is the server,
// but for what stale says.
func keeper(t *testing.T, stale bool, there ...client.Object) (*Keeper, client.Client, *calls) {
	t.Helper()
	counted := &calls{}
	below := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(there...).Build()
	written := interceptor.NewClient(below, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if stale {
				return apierrors.NewNotFound(corev1.Resource("configmaps"), name.Name)
			}
			return c.Get(ctx, name, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			counted.creates++
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			counted.patches++
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	live := interceptor.NewClient(below, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			counted.live++
			return c.Get(ctx, name, obj, opts...)
		},
	})
	return &Keeper{Writer: &kube.Writer{Client: written, Live: live}, Live: live, Namespace: "heliostat"}, below, counted
}

// expectKept asserts whether a note is there, as the cache has it.
func expectKept(t *testing.T, k *Keeper, note Note, want bool) {
	t.Helper()
	if is, err := k.Kept(t.Context(), note); err != nil || is != want {
		t.Errorf("it is kept: %v, %v, want %v", is, err, want)
	}
}

func TestNotesAreKept(t *testing.T) {
	changed := func(change func(*corev1.ConfigMap)) client.Object {
		kept := whole().ConfigMap("heliostat")
		change(kept)
		return kept
	}
	for _, c := range []struct {
		what  string
		stale bool
		there client.Object
		want  calls
	}{
		{"there is none", false, nil, calls{creates: 1}},
		{"it is there", false, whole().ConfigMap("heliostat"), calls{}},
		{"it is there and the cache is late", true, whole().ConfigMap("heliostat"), calls{creates: 1, live: 1}},
		{"the address has changed", false, changed(func(c *corev1.ConfigMap) { c.Data["address"] = "redis://former:1" }), calls{patches: 1, live: 1}},
		{"it has lost a reference", false, changed(func(c *corev1.ConfigMap) { delete(c.Data, "caSecret") }), calls{patches: 1, live: 1}},
		{"it has a reference too many, and the cache is late", true, func() client.Object {
			former := whole()
			former.Namespace, former.Address = "a:b", "redis://former:1"
			return former.ConfigMap("heliostat")
		}(), calls{creates: 1, patches: 1, live: 1}},
		{"its data is damaged", false, changed(func(c *corev1.ConfigMap) { c.Data = nil }), calls{patches: 1, live: 1}},
		{"its label is gone", true, changed(func(c *corev1.ConfigMap) { c.Labels = nil }), calls{creates: 1, patches: 1, live: 1}},
	} {
		t.Run(c.what, func(t *testing.T) {
			var there []client.Object
			if c.there != nil {
				there = append(there, c.there)
			}
			k, server, counted := keeper(t, c.stale, there...)
			expectKept(t, k, whole(), c.want == calls{})
			if err := k.Keep(t.Context(), whole()); err != nil {
				t.Fatal(err)
			}
			if *counted != c.want {
				t.Errorf("%+v, want %+v", *counted, c.want)
			}
			expectKept(t, k, whole(), !c.stale)
			var kept corev1.ConfigMap
			if err := server.Get(t.Context(), client.ObjectKey{Namespace: "heliostat", Name: naming.StoreNote("uid-1")}, &kept); err != nil {
				t.Fatal(err)
			}
			wanted := whole().ConfigMap("heliostat")
			if diff := cmp.Diff(wanted.Data, kept.Data); diff != "" || kept.Labels[v1beta1.LabelNote] != "uid-1" {
				t.Errorf("kept with the labels %v and %s", kept.Labels, diff)
			}
		})
	}
}

func TestNotesThatCannotBeKept(t *testing.T) {
	taken := func(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
		kept := whole().ConfigMap("heliostat")
		change(kept)
		return kept
	}
	theirs := taken(func(c *corev1.ConfigMap) { c.Labels, c.Data = nil, map[string]string{"a": "b"} })
	leaving := taken(func(c *corev1.ConfigMap) {
		now := metav1.Now()
		c.DeletionTimestamp, c.Finalizers = &now, []string{"someone.example.com/holds"}
	})
	unreadable := whole()
	unreadable.Namespace = "*"
	for _, c := range []struct {
		what      string
		there     *corev1.ConfigMap
		note      Note
		namespace string
		code      string
		wait      bool
	}{
		{"without a namespace of its own", nil, whole(), "", "StoreRecordFailed", false},
		{"the name is someone's", theirs, whole(), "heliostat", "NameConflict", false},
		{"on its way out", leaving, whole(), "heliostat", "", true},
		{"that nobody could sweep by", nil, unreadable, "heliostat", "", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			var there []client.Object
			if c.there != nil {
				there = append(there, c.there)
			}
			k, server, counted := keeper(t, false, there...)
			k.Namespace = c.namespace
			expectKept(t, k, c.note, false)
			err := k.Keep(t.Context(), c.note)
			finding, _ := fault.Finding(err)
			if err == nil || finding.Code != c.code || fault.IsWait(err) != c.wait {
				t.Errorf("kept: %v", err)
			}
			var all corev1.ConfigMapList
			if err := server.List(t.Context(), &all); err != nil || len(all.Items) != len(there) || counted.patches > 0 {
				t.Errorf("%d notes, %d written, %v", len(all.Items), counted.patches, err)
			}
			if c.there == theirs && cmp.Diff(theirs.Data, all.Items[0].Data) != "" {
				t.Errorf("someone's object became %v", all.Items[0].Data)
			}
		})
	}
}

// A namespace whose clusters leave keys that nobody can remove has no more of them noted, and others are not held up.
func TestKeeper_AddsNoNoteBesideTooManyLeft(t *testing.T) {
	left := func(n int, state string) (all []client.Object) {
		for i := range n {
			kept := open(i, redis).ConfigMap("heliostat")
			kept.Data[keyState] = state
			all = append(all, kept)
		}
		return all
	}
	added := open(100, redis)
	elsewhere := added
	elsewhere.Cluster.Namespace = "other"
	for _, c := range []struct {
		what  string
		there []client.Object
		note  Note
		code  string
	}{
		{"19 that fail", left(19, StateFailing), added, ""},
		{"20 that fail", left(20, StateFailing), added, "StoreRecordFailed"},
		{"20 that are stuck", left(20, StateStuck), added, "StoreRecordFailed"},
		{"20 that are stuck, of another namespace", left(20, StateStuck), elsewhere, ""},
		{"20 whose pods are on their way", left(20, StateWaiting), added, ""},
		{"20 of clusters that are there", left(20, ""), added, ""},
		{"20 that fail, and its own", append(left(20, StateFailing), added.ConfigMap("heliostat")), added, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			k, _, _ := keeper(t, false, c.there...)
			err := k.Keep(t.Context(), c.note)
			if finding, _ := fault.Finding(err); finding.Code != c.code || c.code == "" && err != nil {
				t.Errorf("kept: %v", err)
			}
		})
	}
}

func TestNoteIsNotKeptWhenTheAPIServerIsAway(t *testing.T) {
	cause := errors.New("the server is away")
	refuse := func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return cause
	}
	for what, cached := range map[string]bool{"the cache": true, "the server": false} {
		t.Run(what, func(t *testing.T) {
			stranger := whole().ConfigMap("heliostat")
			stranger.Data = nil
			k, server, _ := keeper(t, false, stranger)
			broken := interceptor.NewClient(server.(client.WithWatch), interceptor.Funcs{Get: refuse})
			if cached {
				k.Writer.Client = broken
			} else {
				k.Live = broken
			}
			if err := k.Keep(t.Context(), whole()); !errors.Is(err, cause) {
				t.Errorf("kept: %v", err)
			}
			if is, err := k.Kept(t.Context(), whole()); is || cached != errors.Is(err, cause) {
				t.Errorf("it is kept: %v, %v", is, err)
			}
		})
	}
}
