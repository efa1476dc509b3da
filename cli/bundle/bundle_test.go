package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// fileOfSecret is in a Secret that the spec of the cluster names, and none of its pods.
const fileOfSecret = "-----BEGIN canary-of-a-file-----\n\"canary-of: it's\\\n-----END canary-of-a-file-----\n"

// secrets answers requests for Secrets by their names, where it is not nil.
type secrets func(name string) error

func forbidden(name string) error {
	return apierrors.NewForbidden(corev1.Resource("secrets"), name, errors.New("no"))
}

// gone answers that one Secret is gone.
func gone(one string) secrets {
	return func(name string) error {
		if name == one {
			return apierrors.NewNotFound(corev1.Resource("secrets"), name)
		}
		return nil
	}
}

// bundled runs the command on cluster demo, whose head prints its token and a value of a variable.
func bundled(t *testing.T, path string, answer secrets) (map[string]string, string, error) {
	t.Helper()
	site := headstest.New()
	cluster := site.PutCluster("demo", func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "ray", Env: []corev1.EnvVar{{Name: "KEY", Value: "canary-of-a-variable"}}}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "file"}}}}}}
	})
	pod := headstest.Head(cluster, 1, "10.1.0.1")
	pod.Labels[v1beta1.LabelCluster] = "demo"
	pod.Status.ContainerStatuses[0].RestartCount = 1
	pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: "canary-of-all, it said"}
	pod.Spec.Containers = []corev1.Container{{Name: "ray",
		EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "all"}}}},
		Env: []corev1.EnvVar{{Name: "ONE", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "one"}, Key: "k"}}}}}}
	event := func(name string, about client.Object) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: headstest.Namespace, Name: name}, Message: "it is " + name + " " + strings.TrimSpace(fileOfSecret),
			InvolvedObject: corev1.ObjectReference{UID: about.GetUID()}}
	}
	secret := headstest.Secret(cluster, naming.TokenSecret("demo"), v1beta1.TokenKey, headstest.Token)
	objects := fake.NewClientBuilder().WithScheme(kube.Scheme()).
		WithObjects(cluster, pod, secret, headstest.Secret(cluster, "one", "k", "canary-of-a-reference"),
			headstest.Secret(cluster, "all", "k", "canary-of-all"), headstest.Secret(cluster, "file", "k", fileOfSecret), event("ours", pod), event("other", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "x"}})).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if _, is := object.(*corev1.Secret); is && answer != nil {
					if err := answer(key.Name); err != nil {
						return err
					}
				}
				return c.Get(ctx, key, object, options...)
			}}).Build()
	var said bytes.Buffer
	command := Command(&console.Console{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &said, ErrOut: &said}, Clock: clock.RealClock{},
		Connect: func() (*kube.Objects, error) {
			return &kube.Objects{WithWatch: objects, Namespace: headstest.Namespace}, nil
		},
		ReadLog: func(_ context.Context, _ console.Container, isPrevious bool, _ int64) (string, error) {
			if isPrevious {
				return "", errors.New("it is gone")
			}
			return "token " + headstest.Token + ", key canary-of-a-variable, canary-of-a-reference, canary-of-all\n" + fileOfSecret, nil
		},
	})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{"cluster/demo", "--file", path})
	if err := command.ExecuteContext(t.Context()); err != nil {
		return nil, said.String(), err
	}
	return read(t, path), said.String(), nil
}

