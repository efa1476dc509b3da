package convert

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
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

// storePart is the control store of a cluster on its way.
type storePart struct {
	*clusterPart
	at   string // the path of its field
	from *rayStore
}

// takeStore converts where the head keeps what it must not forget.
func (p *clusterPart) takeStore() {
	o := p.spec.GCSFaultTolerance
	s := &storePart{clusterPart: p, at: p.path("gcsFaultToleranceOptions"), from: o}
	switch {
	case o == nil && p.marks[keyStore] == "true":
		s.takeFormerStore()
	case o == nil:
	case o.Backend == "" || o.Backend == "redis":
		s.takeRedis()
	case o.Backend == "rocksdb":
		s.takeEmbedded()
	default:
		s.refuse(s.at+".backend", "ray.io knows redis and rocksdb; use one of them")
	}
}

func (s *storePart) takeRedis() {
	if s.from.RedisAddress == "" {
		s.refuse(s.at+".redisAddress", "the Redis has no address; set redisAddress")
	}
	if s.from.Storage != nil {
		s.refuse(s.at+".storage", "a Redis has a volume of its own; leave storage out, or set backend to rocksdb")
	}
	namespace, at := s.from.ExternalNamespace, s.at+".externalStorageNamespace"
	if mark := s.marks[keyNamespace]; namespace == "" && mark != "" {
		namespace, at = mark, "metadata.annotations["+keyNamespace+"]"
	}
	s.made.ControlStore = &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{
		Address: redisAddress(s.from.RedisAddress), Namespace: s.redisNamespace(at, namespace),
		UsernameSecret: s.credential(s.at+".redisUsername", keyUsername, s.from.RedisUsername),
		PasswordSecret: s.credential(s.at+".redisPassword", keyPassword, s.from.RedisPassword),
	}}
}

// redisNamespace keeps clusters of a service apart, which would all have the namespace of the template.
func (s *storePart) redisNamespace(path, namespace string) string {
	if namespace == "" || s.kind != kindService {
		return namespace
	}
	s.change(path, "controlStore.redis.namespace", "each cluster of a service has a namespace of its own in the "+
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
	_, host, _ := strings.Cut(address, "://")
	if after := host[strings.LastIndexByte(host, ']')+1:]; !strings.Contains(after, ":") { // brackets are around IPv6
		address += ":6379"
	}
	return address
}

// credential is the key of a Secret that has a credential.
func (s *storePart) credential(path, key string, from *rayCredential) *v1beta1.SecretKey {
	switch {
	case from == nil || from.Value == "" && from.ValueFrom == nil:
		return nil
	case from.ValueFrom == nil:
		return s.hide(key, from.Value)
	case from.ValueFrom.SecretKeyRef != nil && from.ValueFrom.SecretKeyRef.Name != "":
		return &v1beta1.SecretKey{Name: from.ValueFrom.SecretKeyRef.Name, Key: from.ValueFrom.SecretKeyRef.Key}
	default:
		s.refuse(path+".valueFrom", "a credential comes from a Secret; put it into one, and name that by secretKeyRef")
		return nil
	}
}

// hide moves a credential into a Secret beside the object.
func (c *conversion) hide(key, value string) *v1beta1.SecretKey {
	if c.secret == nil {
		c.secret = map[string]string{}
	}
	c.secret[key] = value
	return &v1beta1.SecretKey{Name: c.secretName(), Key: key}
}

// takeFormerStore reads the variables of the head that named a Redis before there was a field.
func (s *storePart) takeFormerStore() {
	redis := &v1beta1.GivenRedis{Namespace: s.redisNamespace("metadata.annotations["+keyNamespace+"]",
		s.marks[keyNamespace])}
	if containers := s.spec.HeadGroupSpec.Template.Spec.Containers; len(containers) > 0 {
		at := s.path("headGroupSpec.template.spec.containers[0]")
		for _, e := range containers[0].Env {
			from := &rayCredential{Value: e.Value, ValueFrom: e.ValueFrom}
			switch e.Name {
			case variableAddress:
				redis.Address = redisAddress(e.Value)
			case variableUsername:
				redis.UsernameSecret = s.credential(at+".env", keyUsername, from)
			case variablePassword:
				redis.PasswordSecret = s.credential(at+".env", keyPassword, from)
			}
		}
	}
	params := s.spec.HeadGroupSpec.RayStartParams
	if password := params["redis-password"]; redis.PasswordSecret == nil && password != "" &&
		!strings.Contains(password, "$") {
		redis.PasswordSecret = s.hide(keyPassword, password)
	}
	if redis.Address == "" {
		s.refuse("metadata.annotations["+keyStore+"]", "no variable "+variableAddress+" of the head's first container "+
			"names the Redis; set it, or use gcsFaultToleranceOptions")
		return
	}
	s.made.ControlStore = &v1beta1.ControlStore{Redis: redis}
}

// isStoreVariable reports whether a variable of a node says what the control store says.
func (p *clusterPart) isStoreVariable(e corev1.EnvVar) bool {
	ours := slices.Contains([]string{variableAddress, variableUsername, variablePassword,
		"RAY_external_storage_namespace"}, e.Name)
	return ours && p.made.ControlStore != nil
}

func (s *storePart) takeEmbedded() {
	if s.from.RedisAddress != "" || s.from.RedisUsername != nil || s.from.RedisPassword != nil || s.from.ExternalNamespace != "" {
		s.refuse(s.at+".redisAddress", "rocksdb needs no Redis; leave the fields about one out")
	}
	embedded := &v1beta1.EmbeddedStore{}
	s.made.ControlStore = &v1beta1.ControlStore{Embedded: embedded}
	volume := s.from.Storage
	if volume == nil {
		return
	}
	embedded.Storage, embedded.StorageClassName, embedded.AccessModes = volume.Size, volume.StorageClassName, volume.AccessModes
	embedded.ExistingClaim, embedded.Retain = volume.ClaimName, ifTrue(volume.DeletionPolicy == "Retain")
	if volume.ClaimName != "" {
		embedded.Retain = nil // an existing claim is never deleted
		if volume.SubPath != "" {
			s.refuse(s.at+".storage.subPath", "Ray would look for its memory at the root of the volume; move it "+
				"there, and leave subPath out")
		}
	}
	if !slices.Contains([]string{"", "Retain", "DeleteWithCluster"}, volume.DeletionPolicy) {
		s.refuse(s.at+".storage.deletionPolicy", "ray.io knows Retain and DeleteWithCluster; use one of them")
	}
}
