// Package ext stands in for what Traefik lets others extend its configuration with.
//
// In: nothing. Out: types without fields, as in Traefik itself, whose module of this name is only
// to be had from its own tree. It must never add anything.
package ext

// HTTP adds nothing to a configuration, Router nothing to a router.
type (
	HTTP   struct{}
	Router struct{}
)
