package cluster

import (
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// findStall returns what keeps the whole cluster from being worked on.
func findStall(p *planner) *reason.Finding {
	if invalid := checkRules(p); invalid != nil {
		return invalid
	}
	var finding reason.Finding
	switch {
	case naming.EncryptionRequired(p.cluster) && p.site.Image.Image == "":
		finding = reason.InvalidSpec.Of("network.encryption needs programs of the operator's image, and the operator was started without --autoscaler-image")
	case isStoreEncrypted(p.basis()) && p.site.Image.Image == "":
		finding = reason.InvalidSpec.Of("the managed Redis speaks TLS, for which it needs a program of the operator's image, and the operator was started without --autoscaler-image")
	case p.seen.RecordError != nil:
		finding = reason.RecordDamaged.Of(p.seen.RecordError.Error())
	case p.seen.Token.Presence == reconcile.Foreign:
		finding = reason.NameConflict.Of("Secret " + naming.TokenSecret(p.cluster.Name))
	case p.seen.Authority == reconcile.Foreign:
		finding = reason.NameConflict.Of("Secret " + naming.AuthoritySecret(p.cluster.Name))
	default:
		return findForeignFixture(p.basis())
	}
	return &finding
}

// findForeignFixture returns a finding where an object of others' stands under the name of one that the cluster cannot
// do without.
func findForeignFixture(b basis) *reason.Finding {
	for i := range fixtures {
		f := &fixtures[i]
		if b.seen.Fixtures[f.kind].Presence == reconcile.Foreign && !f.optional && f.wanted(b) != nil {
			finding := reason.NameConflict.Of(f.kind + " " + f.name(b.cluster.Name))
			return &finding
		}
	}
	return nil
}
