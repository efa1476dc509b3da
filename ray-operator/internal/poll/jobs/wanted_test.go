package jobs

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
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

// lines is an output.
func lines(n int) headclient.Tail {
	var tail headclient.Tail
	for i := range n {
		tail.Lines = append(tail.Lines, fmt.Sprintf("line %d", i+1))
	}
	return tail
}
