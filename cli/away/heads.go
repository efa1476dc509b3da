package away

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Heads are how heads and services are asked: by port-forwards of their pods, or through the server.
type Heads interface {
	// ReadOutput writes what follows in the output of an attempt. It ends with the output, or with what there is now.
	ReadOutput(ctx context.Context, of Output, out io.Writer) error
	// EachReplica visits the replicas of a service that have a log, and returns all deployments that Serve knows.
	EachReplica(ctx context.Context, service *v1beta1.ClusterService, visit Visit) ([]heads.Deployment, error)
	// ReadRounds visits the rounds of a process of a gang that have a log.
	ReadRounds(ctx context.Context, of Process, visit func(found heads.Rounds, read ReadRound) error) error
	// Call sends a request to a service. The caller closes the answer's body.
	Call(ctx context.Context, service *v1beta1.ClusterService, request *http.Request) (*http.Response, error)
	// FindVersions asks the head of a cluster for its versions.
	FindVersions(ctx context.Context, namespace, cluster string) (Versions, error)
	// KeepPackage has a head keep a package for another while. It uploads one that the head does not have, once it has
	// called upload.
	KeepPackage(ctx context.Context, of Package, upload func()) error
}

// Visit is called with a replica that has a log, and a way to write what of that follows after an offset.
type Visit func(replica heads.Replica, read ReadLogFrom) error

// ReadLogFrom writes what follows in a log after an offset, up to the end that it has now.
type ReadLogFrom func(ctx context.Context, offset int64, out io.Writer) error

// Why a log does not go on.
var (
	// ErrLogShorter is that the log ends before the offset, as after its rotation.
	ErrLogShorter = errors.New("the log ends before the offset")
	// ErrLogGone is that the log is not there any more.
	ErrLogGone = errors.New("the log is gone")
)

// Output is a part of the output of a job.
type Output struct {
	Job     *v1beta1.ClusterJob
	Attempt v1beta1.JobAttempt
	// Offset is the byte to begin at.
	Offset int64
	// IsFollowed: go on until the attempt has ended.
	IsFollowed bool
	// Note takes what the server says of the output: ranges that are missing, and how the job ended. It may be nil.
	Note func(Event)
}

// Find returns how heads are asked: through the server where the console names one.
func (c *Clusters) Find() (Heads, error) {
	server, err := FindServer(c.Console)
	if server == nil || err != nil {
		return c, err
	}
	return server, nil
}

// FindServer returns the server that the console names, nil where it names none.
func FindServer(c *console.Console) (*Server, error) {
	if c.Server.URL == "" {
		return nil, nil
	}
	if c.Server.Token != "" {
		return NewServer(nil, c.Server)
	}
	config, err := kube.ReadConfig(c.Access)
	if err != nil {
		return nil, err
	}
	return NewServer(config, c.Server)
}

// ReadOutput implements Heads.
func (c *Clusters) ReadOutput(ctx context.Context, of Output, out io.Writer) error {
	conversation, err := c.Converse(ctx, of.Attempt.ClusterName)
	switch {
	case outcome.Code(err) == outcome.Usage: // the user did not name the cluster
		return &heads.Unavailable{Code: reason.ClusterMissing.Code,
			Message: fmt.Sprintf("ComputeCluster %s was deleted", of.Attempt.ClusterName)}
	case err != nil:
		return err
	}
	defer func() { _ = conversation.Close() }() // it was read, or the failure is another
	if of.IsFollowed {
		_, err = conversation.Follow(ctx, of.Attempt.SubmissionID, of.Offset, out)
	} else {
		_, err = conversation.Log(ctx, of.Attempt.SubmissionID, of.Offset, out)
	}
	return conversation.Explain(err)
}

// EachReplica implements Heads, in one conversation with each head.
func (c *Clusters) EachReplica(
	ctx context.Context, service *v1beta1.ClusterService, visit Visit,
) ([]heads.Deployment, error) {
	var all []heads.Deployment
	for _, cluster := range heads.ClustersOf(service) {
		found, err := c.eachReplicaOn(ctx, service, cluster, visit)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (c *Clusters) eachReplicaOn(
	ctx context.Context, service *v1beta1.ClusterService, cluster string, visit Visit,
) ([]heads.Deployment, error) {
	head, err := c.Converse(ctx, cluster)
	if err != nil {
		return nil, err
	}
	defer func() { _ = head.Close() }() // it was read, or the failure is another
	serve := head.Serve()
	serving, err := serve.Serving(ctx)
	if err != nil {
		return nil, head.Explain(err)
	}
	deployments := heads.DeploymentsOf(service, cluster, serving)
	for _, replica := range heads.ReplicasOf(deployments) {
		if !replica.HasLog() {
			continue
		}
		read := func(ctx context.Context, offset int64, out io.Writer) error {
			_, err := serve.ReplicaLog(ctx, replica.Log, offset, out)
			return explainLog(head, err)
		}
		if err := visit(replica, read); err != nil {
			return nil, err
		}
	}
	return deployments, nil
}

// explainLog returns why a log could not be read to its end.
func explainLog(head *heads.Conversation, err error) error {
	switch headclient.KindOf(err) {
	case headclient.Gone:
		return ErrLogShorter
	case headclient.NotFound:
		return ErrLogGone
	}
	return head.Explain(err)
}

// Call implements Heads: it sends the request to a pod that accepts requests.
func (c *Clusters) Call(ctx context.Context, service *v1beta1.ClusterService, request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "http" {
		return nil, outcome.Errorf(outcome.Refused, "service/%s speaks TLS, whose certificate is for its address within "+
			"Kubernetes; send the request there", service.Name)
	}
	pod, port, err := findPod(ctx, c.Objects, service)
	if err != nil {
		return nil, err
	}
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Console.Forward(ctx, pod, port) }
	transport := &http.Transport{DisableKeepAlives: true, DialContext: connect}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, kube.Because(fmt.Errorf("call service/%s: %w", service.Name, err))
	}
	return answer, nil
}
