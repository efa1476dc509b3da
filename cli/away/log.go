package away

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
)

// largestLog bounds a log, whose lines may be of any length.
const largestLog = 8 << 20

// ReadLog returns a way to logs of containers by the API server.
func ReadLog(config *rest.Config) console.ReadLog {
	return func(ctx context.Context, of console.Container, isPrevious bool, lines int64) (string, error) {
		client, err := newClient(config)
		if err != nil {
			return "", err
		}
		options := &corev1.PodLogOptions{Container: of.Name, Previous: isPrevious, TailLines: &lines}
		stream, err := client.Get().Resource("pods").Namespace(of.Pod.Namespace).Name(of.Pod.Name).SubResource("log").
			VersionedParams(options, scheme.ParameterCodec).Stream(ctx)
		if err != nil {
			return "", kube.Because(fmt.Errorf("read the log of container %s of pod %s: %w", of.Name, of.Pod.Name, err))
		}
		defer func() { _ = stream.Close() }() // it was read
		text, err := io.ReadAll(io.LimitReader(stream, largestLog))
		if err != nil {
			return "", fmt.Errorf("read the log of container %s of pod %s: %w", of.Name, of.Pod.Name, err)
		}
		return string(text), nil
	}
}

// StreamLog returns a way to whole logs of containers by the API server.
func StreamLog(config *rest.Config) console.StreamLog {
	return func(ctx context.Context, of console.Container, after time.Time, isFollowed bool) (io.ReadCloser, error) {
		endless := rest.CopyConfig(config)
		endless.Timeout = 0 // what is followed has no end
		client, err := newClient(endless)
		if err != nil {
			return nil, err
		}
		options := &corev1.PodLogOptions{Container: of.Name, Follow: isFollowed, Timestamps: true}
		if !after.IsZero() {
			since := metav1.NewTime(after) // by the second: the reader drops what it has
			options.SinceTime = &since
		}
		stream, err := client.Get().Resource("pods").Namespace(of.Pod.Namespace).Name(of.Pod.Name).SubResource("log").
			VersionedParams(options, scheme.ParameterCodec).Stream(ctx)
		if err != nil {
			return nil, kube.Because(fmt.Errorf("read the log of container %s of pod %s: %w", of.Name, of.Pod.Name, err))
		}
		return stream, nil
	}
}

// newClient returns a client for subresources of pods.
func newClient(config *rest.Config) (rest.Interface, error) {
	core := rest.CopyConfig(config)
	core.APIPath, core.GroupVersion = "/api", &corev1.SchemeGroupVersion
	core.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(core)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return client, nil
}
