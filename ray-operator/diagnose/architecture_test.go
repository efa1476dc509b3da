package diagnose

import "testing"

// TestArchitectureOf_ReadsTags: the image's architecture, and the image to take on nodes of another one.
func TestArchitectureOf_ReadsTags(t *testing.T) {
	for image, want := range map[string]struct{ its, onARM, onAMD string }{
		"rayproject/ray:2.60.0":                          {amd64, "rayproject/ray:2.60.0-aarch64", ""},
		"mirror.example.com/rayproject/ray:2.60.0-py312": {amd64, "mirror.example.com/rayproject/ray:2.60.0-py312-aarch64", ""},
		"rayproject/ray:2.60.0-aarch64":                  {arm64, "", "rayproject/ray:2.60.0"},
		"rayproject/ray-llm:2.60.0":                      {"", "", ""},
		"notrayproject/ray:2.60.0":                       {"", "", ""},
		"rayproject/ray:2.60.0@sha256:0":                 {"", "", ""},
		"own/tool:3-x86_64":                              {amd64, "", ""},
	} {
		for node, other := range map[string]string{"arm64": want.onARM, "amd64": want.onAMD, "": ""} {
			if its, have := architectureOf(image, node); its != want.its || have != other {
				t.Errorf("%s on %q is %q, to be %q; want %q, %q", image, node, its, have, want.its, other)
			}
		}
	}
}
