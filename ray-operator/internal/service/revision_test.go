package service

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// revisionCache is a cache that holds revisions and notes how they are listed.
type revisionCache struct {
	client.Client
	revisions []appsv1.ControllerRevision
	copies    int
}

func (s *revisionCache) List(_ context.Context, into client.ObjectList, by ...client.ListOption) error {
	list, ok := into.(*appsv1.ControllerRevisionList)
	if !ok {
		return fmt.Errorf("a list of %T is not expected", into)
	}
	var options client.ListOptions
	if options.ApplyOptions(by); options.UnsafeDisableDeepCopy == nil || !*options.UnsafeDisableDeepCopy {
		s.copies += len(s.revisions)
	}
	list.Items = slices.Clone(s.revisions)
	return nil
}

// TestSeeRevisions_ParsesEachOnce, and copies none.
func TestSeeRevisions_ParsesEachOnce(t *testing.T) {
	s := serves(t)
	var cache revisionCache
	for _, revision := range s.seen.Revisions {
		object := *revision.toObject(s.service, 1)
		object.UID, object.ResourceVersion = "revision-uid", "1"
		cache.revisions = append(cache.revisions, object)
	}
	r := &Reconciler{Client: &cache}
	look := func() Revision {
		seen := Seen{Revisions: map[string]Revision{}}
		if err := r.seeRevisions(t.Context(), s.service, &seen); err != nil || len(seen.Revisions) != 1 {
			t.Fatalf("%d revisions, %v", len(seen.Revisions), err)
		}
		return seen.Revisions[s.seen.Record.Active.Revision]
	}
	first, second := look(), look()
	if first.Template == nil || first.Template != second.Template || cache.copies > 0 {
		t.Errorf("it was parsed again: %t; %d were copied", first.Template != second.Template, cache.copies)
	}
	cache.revisions[0].Revision, cache.revisions[0].ResourceVersion = 7, "2"
	if third := look(); third.Number != 7 {
		t.Errorf("its number is %d after that was changed", third.Number)
	}
}

// TestDrop_KeepsTheLastThree beside those that something runs of.
func TestDrop_KeepsTheLastThree(t *testing.T) {
	s := serves(t)
	for i := range 6 {
		s.service.Spec.ServeConfig = serveConfig(fmt.Sprintf("app:v%d", i+2))
		s.keep(t)
	}
	s.service.Spec.ServeConfig = serveConfig("app:v1")
	var dropped []int64
	for _, object := range s.decide().Drop {
		dropped = append(dropped, object.Revision)
	}
	if slices.Sort(dropped); !slices.Equal(dropped, []int64{2, 3, 4}) {
		t.Errorf("revisions %d go", dropped)
	}
}
