package live

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// gatewayAPI is the module that has the kinds of Gateway API.
const gatewayAPI = "sigs.k8s.io/gateway-api"

// GatewayKinds are the CRDs of Gateway API's standard channel, of the version that the
// repository at root builds with.
func GatewayKinds(ctx context.Context, root string) ([]*unstructured.Unstructured, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-C", root, "-m", "-f", "{{.Dir}}", gatewayAPI).Output()
	if err != nil {
		return nil, fmt.Errorf("find the module %s: %w", gatewayAPI, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "standard", "gateway.networking.k8s.io_*s.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find the CRDs of %s in %q: %w", gatewayAPI, out, err)
	}
	var kinds []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a CRD: %w", err)
		}
		found, err := Decode(text)
		if err != nil {
			return nil, err
		}
		for _, object := range found {
			if object.GetKind() == "CustomResourceDefinition" {
				kinds = append(kinds, object)
			}
		}
	}
	return kinds, nil
}

// InstallGatewayAPI has the API server serve the kinds of Gateway API.
func (c *Cluster) InstallGatewayAPI(ctx context.Context, root string, limit time.Duration) error {
	kinds, err := GatewayKinds(ctx, root)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := c.ApplyObject(ctx, kind.DeepCopy()); err != nil {
			return err
		}
	}
	return Until(ctx, limit, "the kinds of Gateway API to be served", func(ctx context.Context) error {
		for _, list := range []client.ObjectList{&gatewayv1.HTTPRouteList{}, &gatewayv1.GatewayList{}, &gatewayv1.GatewayClassList{}} {
			if err := c.List(ctx, list); err != nil {
				return err
			}
		}
		return nil
	})
}

// RemoveGatewayAPI takes the kinds of Gateway API away, and waits until they are gone.
func (c *Cluster) RemoveGatewayAPI(ctx context.Context, root string, limit time.Duration) error {
	kinds, err := GatewayKinds(ctx, root)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := client.IgnoreNotFound(c.Delete(ctx, kind.DeepCopy())); err != nil {
			return fmt.Errorf("delete CRD %s: %w", kind.GetName(), err)
		}
	}
	return Until(ctx, limit, "the kinds of Gateway API to be gone", func(ctx context.Context) error {
		for _, kind := range kinds {
			there := &unstructured.Unstructured{}
			there.SetGroupVersionKind(kind.GroupVersionKind())
			err := c.Get(ctx, client.ObjectKeyFromObject(kind), there)
			switch {
			case err == nil:
				return fmt.Errorf("CRD %s is there", kind.GetName())
			case !apierrors.IsNotFound(err):
				return fmt.Errorf("read CRD %s: %w", kind.GetName(), err)
			}
		}
		return nil
	})
}

// TakeRoute says in a route's status, as a gateway's controller does, that its first parent has
// taken it as it is.
func (c *Cluster) TakeRoute(ctx context.Context, route *gatewayv1.HTTPRoute) error {
	seen := route.DeepCopy()
	parent := gatewayv1.RouteParentStatus{ParentRef: route.Spec.ParentRefs[0], ControllerName: "heliostat.dev/tests"}
	for _, kind := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		meta.SetStatusCondition(&parent.Conditions, metav1.Condition{
			Type: string(kind), Status: metav1.ConditionTrue, Reason: string(kind), ObservedGeneration: route.Generation,
		})
	}
	route.Status.Parents = []gatewayv1.RouteParentStatus{parent}
	if err := c.Status().Patch(ctx, route, client.MergeFrom(seen)); err != nil {
		return fmt.Errorf("report the status of HTTPRoute %s: %w", route.Name, err)
	}
	return nil
}
