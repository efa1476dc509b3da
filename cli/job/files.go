package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/pack"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// carrier brings the files of a directory to where a job runs.
type carrier interface {
	// prepare does what must be done before there is the job.
	prepare(ctx context.Context, objects *kube.Objects, job *v1beta1.ClusterJob) error
	// settle does what needs the job.
	settle(ctx context.Context, objects *kube.Objects, job *v1beta1.ClusterJob) error
	// hold keeps the files there until the context ends.
	hold(ctx context.Context)
}

// lasting is what reaches a job without this program.
const lasting = "put the files into the image, or name the URI of an archive, such as --working-dir s3://bucket/code.zip"

// carry has a job run in a directory of this machine or in the archive of a URI. Nothing is created or sent yet.
func (s *submission) carry(job *v1beta1.ClusterJob) (carrier, error) {
	directory := s.wish.workingDir
	if directory == "" {
		return nothing{}, nil
	}
	excludes, err := excludesOf(job)
	if err != nil {
		return nil, err
	}
	if strings.Contains(directory, "://") {
		return nothing{}, setWorkingDir(job, directory)
	}
	if job.Spec.ClusterRef == nil {
		packed, err := packed(directory, pack.Options{Excludes: excludes, Prefix: prefix, Limit: largestMount})
		if err != nil {
			return nil, err
		}
		of := newMounted(packed)
		of.mount(&job.Spec.ClusterTemplate.Spec)
		return of, setWorkingDir(job, mountedURI)
	}
	packed, err := packed(directory, pack.Options{Excludes: excludes, Limit: headclient.MaxPackage})
	if err != nil {
		return nil, err
	}
	return &uploaded{console: s.console, packed: packed, isDetached: s.isDetached}, setWorkingDir(job, "gcs://"+packed.Name)
}

// excludesOf returns what the runtime environment of a job leaves out of a directory. It refuses one that has its own.
func excludesOf(job *v1beta1.ClusterJob) ([]string, error) {
	if job.Spec.RuntimeEnv == nil {
		return nil, nil
	}
	var fields struct {
		WorkingDir any      `json:"working_dir"`
		Excludes   []string `json:"excludes"`
	}
	if err := json.Unmarshal(job.Spec.RuntimeEnv.Raw, &fields); err != nil {
		return nil, outcome.Errorf(outcome.Usage, "read the runtime environment of the job: %w", err)
	}
	if fields.WorkingDir != nil {
		return nil, outcome.Errorf(outcome.Usage, "--working-dir is one directory, and working_dir of the runtime environment "+
			"another; give one of the two")
	}
	return fields.Excludes, nil
}

// setWorkingDir adds a URI to the runtime environment of a job.
func setWorkingDir(job *v1beta1.ClusterJob, uri string) error {
	fields := map[string]json.RawMessage{}
	if job.Spec.RuntimeEnv != nil {
		if err := json.Unmarshal(job.Spec.RuntimeEnv.Raw, &fields); err != nil {
			return outcome.Errorf(outcome.Usage, "read the runtime environment of the job: %w", err)
		}
	}
	text, err := json.Marshal(uri)
	if err != nil {
		return fmt.Errorf("write the URI of the files: %w", err)
	}
	fields["working_dir"] = text
	raw, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("write the runtime environment of the job: %w", err)
	}
	job.Spec.RuntimeEnv = &runtime.RawExtension{Raw: raw}
	return nil
}

// packed packs a directory. What it cannot pack it refuses, with what is left to do.
func packed(directory string, options pack.Options) (*pack.Package, error) {
	found, err := pack.Pack(directory, options)
	var too *pack.TooLarge
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, outcome.Errorf(outcome.Refused, "there is no directory %s; name one that is there, or a URI", directory)
	case errors.As(err, &too) && options.Limit == largestMount:
		return nil, outcome.Errorf(outcome.Refused, "directory %s is too large for a cluster of the job's own: %w; exclude "+
			"files in .rayignore, run on a cluster that is there with --cluster, which takes %s, or %s", directory, too,
			pack.Bytes(headclient.MaxPackage), lasting)
	case errors.As(err, &too):
		return nil, outcome.Errorf(outcome.Refused, "directory %s is too large to upload: %w; exclude files in .rayignore, or %s",
			directory, too, lasting)
	}
	return nil, outcome.Errorf(outcome.Refused, "%w", err)
}

// nothing is the carrier of a job without files of this machine.
type nothing struct{}

func (nothing) prepare(context.Context, *kube.Objects, *v1beta1.ClusterJob) error { return nil }

func (nothing) settle(context.Context, *kube.Objects, *v1beta1.ClusterJob) error { return nil }

func (nothing) hold(context.Context) {}
