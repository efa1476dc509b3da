package sweep

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// whole is a note in which everything is given.
func whole() Note {
	return Note{
		UID: "uid-1", Cluster: types.NamespacedName{Namespace: "team", Name: "demo"},
		Address: "rediss://redis.team.svc:6379", Namespace: "a:b", ServerName: "redis.example.com",
		Username: v1beta1.SecretKey{Name: "redis", Key: "user"}, Password: v1beta1.SecretKey{Name: "redis", Key: "password"},
		CA:          v1beta1.SecretKey{Name: "redis-tls", Key: "ca.crt"},
		Certificate: v1beta1.SecretKey{Name: "redis-tls", Key: "tls.crt"}, Key: v1beta1.SecretKey{Name: "redis-tls", Key: "tls.key"},
	}
}

func TestNotesAreReadable(t *testing.T) {
	kept := whole().ConfigMap("heliostat")
	want := map[string]string{
		"version": "1", "uid": "uid-1", "clusterNamespace": "team", "clusterName": "demo", "address": "rediss://redis.team.svc:6379",
		"rayNamespace": "a:b", "serverName": "redis.example.com", "usernameSecret": "redis/user", "passwordSecret": "redis/password",
		"caSecret": "redis-tls/ca.crt", "certificateSecret": "redis-tls/tls.crt", "keySecret": "redis-tls/tls.key",
	}
	if diff := cmp.Diff(want, kept.Data); diff != "" {
		t.Error(diff)
	}
	if kept.Namespace != "heliostat" || kept.Name != naming.StoreNote("uid-1") || kept.Labels[v1beta1.LabelNote] != "uid-1" || len(kept.OwnerReferences) > 0 {
		t.Errorf("%+v", kept.ObjectMeta)
	}
}

func TestNotesOfClusters(t *testing.T) {
	cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo", UID: "uid-1"}}
	ref := func(name, key string) *v1beta1.SecretKey { return &v1beta1.SecretKey{Name: name, Key: key} }
	all := Of(cluster, &v1beta1.GivenRedis{
		Address: "rediss://redis.team.svc:6379", Namespace: "a:b", UsernameSecret: ref("redis", "user"), PasswordSecret: ref("redis", "password"),
		TLS: &v1beta1.RedisTLS{CASecret: ref("redis-tls", "ca.crt"), CertificateSecret: ref("redis-tls", "tls.crt"), KeySecret: ref("redis-tls", "tls.key"), ServerName: "redis.example.com"},
	})
	if diff := cmp.Diff(whole(), all); diff != "" {
		t.Error(diff)
	}
	least := Of(cluster, &v1beta1.GivenRedis{Address: "redis://[::1]:6379", TLS: &v1beta1.RedisTLS{}})
	want := Note{UID: "uid-1", Cluster: all.Cluster, Address: "redis://[::1]:6379", Namespace: "uid-1"}
	if diff := cmp.Diff(want, least); diff != "" {
		t.Error(diff)
	}
	for _, note := range []Note{all, least} {
		if back, err := ParseNote(note.ConfigMap("heliostat")); err != nil || back != note {
			t.Errorf("%+v became %+v, %v", note, back, err)
		}
	}
}

