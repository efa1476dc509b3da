// Command gosubmit creates a ClusterJob over gRPC, follows its output, and ends as the job does.
//
// In: where the server is, its authority's certificate, a token and a namespace, from the environment. Out: the bytes that the
// job's driver writes. It must never write the token anywhere.
//
// usage: SERVER=HOST:9443 TOKEN=… CA=ca.crt NAMESPACE=team-a go run ./examples/portal/gosubmit
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"

	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

func main() {
	code, err := run(context.Background(), os.Stdout, place{
		server: os.Getenv("SERVER"), token: os.Getenv("TOKEN"), authority: os.Getenv("CA"), namespace: os.Getenv("NAMESPACE")})
	if err != nil {
		fmt.Fprintln(os.Stderr, "gosubmit:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// bearer sends a token with each call.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (bearer) RequireTransportSecurity() bool { return true }

// place is where the job is created, and by whom.
type place struct{ server, token, authority, namespace string }

// run returns the exit code of the job's driver.
func run(ctx context.Context, out io.Writer, at place) (int, error) {
	authority, err := credentials.NewClientTLSFromFile(at.authority, "")
	if err != nil {
		return 0, fmt.Errorf("read the authority: %w", err)
	}
	connection, err := grpc.NewClient(at.server, grpc.WithTransportCredentials(authority),
		grpc.WithPerRPCCredentials(bearer(at.token)))
	if err != nil {
		return 0, fmt.Errorf("find the server: %w", err)
	}
	defer connection.Close()
	portal, namespace := heliostatv1.NewPortalClient(connection), at.namespace

	job, err := structpb.NewStruct(map[string]any{
		"apiVersion": "heliostat.dev/v1beta1", "kind": "ClusterJob",
		"metadata": map[string]any{"generateName": "gosubmit-"},
		"spec": map[string]any{
			"entrypoint": `python -c 'print("hello from Ray")'`,
			"clusterTemplate": map[string]any{"spec": map[string]any{
				"rayVersion": "2.60.0",
				"head":       map[string]any{"size": map[string]any{"cpu": "300m", "memory": "2Gi"}},
			}},
		},
	})
	if err != nil {
		return 0, fmt.Errorf("write the job: %w", err)
	}
	created, err := portal.CreateObject(ctx, &heliostatv1.CreateObjectRequest{Namespace: namespace, Object: job})
	if err != nil {
		return 0, fmt.Errorf("create the job: %w", err)
	}
	name := created.GetObject().GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue()
	output, err := portal.ReadLog(ctx, &heliostatv1.ReadLogRequest{Namespace: namespace, Name: name, Follow: true})
	if err != nil {
		return 0, fmt.Errorf("follow job %s: %w", name, err)
	}
	for {
		event, err := output.Recv()
		switch {
		case err != nil:
			return 0, fmt.Errorf("follow job %s: %w", name, err)
		case event.GetEnd() != nil:
			end := event.GetEnd()
			if end.ExitCode == nil {
				return 0, errors.New(end.GetOutcome() + ": " + end.GetMessage())
			}
			return int(end.GetExitCode()), nil
		case event.GetNotice() != nil:
			fmt.Fprintln(os.Stderr, event.GetNotice().GetMessage())
		default:
			_, _ = out.Write(event.GetData()) // who does not read needs no output
		}
	}
}