// read returns the files of a bundle.
func read(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	files, archive := map[string]string{}, tar.NewReader(zipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}

func TestBundle_HoldsWhatHelpsAndNoSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.tar.gz")
	files, _, err := bundled(t, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := "logs/" + naming.Pod("demo", "uid-of-demo", naming.Place{Epoch: 1}) + "/ray"
	for name, holds := range map[string]string{
		"objects.yaml": "kind: ComputeCluster", "why.txt": "ComputeCluster demo", "events.yaml": "it is ours",
		log + ".log": "token (left out), key (left out), (left out), (left out)", log + ".previous.log": "it is gone",
	} {
		if !strings.Contains(files[name], holds) {
			t.Errorf("%s holds no %q: %q", name, holds, files[name])
		}
	}
	for name, text := range files {
		for _, canary := range []string{headstest.Token, "canary-of", "it is other"} {
			if strings.Contains(text, canary) {
				t.Errorf("%s holds %q", name, canary)
			}
		}
	}
	if _, _, err := bundled(t, path, nil); outcome.Code(err) != outcome.Refused {
		t.Errorf("a file that is there is written over: %v", err)
	}
}

// TestBundle_HasNoLogsWithoutASecret has Secrets that cannot be read: what is in logs of them could not be found there.
func TestBundle_HasNoLogsWithoutASecret(t *testing.T) {
	for name, c := range map[string]struct {
		answer secrets
		says   string
	}{
		"no right":               {forbidden, "you may not read all"},
		"one is gone":            {gone("one"), "one is gone"},
		"all variables are gone": {gone("all"), "all is gone"},
		"a file is gone":         {gone("file"), "file is gone"},
		"the token is gone":      {gone("demo-token"), "demo-token is gone"},
	} {
		files, said, err := bundled(t, filepath.Join(t.TempDir(), "demo.tar.gz"), c.answer)
		if err != nil || !strings.Contains(said, c.says) || !strings.Contains(said, "logs, which may hold them, are left out") {
			t.Fatalf("%s: it says %q (%v)", name, said, err)
		}
		for file, text := range files {
			if strings.HasPrefix(file, "logs/") || strings.Contains(text, "canary-of-all") {
				t.Errorf("%s: %s is in the bundle: %s", name, file, text)
			}
		}
		if !strings.Contains(files["objects.yaml"], "kind: Pod") {
			t.Errorf("%s: the objects are left out", name)
		}
	}
}

// TestLearnSecrets_NeedsNoTokenThatOpensNothing has clusters whose token is not in the Secret of its name.
func TestLearnSecrets_NeedsNoTokenThatOpensNothing(t *testing.T) {
	cluster := func(name string, of *v1beta1.Authentication) *v1beta1.ComputeCluster {
		return &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Spec: v1beta1.ComputeClusterSpec{Authentication: of}}
	}
	given := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "given"}, Data: map[string][]byte{"auth_token": []byte("canary-of-given")}}
	made := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(given, cluster("open", &v1beta1.Authentication{Mode: "Disabled"}),
		cluster("own", &v1beta1.Authentication{SecretName: "given"}), cluster("lost", &v1beta1.Authentication{SecretName: "nowhere"}), cluster("plain", nil)).Build()
	for name, c := range map[string]struct {
		reference reference
		want      []string
	}{
		"of a cluster that is gone":                  {tokenSecret("former"), nil},
		"of a cluster without authentication":        {tokenSecret("open"), nil},
		"of a cluster with a Secret of the user's":   {tokenSecret("own"), nil},
		"of a cluster with one that is gone":         {tokenSecret("lost"), []string{"lost-token is gone"}},
		"of a cluster whose token is gone":           {tokenSecret("plain"), []string{"plain-token is gone"}},
		"gone, and named by an object":               {reference{name: "former-token"}, []string{"former-token is gone"}},
		"gone, as an optional one may have been too": {reference{name: "optional"}, []string{"optional is gone"}},
	} {
		b := &bundle{objects: &kube.Objects{WithWatch: made, Namespace: "team-a"}}
		if got := b.learnSecrets(t.Context(), "team-a", []reference{c.reference}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: unread are %q, want %q", name, got, c.want)
		}
		if isLearned := b.redactor.clean("canary-of-given") == leftOut; isLearned != (c.reference.tokenOf == "own") {
			t.Errorf("%s: the value of the user's Secret is learned: %v", name, isLearned)
		}
	}
}

func TestLeaveOutLines_LeavesTheRest(t *testing.T) {
	lines := map[string]any{"number": 1, "lastLines": []any{"token"}, "terminated": map[string]any{"exitCode": 1, "message": "token"}}
	leaveOutLines([]any{map[string]any{"status": map[string]any{"attempts": []any{lines}}}})
	if want := map[string]any{"number": 1, "lastLines": []any{leftOut}, "terminated": map[string]any{"exitCode": 1, "message": leftOut}}; !reflect.DeepEqual(lines, want) {
		t.Errorf("it leaves %v", lines)
	}
}
