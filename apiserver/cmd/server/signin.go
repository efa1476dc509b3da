package main

import (
	"flag"
	"fmt"

	"github.com/heliostat-dev/heliostat/apiserver/app"
	"github.com/heliostat-dev/heliostat/portal/access"
)

// signInFlags are about users who sign in on the page.
type signInFlags struct{ keys, signIn, links string }

func (s *signInFlags) define(set *flag.FlagSet) {
	set.StringVar(&s.keys, "session-key-file", "",
		"file with the keys that seal sessions, one on each line: the current one, then former ones; read again when it changes; "+
			"empty for no sign-in")
	set.StringVar(&s.signIn, "sign-in-file", "",
		"file with the issuer at which users sign in; empty for tokens of Kubernetes alone")
	set.StringVar(&s.links, "links-file", "", "file with links from objects on the page to other programs; empty for none")
}

// config checks what was given. Nil is that nobody signs in.
func (s *signInFlags) config(at dashboardFlags, identity access.Identity) (*app.SignIn, error) {
	if s.keys == "" {
		for _, given := range []struct{ flag, file string }{{"--sign-in-file", s.signIn}, {"--links-file", s.links}} {
			if given.file != "" {
				return nil, fmt.Errorf("read %s: it works with --session-key-file alone: give that as well", given.flag)
			}
		}
		return nil, nil //nolint:nilnil // that nobody signs in is no error
	}
	files := app.SignInFiles{Page: at.page, Keys: s.keys, SignIn: s.signIn, Links: s.links}
	if at.address != "0" {
		files.Dashboards, files.Wildcard = at.url, at.wildcard
	}
	return app.ReadSignIn(files, identity)
}
