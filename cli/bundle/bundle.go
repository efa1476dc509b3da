// Package bundle writes what somebody else needs to look into a problem: a file with objects, causes, events and logs.
//
// In: KIND/NAME. Out: a tar file on this machine: the object, its clusters and their pods, why they are as they are, their
// events, and the last lines of their containers.
//
// It must never hold a Secret, a token, or the value of a variable, wherever that stands: in specs, in statuses or in logs.
// Where a Secret that an object names cannot be read, or is gone, nobody could find it in logs, so there are none.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

// lastLines is how many lines a bundle has of each container at most.
const lastLines = 2000

// Command returns the command.
func Command(c *console.Console) *cobra.Command {
	path := ""
	command := &cobra.Command{
		Use: "bundle KIND/NAME", Short: "Collect the details of a problem in a file",
		Long: `Collect what is needed to analyze a problem in a tar file: the object, its clusters and their pods, the explanation of their
status, their events, and the last lines of their containers.

Secrets, tokens and values of environment variables are left out, also from logs. If a Secret that the objects name does not
exist, or you may not read it, the file has no logs. Logs can contain other confidential data: review the file before you send it.`,
		Example: "  heliostat bundle job/train\n  heliostat bundle cluster/dev --file dev.tar.gz",
		Args:    console.Arguments(1, 1, "KIND/NAME"), ValidArgsFunction: object.Complete(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, err := c.Connect()
			if err != nil {
				return err
			}
			found, err := objects.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if path == "" {
				path = found.GetName() + ".tar.gz"
			}
			return write(cmd.Context(), c, objects, found, path)
		},
	}
	command.Flags().StringVar(&path, "file", "", "file to write; default: NAME.tar.gz. An existing file is not overwritten")
	return command
}

