package rest

import (
	"context"
	"log/slog"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/feed"
	"github.com/heliostat-dev/heliostat/apiserver/kept"
	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/heads"
)

// Needs is what the API is made of.
type Needs struct {
	Access Access
	View   *view.View
	Feed   *feed.Feed
	Heads  *heads.Heads
	Logs   *logs.Logs
	// History are the archivers; nil where no history is kept.
	History kept.Archivers
	// Namespace is the server's own: its presets are for all users.
	Namespace string
	// AddressOf returns where browsers open the dashboard of an object, or a service; empty where none is served. Nil is
	// that none is.
	AddressOf func(kind, namespace, name string) string
	Log       *slog.Logger
	Clock     clock.WithTickerAndDelayedExecution
}

// Access is Kubernetes, asked and changed as callers. Package access implements it.
type Access interface {
	Identify(ctx context.Context, r *http.Request) (*access.Caller, error)
	May(ctx context.Context, caller *access.Caller, what authorizationv1.ResourceAttributes) error
	Confirm(ctx context.Context, caller *access.Caller, what authorizationv1.ResourceAttributes) error
	Rules(ctx context.Context, caller *access.Caller, namespace string) (access.Rules, error)

	FindObject(ctx context.Context, caller *access.Caller, of access.ObjectName) (map[string]any, error)
	PatchObject(ctx context.Context, caller *access.Caller, of access.ObjectName, kind types.PatchType,
		patch []byte) (map[string]any, error)
	CreateObject(ctx context.Context, caller *access.Caller, of access.ObjectName, object map[string]any,
		isDry bool) (map[string]any, []string, error)

	Namespaces(ctx context.Context, caller *access.Caller) ([]string, error)
	Events(ctx context.Context, caller *access.Caller, namespace string, about types.UID) ([]*eventsv1.Event, error)
	Presets(ctx context.Context, caller *access.Caller, namespace string) ([]*corev1.ConfigMap, error)

	// What follows is read as the server itself.
	ReleasePresets(ctx context.Context, namespace string) ([]*corev1.ConfigMap, error)
	// NamespaceUID returns the UID of a namespace that is there now; it is empty where there is none.
	NamespaceUID(ctx context.Context, name string) (types.UID, error)
	// NamespaceUIDs returns those of all namespaces by their names.
	NamespaceUIDs(ctx context.Context) (map[string]types.UID, error)
	Revisions(ctx context.Context, namespace, service string, uid types.UID) ([]*appsv1.ControllerRevision, error)
}
