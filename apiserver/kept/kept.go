// Package kept reads what archivers keep of objects: which files an object has, their bytes, and all of them as a tar.
//
// In: the record of an object, and a client of the archivers. Out: pages of files, events of an output with their offsets, a tar. Of a
// cluster all files are its own. Of a job they are those whose names follow from its submission IDs, and of a service those of Serve on
// clusters of its own.
//
// It must never open a file that is not the object's, hold more of one than a piece, or take the name of a file for anything but bytes.
package kept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/history/client"
	"github.com/heliostat-dev/heliostat/portal/heads"
	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Archivers keep records and files. A client of them implements it.
type Archivers interface {
	ListRecords(ctx context.Context, r *historyv1.ListRecordsRequest) (*historyv1.ListRecordsResponse, error)
	GetRecord(ctx context.Context, r *historyv1.GetRecordRequest) (*historyv1.GetRecordResponse, error)
	ListFiles(ctx context.Context, r *historyv1.ListFilesRequest) (*historyv1.ListFilesResponse, error)
	ReadFile(ctx context.Context, r *historyv1.ReadFileRequest, take func(client.Piece) error) error
	DeleteHistory(ctx context.Context, r *historyv1.DeleteHistoryRequest) error
}

// Kept reads what archivers keep.
type Kept struct {
	Archivers
	Clock clock.WithTickerAndDelayedExecution
}

// ErrNothing is that nothing of a file or an output is kept.
var ErrNothing = errors.New("nothing of it is kept")

// isNothing reports whether archivers have nothing of what was asked for.
func isNothing(err error) bool { return status.Code(err) == codes.NotFound }

// Kinds of records.
const (
	kindCluster = "ComputeCluster"
	kindJob     = "ClusterJob"
	kindService = "ClusterService"
)

// Object is an object of which something is kept.
type Object struct {
	Record *historyv1.Record
	// Places are the clusters that have files of the object, in the order in which it ran there.
	Places []Place
	// Job is the object where it is a job, as far as its record has it.
	Job *v1beta1.ClusterJob
}

// Place is a cluster with files of an object.
type Place struct {
	ClusterUID string
	// Paths are those to ask for, or beginnings that end with an asterisk. None is all.
	Paths []string
	// isIts reports whether a file is the object's; nil is that each one is.
	isIts func(path string) bool
}

// Has reports whether a file of the cluster is the object's.
func (p Place) Has(path string) bool { return p.isIts == nil || p.isIts(path) }

// ObjectOf returns an object by what archivers keep of it.
func ObjectOf(got *historyv1.GetRecordResponse) (*Object, error) {
	object := &Object{Record: got.GetRecord()}
	switch got.GetRecord().GetKind() {
	case kindCluster:
		object.Places = []Place{{ClusterUID: got.GetRecord().GetUid()}}
	case kindJob:
		object.Job = &v1beta1.ClusterJob{}
		if err := read(got, object.Job); err != nil {
			return nil, err
		}
		object.Places = placesOfJob(object)
	case kindService:
		service := &v1beta1.ClusterService{}
		if err := read(got, service); err != nil {
			return nil, err
		}
		// On a shared cluster nothing in the name of a file says for sure whose application it is.
		if service.Spec.ClusterRef == nil && len(got.GetObject()) > 0 {
			for _, cluster := range got.GetRecord().GetClusterUids() {
				object.Places = append(object.Places, Place{cluster, []string{serveFiles + "*"}, func(path string) bool { return strings.HasPrefix(path, serveFiles) }})
			}
		}
	}
	return object, nil
}

// serveFiles is where Serve writes its logs.
const serveFiles = "serve/"

// read reads the object of a record. Fields of other versions are left out.
func read(got *historyv1.GetRecordResponse, into any) error {
	if len(got.GetObject()) == 0 {
		return nil
	}
	if err := json.Unmarshal(got.GetObject(), into); err != nil {
		return fmt.Errorf("read the record of %s %s: %w", got.GetRecord().GetKind(), got.GetRecord().GetName(), err)
	}
	return nil
}

// placesOfJob returns the clusters of a job's attempts. A submission ID counts where it follows from the job's name and UID: nobody gets
// the files of another job by writing into a status.
func placesOfJob(object *Object) []Place {
	var places []Place
	for _, attempt := range object.Job.Status.Attempts {
		id := naming.Submission(object.Record.GetName(), object.Job.UID, attempt.Number)
		if attempt.SubmissionID != id || attempt.ClusterUID == "" || string(object.Job.UID) != object.Record.GetUid() {
			continue
		}
		isIts := func(path string) bool { return path == DriverFile(id) || isProcess(object.Job, id, path) }
		at := slices.IndexFunc(places, func(one Place) bool { return one.ClusterUID == string(attempt.ClusterUID) })
		if at < 0 {
			at = len(places)
			places = append(places, Place{string(attempt.ClusterUID), nil, func(string) bool { return false }})
		}
		former := places[at].isIts
		places[at].Paths = append(places[at].Paths, DriverFile(id))
		if object.Job.Spec.Gang != nil {
			places[at].Paths = append(places[at].Paths, stem(id)+"*")
		}
		places[at].isIts = func(path string) bool { return former(path) || isIts(path) }
	}
	return places
}

// DriverFile returns the file with the output of a submission's driver.
func DriverFile(submission string) string { return "job-driver-" + submission + ".log" }

// stem is what the logs of a submission's processes begin with.
func stem(submission string) string { return "job-driver-" + submission + "-" }

// processFile matches what follows the stem: the role, the number of the process, that of the round, and whether it is the older part.
var processFile = regexp.MustCompile(`^(.+)-(\d{1,5})-r([1-9]\d{0,4})\.log(\.1)?$`)

// Log is the log of a process of a gang in one round.
type Log struct {
	Process string
	Round   int32
	IsOlder bool
}

// LogOf returns whose log a file is, among those of a submission.
func LogOf(submission, path string) (of Log, is bool) {
	rest, isIts := strings.CutPrefix(path, stem(submission))
	parts := processFile.FindStringSubmatch(rest)
	if !isIts || parts == nil {
		return Log{}, false
	}
	round, err := strconv.ParseInt(parts[3], 10, 32)
	return Log{Process: parts[1] + "/" + parts[2], Round: int32(round), IsOlder: parts[4] != ""}, err == nil
}

// isProcess reports whether a file is the log of a process that the gang of a job has.
func isProcess(job *v1beta1.ClusterJob, submission, path string) bool {
	of, is := LogOf(submission, path)
	if !is || job.Spec.Gang == nil {
		return false
	}
	role, number, is := heads.ParseProcess(of.Process)
	count, has := heads.CountProcesses(job.Spec.Gang, role)
	return is && has && number < count
}
