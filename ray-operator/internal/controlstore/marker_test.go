package controlstore

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// what is a decision in a word.
func (d decision) what() string {
	switch {
	case d.lost:
		return "lost"
	case d.refused.Code == reason.StoreInUse.Code:
		return "taken"
	case d.sweep && d.seize:
		return "seize, sweep"
	case d.count && d.seize:
		return "seize, count"
	case d.sweep:
		return "sweep"
	case d.count:
		return "count"
	default:
		return "go on"
	}
}

// TestJudge: every marker for every claim. The four words of a row are what is decided when
// the session has not begun and when it has, each for a given server and for one's own.
func TestJudge(t *testing.T) {
	mine := func(session, epoch int64) marker {
		return marker{there: true, owner: "uid-1", session: session, epoch: epoch}
	}
	others := marker{there: true, owner: "uid-2", cluster: "team/other", session: 3, epoch: 9}
	for name, test := range map[string]struct {
		session, epoch int64
		marker         marker
		want           [4]string
	}{
		"first session, nothing":            {1, 1, marker{}, [4]string{"count", "count", "lost", "lost"}},
		"first session, mine":               {1, 1, mine(1, 1), [4]string{"go on", "go on", "go on", "go on"}},
		"first session, mine, next epoch":   {1, 2, mine(1, 1), [4]string{"go on", "go on", "go on", "go on"}},
		"first session, mine, later epoch":  {1, 1, mine(1, 2), [4]string{"taken", "taken", "taken", "taken"}},
		"first session, mine, unfinished":   {1, 1, mine(0, 0), [4]string{"count", "count", "lost", "lost"}},
		"first session, another's":          {1, 1, others, [4]string{"taken", "seize, count", "taken", "lost"}},
		"first session, damaged":            {1, 1, marker{there: true, owner: "uid-1", damaged: "x", session: 1}, [4]string{"taken", "seize, count", "taken", "lost"}},
		"later session, nothing":            {4, 4, marker{}, [4]string{"sweep", "sweep", "lost", "lost"}},
		"later session, mine":               {4, 5, mine(4, 5), [4]string{"go on", "go on", "go on", "go on"}},
		"later session, mine of an earlier": {4, 4, mine(3, 3), [4]string{"count", "count", "lost", "lost"}},
		"later session, mine of a later":    {4, 4, mine(5, 5), [4]string{"taken", "taken", "taken", "taken"}},
		"later session, another's":          {4, 4, others, [4]string{"taken", "seize, sweep", "taken", "lost"}},
	} {
		var have [4]string
		for i := range have {
			c := claim()
			c.Session, c.Epoch, c.Begun, c.Own = test.session, test.epoch, i >= 2, i%2 == 1
			have[i] = judge(c, test.marker, "clean").what()
		}
		if diff := cmp.Diff(test.want, have); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestParseMarker(t *testing.T) {
	for name, test := range map[string]struct {
		values []any
		want   marker
	}{
		"nothing":      {[]any{nil, nil, nil, nil, nil}, marker{}},
		"whole":        {[]any{"u", "a/b", "3", "4", "5"}, marker{there: true, owner: "u", cluster: "a/b", session: 3, epoch: 4, found: 5}},
		"begun":        {[]any{"u", nil, nil, nil, nil}, marker{there: true, owner: "u"}},
		"no owner":     {[]any{nil, nil, "1", nil, nil}, marker{there: true, session: 1, damaged: "its marker names no owner"}},
		"empty owner":  {[]any{"", nil, nil, nil, nil}, marker{there: true, damaged: "its marker names no owner"}},
		"letters":      {[]any{"u", nil, "x", nil, nil}, marker{there: true, owner: "u", damaged: "its marker cannot be read"}},
		"negative":     {[]any{"u", nil, nil, "-4", nil}, marker{there: true, owner: "u", epoch: -4, damaged: "its marker cannot be read"}},
		"no texts":     {[]any{int64(1), nil, nil, nil, nil}, marker{there: true, damaged: "its marker names no owner"}},
		"line breaks":  {[]any{"u", "a\nb", nil, nil, nil}, marker{there: true, owner: "u", cluster: "a b"}},
		"out of range": {[]any{"u", nil, nil, nil, "99999999999999999999"}, marker{there: true, owner: "u", found: 1<<63 - 1, damaged: "its marker cannot be read"}},
	} {
		if diff := cmp.Diff(test.want, parseMarker(test.values), cmp.AllowUnexported(marker{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
