package cluster

import (
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// findStall returns what keeps the whole cluster from being worked on.
func findStall(b basis, rules verdictOfRules) *reason.Finding {
	if rules.invalid != nil {
		return rules.invalid
	}
	var finding reason.Finding
	switch {
	case naming.EncryptionRequired(b.cluster) && b.site.Image.Image == "":
		finding = reason.InvalidSpec.Of("network.encryption needs programs of the operator's image, and the operator was started without --autoscaler-image")
	case isStoreEncrypted(b) && b.site.Image.Image == "":
		finding = reason.InvalidSpec.Of("the managed Redis speaks TLS, for which it needs a program of the operator's image, and the operator was started without --autoscaler-image")
	case b.seen.RecordError != nil:
		finding = reason.RecordDamaged.Of(b.seen.RecordError.Error())
	case b.seen.Token.Presence == reconcile.Foreign:
		finding = reason.NameConflict.Of("Secret " + naming.TokenSecret(b.cluster.Name))
	case b.seen.Authority == reconcile.Foreign:
		finding = reason.NameConflict.Of("Secret " + naming.AuthoritySecret(b.cluster.Name))
	default:
		return findForeignFixture(b)
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
