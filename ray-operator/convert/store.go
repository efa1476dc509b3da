package convert

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// Variables by which KubeRay's users name a Redis without gcsFaultToleranceOptions.
const (
	variableAddress  = "RAY_REDIS_ADDRESS"
	variableUsername = "REDIS_USERNAME"
	variablePassword = "REDIS_PASSWORD"
)

// Keys of the Secret that takes credentials out of a spec.
const (
	keyUsername = "username"
	keyPassword = "password"
)

func (c *conversion) secretName() string { return c.meta.Name + "-redis" }

// takeStore converts where the head keeps what it must not forget.
func (p *clusterPart) takeStore() {
	o := p.spec.GCSFaultTolerance
	switch {
	case o == nil && p.marks[keyStore] == "true":
		p.takeFormerStore()
	case o == nil:
	case o.Backend == "" || o.Backend == "redis":
		p.takeRedis(o)
	case o.Backend == "rocksdb":
		p.takeEmbedded(o)
	default:
		p.refuse(p.path("gcsFaultToleranceOptions.backend"), "ray.io knows redis and rocksdb; use one of them")
	}
}

func (p *clusterPart) takeRedis(o *rayStore) {
	const field = "gcsFaultToleranceOptions"
	if o.RedisAddress == "" {
		p.refuse(p.path(field+".redisAddress"), "the Redis has no address; set redisAddress")
	}
	if o.Storage != nil {
		p.refuse(p.path(field+".storage"), "a Redis has a volume of its own; leave storage out, or set backend to rocksdb")
	}
	namespace, at := o.ExternalNamespace, p.path(field+".externalStorageNamespace")
	if mark := p.marks[keyNamespace]; namespace == "" && mark != "" {
		namespace, at = mark, "metadata.annotations["+keyNamespace+"]"
	}
	p.made.ControlStore = &v1alpha1.ControlStore{Redis: &v1alpha1.GivenRedis{
		Address: redisAddress(o.RedisAddress), Namespace: p.redisNamespace(at, namespace),
		UsernameSecret: p.credential(p.path(field+".redisUsername"), keyUsername, o.RedisUsername),
		PasswordSecret: p.credential(p.path(field+".redisPassword"), keyPassword, o.RedisPassword),
	}}
}

// redisNamespace keeps clusters of a service apart, which would all have the namespace of the template.
func (p *clusterPart) redisNamespace(path, namespace string) string {
	if namespace == "" || p.kind != kindService {
		return namespace
	}
	p.change(path, "controlStore.redis.namespace", "each cluster of a service has a namespace of its own in the "+
		"Redis, so that an upgrade's two share no memory")
	return ""
}

// redisAddress is an address with its scheme and port.
func redisAddress(address string) string {
	if address == "" {
		return ""
	}
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	address = strings.TrimSuffix(address, "/")
	if _, host, _ := strings.Cut(address, "://"); !strings.Contains(host, ":") {
		address += ":6379"
	}
	return address
}

// credential is the key of a Secret that has a credential.
func (p *clusterPart) credential(path, key string, from *rayCredential) *v1alpha1.SecretKey {
	switch {
	case from == nil || from.Value == "" && from.ValueFrom == nil:
		return nil
	case from.ValueFrom == nil:
		return p.hide(key, from.Value)
	case from.ValueFrom.SecretKeyRef != nil && from.ValueFrom.SecretKeyRef.Name != "":
		return &v1alpha1.SecretKey{Name: from.ValueFrom.SecretKeyRef.Name, Key: from.ValueFrom.SecretKeyRef.Key}
	default:
		p.refuse(path+".valueFrom", "a credential comes from a Secret; put it into one, and name that by secretKeyRef")
		return nil
	}
}

// hide moves a credential into a Secret beside the object.
func (c *conversion) hide(key, value string) *v1alpha1.SecretKey {
	if c.secret == nil {
		c.secret = map[string]string{}
	}
	c.secret[key] = value
	return &v1alpha1.SecretKey{Name: c.secretName(), Key: key}
}

// takeFormerStore reads the variables of the head that named a Redis before there was a field.
func (p *clusterPart) takeFormerStore() {
	redis := &v1alpha1.GivenRedis{Namespace: p.redisNamespace("metadata.annotations["+keyNamespace+"]",
		p.marks[keyNamespace])}
	if containers := p.spec.HeadGroupSpec.Template.Spec.Containers; len(containers) > 0 {
		at := p.path("headGroupSpec.template.spec.containers[0]")
		for _, e := range containers[0].Env {
			from := &rayCredential{Value: e.Value, ValueFrom: e.ValueFrom}
			switch e.Name {
			case variableAddress:
				redis.Address = redisAddress(e.Value)
			case variableUsername:
				redis.UsernameSecret = p.credential(at+".env", keyUsername, from)
			case variablePassword:
				redis.PasswordSecret = p.credential(at+".env", keyPassword, from)
			}
		}
	}
	params := p.spec.HeadGroupSpec.RayStartParams
	if password := params["redis-password"]; redis.PasswordSecret == nil && password != "" &&
		!strings.Contains(password, "$") {
		redis.PasswordSecret = p.hide(keyPassword, password)
	}
	if redis.Address == "" {
		p.refuse("metadata.annotations["+keyStore+"]", "no variable "+variableAddress+" of the head's first container "+
			"names the Redis; set it, or use gcsFaultToleranceOptions")
		return
	}
	p.made.ControlStore = &v1alpha1.ControlStore{Redis: redis}
}

// isStoreVariable reports whether a variable of a node says what the control store says.
func (p *clusterPart) isStoreVariable(e corev1.EnvVar) bool {
	ours := slices.Contains([]string{variableAddress, variableUsername, variablePassword,
		"RAY_external_storage_namespace"}, e.Name)
	return ours && p.made.ControlStore != nil
}

func (p *clusterPart) takeEmbedded(o *rayStore) {
	const field = "gcsFaultToleranceOptions"
	if o.RedisAddress != "" || o.RedisUsername != nil || o.RedisPassword != nil || o.ExternalNamespace != "" {
		p.refuse(p.path(field+".redisAddress"), "rocksdb needs no Redis; leave the fields about one out")
	}
	embedded := &v1alpha1.EmbeddedStore{}
	p.made.ControlStore = &v1alpha1.ControlStore{Embedded: embedded}
	s := o.Storage
	if s == nil {
		return
	}
	embedded.Storage, embedded.StorageClassName, embedded.AccessModes = s.Size, s.StorageClassName, s.AccessModes
	embedded.ExistingClaim, embedded.Retain = s.ClaimName, s.DeletionPolicy == "Retain"
	if s.ClaimName != "" {
		embedded.Retain = false // an existing claim is never deleted
		if s.SubPath != "" {
			p.refuse(p.path(field+".storage.subPath"), "Ray would look for its memory at the root of the volume; move it "+
				"there, and leave subPath out")
		}
	}
	if !slices.Contains([]string{"", "Retain", "DeleteWithCluster"}, s.DeletionPolicy) {
		p.refuse(p.path(field+".storage.deletionPolicy"), "ray.io knows Retain and DeleteWithCluster; use one of them")
	}
}
