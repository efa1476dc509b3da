package naming_test

import (
	"regexp"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func TestRayVersions(t *testing.T) {
	form := regexp.MustCompile(naming.RayVersionForm)
	for version, want := range map[string]struct{ taken, verified, before56 bool }{
		"2.52.0":                 {true, true, true},
		"2.55.12":                {true, true, true},
		"2.56.0":                 {true, true, false},
		"2.60.3":                 {true, true, false},
		"2.61.0":                 {true, false, false},
		"2.100.0":                {true, false, false},
		"3.0.0.dev0":             {true, false, false},
		"10.1.0":                 {true, false, false},
		"2.61.0rc1":              {true, false, false},
		"2.55.0rc2":              {true, false, true},
		"2.60.0+acme.20261126":   {true, false, false},
		"2.60.0.post1.dev2+abc":  {true, false, false},
		"nightly":                {true, false, false},
		"nightly-py311-gpu":      {true, false, false},
		"nightly_":               {false, false, false},
		"2.51.9":                 {false, false, true},
		"2.9.0":                  {false, false, true},
		"1.13.0":                 {false, false, true},
		"2.60":                   {false, false, false},
		"2.60.0-py311":           {false, false, false},
		"2.60.0+":                {false, false, false},
		"2.60.0rc":               {false, false, false},
		"v2.60.0":                {false, false, false},
		"":                       {false, false, false},
		"latest":                 {false, false, false},
		"2.60.0rc1; rm -rf /":    {false, false, false},
		"registry.example/ray:1": {false, false, false},
	} {
		if taken := form.MatchString(version); taken != want.taken {
			t.Errorf("%q is taken: %v, want %v", version, taken, want.taken)
		}
		if verified := naming.IsRayVerified(version); verified != want.verified {
			t.Errorf("%q is verified: %v, want %v", version, verified, want.verified)
		}
		if before := naming.IsRayBefore(version, 56); before != want.before56 {
			t.Errorf("%q is before 2.56: %v, want %v", version, before, want.before56)
		}
	}
}
