package job

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

const (
	headIP = "10.1.0.1"
	has    = "GET /api/packages/gcs/{name}"
	put    = "PUT /api/packages/gcs/{name}"
)

// uploads runs a test of an upload to the fake head of cluster demo, in a bubble of time. Said has the notes.
func uploads(t *testing.T, test func(t *testing.T, u *uploaded, job *v1beta1.ClusterJob, head *fakehead.Head, said *bytes.Buffer)) {
	t.Helper()
	at := directory(t)
	synctest.Test(t, func(t *testing.T) {
		site, network := headstest.New(), headstest.NewNetwork()
		cluster := site.PutCluster("demo", nil)
		pod := headstest.Head(cluster, 1, headIP)
		pod.Labels[v1beta1.LabelCluster] = "demo"
		secret := headstest.Secret(cluster, naming.TokenSecret("demo"), v1beta1.TokenKey, headstest.Token)
		head := fakehead.StartOn(clock.RealClock{}, network.Listen("gcs:1"), network.Listen(headIP+":8265"))
		head.SetToken(headstest.Token)
		defer head.Close()
		defer network.Break()
		said := &bytes.Buffer{}
		c := &console.Console{Clock: clock.RealClock{}, IOStreams: genericiooptions.IOStreams{ErrOut: said},
			Forward: func(ctx context.Context, _ types.NamespacedName, port int) (net.Conn, error) {
				return network.Connect(ctx, fmt.Sprintf("%s:%d", headIP, port))
			}}
		job, files, err := carried(t, "--cluster demo", at)
		if err != nil {
			t.Fatal(err)
		}
		u, is := files.(*uploaded)
		if !is {
			t.Fatalf("they are carried by %T", files)
		}
		u.console = c
		u.clusters.Objects = &kube.Objects{Namespace: headstest.Namespace,
			WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(cluster, pod, secret).Build()}
		test(t, u, job, head, said)
	})
}

func TestUploaded_GoesUpOnce(t *testing.T) {
	uploads(t, func(t *testing.T, u *uploaded, job *v1beta1.ClusterJob, head *fakehead.Head, said *bytes.Buffer) {
		for range 2 {
			if err := u.prepare(t.Context(), u.clusters.Objects, job); err != nil {
				t.Fatal(err)
			}
		}
		conversation, err := u.clusters.Converse(t.Context(), "demo")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conversation.Close() }()
		if isThere, err := conversation.HasPackage(t.Context(), u.packed.Name); !isThere || head.Calls(put) != 1 {
			t.Errorf("it has the files: %v, %v, after %d uploads", isThere, err, head.Calls(put))
		}
		if strings.Count(said.String(), "uploading 1 files") != 1 {
			t.Errorf("it says %q", said)
		}
	})
}

func TestUploaded_IsRenewedWhileHeld(t *testing.T) {
	uploads(t, func(t *testing.T, u *uploaded, job *v1beta1.ClusterJob, head *fakehead.Head, said *bytes.Buffer) {
		if err := u.prepare(t.Context(), u.clusters.Objects, job); err != nil {
			t.Fatal(err)
		}
		ctx, release := context.WithCancel(t.Context())
		held := make(chan struct{})
		go func() { defer close(held); u.hold(ctx) }()
		var asked []int
		for range 3 {
			<-time.After(9 * time.Minute)
			asked = append(asked, head.Calls(has))
			head.Restart()
		}
		release()
		<-held
		if !slices.IsSorted(asked) || asked[0] < 3 || asked[2] < asked[1]+2 {
			t.Errorf("it was renewed %v times within 9, 18 and 27 minutes", asked)
		}
		if head.Calls(put) != 3 {
			t.Errorf("it was uploaded %d times, want once and after each of two losses", head.Calls(put))
		}
		<-time.After(time.Hour)
		if head.Calls(has) != asked[2] {
			t.Error("it is renewed after it was released")
		}
		if strings.Contains(said.String(), "not renewed") {
			t.Errorf("it says %q", said)
		}
	})
}

func TestUploaded_SaysOnceThatAHeadIsSilent(t *testing.T) {
	uploads(t, func(t *testing.T, u *uploaded, job *v1beta1.ClusterJob, head *fakehead.Head, said *bytes.Buffer) {
		head.Behave(fakehead.Away)
		if err := u.prepare(t.Context(), u.clusters.Objects, job); outcome.Code(err) != outcome.Refused || !strings.Contains(err.Error(), lasting) {
			t.Errorf("exit code %d: %v", outcome.Code(err), err)
		}
		ctx, release := context.WithTimeout(t.Context(), 20*time.Minute)
		defer release()
		u.hold(ctx)
		if strings.Count(said.String(), "not renewed") != 1 {
			t.Errorf("it says %q", said)
		}
	})
}
