package limits_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/heliostat-dev/heliostat/portal/limits"
)

// holderOf reads "user" or "user@namespace", and ">target" behind that.
func holderOf(text string) limits.Holder {
	who, target, _ := strings.Cut(text, ">")
	user, namespace, _ := strings.Cut(who, "@")
	return limits.Holder{User: user, Namespace: namespace}.For(target)
}

func TestTake_LeavesPlacesToOthers(t *testing.T) {
	bounds := limits.Bounds{All: 20, User: 8, Namespace: 10, Target: 9}
	for name, c := range map[string]struct {
		// takes are who takes how many before, and asks is who asks then.
		takes []string
		asks  string
		want  error
	}{
		"nothing is taken":                          {nil, "a", nil},
		"a user has as many as one may":             {[]string{"8 a"}, "a", limits.ErrCallerFull},
		"another user has":                          {[]string{"8 a"}, "b", nil},
		"nobody knows who they are":                 {[]string{"8 "}, "", limits.ErrCallerFull},
		"service accounts have as many as they may": {[]string{"6 a@n", "4 b@n"}, "c@n", limits.ErrNamespaceFull},
		"those of another namespace have":           {[]string{"6 a@n", "4 b@n"}, "c@m", nil},
		"a target has as many as one may":           {[]string{"5 a>t", "4 b>t"}, "c>t", limits.ErrTargetFull},
		"another target has":                        {[]string{"5 a>t", "4 b>t"}, "c>u", nil},
		"who has as many as are free":               {[]string{"8 a", "6 b"}, "b", limits.ErrServerFull},
		"who has fewer than are free":               {[]string{"8 a", "6 b"}, "c", nil},
		"many hostile users":                        {[]string{"8 a", "6 b", "3 c", "1 d"}, "d", nil},
		"the last place of those who have one":      {[]string{"8 a", "6 b", "3 c", "1 d", "1 e"}, "e", limits.ErrServerFull},
		"the last place of who has none":            {[]string{"8 a", "6 b", "3 c", "1 d", "1 e"}, "f", nil},
		"no place is left":                          {[]string{"8 a", "6 b", "3 c", "1 d", "1 e", "1 f"}, "g", limits.ErrServerFull},
	} {
		p := limits.New(bounds)
		var back []func()
		for _, one := range c.takes {
			var count int
			number, who, _ := strings.Cut(one, " ")
			_, _ = fmt.Sscan(number, &count)
			for i := range count {
				giveBack, err := p.Take(holderOf(who))
				if err != nil {
					t.Fatalf("%s: place %d of %q: %v", name, i, who, err)
				}
				back = append(back, giveBack)
			}
		}
		giveBack, err := p.Take(holderOf(c.asks))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err == nil {
			back = append(back, giveBack)
		}
		for _, one := range back {
			one()
		}
		if _, err := p.Take(holderOf(c.asks)); err != nil || p.Count() != 1 {
			t.Errorf("%s: when all are given back: %v, and %d are taken", name, err, p.Count())
		}
	}
}

// TestTurns_AreTakenByTurns: who waits for many does not go before all others, also as many service accounts.
func TestTurns_AreTakenByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := limits.NewTurns()
		over, err := turns.Take(t.Context(), holderOf("first"))
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		wait := func(ctx context.Context, who string) {
			go func() {
				over, err := turns.Take(ctx, holderOf(who))
				if err != nil {
					order = append(order, who+" "+err.Error())
					return
				}
				order = append(order, who)
				over()
			}()
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		for range 4 {
			wait(t.Context(), "mallory")
		}
		wait(t.Context(), "mallory")
		wait(gone, "bob")
		wait(t.Context(), "a@n")
		wait(t.Context(), "b@n")
		wait(t.Context(), "alice")
		leave()
		synctest.Wait()
		over()
		synctest.Wait()
		want := "mallory " + limits.ErrCallerFull.Error() + ", bob context canceled, mallory, a@n, alice, mallory, b@n, mallory, mallory"
		if got := strings.Join(order, ", "); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if over, err = turns.Take(t.Context(), holderOf("late")); err != nil {
			t.Fatalf("when all are over: %v", err)
		}
		over()
	})
}
