package nodes_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
)

// oneSecret reads the Secret demo-ca of any owner.
type oneSecret struct {
	client.Reader
	secret *corev1.Secret
}

func (o oneSecret) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if name.Name == "demo-ca" && name.Namespace == "team" {
		o.secret.DeepCopyInto(into.(*corev1.Secret))
	}
	return nil
}

func ownedBy(uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: v1beta1.GroupVersion.String(), Kind: "ComputeCluster", Name: "demo", UID: uid, Controller: new(true)},
	}}
}

func TestTrustOf_IsOfTheHeadsOwner(t *testing.T) {
	made, err := pki.New("demo", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := made.Encode()
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string][]byte{v1beta1.AuthorityCertificateKey: certificate, v1beta1.AuthorityKeyKey: key}
	for name, c := range map[string]struct {
		owner types.UID
		data  map[string][]byte
		is    bool
	}{
		"of the head's cluster":      {"uid", whole, true},
		"of another one of its name": {"former", whole, false},
		"without a certificate":      {"uid", map[string][]byte{v1beta1.AuthorityKeyKey: key}, false},
	} {
		head := &corev1.Pod{ObjectMeta: ownedBy("uid")}
		head.Annotations = map[string]string{v1beta1.AnnotationEncryption: string(v1beta1.Enabled)}
		trust := nodes.TrustOf(oneSecret{secret: &corev1.Secret{ObjectMeta: ownedBy(c.owner), Data: c.data}}, head)
		config, err := trust.Config(t.Context())
		if (err == nil) != c.is || c.is && (config.RootCAs == nil || len(config.Certificates) != 1) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if trust := nodes.TrustOf(oneSecret{}, &corev1.Pod{ObjectMeta: ownedBy("uid")}); trust != nil {
		t.Error("a head without encryption is asked with it")
	}
}
