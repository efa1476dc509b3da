package view

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

// everywhere is the namespace of a right to all of them.
const everywhere = ""

// Reach is what a caller may see: kinds everywhere, and kinds in single namespaces. Its zero value is nothing.
type Reach struct {
	wide   uint8
	spaces map[string]uint8
}

// bit returns the place of a kind in a set.
func bit(kind string) uint8 { return 1 << slices.Index(kinds, kind) }

// Set notes whether a kind may be seen in a namespace, or everywhere where that is empty.
func (r *Reach) Set(place Place, may bool) {
	set := r.wide
	if place.Namespace != everywhere {
		set = r.spaces[place.Namespace]
	}
	if may {
		set |= bit(place.Kind)
	} else {
		set &^= bit(place.Kind)
	}
	switch {
	case place.Namespace == everywhere:
		r.wide = set
	case set == 0:
		delete(r.spaces, place.Namespace)
	default:
		if r.spaces == nil {
			r.spaces = map[string]uint8{}
		}
		r.spaces[place.Namespace] = set
	}
}

// IsWide reports whether a kind may be seen everywhere.
func (r *Reach) IsWide(kind string) bool { return r.wide&bit(kind) != 0 }

// Has reports whether a kind may be seen in a namespace.
func (r *Reach) Has(kind, namespace string) bool {
	return (r.wide|r.spaces[namespace])&bit(kind) != 0
}

// IsEmpty reports whether nothing may be seen.
func (r *Reach) IsEmpty() bool { return r.wide == 0 && len(r.spaces) == 0 }

// Places returns the places that are set, in order.
func (r *Reach) Places() []Place {
	var places []Place
	for _, namespace := range append([]string{everywhere}, slices.Sorted(maps.Keys(r.spaces))...) {
		set := r.wide
		if namespace != everywhere {
			set = r.spaces[namespace]
		}
		for _, kind := range kinds {
			if set&bit(kind) != 0 {
				places = append(places, Place{kind, namespace})
			}
		}
	}
	return places
}

// Clone returns a reach of its own.
func (r *Reach) Clone() *Reach { return &Reach{wide: r.wide, spaces: maps.Clone(r.spaces)} }

// Without returns a reach that lacks a place.
func (r *Reach) Without(place Place) *Reach {
	if !r.Has(place.Kind, place.Namespace) {
		return r
	}
	next := r.Clone()
	next.Set(place, false)
	return next
}

// Equals reports whether two reaches are the same.
func (r *Reach) Equals(other *Reach) bool {
	return r.wide == other.wide && maps.Equal(r.spaces, other.spaces)
}

// Includes reports whether all that another reach has may be seen.
func (r *Reach) Includes(other *Reach) bool {
	return !slices.ContainsFunc(other.Places(), func(place Place) bool {
		return !r.Has(place.Kind, place.Namespace)
	})
}

// Scope returns a hash of what a filter and a reach let through. Of a filter without namespaces, only places that have
// lines count: the same caller has the same scope on every server that is at the same position.
func (r *Reach) Scope(f *Filter, hasLines func(Place) bool) uint64 {
	scope := f.hash
	for _, place := range r.Places() {
		if place.Namespace == everywhere {
			scope += hashOf(place.Kind)
		} else if !f.IsOpen() || hasLines(place) {
			scope += r.ScopeOf(f, place)
		}
	}
	return scope
}

// ScopeOf returns what a place with lines adds to a scope.
func (r *Reach) ScopeOf(f *Filter, place Place) uint64 {
	if r.IsWide(place.Kind) || !r.Has(place.Kind, place.Namespace) || !f.Covers(place) {
		return 0
	}
	return hashOf(place.Kind, place.Namespace)
}

// hashOf hashes texts.
func hashOf(texts ...string) uint64 {
	var all []byte
	for _, text := range texts {
		all = append(binary.AppendUvarint(all, uint64(len(text))), text...)
	}
	sum := sha256.Sum256(all)
	return binary.BigEndian.Uint64(sum[:])
}
