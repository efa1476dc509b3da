package bundle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// reference is a Secret that objects name.
type reference struct {
	name string
	// tokenOf is the cluster whose token it should be, where only that says so; "" where an object names the Secret itself.
	tokenOf string
}

// secretsOf returns the Secrets that objects name anywhere in them, with those of the tokens of the clusters that they are or
// name. An object that names a Secret may have let a program read it that is gone by now.
func secretsOf(objects []any) []reference {
	tokenOf := map[string]string{} // by the name of the Secret
	add := func(found reference) {
		if known, is := tokenOf[found.name]; !is || known != "" {
			tokenOf[found.name] = found.tokenOf
		}
	}
	for _, object := range objects {
		if cluster, is := object.(map[string]any); is && cluster["kind"] == "ComputeCluster" {
			add(tokenSecret((&unstructured.Unstructured{Object: cluster}).GetName()))
		}
		walk(object, func(key string, value any) {
			for _, found := range namedBy(key, value) {
				add(found)
			}
		})
	}
	var all []reference
	for _, name := range slices.Sorted(maps.Keys(tokenOf)) {
		all = append(all, reference{name, tokenOf[name]})
	}
	return all
}

func tokenSecret(cluster string) reference { return reference{naming.TokenSecret(cluster), cluster} }

// namedBy returns the Secrets that one field names, by how Kubernetes and our kinds call such fields.
func namedBy(key string, value any) []reference {
	isSecret := strings.Contains(strings.ToLower(key), "secret")
	switch value := value.(type) {
	case string:
		switch {
		case key == "clusterName":
			return []reference{tokenSecret(value)}
		case isSecret && strings.HasSuffix(key, "Name"):
			return []reference{{name: value}}
		}
	case map[string]any:
		name, isNamed := value["name"].(string)
		switch {
		case key == "clusterRef" && isNamed:
			return []reference{tokenSecret(name)}
		case isSecret && isNamed:
			return []reference{{name: name}}
		}
	case []any:
		var names []reference
		for _, one := range value {
			if isSecret {
				names = append(names, namedBy(key, one)...)
			}
		}
		return names
	}
	return nil
}

// learnSecrets reads what must not stand in a bundle, and returns the Secrets that it could not read, each with why. One that is
// gone counts among them: a program may have read and printed it before.
func (b *bundle) learnSecrets(ctx context.Context, namespace string, all []reference) (unread []string) {
	for _, one := range all {
		err := b.learnSecret(ctx, namespace, one.name)
		if apierrors.IsNotFound(err) && one.tokenOf != "" {
			err = b.learnToken(ctx, namespace, one.tokenOf, err)
		}
		switch {
		case apierrors.IsNotFound(err):
			unread = append(unread, one.name+" is gone")
		case apierrors.IsForbidden(err):
			unread = append(unread, "you may not read "+one.name)
		case err != nil:
			unread = append(unread, fmt.Sprintf("%s: %v", one.name, err))
		}
	}
	return unread
}

func (b *bundle) learnSecret(ctx context.Context, namespace, name string) error {
	secret := &corev1.Secret{}
	if err := b.objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return err
	}
	for _, value := range secret.Data {
		b.redactor.addSecret(string(value))
	}
	return nil
}

// learnToken learns the token of a cluster that has no Secret of the operator's, or returns why it cannot. A cluster that is gone or
// that asks for no token has none to tell: the token opened that cluster alone.
func (b *bundle) learnToken(ctx context.Context, namespace, name string, missing error) error {
	cluster := &v1beta1.ComputeCluster{}
	err := b.objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cluster)
	of := cluster.Spec.Authentication
	switch {
	case apierrors.IsNotFound(err), err == nil && of != nil && of.Mode == v1beta1.AuthenticationDisabled:
		return nil
	case err == nil && of != nil && of.SecretName != "":
		return b.learnSecret(ctx, namespace, of.SecretName)
	case err == nil:
		return missing
	}
	return err
}
