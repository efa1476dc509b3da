package services

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func TestRepliesAreCounted(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	bad := failure(headclient.Refused)
	reply := Reply{}
	for i, c := range []struct {
		failure error
		want    Reply
	}{
		{bad, Reply{Since: at(1), Times: 1, Why: "because"}},
		{bad, Reply{Since: at(1), Times: 2, Why: "because"}},
		{nil, Reply{OK: true, Since: at(3), Times: 1}},
		{nil, Reply{OK: true, Since: at(3), Times: 2}},
		{nil, Reply{OK: true, Since: at(3), Times: 3}},
		{fmt.Errorf("plain"), Reply{Since: at(6), Times: 1, Why: "plain"}},
	} {
		reply = count(reply, c.failure, at(int64(i+1)))
		if diff := cmp.Diff(c.want, reply); diff != "" {
			t.Errorf("reply %d: %s", i+1, diff)
		}
	}
}

// TestProxiesAreAsked each time that the head is, and what one is asked no more is forgotten.
func TestProxiesAreAsked(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.head("a:1").add(application("a", string(ask("a"))))
		p, q := Probe{Pod: "p", Address: "p", Path: IdlePath}, Probe{Pod: "q", Address: "q", Path: IdlePath}
		b.Want(cluster, wanted(config("d1", "a"), p, q))
		b.Pass(30 * time.Second)
		if n := b.proxies.asked["p"+IdlePath]; n < 6 || n > 8 || b.last().Probes[p].Times != n || b.last().Probes[q].Times != n {
			t.Errorf("asked %d times in 30 s: %+v", n, b.last().Probes)
		}
		b.Wakes()
		b.Want(cluster, wanted(config("d1", "a"), q))
		b.Pass(2 * time.Second)
		if replies := b.last().Probes; len(replies) != 1 || !replies[q].OK || b.Wakes() != 0 {
			t.Errorf("%+v", replies)
		}
	})
}

// TestProxies_OfUsersCodeAreAskedLess: where they answer and nothing changes, and each in its own turn.
func TestProxies_OfUsersCodeAreAskedLess(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.head("a:1").add(application("a", string(ask("a"))))
		var probes []Probe
		for i := range 8 {
			probes = append(probes, Probe{Address: fmt.Sprint("p", i), Path: "/model"})
		}
		want := wanted(config("d1", "a"), probes...)
		want.Every = 3 * time.Second
		b.Want(cluster, want)
		b.Pass(time.Minute)
		b.proxies.set(func(p *proxies) { clear(p.asked); p.most = 0 })
		b.Pass(5 * time.Minute)
		if n := b.proxies.asked["p0/model"]; n < 20 || n > 45 {
			t.Errorf("asked %d times in five minutes", n)
		}
		want.Every = time.Second // an upgrade
		b.Want(cluster, want)
		b.proxies.set(func(p *proxies) { clear(p.asked) })
		b.Pass(time.Minute)
		if n := b.proxies.asked["p0/model"]; n < 50 {
			t.Errorf("asked %d times in a minute of an upgrade", n)
		}
	})
}

// TestProxies_AreAskedWhileTheHeadHangs: a configuration that is not taken for long delays no look at a proxy.
func TestProxies_AreAskedWhileTheHeadHangs(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("a", string(ask("a"))))
		p := Probe{Pod: "p", Address: "p", Path: IdlePath}
		b.Want(cluster, wanted(config("d1", "a"), p))
		b.Pass(30 * time.Second)
		head.set(func(h *scripted) { h.Always[deploy] = fault{Hung: true} })
		b.proxies.set(func(p *proxies) { p.errors["p"] = failure(headclient.Refused) })
		b.Wakes()
		b.Want(cluster, wanted(config("d2", "a"), p))
		b.Pass(2 * time.Second)
		if reply := b.last().Probes[p]; reply.OK || b.Wakes() == 0 {
			t.Errorf("a proxy that fails is seen as %+v", reply)
		}
	})
}

// TestProxyThatFails is asked each second, and is news when it begins to.
func TestProxyThatFails(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.head("a:1").add(application("a", string(ask("a"))))
		p, q := Probe{Pod: "p", Address: "p", Path: IdlePath}, Probe{Pod: "q", Address: "q", Path: IdlePath}
		b.Want(cluster, wanted(config("d1", "a"), p, q))
		b.Pass(30 * time.Second)
		b.Wakes()
		b.proxies.set(func(p *proxies) { p.errors["p"] = failure(headclient.Refused) })
		b.Pass(6 * time.Second)
		if reply := b.last().Probes[p]; reply.OK || reply.Why != "because" || !b.last().Probes[q].OK || b.Wakes() != 1 {
			t.Errorf("%+v", b.last().Probes)
		}
		b.Pass(5 * time.Second) // now each second
		b.Wakes()
		b.Pass(10 * time.Second)
		if reply := b.last().Probes[p]; reply.Times < 14 || b.Wakes() != 0 {
			t.Errorf("%+v", reply)
		}
	})
}

// TestManyProxiesThatHang take no longer than a few, and no more than so many are asked at
// a time.
func TestManyProxiesThatHang(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.head("a:1").add(application("a", string(ask("a"))))
		var probes []Probe
		for i := range 2 * atOnce {
			address := fmt.Sprint("p", i)
			probes = append(probes, Probe{Address: address})
			b.proxies.hung[address] = true
		}
		b.Want(cluster, wanted(config("d1", "a"), probes...))
		b.Pass(2*patience + 100*time.Millisecond)
		if b.proxies.most != atOnce {
			t.Errorf("%d were asked at a time", b.proxies.most)
		}
		for probe, reply := range b.last().Probes {
			if reply.OK || reply.Times != 1 {
				t.Errorf("%v: %+v", probe, reply)
			}
		}
		if len(b.last().Probes) != len(probes) || b.last().Failure != "" {
			t.Errorf("%+v", b.last())
		}
	})
}

// TestProxiesAreAskedWhenTheHeadFails: they may serve without it.
func TestProxiesAreAskedWhenTheHeadFails(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.head("a:1").Always[session] = fault{Err: failure(headclient.Unavailable)}
		probe := Probe{Address: "p"}
		b.Want(cluster, wanted(nil, probe))
		b.Pass(20 * time.Second)
		if answer := b.last(); !answer.Probes[probe].OK || answer.Probes[probe].Times < 3 || answer.Failure == "" {
			t.Errorf("%+v", answer)
		}
	})
}
