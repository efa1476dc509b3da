// Package jobs asks heads in the background about the runs of jobs, submits each at most
// once and stops those that are to end, so that no reconcile ever waits for a head.
//
// In: per job which run is wanted, on which head and in which session of it, stated again
// as a whole whenever it changes. Out: what the head said last, with its time and sort of
// failure, and a wake of the job's reconcile when that means something new.
//
// It must never submit or stop anything in another session than the one that a run is bound
// to, submit without a permit that holds, submit again before it knows what became of the
// first time, let one head delay another, keep a goroutine or a connection for a head that
// nobody wants, or write to Kubernetes.
package jobs

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// MetadataPayload is the key in a submission's metadata whose value tells what was asked:
// what is found under the ID with another value is somebody else's.
const MetadataPayload = "heliostat.dev/payload"

// Source is what a controller needs of a Watch.
type Source interface {
	// Want says which run of a job is wanted, in place of what was said before. It never
	// blocks; saying the same again changes nothing.
	Want(job types.NamespacedName, want Want)
	// Forget ends all that is asked about a job, and drops what is known of it. It stops
	// nothing that runs.
	Forget(job types.NamespacedName)
	// Last is what was heard last of the run of this ID from the head that is the pod of
	// this UID. It is false before the first answer or failure, and for another head or ID
	// than the one wanted.
	Last(job types.NamespacedName, head types.UID, id string) (Answer, bool)
}

// Place is a head that is asked.
type Place struct {
	Cluster types.NamespacedName
	// Head is the UID of the head pod.
	Head types.UID
	// Jobs and GCS are the host:port of its job API and of its GCS, taken from the pod that
	// the operator owns and never from a status.
	Jobs, GCS string
	// Token is nil for a cluster without authentication.
	Token headclient.Token
	// Trust is nil for a cluster without encryption.
	Trust headclient.Trust
}

// Want is what is wanted of one job.
type Want struct {
	At Place
	// ID is the submission's name. Where it is empty only the head's session must be known:
	// whether its job API answers, and as whom.
	ID string
	// Session is the name of the one that the run is bound to. Where another one answers,
	// nothing is submitted, asked or stopped.
	Session string
	// Submission must be submitted if the head does not know the ID; nil where it was
	// accepted already or must not be.
	Submission *headclient.Submission
	// Until is up to when a submission may be begun: a permit of the leader.
	Until time.Time
	// Stop: the run is to end, and nothing is submitted any more.
	Stop bool
	// Lines is how many last lines of output are wanted once the run is over, and before it
	// is stopped.
	Lines int
	// Package is what the submission runs in. It is put on the head right before the
	// submission, by the same permit, if the head does not have it; nil is none.
	Package *Package
	// Report: the run is a gang, whose report is wanted.
	Report bool
}

// Package is an archive that a submission runs in, as gcs://NAME.
type Package struct {
	Name    string
	Archive []byte
}

// Answer is what is known of a run. It is never changed once it was given out.
type Answer struct {
	// At is when the head said something last, of whatever run; zero if never.
	At time.Time
	// Failure is the sort of the last failure, of the head or of the calls about this run,
	// empty if the last ones went well; Err is the failure and FailingSince when the first in
	// a row was seen. What was heard before stays.
	Failure      headclient.Kind
	Err          error
	FailingSince time.Time
	// Session is that of the head that answers.
	Session headclient.Session
	// Asked is when the head answered last whether it knows the run; zero if it has not yet, or
	// not since it took the submission.
	Asked time.Time
	// Known: the head, in the session that the run is bound to, knows the ID.
	Known bool
	// Job is what the head knew when it last knew the ID. A final status stays. Entrypoint and
	// Metadata are left out: a head may say anything of up to 1 MiB there.
	Job headclient.Job
	// Foreign: what is there under the ID is not what was asked for. It is left alone.
	Foreign bool
	// Refused is why the head would not take the submission, in its words; final for the ID.
	Refused string
	// Submitted is when the submission was taken or found there, as far as this process
	// knows; zero otherwise.
	Submitted time.Time
	// Tail is the end of the output: once Tailed the last there will be, else what was read
	// before the run was told to stop.
	Tail headclient.Tail
	// Tailed: the run is over, and its output was tried until it was read or it was clear
	// that it will not be. LogLost: it was not, and nothing was read before either.
	Tailed, LogLost bool
	// Report is the newest one that was read, if Reported. Once Tailed it is the last there
	// will be.
	Report   launcher.Report
	Reported bool
}

// Head is one conversation with the job API of a head, all over one connection: when that
// breaks, every further call fails. Kill and Report go to the head's GCS.
type Head interface {
	// Session is who answers.
	Session(ctx context.Context) (headclient.Session, error)
	// HasPackage asks for a package, after which the head keeps it for ten minutes.
	HasPackage(ctx context.Context, name string) (bool, error)
	// Upload gives the head a package.
	Upload(ctx context.Context, name string, archive []byte) error
	// Submit fails as Exists if the ID is used.
	Submit(ctx context.Context, submission headclient.Submission) error
	// Job fails as NotFound if the ID is not known.
	Job(ctx context.Context, id string) (headclient.Job, error)
	// Stop ends a run that has begun. False: there is nothing left to stop.
	Stop(ctx context.Context, id string) (bool, error)
	// Tail is the end of a run's output, at most so many lines.
	Tail(ctx context.Context, id string, lines int) (headclient.Tail, error)
	// Kill ends a run that is PENDING, which Stop cannot.
	Kill(ctx context.Context, id string) (bool, error)
	// Report is what the launcher of a gang said last, and maybe anybody else. It fails as
	// NotFound if there is nothing.
	Report(ctx context.Context, id string) ([]byte, error)
	// List is all submissions that the head knows.
	List(ctx context.Context) ([]headclient.Job, error)
	// Forget makes the head forget a submission that is over, and its report.
	Forget(ctx context.Context, id string) error
	Close() error
}

// Dialer prepares a conversation, and sends nothing.
type Dialer func(at Place) (Head, error)
