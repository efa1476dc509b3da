package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// The contenders: what is measured, and what it is measured against.
const (
	Operator = "operator"
	Floor    = "floor"
)

func contenders() []string { return []string{Floor, Operator} }

// contender is a program that makes clusters, as it runs.
type contender struct {
	*child
	// metrics is where an operator answers; empty for the floor.
	metrics string
	audit   auditLog
	// asks: it asks heads all the time, and what counts as calm is that it writes nothing.
	asks bool
}

// chart is what the operator's chart installs: everything but the Deployment, and how
// that would start the operator.
type chart struct {
	objects   []*unstructured.Unstructured
	args, env []string
}

// readChart renders the chart with its defaults.
func readChart(ctx context.Context, root string) (chart, error) {
	var c chart
	out, err := live.Helm(ctx, root, "template", live.ReleaseName, root+"/helm-chart/heliostat", "--namespace", live.ReleaseNamespace)
	if err != nil {
		return c, err
	}
	objects, err := live.Decode([]byte(out))
	if err != nil {
		return c, err
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			c.objects = append(c.objects, object)
			continue
		}
		var deployment appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
			return c, fmt.Errorf("read the chart's Deployment: %w", err)
		}
		container := deployment.Spec.Template.Spec.Containers[0]
		// The operator is in no pod here, so nothing says which is its own.
		c.args = slices.DeleteFunc(container.Args, func(arg string) bool { return arg == "--pod=$("+podName+")" })
		variables := slices.DeleteFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == podName })
		if c.env, err = literal(variables); err != nil {
			return c, err
		}
	}
	if c.args == nil {
		return c, errors.New("read the chart: it renders no Deployment with arguments")
	}
	return c, nil
}

// podName is the variable by which the chart tells the operator the name of its pod.
const podName = "POD_NAME"

// literal gives the variables in the form that programs take them.
func literal(variables []corev1.EnvVar) ([]string, error) {
	var all []string
	for _, v := range variables {
		if v.ValueFrom != nil {
			return nil, fmt.Errorf("read the chart's Deployment: variable %s comes from a place that this bench does not know", v.Name)
		}
		all = append(all, v.Name+"="+v.Value)
	}
	return all, nil
}

// install applies what the chart renders and gives the operator's account a kubeconfig
// with its token, and nothing of ours.
func (cp *controlPlane) install(ctx context.Context, c chart) (kubeconfig string, err error) {
	if err := cp.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: live.ReleaseNamespace}}); err != nil {
		return "", fmt.Errorf("create namespace %s: %w", live.ReleaseNamespace, err)
	}
	for _, object := range c.objects {
		if err := cp.ApplyObject(ctx, object.DeepCopy()); err != nil {
			return "", err
		}
	}
	err = live.Until(ctx, 30*time.Second, "the kind ComputeCluster to be served", func(ctx context.Context) error {
		return cp.List(ctx, &v1beta1.ComputeClusterList{})
	})
	if err != nil {
		return "", err
	}
	return cp.authorize(ctx)
}

// authorize gives a kubeconfig with a token of the contender's account.
func (cp *controlPlane) authorize(ctx context.Context) (kubeconfig string, err error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: live.ReleaseNamespace, Name: live.ReleaseName}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(12 * 60 * 60))}}
	if err := cp.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("ask for a token of the operator's account: %w", err)
	}
	kubeconfig = filepath.Join(cp.dir, "operator.kubeconfig")
	server := &clientcmdapi.Cluster{Server: cp.Config.Host, CertificateAuthorityData: cp.Config.CAData}
	return kubeconfig, writeKubeconfig(kubeconfig, server, request.Status.Token)
}

// startOperator starts the operator as the chart does, but for where it listens.
func (cp *controlPlane) startOperator(c chart, program program, kubeconfig string) (*contender, error) {
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	program.args = append(append(program.args, c.args...), "--kubeconfig="+kubeconfig, "--metrics-bind-address="+metrics, "--health-probe-bind-address=0")
	program.env = append(program.env, c.env...)
	started, err := start(program, cp.dir, cp.fail)
	return &contender{child: started, metrics: metrics, audit: cp.audit}, err
}

// startFloor starts the floor with the operator's rights and parallelism.
func (cp *controlPlane) startFloor(c chart, program program, kubeconfig string) (*contender, error) {
	program.args = append(program.args, "--kubeconfig="+kubeconfig)
	for _, arg := range c.args {
		if strings.HasPrefix(arg, "--workers=") {
			program.args = append(program.args, arg)
		}
	}
	started, err := start(program, cp.dir, cp.fail)
	return &contender{child: started, audit: cp.audit}, err
}

