package live

import (
	"slices"
	"testing"
)

func TestInstall_NamesTheImage(t *testing.T) {
	for image, want := range map[string][]string{
		"": nil,
		"registry.example.com:5000/heliostat:dev": {"--set-string", "image.repository=registry.example.com:5000/heliostat", "--set-string", "image.tag=dev"},
	} {
		if got, err := imageSettings(image); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", image, got, err)
		}
	}
	for _, image := range []string{"heliostat", "heliostat:", ":dev", "registry.example.com:5000/heliostat"} {
		if got, err := imageSettings(image); err == nil {
			t.Errorf("%q: %q", image, got)
		}
	}
}
