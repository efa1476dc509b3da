package fakehead_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

// TestTraps sends what headclient never would: the fake must not be kinder than Ray.
func TestTraps(t *testing.T) {
	for name, kill := range map[string]func(context.Context, autoscaler.AutoscalerStateServiceClient) error{
		"a state version that it has not reached": func(ctx context.Context, client autoscaler.AutoscalerStateServiceClient) error {
			_, err := client.GetClusterResourceState(ctx, &autoscaler.GetClusterResourceStateRequest{LastSeenClusterResourceStateVersion: 1})
			return err
		},
		"a node id of 27 bytes": func(ctx context.Context, client autoscaler.AutoscalerStateServiceClient) error {
			_, err := client.DrainNode(ctx, &autoscaler.DrainNodeRequest{NodeId: make([]byte, 27)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			head, err := fakehead.Start(clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(head.Close)
			connection, err := grpc.NewClient(head.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = connection.Close() })
			if err := kill(t.Context(), autoscaler.NewAutoscalerStateServiceClient(connection)); status.Code(err) != codes.Unavailable {
				t.Errorf("it answers %v", err)
			}
			_, err = rpc.NewNodeInfoGcsServiceClient(connection).CheckAlive(t.Context(), &rpc.CheckAliveRequest{})
			if head.Died() == "" || status.Code(err) != codes.Unavailable {
				t.Errorf("it lives on: %v", err)
			}
			head.Restart()
			if _, err := rpc.NewNodeInfoGcsServiceClient(connection).CheckAlive(t.Context(), &rpc.CheckAliveRequest{}); err != nil || head.Died() != "" {
				t.Errorf("after a restart it answers %v", err)
			}
		})
	}
}
