// Package sweep remembers which clusters have keys in a Redis of their users', and removes
// those of clusters that are gone.
//
// In: what is written down about a cluster's keys before its first head starts; the notes
// beside the operator, the clusters in the cache, and whether a Redis could be cleaned.
// Out: a ConfigMap for each such cluster, without a secret, which says in words why its
// keys are still there, and which goes when they do.
//
// It must never hold up the deletion of a cluster, sweep what a living cluster may use or
// write again, drop a note whose keys may be left, or let one Redis delay another.
package sweep

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Note is what is written down about a cluster's keys in a Redis. It holds no secret, and
// can be compared with ==.
type Note struct {
	// UID and Cluster tell whose the keys are.
	UID     types.UID
	Cluster types.NamespacedName
	// Address is redis://HOST:PORT or rediss://HOST:PORT.
	Address string
	// Namespace is Ray's: the keys begin with RAY, the namespace and @.
	Namespace string
	// ServerName is what the certificate of the server must be for, empty where it was not given.
	ServerName string
	// Username, Password, CA, Certificate and Key are in Secrets beside the cluster; those
	// without a name are not given.
	Username, Password, CA, Certificate, Key v1beta1.SecretKey
}

// Of is the note about a cluster with a Redis of its user's.
func Of(cluster *v1beta1.ComputeCluster, redis *v1beta1.GivenRedis) Note {
	note := Note{
		UID: cluster.UID, Cluster: types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name},
		Address: redis.Address, Namespace: redis.Namespace,
		Username: given(redis.UsernameSecret), Password: given(redis.PasswordSecret),
	}
	if note.Namespace == "" {
		note.Namespace = naming.StoreNamespace(cluster.UID)
	}
	if tls := redis.TLS; tls != nil {
		note.ServerName = tls.ServerName
		note.CA, note.Certificate, note.Key = given(tls.CASecret), given(tls.CertificateSecret), given(tls.KeySecret)
	}
	return note
}

func given(ref *v1beta1.SecretKey) v1beta1.SecretKey {
	if ref == nil {
		return v1beta1.SecretKey{}
	}
	return *ref
}

// version is that of the keys in a note's data.
const version = "1"

// The keys of a note's data.
const (
	keyVersion   = "version"
	keyUID       = "uid"
	keyNamespace = "clusterNamespace"
	keyName      = "clusterName"
	keyAddress   = "address"
	keyRay       = "rayNamespace"
	keyServer    = "serverName"
)

// text is a value of a note's data that must be there.
type text struct {
	key   string
	value *string
	// wrong says what is wrong with a value, empty if nothing is.
	wrong func(value string) string
}

func (n *Note) texts() []text {
	return []text{
		{keyUID, (*string)(&n.UID), wrongUID},
		{keyNamespace, &n.Cluster.Namespace, func(value string) string { return strings.Join(validation.IsDNS1123Label(value), "; ") }},
		{keyName, &n.Cluster.Name, wrongName},
		{keyAddress, &n.Address, mismatch(addresses)},
		{keyRay, &n.Namespace, mismatch(rayNamespaces)},
	}
}

// reference is a value of a note's data that names a Secret, as NAME/KEY.
type reference struct {
	// field is that of the cluster's controlStore.redis.
	field string
	to    *v1beta1.SecretKey
}

func (n *Note) references() []reference {
	return []reference{
		{"usernameSecret", &n.Username}, {"passwordSecret", &n.Password},
		{"caSecret", &n.CA}, {"certificateSecret", &n.Certificate}, {"keySecret", &n.Key},
	}
}

// addresses and rayNamespaces are as wide as the fields' rules, or wider. A namespace is
// part of the pattern by which keys are found, so nothing else may stand in it.
var (
	addresses     = regexp.MustCompile(`^rediss?://[-.:\[\]a-zA-Z0-9]{1,290}:[0-9]{1,5}$`)
	rayNamespaces = regexp.MustCompile(`^[-_.:/a-zA-Z0-9]{1,128}$`)
	secretKeys    = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
)

func mismatch(pattern *regexp.Regexp) func(string) string {
	return func(value string) string {
		if pattern.MatchString(value) {
			return ""
		}
		return "it must match " + pattern.String()
	}
}

func wrongUID(value string) string {
	if value == "" {
		return "it must not be empty"
	}
	return strings.Join(validation.IsValidLabelValue(value), "; ")
}

func wrongName(value string) string { return strings.Join(validation.IsDNS1123Subdomain(value), "; ") }

// ConfigMap is the note as it is kept in a namespace.
func (n Note) ConfigMap(namespace string) *corev1.ConfigMap {
	data := map[string]string{keyVersion: version}
	for _, text := range n.texts() {
		data[text.key] = *text.value
	}
	if n.ServerName != "" {
		data[keyServer] = n.ServerName
	}
	for _, ref := range n.references() {
		if ref.to.Name != "" {
			data[ref.field] = ref.to.Name + "/" + ref.to.Key
		}
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: naming.StoreNote(n.UID),
			Labels: map[string]string{v1beta1.LabelNote: string(n.UID), "app.kubernetes.io/managed-by": "heliostat"},
		},
		Data: data,
	}
}

// ParseNote reads a note. It fails if anything of it is not as ConfigMap writes it: what is
// swept by a note that someone changed could be another's.
func ParseNote(kept *corev1.ConfigMap) (Note, error) {
	if have := kept.Data[keyVersion]; have != version {
		return Note{}, fmt.Errorf("read the note %s: its version is %q, and this operator knows %q", kept.Name, have, version)
	}
	var note Note
	for _, text := range note.texts() {
		value, there := kept.Data[text.key]
		if !there {
			return Note{}, fmt.Errorf("read the note %s: it has no %s", kept.Name, text.key)
		}
		if wrong := text.wrong(value); wrong != "" {
			return Note{}, fmt.Errorf("read the note %s: its %s is %q: %s", kept.Name, text.key, value, wrong)
		}
		*text.value = value
	}
	if note.ServerName = kept.Data[keyServer]; note.ServerName != "" && wrongName(note.ServerName) != "" {
		return Note{}, fmt.Errorf("read the note %s: its %s is %q: %s", kept.Name, keyServer, note.ServerName, wrongName(note.ServerName))
	}
	for _, ref := range note.references() {
		value, there := kept.Data[ref.field]
		if !there {
			continue
		}
		name, key, _ := strings.Cut(value, "/")
		if wrongName(name) != "" || !secretKeys.MatchString(key) {
			return Note{}, fmt.Errorf("read the note %s: its %s is %q, and must be the name of a Secret, / and a key", kept.Name, ref.field, value)
		}
		*ref.to = v1beta1.SecretKey{Name: name, Key: key}
	}
	if kept.Name != naming.StoreNote(note.UID) || kept.Labels[v1beta1.LabelNote] != string(note.UID) {
		return Note{}, fmt.Errorf("read the note %s: its uid %s is neither that of its name nor that of its label %s=%s",
			kept.Name, note.UID, v1beta1.LabelNote, kept.Labels[v1beta1.LabelNote])
	}
	return note, nil
}
