package realtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
)

const (
	// variable names the kubeconfig of an instance to use.
	variable = "LOCALKUBE_KUBECONFIG"
	// own is the name of the instance that is brought up without it.
	own = "realtest"
	// image is the one that every instance has on its nodes.
	image = "localhost/busybox:1"
	// limit is for anything that has to happen, on a busy machine.
	limit = 90 * time.Second
	// often is how often it is looked at.
	often = 50 * time.Millisecond
)

func TestMain(m *testing.M) {
	if os.Getenv(variable) != "" {
		os.Exit(m.Run())
	}
	code, err := onOwnInstance(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// onOwnInstance runs the tests between up and down.
func onOwnInstance(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", own)
	if err != nil {
		return 1, fmt.Errorf("make a directory for localkube: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "localkube")
	if _, err := output("go", "build", "-o", program, "../.."); err != nil {
		return 1, err
	}
	defer func() {
		if _, downErr := output(program, "down", "--name", own); downErr != nil && err == nil {
			code, err = 1, downErr
		}
	}()
	kubeconfig, err := output(program, "up", "--name", own, "--nodes", "2", "--gpus", "1", "--ip-families", "ipv4,ipv6")
	if err != nil {
		return 1, err
	}
	if err := os.Setenv(variable, strings.TrimSpace(kubeconfig)); err != nil {
		return 1, fmt.Errorf("set %s: %w", variable, err)
	}
	return m.Run(), nil
}

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return out.String(), nil
}

// instance is a namespace of its own in the cluster for one test.
type instance struct {
	t         *testing.T
	ctx       context.Context
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	// nodes are two names.
	nodes [2]string
}

func newInstance(t *testing.T) *instance {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(variable))
	if err != nil {
		t.Fatalf("read the kubeconfig that %s names: %v", variable, err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	in := &instance{t: t, ctx: t.Context(), config: config, client: client}
	nodes, err := client.CoreV1().Nodes().List(in.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatalf("list nodes: %v", err)
	}
	if len(nodes.Items) < 2 {
		t.Fatalf("the instance has %d nodes: start it with localkube up --nodes 2 --gpus 1 --ip-families ipv4,ipv6", len(nodes.Items))
	}
	in.nodes = [2]string{nodes.Items[0].Name, nodes.Items[1].Name}
	in.makeNamespace()
	return in
}

func (in *instance) makeNamespace() {
	in.t.Helper()
	ns, err := in.client.CoreV1().Namespaces().Create(in.ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "realtest-"}}, metav1.CreateOptions{})
	if err != nil {
		in.t.Fatalf("create namespace: %v", err)
	}
	in.namespace = ns.Name
	in.t.Cleanup(func() {
		// The test's own context has ended.
		if err := in.client.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}); err != nil {
			in.t.Errorf("delete namespace: %v", err)
		}
	})
	in.eventually("its service account exists", func() (bool, string) {
		_, err := in.client.CoreV1().ServiceAccounts(ns.Name).Get(in.ctx, "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// eventually waits until the condition is true; otherwise the test ends with
// what the condition said last.
func (in *instance) eventually(what string, condition func() (bool, string)) time.Duration {
	in.t.Helper()
	begin := time.Now()
	var said string
	err := wait.PollUntilContextTimeout(in.ctx, often, limit, true, func(context.Context) (done bool, _ error) {
		done, said = condition()
		return done, nil
	})
	if err != nil {
		in.t.Fatalf("wait until %s: %v: %s", what, err, said)
	}
	return time.Since(begin)
}

// start creates a pod of one container on a node, with a shell script in it.
func (in *instance) start(name, node, role, script string, options ...func(*corev1.Container)) {
	in.t.Helper()
	container := corev1.Container{Name: "main", Image: image, Command: []string{"sh", "-c", script}}
	for _, option := range options {
		option(&container)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"role": role}},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{container},
			NodeSelector:                  map[string]string{corev1.LabelHostname: node},
			TerminationGracePeriodSeconds: new(int64),
		},
	}
	if _, err := in.client.CoreV1().Pods(in.namespace).Create(in.ctx, pod, metav1.CreateOptions{}); err != nil {
		in.t.Fatalf("create pod %s: %v", name, err)
	}
}

func (in *instance) pod(name string) *corev1.Pod {
	in.t.Helper()
	pod, err := in.client.CoreV1().Pods(in.namespace).Get(in.ctx, name, metav1.GetOptions{})
	if err != nil {
		in.t.Fatalf("get pod %s: %v", name, err)
	}
	return pod
}

// condition returns the pod's condition, or one that is empty.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// ready waits until the pod is ready and returns its addresses, one of each family.
func (in *instance) ready(name string) []string {
	in.t.Helper()
	in.eventually("pod "+name+" is ready", func() (bool, string) {
		pod := in.pod(name)
		return condition(pod, corev1.PodReady).Status == corev1.ConditionTrue, fmt.Sprintf("%+v", pod.Status)
	})
	var addresses []string
	for _, ip := range in.pod(name).Status.PodIPs {
		addresses = append(addresses, ip.IP)
	}
	if len(addresses) != 2 {
		in.t.Fatalf("pod %s has the addresses %q, want one of each family: start the instance with localkube up --ip-families ipv4,ipv6", name, addresses)
	}
	return addresses
}

// run returns what a command prints in a pod, and an error if it fails.
func (in *instance) run(pod string, command ...string) (string, error) {
	in.t.Helper()
	request := in.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(in.namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(in.config, "GET", request.URL().String())
	if err != nil {
		in.t.Fatalf("run in pod %s: %v", pod, err)
	}
	var out, complaint bytes.Buffer
	if err = executor.StreamWithContext(in.ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &complaint}); err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), err
}
