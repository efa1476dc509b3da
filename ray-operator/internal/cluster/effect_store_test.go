package cluster_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// storeEffects has, for each field of the control store, an edit that sets it to something else.
var storeEffects = map[string]specEdit{
	"controlStore.redis.address":   ofRedis(func(r *v1beta1.GivenRedis) { r.Address = "rediss://other:6379" }),
	"controlStore.redis.namespace": ofRedis(func(r *v1beta1.GivenRedis) { r.Namespace = "a" }),

	"controlStore.redis.usernameSecret.name":        ofRedis(func(r *v1beta1.GivenRedis) { r.UsernameSecret.Name = "a" }),
	"controlStore.redis.usernameSecret.key":         ofRedis(func(r *v1beta1.GivenRedis) { r.UsernameSecret.Key = "a" }),
	"controlStore.redis.passwordSecret.name":        ofRedis(func(r *v1beta1.GivenRedis) { r.PasswordSecret.Name = "a" }),
	"controlStore.redis.passwordSecret.key":         ofRedis(func(r *v1beta1.GivenRedis) { r.PasswordSecret.Key = "a" }),
	"controlStore.redis.tls.caSecret.name":          ofRedis(func(r *v1beta1.GivenRedis) { r.TLS.CASecret.Name = "a" }),
	"controlStore.redis.tls.caSecret.key":           ofRedis(func(r *v1beta1.GivenRedis) { r.TLS.CASecret.Key = "a" }),
	"controlStore.redis.tls.certificateSecret.name": ofRedis(func(r *v1beta1.GivenRedis) { r.TLS.CertificateSecret.Name = "a" }),
	"controlStore.redis.tls.certificateSecret.key":  ofRedis(func(r *v1beta1.GivenRedis) { r.TLS.CertificateSecret.Key = "a" }),
	"controlStore.redis.tls.keySecret.name":         ofRedis(func(r *v1beta1.GivenRedis) { r.TLS.KeySecret.Name = "a" }),
	"controlStore.redis.tls.keySecret.key":          ofRedis(func(r *v1beta1.GivenRedis) { r.TLS.KeySecret.Key = "a" }),
	"controlStore.redis.tls.serverName":             ofRedis(func(r *v1beta1.GivenRedis) { r.TLS.ServerName = "a" }),

	"controlStore.managedRedis.storage":          ofManaged(func(m *v1beta1.ManagedRedis) { m.Storage = storage() }),
	"controlStore.managedRedis.storageClassName": ofManaged(func(m *v1beta1.ManagedRedis) { m.StorageClassName = new("fast") }),
	"controlStore.managedRedis.image":            ofManaged(func(m *v1beta1.ManagedRedis) { m.Image = "mine" }),
	"controlStore.managedRedis.size":             ofManaged(func(m *v1beta1.ManagedRedis) { m.Size = corev1.ResourceList{"cpu": *storage()} }),
	"controlStore.managedRedis.retain":           ofManaged(func(m *v1beta1.ManagedRedis) { m.Retain = new(true) }),

	"controlStore.embedded.storage":          ofEmbedded(func(e *v1beta1.EmbeddedStore) { e.Storage = storage() }),
	"controlStore.embedded.storageClassName": ofEmbedded(func(e *v1beta1.EmbeddedStore) { e.StorageClassName = new("fast") }),
	"controlStore.embedded.accessModes": ofEmbedded(func(e *v1beta1.EmbeddedStore) {
		e.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}),
	"controlStore.embedded.existingClaim": ofEmbedded(func(e *v1beta1.EmbeddedStore) { e.ExistingClaim = "mine" }),
	"controlStore.embedded.retain":        ofEmbedded(func(e *v1beta1.EmbeddedStore) { e.Retain = new(true) }),
}

func ofRedis(edit func(*v1beta1.GivenRedis)) specEdit {
	return func(s *v1beta1.ComputeClusterSpec) { edit(s.ControlStore.Redis) }
}

func ofManaged(edit func(*v1beta1.ManagedRedis)) specEdit {
	return func(s *v1beta1.ComputeClusterSpec) { edit(s.ControlStore.ManagedRedis) }
}

func ofEmbedded(edit func(*v1beta1.EmbeddedStore)) specEdit {
	return func(s *v1beta1.ComputeClusterSpec) { edit(s.ControlStore.Embedded) }
}

func storage() *resource.Quantity { return new(resource.MustParse("7Gi")) }

// storeFor is the store that a field is about, nil for fields of others.
func storeFor(path string) *v1beta1.ControlStore {
	key := func() *v1beta1.SecretKey { return &v1beta1.SecretKey{Name: "s", Key: "k"} }
	switch {
	case strings.HasPrefix(path, "controlStore.redis."):
		return &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{
			Address: "rediss://redis:6379", UsernameSecret: key(), PasswordSecret: key(),
			TLS: &v1beta1.RedisTLS{CASecret: key(), CertificateSecret: key(), KeySecret: key()},
		}}
	case strings.HasPrefix(path, "controlStore.managedRedis."):
		return managedRedis()
	case strings.HasPrefix(path, "controlStore.embedded."):
		return embedded()
	default:
		return nil
	}
}

// serving is a Redis that admits the head.
func serving() store.Seen {
	return store.Seen{Known: true, Verdict: controlstore.Verdict{Admitted: true, Finding: reason.StoreServes.Of("redis")}}
}
