package servercert

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
)

// bed is a Keeper over a fake API server that has the chart's Secret.
type bed struct {
	*Keeper
	api client.WithWatch
	// writes counts them, and fails is how many more are refused.
	writes, fails int
}

func newBed(now clock.WithTicker) *bed {
	b := &bed{}
	name := types.NamespacedName{Namespace: "there", Name: "tls"}
	b.api = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
		WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if b.writes++; b.fails > 0 {
				b.fails--
				return errors.New("the API server is away")
			}
			return c.Patch(ctx, o, p, opts...)
		}}).Build()
	b.Keeper = &Keeper{Live: b.api, Writer: &kube.Writer{Client: b.api, Live: b.api}, Clock: now, Secret: name, Hosts: hosts}
	return b
}

// secret returns the Secret as it is.
func (b *bed) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := b.api.Get(t.Context(), b.Secret, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestKeeper_RenewsForYears: each month there is a certificate that is good for four more, of one authority.
func TestKeeper_RenewsForYears(t *testing.T) {
	now := clocktesting.NewFakeClock(began)
	b := newBed(now)
	var first []byte
	for range 36 {
		if err := b.keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		held := b.secret(t).Data
		if first == nil {
			first = held[pki.AuthorityCertificateFile]
		}
		if left := leaf(t, held).NotAfter.Sub(now.Now()); left < renewBefore {
			t.Errorf("%s are left", left)
		}
		if !bytes.Equal(held[pki.AuthorityCertificateFile], first) {
			t.Error("there is another authority")
		}
		now.Step(30 * 24 * time.Hour)
	}
	public := &corev1.ConfigMap{}
	if err := b.api.Get(t.Context(), b.Secret, public); err != nil || public.Data[pki.AuthorityCertificateFile] != string(first) {
		t.Errorf("the ConfigMap has %v, %v, want the authority's certificate", public.Data, err)
	}
	if want := 5; b.writes != want { // two at first, and when a certificate is 9 months old, which is the first look after 8
		t.Errorf("it writes %d times in three years, want %d", b.writes, want)
	}
}

func TestKeeper_FailsWithoutItsSecret(t *testing.T) {
	b := newBed(clocktesting.NewFakeClock(began))
	if err := b.api.Delete(t.Context(), b.secret(t)); err != nil {
		t.Fatal(err)
	}
	if err := b.keep(t.Context()); err == nil {
		t.Error("without the Secret it does not fail")
	}
}

// TestKeeper_TriesAgain: a write that fails is made a minute later, and so is one that somebody undid.
func TestKeeper_TriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(clock.RealClock{})
		b.fails = 1
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Start(ctx) }()
		for _, left := range []int{0, 4} {
			synctest.Wait()
			if held := b.secret(t); len(held.Data) != left {
				t.Errorf("it holds %d keys, want %d", len(held.Data), left)
			}
			<-time.After(every)
		}
		emptied := b.secret(t)
		emptied.Data = nil
		if err := b.api.Update(ctx, emptied); err != nil {
			t.Fatal(err)
		}
		<-time.After(every)
		synctest.Wait()
		if held := b.secret(t); len(held.Data) != 4 {
			t.Errorf("what was emptied holds %d keys", len(held.Data))
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
