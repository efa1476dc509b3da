package job

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Abandoned returns what reports whether a submission is one of a ClusterJob that is gone. It is one of ours where its
// metadata give the job and the attempt that its ID is made of. A job that the cache does not have is asked for past
// it: the cache may not know of it yet.
func Abandoned(cache, live client.Reader) jobs.Abandoned {
	return func(ctx context.Context, cluster types.NamespacedName, submission headclient.Job) (bool, error) {
		name, uid := submission.Metadata[metadataJob], types.UID(submission.Metadata[metadataUID])
		attempt, err := strconv.ParseInt(submission.Metadata[metadataAttempt], 10, 32)
		if err != nil || submission.ID != naming.Submission(name, uid, int32(attempt)) {
			return false, nil
		}
		for _, reader := range []client.Reader{cache, live} {
			var job v1beta1.ClusterJob
			err := reader.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: name}, &job)
			if client.IgnoreNotFound(err) != nil {
				return false, fmt.Errorf("read ClusterJob %s/%s: %w", cluster.Namespace, name, err)
			}
			if err == nil && job.UID == uid {
				return false, nil
			}
		}
		return true, nil
	}
}
