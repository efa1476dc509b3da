package rest

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func TestSubmissionOf_HasTheEntrypointOfItsUser(t *testing.T) {
	for entrypoint, want := range map[string]string{
		`eval "$HELIOSTAT_JOB_ENDS"; python a.py`: "python a.py",
		"python a.py": "python a.py",
		`echo; eval "$HELIOSTAT_JOB_ENDS"; python a.py`: `echo; eval "$HELIOSTAT_JOB_ENDS"; python a.py`,
	} {
		if got := submissionOf(headclient.Job{Entrypoint: entrypoint}).GetEntrypoint(); got != want {
			t.Errorf("%q is shown as %q, want %q", entrypoint, got, want)
		}
	}
}