// What calm is: for so long no request, and next to no processor time.
const (
	calmFor   = 2 * time.Second
	calmUsage = 60 * time.Millisecond
	limit     = 15 * time.Minute
)

// untilCalm waits until the program has nothing to do, and gives since when.
func (c *contender) untilCalm(ctx context.Context) (since time.Time, err error) {
	var log live.Mark
	var used time.Duration
	err = live.Until(ctx, limit, c.name+" to be calm", func(context.Context) error {
		at, err := c.audit.Now()
		if err != nil {
			return err
		}
		usage, err := c.cpu()
		if err != nil {
			return err
		}
		busy := at != log || usage-used > calmUsage
		if c.asks && !since.IsZero() {
			calls, err := c.audit.since(log)
			if err != nil {
				return err
			}
			busy = len(calls.Writes) > 0
		}
		if since.IsZero() || busy {
			since, log, used = time.Now(), at, usage
		}
		if calm := time.Since(since); calm < calmFor {
			return fmt.Errorf("it has been for %v", calm)
		}
		return nil
	})
	return since, err
}

// untilPassed waits until an operator has looked at as many clusters since it started,
// and has no more to look at.
func (c *contender) untilPassed(ctx context.Context, clusters int) error {
	return live.Until(ctx, limit, "a pass over every cluster", func(ctx context.Context) error {
		passes, waiting, err := c.passes(ctx)
		if err == nil && (passes < float64(clusters) || waiting > 0) {
			err = fmt.Errorf("%v passes over %d clusters, %v waiting", passes, clusters, waiting)
		}
		return err
	})
}

// passes reads an operator's metrics.
func (c *contender) passes(ctx context.Context) (passes, waiting float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.metrics+"/metrics", nil)
	if err != nil {
		return 0, 0, fmt.Errorf("build a request: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, 0, fmt.Errorf("read the operator's metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("read the operator's metrics: %s", answer.Status)
	}
	for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
		name, text, _ := strings.Cut(scanner.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || !strings.Contains(name, `controller="computecluster"`):
		case strings.HasPrefix(name, "controller_runtime_reconcile_total{"):
			passes += value
		case strings.HasPrefix(name, "controller_runtime_active_workers{"), strings.HasPrefix(name, "workqueue_depth{"):
			waiting += value
		}
	}
	return passes, waiting, nil
}

// mould is the file from which the floor casts its objects.
type mould struct {
	Name, Namespace string
	Service         corev1.Service
	Head, Worker    corev1.Pod
}

// Names that stand nowhere else in an object.
const (
	mouldName      = "mouldname"
	mouldNamespace = "mouldspace"
)

// takeMould reads what the operator made of the first cluster, without what the API
// server and others have added.
func (cp *controlPlane) takeMould(ctx context.Context) (mould, error) {
	m := mould{Name: mouldName, Namespace: mouldNamespace}
	var services corev1.ServiceList
	var pods corev1.PodList
	of := []client.ListOption{client.InNamespace(mouldNamespace), client.MatchingLabels{v1beta1.LabelCluster: mouldName}}
	if err := errors.Join(cp.List(ctx, &services, of...), cp.List(ctx, &pods, of...)); err != nil {
		return m, fmt.Errorf("read what the operator made: %w", err)
	}
	for _, service := range services.Items {
		if len(service.OwnerReferences) == 1 && service.Spec.ClusterIP != corev1.ClusterIPNone {
			m.Service.ObjectMeta, m.Service.Spec = sown(service.ObjectMeta), service.Spec
			m.Service.Spec.ClusterIP, m.Service.Spec.ClusterIPs = "", nil
		}
	}
	for _, pod := range pods.Items {
		into := &m.Worker
		if pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead {
			into = &m.Head
		}
		into.ObjectMeta, into.Spec = sown(pod.ObjectMeta), pod.Spec
		into.Spec.NodeName = ""
	}
	if m.Service.Name == "" || m.Head.Labels == nil || m.Worker.Labels == nil {
		return m, errors.New("read what the operator made: a Service, a head or a worker is missing")
	}
	return m, nil
}

// sown is the part of an object's metadata that its creator gives.
func sown(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: meta.Name, Labels: meta.Labels, Annotations: meta.Annotations, Finalizers: meta.Finalizers}
}
