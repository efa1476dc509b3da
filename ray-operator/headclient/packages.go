package headclient

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
)

// MaxPackage is how many bytes a dashboard takes of a package.
const MaxPackage = 100 << 20

// packageName is what a name may be: nothing that means something in a path.
var packageName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,252}$`)

var errPackageName = errors.New("the name of a package has up to 253 letters, digits, '.', '_' and '-'")

// HasPackage asks whether a package is there for jobs to run in, as gcs://NAME. Ray keeps it for ten minutes from then,
// also where no job uses it.
func (j *Jobs) HasPackage(ctx context.Context, name string) (bool, error) {
	act := "ask for package " + text([]byte(name))
	if !packageName.MatchString(name) {
		return false, j.fail(Invalid, act, errPackageName)
	}
	_, err := j.ask(ctx, question{act: act, method: http.MethodGet, path: "/api/packages/gcs/" + name, judge: judgePackage})
	if KindOf(err) == NotFound {
		return false, nil
	}
	return err == nil, err
}

// IsPackageMissing reports whether Ray's job API answers that it does not have a package.
func IsPackageMissing(status int, said string) bool {
	return status == http.StatusNotFound && strings.HasPrefix(said, "Package ") && strings.HasSuffix(said, " does not exist")
}

// judgePackage sorts an answer about a package that is not OK.
func judgePackage(status int, said string) (Kind, string) {
	if IsPackageMissing(status, said) {
		return NotFound, lastWords(said)
	}
	return judge(status, said)
}

// bytesPerTimeout is how much of a package goes up in the time of a call, at the least.
const bytesPerTimeout = 4 << 20

// Upload gives the head an archive that jobs can run in, as gcs://NAME. The caller asks HasPackage first, so that Ray
// keeps what it gets.
func (j *Jobs) Upload(ctx context.Context, name string, archive []byte) error {
	act := "upload package " + text([]byte(name))
	switch {
	case !packageName.MatchString(name):
		return j.fail(Invalid, act, errPackageName)
	case len(archive) > MaxPackage:
		return j.fail(Invalid, act, errors.New("it has more bytes than the dashboard takes"))
	}
	if archive == nil {
		archive = []byte{}
	}
	_, err := j.ask(ctx, question{act: act, method: http.MethodPut, path: "/api/packages/gcs/" + name, body: archive,
		media: "application/octet-stream", patience: 1 + len(archive)/bytesPerTimeout})
	return err
}
