package presets_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/apiserver/presets"
)

// TestList: a preset of the namespace counts before that of the release, and a broken one is not hidden.
func TestList(t *testing.T) {
	plain := sourceOf("team", "plain", nil)
	plain.Labels = nil
	sources := []*corev1.ConfigMap{
		sourceOf("team", "b", map[string]string{presets.KeyTitle: "own"}), sourceOf("release", "b", map[string]string{presets.KeyTitle: "for all"}),
		sourceOf("release", "a", map[string]string{presets.KeySchema: "{"}), sourceOf("other", "c", nil), plain, nil,
	}
	for name, test := range map[string]struct {
		namespace, release string
		want               []string
	}{
		"of both namespaces":       {"team", "release", []string{"release/a broken", "team/b own"}},
		"of the release's alone":   {"elsewhere", "release", []string{"release/a broken", "release/b for all"}},
		"in the release's itself":  {"release", "release", []string{"release/a broken", "release/b for all"}},
		"where no release is told": {"team", "", []string{"team/b own"}},
		"none":                     {"", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var have []string
			for _, preset := range presets.List(sources, test.namespace, test.release) {
				title := preset.Title
				if preset.Error != "" {
					title = "broken"
				}
				have = append(have, preset.Namespace+"/"+preset.Name+" "+title)
				if found, ok := presets.Find(sources, test.namespace, test.release, preset.Name); !ok || found.Namespace != preset.Namespace {
					t.Errorf("%s is not found", preset.Name)
				}
			}
			if diff := cmp.Diff(test.want, have); diff != "" {
				t.Error(diff)
			}
			if _, ok := presets.Find(sources, test.namespace, test.release, "plain"); ok {
				t.Error("a ConfigMap without the label is found")
			}
		})
	}
}
