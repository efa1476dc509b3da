package naming_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func TestRequest_IsANameWhateverThePrefix(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	for prefix, want := range map[string]string{
		"train": "train", "train-": "train", "gpu.large": "gpu-large", "Gpu": "gpu", "2-gpus": "gpus", "ä.b": "b", "": "?", "42": "?",
		strings.Repeat("a", 35) + "-b": strings.Repeat("a", 35), strings.Repeat("a", 300): strings.Repeat("a", 36),
	} {
		for other, name := range map[string]string{"request": naming.Request(prefix, "u", "n", "k"), "retry": naming.Retry(prefix, "uid")} {
			want := strings.Replace(want, "?", other, 1) + "-"
			if !form.MatchString(name) || len(name) > naming.MaxCluster || !strings.HasPrefix(name, want) || len(name) != len(want)+13 {
				t.Errorf("of %q it is %q, want %q and a hash", prefix, name, want)
			}
		}
	}
}