func TestDamagedNotesAreNotRead(t *testing.T) {
	set := func(key, value string) func(*corev1.ConfigMap) {
		return func(kept *corev1.ConfigMap) { kept.Data[key] = value }
	}
	for what, c := range map[string]struct {
		damage func(*corev1.ConfigMap)
		says   string
	}{
		"no data":                    {func(kept *corev1.ConfigMap) { kept.Data = nil }, `its version is ""`},
		"a later version":            {set("version", "2"), `its version is "2"`},
		"no UID":                     {func(kept *corev1.ConfigMap) { delete(kept.Data, "uid") }, "it has no uid"},
		"an empty UID":               {set("uid", ""), `its uid is ""`},
		"another UID":                {set("uid", "uid-2"), "neither that of its name"},
		"another label":              {func(kept *corev1.ConfigMap) { kept.Labels[v1beta1.LabelNote] = "uid-2" }, "nor that of its label"},
		"another name":               {func(kept *corev1.ConfigMap) { kept.Name = "x" }, "neither that of its name"},
		"no namespace":               {func(kept *corev1.ConfigMap) { delete(kept.Data, "clusterNamespace") }, "it has no clusterNamespace"},
		"an empty namespace":         {set("clusterNamespace", ""), `its clusterNamespace is ""`},
		"a namespace that is a path": {set("clusterNamespace", "a/b"), `its clusterNamespace is "a/b"`},
		"a name that is a path":      {set("clusterName", ".."), `its clusterName is ".."`},
		"no address":                 {set("address", ""), `its address is ""`},
		"another scheme":             {set("address", "http://redis:6379"), "its address is"},
		"a password in the address":  {set("address", "redis://user:secret@redis:6379"), "its address is"},
		"no Ray namespace":           {set("rayNamespace", ""), `its rayNamespace is ""`},
		"a pattern":                  {set("rayNamespace", "*"), `its rayNamespace is "*"`},
		"a server name of others":    {set("serverName", "a b"), `its serverName is "a b"`},
		"a line more":                {set("rayNamespace", "a\n"), `its rayNamespace is "a\n"`},
		"a reference without a key":  {set("passwordSecret", "redis"), `its passwordSecret is "redis"`},
		"a reference without a name": {set("caSecret", "/ca.crt"), `its caSecret is "/ca.crt"`},
		"a reference that is a path": {set("keySecret", "redis/../x"), `its keySecret is "redis/../x"`},
	} {
		t.Run(what, func(t *testing.T) {
			kept := whole().ConfigMap("heliostat")
			c.damage(kept)
			note, err := ParseNote(kept)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), kept.Name) {
				t.Errorf("read as %+v, %v, want %q", note, err, c.says)
			}
		})
	}
	kept := whole().ConfigMap("heliostat")
	maps.Copy(kept.Data, map[string]string{keyState: "failing", keyWhy: "w", keySince: "s", keyCommand: "c", "someones": "own"})
	if note, err := ParseNote(kept); err != nil || note != whole() {
		t.Errorf("with its state it is read as %+v, %v", note, err)
	}
}

// FuzzParseNote: whatever stands in a ConfigMap, what is read of it is what would be written,
// and can be swept by.
func FuzzParseNote(f *testing.F) {
	add := func(note Note) {
		var lines []string
		for key, value := range note.ConfigMap("heliostat").Data {
			lines = append(lines, key+"="+value)
		}
		f.Add(string(note.UID), strings.Join(lines, "\n"))
	}
	add(whole())
	add(Note{UID: "u", Cluster: types.NamespacedName{Namespace: "n", Name: "c"}, Address: "redis://h:1", Namespace: "u"})
	f.Fuzz(func(t *testing.T, uid, text string) {
		kept := whole().ConfigMap("heliostat")
		kept.Name, kept.Labels[v1beta1.LabelNote], kept.Data = naming.StoreNote(types.UID(uid)), uid, map[string]string{}
		for line := range strings.SplitSeq(text, "\n") {
			key, value, _ := strings.Cut(line, "=")
			kept.Data[key] = value
		}
		note, err := ParseNote(kept)
		if err != nil {
			if note != (Note{}) {
				t.Errorf("something is given with an error: %+v", note)
			}
			return
		}
		if note.Namespace == "" || strings.ContainsAny(note.Namespace, "*?[]\\^@ \n") || strings.Contains(note.Address, "@") {
			t.Errorf("%+v can be swept by", note)
		}
		for key, value := range note.ConfigMap("heliostat").Data {
			if kept.Data[key] != value {
				t.Errorf("%s was %q and becomes %q", key, kept.Data[key], value)
			}
		}
	})
}
