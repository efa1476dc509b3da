// Package archiver is the program that keeps histories: it takes what collectors send, writes packs, and answers the server for portals
// and the operator.
//
// In: a Config; connections of anybody who reaches its port. Out: acknowledgements of what is durable, packs in the store, answers to
// callers with a certificate, metrics and health.
//
// It must never decode a message of a caller that it does not know, give a collector an answer to a read, or stop taking chunks because
// the store is away. Of two replicas one, which has the Lease, writes records and retention; both do all else.
package archiver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/identity"
	"github.com/heliostat-dev/heliostat/history/keeper"
	"github.com/heliostat-dev/heliostat/history/reader"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// Config is what the program is given.
type Config struct {
	// Listen is host:port for collectors, server and operator; MetricsListen that for metrics and health.
	Listen, MetricsListen string
	// Spool is the directory of the spool's volume, and SpoolBytes how much of it may be used.
	Spool      string
	SpoolBytes int64
	// StoreURL is that of the bucket, or Claim the directory of a claim.
	StoreURL, Claim string
	// Certificate and Key are files of this program's own. Authorities has the certificates of those that sign the callers', one or more.
	Certificate, Key, Authorities string
	// Namespace and LeaseName are of the Lease. They name the installation, too.
	Namespace, LeaseName string
	// Pod is the name of this one: what follows its last hyphen is the number of the replica.
	Pod string
	// PodRate and NamespaceRate are how many bytes a second may come. 0 is no bound.
	PodRate, NamespaceRate int64
	Retention              Retention
	// WatchNamespaces are those of whose objects records are kept. None is all.
	WatchNamespaces []string
	// Memory is how many bytes the program may use, from which bounds on streams and caches follow.
	Memory int64
	// Grace is how long the end may take. With 0 nothing is packed then.
	Grace time.Duration
	// Kubernetes is where the API server is.
	Kubernetes *rest.Config
	// Records makes what keeps records.
	Records func(Needs) (Records, error)
	Now     func() time.Time
	Log     *slog.Logger
}

// Retention is how long, and how much is kept. 0 is no limit.
type Retention struct {
	KeepFor, MaxKeepFor, AfterNamespace time.Duration
	ClusterBytes, NamespaceBytes        int64
	NamespaceObjects                    int
}

// Needs are what records are made of.
type Needs struct {
	Config  Config
	Archive *archive.Archive
	Store   Store
	Replica int
	// IsWriter reports whether this replica has the Lease.
	IsWriter func() bool
	Metrics  prometheus.Registerer
}

// Records watches objects and keeps what is left of them.
type Records interface {
	reader.Records
	keeper.Records
	identity.Objects
	// Delete removes the record of a job or service. Its errors are statuses, or failures of the volume or the store.
	Delete(ctx context.Context, request *pb.DeleteHistoryRequest) error
	// Run watches until the context ends, and writes while Needs.IsWriter is true.
	Run(ctx context.Context) error
	// IsSynced reports whether all objects are known.
	IsSynced() bool
}

// outside is what is not part of the program, as far as tests have another one.
type outside struct {
	listener, metrics net.Listener
	review            func(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error)
	// lead calls work while this replica has the Lease, until the context ends.
	lead  func(ctx context.Context, work func(context.Context)) error
	store Store
}

// Run keeps histories until the context ends.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Records == nil {
		return errors.New("start: nothing keeps records")
	}
	var out outside
	var err error
	if out.store, err = openStore(ctx, cfg); err != nil {
		return err
	}
	if out.review, err = reviewer(cfg.Kubernetes); err != nil {
		return err
	}
	lock, err := newLock(cfg)
	if err != nil {
		return err
	}
	out.lead = election{lock, electionTimes(), cfg.Log}.run
	var listen net.ListenConfig
	if out.listener, err = listen.Listen(ctx, "tcp", cfg.Listen); err != nil {
		return fmt.Errorf("listen for collectors: %w", err)
	}
	if out.metrics, err = listen.Listen(ctx, "tcp", cfg.MetricsListen); err != nil {
		return errors.Join(fmt.Errorf("listen for metrics: %w", err), out.listener.Close())
	}
	a, err := assemble(cfg, out)
	if err != nil {
		return errors.Join(err, out.listener.Close(), out.metrics.Close())
	}
	return a.run(ctx)
}

// archiver is the program, put together.
type archiver struct {
	Config
	outside
	replica  int
	mark     *mark
	limits   limits
	measures *measures
	// bucket is the store, with its failures counted.
	bucket   *bucket
	archive  *archive.Archive
	states   *reader.States
	records  Records
	keeping  *keeping
	servers  *servers
	isWriter atomic.Bool
	isEnding atomic.Bool
}

// assemble puts the program together.
func assemble(cfg Config, out outside) (*archiver, error) {
	a := &archiver{Config: cfg, outside: out, limits: limitsOf(cfg.Memory), measures: newMeasures()}
	var err error
	if a.replica, err = replicaOf(cfg.Pod); err != nil {
		return nil, err
	}
	volume, err := archive.OpenVolume(cfg.Spool)
	if err != nil {
		return nil, err
	}
	if a.mark, err = openMark(volume, cfg.Namespace+"/"+cfg.LeaseName, a.replica); err != nil {
		return nil, err
	}
	first, err := random()
	if err != nil {
		return nil, err
	}
	a.bucket = newBucket(out.store, a.measures)
	a.archive, err = archive.Open(archive.Settings{
		Replica: a.replica, First: first, SpoolBytes: cfg.SpoolBytes, PackBytes: packBytes, PackAfter: packAfter.Milliseconds(),
		PodRate: cfg.PodRate, NamespaceRate: cfg.NamespaceRate, Packers: packers, IndexBytes: a.limits.indexBytes, Now: a.now,
	}, volume, a.bucket)
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w", err)
	}
	needs := Needs{
		Config: cfg, Archive: a.archive, Store: a.bucket, Replica: a.replica, IsWriter: a.isWriter.Load, Metrics: a.measures.registry,
	}
	if a.records, err = cfg.Records(needs); err != nil {
		return nil, fmt.Errorf("make what keeps records: %w", err)
	}
	if a.keeping, err = newKeeping(needs, a.records, a.now); err != nil {
		return nil, err
	}
	a.states = reader.NewStates(a.archive, a.bucket.isAway.Load, a.now)
	a.measures.follow(a)
	a.servers, err = newServers(a)
	return a, err
}

const (
	// A segment of the spool becomes a pack once it has so many bytes, or is so old.
	packBytes = 8 << 20
	packAfter = time.Minute
	// packers is how many packs are written at once.
	packers = 4
)

// now returns the time in milliseconds.
func (a *archiver) now() int64 { return a.Now().UnixMilli() }

// replicaOf returns the number at the end of the name of a StatefulSet's pod.
func replicaOf(pod string) (int, error) {
	number, err := strconv.ParseUint(pod[strings.LastIndex(pod, "-")+1:], 10, 16)
	if err != nil {
		return 0, fmt.Errorf("read the number of the replica from the name of pod %q: it must end as those of a StatefulSet do", pod)
	}
	return int(number), nil
}

// random returns where the numbers of segments begin.
func random() (uint64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("read a random number: %w", err)
	}
	return binary.BigEndian.Uint64(b[:]) >> 1, nil
}
