package app

import (
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/permit"
)

// The times of an election, which are the defaults of Kubernetes' own components. A leader that was killed is followed
// after leaseDuration and at most 2.2 retryPeriods: 19.4 s; one that ended by itself gives the Lease back, and is
// followed after at most 2.2 retryPeriods. A leader that cannot renew its Lease for
// renewDeadline ends, 5 s before another may follow it.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Election is a Lease that one operator at a time holds.
type Election struct {
	// Namespace and Name of the Lease.
	Namespace, Name string
}

// join makes the manager work only while it holds the Lease. That two operators work for
// a moment, because one was stopped in the middle of a step, does no harm: every write is
// bound to what it was decided on. What has no such bound, on heads and in Redis, needs the permit that is returned.
func (e *Election) join(config *rest.Config, options *ctrl.Options) (func() error, error) {
	if e.Namespace == "" || e.Name == "" {
		return nil, errors.New("join the leader election: its Lease needs a namespace and a name: set --namespace or --leader-election-namespace, and --leader-election-name")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this operator: %w", err)
	}
	// A request that hangs must not cost the Lease.
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = renewDeadline / 2
	requests, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build a client for the Lease %s/%s: %w", e.Namespace, e.Name, err)
	}
	// Without a recorder: that an operator leads is in the Lease, the log and the metrics.
	identity := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, e.Namespace, e.Name, requests.CoreV1(), requests.CoordinationV1(), identity)
	if err != nil {
		return nil, fmt.Errorf("prepare the Lease %s/%s: %w", e.Namespace, e.Name, err)
	}
	lease, renew, retry := leaseDuration, renewDeadline, retryPeriod
	options.LeaderElection = true
	options.LeaderElectionID = e.Name // the name of the metric's label
	term := permit.NewTerm(renewDeadline, clock.RealClock{})
	options.LeaderElectionResourceLockInterface = term.Follow(lock)
	options.LeaderElectionReleaseOnCancel = true
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &lease, &renew, &retry
	return term.Permit, nil
}
