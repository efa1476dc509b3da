package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/tests/internal/fakeserveproxy"
)

// servesPrefix is of the names of clusters on which Serve runs the application.
const servesPrefix, application = "service-", "echo"

// looks is how often it is looked where Serve has a proxy now.
const looks = 500 * time.Millisecond

// heads puts a fake head behind each head pod, and Serve's proxies behind the pods of clusters that serve.
type heads struct {
	ctx    context.Context //nolint:containedctx // the life of the program
	client kubernetes.Interface

	mu     sync.Mutex
	number int
	pods   map[types.UID]*pod
	// leading are the heads of clusters.
	leading map[types.NamespacedName]*fakehead.Head
}

// pod is what is behind one.
type pod struct {
	uid     types.UID
	name    string
	cluster types.NamespacedName
	address string
	// head is what runs in a head's pod, nil for a worker.
	head *fakehead.Head
	// joined is the head that a worker has joined.
	joined *fakehead.Head
	proxy  *fakeserveproxy.Proxy
}

func newHeads(ctx context.Context, client kubernetes.Interface) *heads {
	h := &heads{ctx: ctx, client: client, pods: map[types.UID]*pod{}, leading: map[types.NamespacedName]*fakehead.Head{}}
	go h.watch()
	return h
}

// address opens what is behind a pod that starts, and gives its address.
func (h *heads) address(of *corev1.Pod) (string, error) {
	token := ""
	if of.Labels[v1beta1.LabelRole] == v1beta1.RoleHead {
		var err error
		if token, err = h.token(of); err != nil {
			return "", err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.pods[of.UID]; known != nil {
		return known.address, nil
	}
	h.number++
	opened := &pod{
		uid: of.UID, name: of.Name, address: fmt.Sprintf("10.250.%d.%d", h.number/250, h.number%250+1),
		cluster: types.NamespacedName{Namespace: of.Namespace, Name: of.Labels[v1beta1.LabelCluster]},
	}
	if of.Labels[v1beta1.LabelRole] == v1beta1.RoleHead {
		if err := opened.lead(token); err != nil {
			return "", err
		}
		h.leading[opened.cluster] = opened.head
	}
	h.pods[of.UID] = opened
	return opened.address, nil
}

// token is what the pod's containers find where the cluster's token is mounted.
func (h *heads) token(of *corev1.Pod) (string, error) {
	for _, volume := range of.Spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		secret, err := h.client.CoreV1().Secrets(of.Namespace).Get(h.ctx, volume.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("read the token: %w", err)
		}
		if token := string(secret.Data[v1beta1.TokenKey]); token != "" {
			return token, nil
		}
	}
	return "", nil
}

// lead starts a head.
func (p *pod) lead(token string) error {
	listen := func(port string) (net.Listener, error) {
		return (&net.ListenConfig{}).Listen(context.Background(), "tcp4", net.JoinHostPort(p.address, port))
	}
	gcs, err := listen("6379")
	if err != nil {
		return fmt.Errorf("listen for a head: %w", err)
	}
	api, err := listen("8265")
	if err != nil {
		_ = gcs.Close()
		return fmt.Errorf("listen for a head: %w", err)
	}
	p.head = fakehead.StartOn(clock.RealClock{}, gcs, api)
	p.head.SetToken(token)
	p.head.SetStartDelay(0)
	p.head.SetDeployDelay(0)
	if p.serves() {
		p.head.Hold(application) // until a worker has joined: else it would run beside the head
	}
	p.head.Join(fakehead.Member{Instance: string(p.uid), Head: true, IP: p.address})
	return nil
}

func (p *pod) serves() bool { return strings.HasPrefix(p.cluster.Name, servesPrefix) }

// end ends what is behind a pod.
func (h *heads) end(of *corev1.Pod) {
	h.mu.Lock()
	ended := h.pods[of.UID]
	delete(h.pods, of.UID)
	if ended != nil && ended.head != nil && h.leading[ended.cluster] == ended.head {
		delete(h.leading, ended.cluster)
	}
	h.mu.Unlock()
	if ended == nil {
		return
	}
	if ended.proxy != nil {
		go ended.proxy.Close()
	}
	if ended.head != nil {
		go ended.head.Close() // which waits for those who are just asking
	}
}

// watch lets workers join their heads, and Serve's proxies come and go.
func (h *heads) watch() {
	for ticker := time.NewTicker(looks); h.ctx.Err() == nil; <-ticker.C {
		h.mu.Lock()
		for _, one := range h.pods {
			if err := h.look(one); err != nil {
				fmt.Fprintf(os.Stderr, "look after pod %s: %v\n", one.name, err)
			}
		}
		h.mu.Unlock()
	}
}

// look does what is due with a worker. The caller holds the lock.
func (h *heads) look(one *pod) error {
	head := h.leading[one.cluster]
	if one.head != nil || head == nil {
		return nil
	}
	if one.joined != head {
		one.joined = head
		head.Join(fakehead.Member{Instance: string(one.uid), IP: one.address})
		if one.serves() {
			head.Heal(application)
		}
	}
	if !one.serves() || one.proxy != nil {
		return nil
	}
	seen := head.Proxied(string(one.uid))
	if seen.State == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(h.ctx, "tcp4", net.JoinHostPort(one.address, strconv.Itoa(int(seen.Port))))
	if err != nil {
		return fmt.Errorf("listen for Serve: %w", err)
	}
	one.proxy = fakeserveproxy.New(listener, one.name, func() fakeserveproxy.Leads {
		seen := head.Proxied(string(one.uid))
		leads := fakeserveproxy.Leads{Draining: seen.State == "DRAINING", Versions: map[string]string{}}
		for route := range seen.Routes {
			leads.Versions[route] = "0"
		}
		return leads
	})
	return nil
}
