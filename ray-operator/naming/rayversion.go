package naming

import (
	"fmt"
	"regexp"
)

// VerifiedRay names the releases of Ray that the operator was verified with, and NewestRay is the last of them.
const (
	VerifiedRay = "2.52 to 2.60"
	NewestRay   = "2.60.0"
)

// Forms of versions of Ray: one that a cluster may have, and a release that the operator was verified with. A cluster may
// have any from 2.52.0 on, with the suffixes that Python gives pre-releases and builds of one's own, and a nightly.
const (
	RayVersionForm = `^(nightly(-[a-z0-9.]+)*|(2[.](5[2-9]|[6-9][0-9]|[1-9][0-9][0-9]+)|([3-9]|[1-9][0-9]+)[.][0-9]+)[.][0-9]+` +
		`((a|b|rc)[0-9]+)?([.]post[0-9]+)?([.]dev[0-9]+)?([+][a-zA-Z0-9.]+)?)$`
	verifiedForm = `^2[.](5[2-9]|60)[.][0-9]+$`
)

var verified = regexp.MustCompile(verifiedForm)

// IsRayVerified reports whether a version is a release of Ray that the operator was verified with.
func IsRayVerified(version string) bool { return verified.MatchString(version) }

// IsRayBefore reports whether a version, as a spec or Ray itself has it, is before Ray 2.minor. A nightly is before none,
// and so is what is no version.
func IsRayBefore(version string, minor int) bool {
	var major, have int
	if n, err := fmt.Sscanf(version, "%d.%d", &major, &have); n != 2 || err != nil {
		return false
	}
	return major < 2 || major == 2 && have < minor
}
