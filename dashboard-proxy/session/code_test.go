package session

import (
	"errors"
	"testing"
	"time"
)

func TestCode_FitsOneBrowserAndOrigin(t *testing.T) {
	keys, now, _ := readKeys(t, newKey)
	verifier := NewVerifier()
	sealed, err := keys.SealCode(Code{Session: signedIn(), Challenge: Challenge(verifier), Origin: origin, Path: "/n/c/"})
	if err != nil {
		t.Fatal(err)
	}
	cookie := put(t, Jar{Keys: keys, Name: name}, signedIn())[0].Value
	for title, row := range map[string]struct {
		text, verifier, origin string
		after                  time.Duration
		isGood                 bool
	}{
		"its own browser":              {sealed, verifier, origin, 0, true},
		"its last second":              {sealed, verifier, origin, CodeLife - time.Second, true},
		"its end":                      {sealed, verifier, origin, CodeLife, false},
		"another browser":              {sealed, NewVerifier(), origin, 0, false},
		"a browser without a verifier": {sealed, "", origin, 0, false},
		"another origin":               {sealed, verifier, origin + "x", 0, false},
		"a session for a code":         {cookie[2:], verifier, origin, 0, false},
		"what is no code":              {keys.Seal(codePurpose, []byte("[]")), verifier, origin, 0, false},
	} {
		now.SetTime(noon.Add(row.after))
		got, err := keys.OpenCode(row.text, row.verifier, row.origin)
		isGood := err == nil && got.Session.Token == "the-token" && got.Path == "/n/c/"
		if row.isGood != isGood || err != nil && !errors.Is(err, ErrCode) {
			t.Errorf("%s: %+v, %v", title, got, err)
		}
	}
}

func TestCode_HasAChallenge(t *testing.T) {
	for text, want := range map[string]bool{Challenge("x"): true, "": false, Challenge("x") + "A": false, "a b": false} {
		if IsChallenge(text) != want {
			t.Errorf("%q is a challenge: %v", text, !want)
		}
	}
	if NewVerifier() == NewVerifier() {
		t.Error("two verifiers are the same")
	}
}
