package view

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Store takes in what one source says, in its order. It implements cache.ReflectorStore, cache.ReflectorBookmarkStore and
// cache.TransformingStore.
type Store struct {
	view   *View
	source int
}

// Store returns what takes in a kind of a namespace, which is empty where all are read, and nil where the view does
// not read it.
func (v *View) Store(kind, namespace string) *Store {
	at := slices.Index(v.sources, source{kind, namespace})
	if at < 0 {
		return nil
	}
	return &Store{view: v, source: at}
}

// Transformer trims what a reflector keeps until the last object of its first list has come.
func (s *Store) Transformer() cache.TransformFunc { return trimOne }

// Add takes an object in that is new.
func (s *Store) Add(obj any) error { return s.Update(obj) }

// Update takes an object in that has changed.
func (s *Store) Update(obj any) error {
	object, rv, err := s.accept(obj)
	if err != nil {
		return err
	}
	Trim(object)
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	if pod, is := object.(*corev1.Pod); is {
		s.recordPods(rv, s.view.contents.putPod(pod))
	} else {
		key := Key{s.kind(), object.GetNamespace(), object.GetName()}
		s.record(step{rv: rv, key: key, before: s.view.contents.versionOf(key)})
		s.view.contents.put(key.Kind, object)
	}
	s.view.advance(s.source, rv)
	return nil
}

// Delete forgets an object. The resourceVersion of what is given is that of its deletion, as watches have it.
func (s *Store) Delete(obj any) error {
	object, rv, err := s.accept(obj)
	if err != nil {
		return err
	}
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	if s.kind() == Pods {
		s.recordPods(rv, s.view.contents.removePod(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}))
	} else {
		key := Key{s.kind(), object.GetNamespace(), object.GetName()}
		s.record(step{rv: rv, key: key, before: s.view.contents.versionOf(key)})
		s.view.contents.remove(key)
	}
	s.view.advance(s.source, rv)
	return nil
}

// Replace takes everything in as a list has it. What was between the last change and the list is not known.
func (s *Store) Replace(list []any, resourceVersion string) error {
	rv, err := parseVersion(resourceVersion)
	if err != nil {
		return err
	}
	objects := make([]Object, 0, len(list))
	for _, one := range list {
		object, _, err := s.accept(one)
		if err != nil {
			return err
		}
		Trim(object)
		objects = append(objects, object)
	}
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	listed := make(map[types.NamespacedName]bool, len(objects))
	for _, object := range objects {
		listed[types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}] = true
		if pod, is := object.(*corev1.Pod); is {
			s.view.contents.putPod(pod)
		} else {
			s.view.contents.put(s.kind(), object)
		}
	}
	s.view.contents.removeUnlisted(s.view.sources[s.source], listed)
	s.view.past[s.source].begin(rv)
	s.view.synced[s.source] = true
	s.view.advance(s.source, rv)
	return nil
}

// Resync does nothing: lines follow from objects alone.
func (s *Store) Resync() error { return nil }

// Bookmark notes that nothing else happened up to a resourceVersion.
func (s *Store) Bookmark(resourceVersion string) error {
	rv, err := parseVersion(resourceVersion)
	if err != nil {
		return err
	}
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	if rv > s.view.at[s.source] {
		s.view.advance(s.source, rv)
	}
	return nil
}

func (s *Store) kind() string { return s.view.sources[s.source].kind }

// accept reads what a reflector gives.
func (s *Store) accept(obj any) (Object, uint64, error) {
	object, is := obj.(Object)
	if !is || reflect.TypeOf(obj) != reflect.TypeOf(expected(s.kind())) {
		return nil, 0, fmt.Errorf("take in %s: %T is none", s.kind(), obj)
	}
	rv, err := parseVersion(object.GetResourceVersion())
	if err != nil {
		return nil, 0, fmt.Errorf("take in %s %s/%s: %w", s.kind(), object.GetNamespace(), object.GetName(), err)
	}
	return object, rv, nil
}

// record keeps a step of what is about to change. Where the order is not that of the resourceVersions, the past is
// lost.
func (s *Store) record(one step) {
	past := &s.view.past[s.source]
	if one.rv <= s.view.at[s.source] {
		past.begin(s.view.at[s.source])
		return
	}
	past.add(one, s.view.keep)
}

func (s *Store) recordPods(rv uint64, fewer map[types.UID]int64) {
	for uid, by := range fewer {
		if by != 0 {
			s.record(step{rv: rv, pods: uid, fewer: by})
		}
	}
}

// Run reads all sources until the context ends. The client has the server's own right to list and watch them.
func (v *View) Run(ctx context.Context, reader client.WithWatch) error {
	group, ctx := errgroup.WithContext(ctx)
	for at := range v.sources {
		lists, err := v.listWatch(at, reader)
		if err != nil {
			return err
		}
		name := "view-" + v.sources[at].kind
		reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lists, reader),
			expected(v.sources[at].kind), &Store{view: v, source: at}, cache.ReflectorOptions{Name: name})
		group.Go(func() error {
			reflector.RunWithContext(ctx)
			return nil
		})
	}
	return group.Wait()
}

// expected returns an object of a kind.
func expected(kind string) client.Object {
	switch kind {
	case Clusters:
		return &v1beta1.ComputeCluster{}
	case Jobs:
		return &v1beta1.ClusterJob{}
	case Schedules:
		return &v1beta1.ClusterJobSchedule{}
	case Services:
		return &v1beta1.ClusterService{}
	}
	return &corev1.Pod{}
}

func listOf(kind string) client.ObjectList {
	switch kind {
	case Clusters:
		return &v1beta1.ComputeClusterList{}
	case Jobs:
		return &v1beta1.ClusterJobList{}
	case Schedules:
		return &v1beta1.ClusterJobScheduleList{}
	case Services:
		return &v1beta1.ClusterServiceList{}
	}
	return &corev1.PodList{}
}

// listWatch returns what lists and watches a source, and notes whether the API server answers.
func (v *View) listWatch(at int, reader client.WithWatch) (*cache.ListWatch, error) {
	from := v.sources[at]
	selector := labels.Everything()
	if from.kind == Pods {
		mine, err := labels.NewRequirement(v1beta1.LabelCluster, selection.Exists, nil)
		if err != nil {
			return nil, fmt.Errorf("select what is ours: %w", err)
		}
		selector = selector.Add(*mine)
	}
	with := func(options metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{
			Namespace: from.namespace, LabelSelector: selector, Limit: options.Limit, Continue: options.Continue, Raw: &options,
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := listOf(from.kind)
			err := reader.List(ctx, list, with(options))
			v.noteAnswer(at, err)
			if err == nil {
				err = trimAll(list)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := reader.Watch(ctx, listOf(from.kind), with(options))
			v.noteAnswer(at, err)
			return events, err
		},
	}, nil
}

// trimAll trims the objects of a list.
func trimAll(list runtime.Object) error {
	return apimeta.EachListItem(list, func(one runtime.Object) error {
		_, err := trimOne(one)
		return err
	})
}

func trimOne(one any) (any, error) {
	if object, is := one.(Object); is {
		Trim(object)
	}
	return one, nil
}

// noteAnswer notes whether a source is read. That a resourceVersion is too old is an answer: a list follows.
func (v *View) noteAnswer(at int, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", v.sources[at].kind, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lost[at] = err
	v.advance(at, v.at[at])
}
