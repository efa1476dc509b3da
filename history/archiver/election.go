package archiver

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/heliostat-dev/heliostat/history/identity"
)

// times are those of an election.
type times struct{ lease, renew, retry time.Duration }

// electionTimes are the defaults of Kubernetes' own components.
func electionTimes() times { return times{15 * time.Second, 10 * time.Second, 2 * time.Second} }

// election decides which replica writes.
type election struct {
	lock  resourcelock.Interface
	times times
	log   *slog.Logger
}

// newLock returns the Lease, for this replica.
func newLock(cfg Config) (resourcelock.Interface, error) {
	number, err := random()
	if err != nil {
		return nil, err
	}
	client := rest.AddUserAgent(rest.CopyConfig(cfg.Kubernetes), "leader-election")
	client.Timeout = electionTimes().renew / 2 // a request that hangs must not cost the Lease
	requests, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("build a client for the Lease: %w", err)
	}
	identity := fmt.Sprintf("%s_%s", cfg.Pod, hex.EncodeToString(fmt.Append(nil, number)))
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, cfg.Namespace, cfg.LeaseName, requests.CoreV1(),
		requests.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, fmt.Errorf("prepare the Lease %s/%s: %w", cfg.Namespace, cfg.LeaseName, err)
	}
	return lock, nil
}

// run calls work each time that this replica has the Lease, for as long as it has it, until the context ends. Then it gives the Lease
// back. A replica that lost its Lease goes on with all else, and takes part again.
func (e election) run(ctx context.Context, work func(context.Context)) error {
	terms := make(chan context.Context)
	var working sync.WaitGroup
	working.Go(func() { // one after another, also where a term begins before the work of the former one has ended
		for {
			select {
			case term := <-terms:
				work(term)
			case <-ctx.Done():
				return
			}
		}
	})
	defer working.Wait()
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: e.lock, LeaseDuration: e.times.lease, RenewDeadline: e.times.renew, RetryPeriod: e.times.retry,
			ReleaseOnCancel: true, Name: "archiver",
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(term context.Context) {
					select {
					case terms <- term:
					case <-term.Done():
					}
				},
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return fmt.Errorf("take part in the election: %w", err)
		}
		elector.Run(ctx)
		if ctx.Err() == nil {
			e.log.Warn("The Lease was lost: another replica writes, or the API server does not answer", "lease", e.lock.Describe())
		}
	}
	return nil
}

// reviewer returns what has the API server review the token of a collector.
func reviewer(kube *rest.Config) (func(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error), error) {
	client := rest.AddUserAgent(rest.CopyConfig(kube), "token-review")
	client.Timeout, client.QPS, client.Burst = 10*time.Second, 100, 200 // after a restart all pods come back at once
	requests, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("build a client for reviews of tokens: %w", err)
	}
	return func(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error) {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{
			Token: token, Audiences: []string{identity.Audience},
		}}
		answer := &authenticationv1.TokenReview{}
		// A review is made and kept nowhere, so this is no write.
		err := requests.AuthenticationV1().RESTClient().Post().Resource("tokenreviews").Body(review).Do(ctx).Into(answer)
		return answer.Status, err
	}, nil
}
