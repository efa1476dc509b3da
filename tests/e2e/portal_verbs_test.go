package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Verbs whose effect is on what runs; suspend, resume and scale set fields that other specs show.
var _ = Describe("a verb of the server for portals", Label(live.PortalVerbsLabel, live.AcceptLabel, localkubeLabel), func() {
	It("runs a job again that has failed, as another one", func(ctx SpecContext) {
		o := opened(ctx)
		shared := &env{o.named("shared")}
		shared.apply(ctx, "clusters/ledger.yaml", nil)
		p := newPortal(ctx, o.namespace)
		first := o.shares(ctx, "flaky", note+`[ "$(grep -c . /ledger/runs)" -ge 2 ] || exit 3`)
		Expect(last(first.is(ctx, v1beta1.PhaseFailed)).ExitCode).To(HaveValue(BeEquivalentTo(3)))
		var names []string
		for range 2 { // it is idempotent
			names = append(names, p.acts(ctx, "/jobs/flaky:retry", "").Object.Metadata.Name)
		}
		Expect(names[1]).To(Equal(names[0]))
		Expect(names[0]).NotTo(Equal("flaky"))
		o.job(names[0]).is(ctx, v1beta1.PhaseSucceeded)
		first.is(ctx, v1beta1.PhaseFailed)
		Expect(o.notes(ctx)).To(HaveLen(2))
	}, SpecTimeout(2*limit))

	It("undoes the last change of a service, which answers as before", func(ctx SpecContext) {
		t := serviced(ctx)
		s := t.begins(ctx, "echo", "services/own.yaml", quickly)
		p := newPortal(ctx, t.namespace)
		s.edit(ctx, tells("2"))
		s.answers(ctx, "2")
		Expect(p.acts(ctx, "/services/echo:undo", "").IsChanged).To(BeTrue())
		s.answers(ctx, "1")
		s.serves(ctx)
	}, SpecTimeout(2*servingTime))
})

// acted is the answer to a verb.
type acted struct {
	Object    struct{ Metadata struct{ Name string } }
	IsChanged bool
}

// acts calls a verb of an object.
func (p *portal) acts(ctx context.Context, path, body string) (said acted) {
	GinkgoHelper()
	text, _ := p.send(ctx, http.MethodPost, path, body)
	Expect(json.Unmarshal(text, &said)).To(Succeed(), string(text))
	return said
}

// answers waits until the echo is of a version.
func (s *service) answers(ctx context.Context, version string) {
	GinkgoHelper()
	eventually(ctx, s.Name+" to answer as version "+version, func(ctx context.Context) error {
		text, err := s.read(ctx, "/?said=hello")
		var said struct{ Version string }
		if err == nil {
			err = json.Unmarshal([]byte(text), &said)
		}
		if err == nil && said.Version != version {
			err = errors.New("it says " + text)
		}
		return err
	})
}
