package cluster_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
)

func TestParseRecord(t *testing.T) {
	for text, want := range map[string]cluster.Record{
		`{"v":1,"epoch":1}`:                               {Version: 1, Epoch: 1},
		`{"v":1,"epoch":2,"headUID":"a-b"}`:               {Version: 1, Epoch: 2, HeadUID: "a-b"},
		` {"epoch":2,"v":1,"later":{"field":true}}`:       {Version: 1, Epoch: 2},
		`{"v":1,"epoch":9007199254740992}` + "\n\n":       {Version: 1, Epoch: 9007199254740992},
		`{"v":1,"of":"demo-1","epoch":1}`:                 {Version: 1, Of: "demo-1", Epoch: 1},
		`{"v":1,"epoch":1,"scaled":{"a":[2],"b":[1,95]}}`: {Version: 1, Epoch: 1, Scaled: map[string]cluster.RecordedSize{"a": {2}, "b": {1, 95}}},
	} {
		if have, err := cluster.ParseRecord(text); err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%s: %+v, %v, want %+v", text, have, err, want)
		}
	}
	for name, text := range map[string]string{
		"nothing":        "",
		"half":           `{"v":1`,
		"two":            `{"v":1,"epoch":1}{"v":1,"epoch":2}`,
		"another form":   `[1]`,
		"null":           `null`,
		"later version":  `{"v":2,"epoch":1}`,
		"no version":     `{"epoch":1}`,
		"no epoch":       `{"v":1}`,
		"epoch 0":        `{"v":1,"epoch":0}`,
		"epoch below 0":  `{"v":1,"epoch":-1}`,
		"epoch too big":  `{"v":1,"epoch":9007199254740993}`,
		"an overflow":    `{"v":1,"epoch":9223372036854775808}`,
		"a word":         `{"v":1,"epoch":"two"}`,
		"beyond 4096 B":  `{"v":1,"epoch":1,"headUID":"` + strings.Repeat("a", 4096) + `"}`,
		"nothing kept":   `{"v":1,"epoch":1,"scaled":{"a":[]}}`,
		"a list as head": `{"v":1,"epoch":1,"headUID":["a"]}`,
	} {
		if have, err := cluster.ParseRecord(text); err == nil || !reflect.DeepEqual(have, cluster.Record{}) {
			t.Errorf("%s: %+v, %v, want an error and an empty record", name, have, err)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(`{"v":1,"epoch":2,"headUID":"a"}`)
	f.Add(`{"v":2}`)
	f.Add(``)
	f.Fuzz(func(t *testing.T, text string) {
		record, err := cluster.ParseRecord(text)
		if err != nil {
			return
		}
		if record.Epoch < 1 || record.Version != 1 {
			t.Fatalf("%q gave %+v", text, record)
		}
		again, err := cluster.ParseRecord(record.String())
		if len(record.String()) <= 4096 && (err != nil || !reflect.DeepEqual(again, record)) {
			t.Fatalf("%+v was written as %s and read as %+v, %v", record, record, again, err)
		}
	})
}

// TestSparesRecord: a new cluster has a record only where neither its status nor its workers could tell what that says.
func TestSparesRecord(t *testing.T) {
	none, one, four := int32(0), int32(1), int32(4)
	for name, c := range map[string]struct {
		edit  func(*v1beta1.ComputeCluster)
		notes bool
	}{
		"workers tell that there was a head":   {func(*v1beta1.ComputeCluster) {}, false},
		"nobody tells where there is no group": {func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups = nil }, true},
		"nor where no worker is wanted":        {func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Replicas = &none }, true},
		"nor where the group is suspended":     {func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Suspend = new(true) }, true},
		"sizes are kept": {func(c *v1beta1.ComputeCluster) {
			c.Spec.Autoscaling, c.Spec.WorkerGroups[0].Replicas = &v1beta1.Autoscaling{}, nil
			c.Spec.WorkerGroups[0].MinReplicas, c.Spec.WorkerGroups[0].MaxReplicas = &one, &four
		}, true},
		"a store keeps sessions": {func(c *v1beta1.ComputeCluster) { c.Spec.ControlStore = managedRedis() }, true},
		"an annotation that is wrong is written again": {func(c *v1beta1.ComputeCluster) {
			c.Annotations = map[string]string{v1beta1.AnnotationRecord: "of another"}
		}, true},
	} {
		of := demo()
		c.edit(of)
		seen := given(1, func(s *cluster.Seen) { s.RecordMissing, s.Record.HeadUID = true, "" })
		if plan := decide(of, seen); plan.NoteHead != c.notes {
			t.Errorf("%s: the head is noted: %t, want %t: %s", name, plan.NoteHead, c.notes, plan)
		}
	}
}