// write writes a bundle to a new file.
func write(ctx context.Context, c *console.Console, objects *kube.Objects, about verbs.Object, path string) (err error) {
	b := &bundle{console: c, objects: objects}
	files, err := b.collect(ctx, about)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user names the file
	if errors.Is(err, os.ErrExist) {
		return outcome.Errorf(outcome.Refused, "the file %s is there; remove it, or give another --file", path)
	} else if err != nil {
		return outcome.Errorf(outcome.Usage, "write the bundle: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := pack(out, files, c); err != nil {
		return fmt.Errorf("write the bundle %s: %w", path, err)
	}
	fmt.Fprintln(c.Out, path)
	return nil
}

// file is one of a bundle.
type file struct{ name, text string }

func pack(out io.Writer, files []file, c *console.Console) error {
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for _, one := range files {
		header := &tar.Header{Name: one.name, Mode: 0o600, Size: int64(len(one.text)), ModTime: c.Clock.Now()}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.WriteString(archive, one.text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

// bundle is a support bundle that is being written.
type bundle struct {
	console  *console.Console
	objects  *kube.Objects
	redactor redactor
}

// collect returns the files of a bundle, of which nothing was written yet.
func (b *bundle) collect(ctx context.Context, about verbs.Object) ([]file, error) {
	in, err := b.objects.Around(ctx, about, b.console.Clock.Now())
	if errors.Is(err, kube.ErrNoPods) {
		b.console.Note("warning: you may not list pods; they are left out")
	} else if err != nil {
		return nil, err
	}
	objects, events, err := b.read(ctx, about, in)
	if err != nil {
		return nil, err
	}
	var why strings.Builder
	if err := object.Tell(&why, in); err != nil {
		return nil, err
	}
	unread := b.learnSecrets(ctx, about.GetNamespace(), secretsOf(slices.Concat(objects, events)))
	if len(unread) > 0 {
		b.console.Note("warning: the objects name Secrets that cannot be read (%s), so logs, which may hold them, are left out",
			strings.Join(unread, "; "))
		leaveOutLines(objects)
	}
	inObjects, err := b.write(objects)
	if err != nil {
		return nil, err
	}
	inEvents, err := b.write(events)
	if err != nil {
		return nil, err
	}
	files := []file{{"objects.yaml", inObjects}, {"why.txt", b.redactor.clean(why.String())}, {"events.yaml", inEvents}}
	if len(unread) == 0 {
		files = append(files, b.logs(ctx, in.Pods)...)
	}
	return files, nil
}

// read returns the objects of a bundle and their events as fields, without values of variables. Where events cannot be listed
// a text says so in their place.
func (b *bundle) read(ctx context.Context, about verbs.Object, in explain.Input) (objects, events []any, err error) {
	all := []client.Object{about}
	for _, cluster := range in.Clusters {
		all = append(all, cluster)
	}
	for _, pod := range in.Pods {
		all = append(all, pod)
	}
	if objects, err = b.fieldsOf(all); err != nil {
		return nil, nil, err
	}
	list := &corev1.EventList{}
	if err := b.objects.List(ctx, list, client.InNamespace(about.GetNamespace())); apierrors.IsForbidden(err) {
		return objects, []any{"you may not list events"}, nil
	} else if err != nil {
		return nil, nil, kube.Because(fmt.Errorf("list events: %w", err))
	}
	of := map[types.UID]bool{}
	for _, one := range all {
		of[one.GetUID()] = true
	}
	var found []client.Object
	for i := range list.Items {
		if of[list.Items[i].InvolvedObject.UID] {
			found = append(found, &list.Items[i])
		}
	}
	events, err = b.fieldsOf(found)
	return objects, events, err
}

// fieldsOf returns the fields of objects, without values of variables, which it learns.
func (b *bundle) fieldsOf(all []client.Object) ([]any, error) {
	var objects []any
	for _, one := range all {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
		if err != nil {
			return nil, fmt.Errorf("read the fields of %s: %w", one.GetName(), err)
		}
		plain := &unstructured.Unstructured{Object: fields}
		if kinds, _, err := kube.Scheme().ObjectKinds(one); err == nil {
			plain.SetGroupVersionKind(kinds[0])
		}
		b.redactor.learn(plain)
		objects = append(objects, plain.Object)
	}
	return objects, nil
}

// write returns objects as YAML, without what must not stand in it.
func (b *bundle) write(all []any) (string, error) {
	var text strings.Builder
	for _, one := range all {
		written, err := yaml.Marshal(b.redactor.cleanAll(one))
		if err != nil {
			return "", fmt.Errorf("write an object as YAML: %w", err)
		}
		text.WriteString("---\n")
		text.Write(written)
	}
	return text.String(), nil
}

// leaveOutLines takes the last lines of outputs out of objects: they are of logs, too. So is what kubelets say of a container that
// ended, where it left no message of its own.
func leaveOutLines(objects []any) {
	for _, object := range objects {
		walk(object, func(key string, value any) {
			if lines, is := value.([]any); is && key == "lastLines" {
				for i := range lines {
					lines[i] = leftOut
				}
			}
			if ended, is := value.(map[string]any); is && key == "terminated" && ended["message"] != nil {
				ended["message"] = leftOut
			}
		})
	}
}

// logs returns the ends of the logs of pods; what cannot be read says why in its place.
func (b *bundle) logs(ctx context.Context, pods []*corev1.Pod) []file {
	var all []file
	for _, pod := range pods {
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			name := fmt.Sprintf("logs/%s/%s", pod.Name, status.Name)
			of := console.Container{Pod: client.ObjectKeyFromObject(pod), Name: status.Name}
			all = append(all, b.log(ctx, name+".log", of, false))
			if status.RestartCount > 0 {
				all = append(all, b.log(ctx, name+".previous.log", of, true))
			}
		}
	}
	return all
}

func (b *bundle) log(ctx context.Context, name string, of console.Container, isPrevious bool) file {
	text, err := b.console.ReadLog(ctx, of, isPrevious, lastLines)
	if err != nil {
		return file{name, b.redactor.clean(fmt.Sprintf("the log cannot be read: %v\n", err))}
	}
	return file{name, b.redactor.clean(text)}
}
