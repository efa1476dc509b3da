package job

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestAbandoned_IsOfAJobThatIsGone: in the cache and past it, by UID; and what is not ours is left alone.
func TestAbandoned_IsOfAJobThatIsGone(t *testing.T) {
	there := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "uid-1"}}
	another := there.DeepCopy()
	another.UID = "uid-2"
	mine := func() headclient.Job {
		return headclient.Job{ID: naming.Submission("train", "uid-1", 2), Metadata: map[string]string{
			metadataJob: "train", metadataUID: "uid-1", metadataAttempt: "2",
		}}
	}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		cached, live []client.Object
		edit         func(*headclient.Job)
		want         bool
	}{
		"its job is there":             {[]client.Object{there}, nil, nil, false},
		"the cache is late":            {nil, []client.Object{there}, nil, false},
		"its job is gone":              {nil, nil, nil, true},
		"another job has its name":     {[]client.Object{another}, []client.Object{another}, nil, true},
		"of a user":                    {nil, nil, func(j *headclient.Job) { j.ID, j.Metadata = "mine", nil }, false},
		"of a user, with our keys":     {nil, nil, func(j *headclient.Job) { j.ID = "mine" }, false},
		"an attempt that is no number": {nil, nil, func(j *headclient.Job) { j.Metadata[metadataAttempt] = "x" }, false},
	} {
		submission := mine()
		if test.edit != nil {
			test.edit(&submission)
		}
		reader := func(objects []client.Object) client.Reader {
			return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
		}
		judge := Abandoned(reader(test.cached), reader(test.live))
		have, err := judge(t.Context(), types.NamespacedName{Namespace: "team", Name: "shared"}, submission)
		if err != nil || have != test.want {
			t.Errorf("%s: %v %v, want %v", name, have, err, test.want)
		}
	}
}

// TestAbandoned_IsNothingThatCannotBeRead: an API server that is away lets nothing be forgotten.
func TestAbandoned_IsNothingThatCannotBeRead(t *testing.T) {
	away := fake.NewClientBuilder().Build() // it does not know the kind
	judge := Abandoned(away, away)
	submission := headclient.Job{ID: naming.Submission("train", "uid-1", 1), Metadata: map[string]string{
		metadataJob: "train", metadataUID: "uid-1", metadataAttempt: "1",
	}}
	if gone, err := judge(t.Context(), types.NamespacedName{Namespace: "team"}, submission); gone || err == nil {
		t.Errorf("gone %v, with the error %v", gone, err)
	}
}
