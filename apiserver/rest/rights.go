package rest

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

// rights are the kinds and namespaces where a caller may do a verb.
type rights struct {
	// everywhere has the kinds for which it holds in all namespaces.
	everywhere map[string]bool
	places     map[view.Place]bool
}

// cover reports whether the rights cover a kind in a namespace.
func (r rights) cover(kind, namespace string) bool {
	return r.everywhere[kind] || r.places[view.Place{Kind: kind, Namespace: namespace}]
}

// askRights returns where the caller may do a verb, among the namespaces that hold objects of the kinds of a filter. A
// namespace that the filter names and in which the caller may do it for no kind is refused.
func (v *reviewer) askRights(ctx context.Context, verb string, of filter) (rights, error) {
	kinds := of.GetKinds()
	if len(kinds) == 0 {
		kinds = view.Kinds()
	}
	found := rights{everywhere: map[string]bool{}, places: map[view.Place]bool{}}
	var mutex sync.Mutex
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	// ask asks about a kind in a namespace, or in all of them, and notes the answer.
	ask := func(kind, namespace string, note func()) {
		group.Go(guard(func() error {
			err := v.may(inner, attributes(verb, view.Resource(kind), "", namespace, ""))
			if isForbidden(err) {
				return nil
			}
			mutex.Lock()
			defer mutex.Unlock()
			if err == nil {
				note()
			}
			return err
		}))
	}
	for _, kind := range kinds {
		if slices.Contains(view.Kinds(), kind) {
			ask(kind, "", func() { found.everywhere[kind] = true })
		}
	}
	if err := group.Wait(); err != nil {
		return rights{}, err
	}
	group, inner = errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, place := range placesOf(v.View, kinds, of.GetNamespaces()) {
		if !found.everywhere[place.Kind] {
			ask(place.Kind, place.Namespace, func() { found.places[place] = true })
		}
	}
	if err := group.Wait(); err != nil {
		return rights{}, err
	}
	for _, namespace := range of.GetNamespaces() {
		isSeen := func(kind string) bool { return found.cover(kind, namespace) }
		if !slices.ContainsFunc(kinds, isSeen) {
			return rights{}, v.refuseAll(ctx, verb, of)
		}
	}
	return found, nil
}

// refuseAll returns that the caller may do a verb for nothing that a filter is about: in the words of its first kind and
// namespace. Where none is named, the caller may have the right in one that holds no object yet.
func (v *reviewer) refuseAll(ctx context.Context, verb string, of filter) error {
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	kinds := append(slices.Clone(of.GetKinds()), view.Clusters)
	namespaces := append(slices.Clone(of.GetNamespaces()), "")
	refused := problem.Forbidden(caller.User().Username, verb, view.Resource(kinds[0]), namespaces[0])
	if len(of.GetNamespaces()) == 0 {
		refused.Remedy = "name the namespaces that you may read (namespaces=NAME), or " + refused.Remedy
	}
	return refused
}

// placesOf returns the kinds and namespaces to ask about: those that are named, else those that hold objects.
func placesOf(known *view.View, kinds, namespaces []string) []view.Place {
	var places []view.Place
	if len(namespaces) == 0 {
		for _, place := range known.Places() {
			if slices.Contains(kinds, place.Kind) {
				places = append(places, place)
			}
		}
		return places
	}
	for _, namespace := range namespaces {
		for _, kind := range kinds {
			if slices.Contains(view.Kinds(), kind) {
				places = append(places, view.Place{Kind: kind, Namespace: namespace})
			}
		}
	}
	return places
}
