package jobs

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

func name(job string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: job}
}

// place is the head whose job API has an address.
func place(address string) Place {
	return Place{Cluster: name("cluster-" + address), Head: types.UID("head-" + address), Jobs: address, GCS: address + "/gcs"}
}

// wanted wants the run of a job to be submitted to the head at a:1 within a minute.
func wanted(job string, change func(*Want)) Want {
	want := Want{
		At: place("a:1"), ID: "run-of-" + job, Session: "s1", Until: time.Now().Add(time.Minute), Lines: 20,
		Submission: &headclient.Submission{
			ID: "run-of-" + job, Entrypoint: "true", Metadata: map[string]string{MetadataPayload: "what " + job + " asks"},
		},
	}
	if change != nil {
		change(&want)
	}
	return want
}

// gang makes a run one of a gang.
func gang(want *Want) {
	want.Package, want.Report = &Package{Name: "package-of-" + want.ID + ".zip", Archive: []byte("archive of " + want.ID)}, true
	if want.Submission != nil {
		want.Submission.RuntimeEnv = fmt.Appendf(nil, `{"py_modules": ["gcs://%s"]}`, want.Package.Name)
	}
}

// packageOf returns the name of the package that a submission runs in, "" where it runs in none.
func packageOf(s headclient.Submission) string {
	_, rest, _ := strings.Cut(string(s.RuntimeEnv), "gcs://")
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// reportOf is a report of a launcher.
func reportOf(state launcher.State, round int) string {
	return fmt.Sprintf(`{"version": 1, "state": %q, "round": %d}`, state, round)
}

// lines is an output.
func lines(n int) headclient.Tail {
	var tail headclient.Tail
	for i := range n {
		tail.Lines = append(tail.Lines, fmt.Sprintf("line %d", i+1))
	}
	return tail
}
