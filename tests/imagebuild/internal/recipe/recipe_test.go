package recipe

import (
	"debug/elf"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/list"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/rootfs"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/store"
)

// repository is the root of this repository, whose lists are what is tested.
const repository = "../../../.."

func silent(string, string) {}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestRayIsWhatAUserExpects(t *testing.T) {
	ray := must[Recipe](t)(Ray(repository, silent))
	if ray.Ref != "docker.io/rayproject/ray:2.60.0" {
		t.Errorf("name = %q", ray.Ref)
	}
	if ray.Config.User != "1000" || ray.Config.WorkingDir != "/home/ray" || len(ray.Config.Entrypoint) != 0 {
		t.Errorf("configuration = %+v, want user 1000 in /home/ray and no entrypoint", ray.Config)
	}
	if !slices.Contains(ray.Config.Env, "HOME=/home/ray") || !strings.Contains(strings.Join(ray.Config.Env, " "), "/usr/local/bin") {
		t.Errorf("environment = %q, want HOME and a PATH with /usr/local/bin, where ray is", ray.Config.Env)
	}
}

func TestRedisIsWhatAUserExpects(t *testing.T) {
	redis := must[Recipe](t)(Redis(repository, silent))
	if redis.Ref != "docker.io/library/redis:7" || redis.Config.User != "999" ||
		!slices.Equal(redis.Config.Entrypoint, []string{"redis-server"}) {
		t.Errorf("recipe = %q %+v", redis.Ref, redis.Config)
	}
}

func TestFrameworks_AreRaysOnEachRelease(t *testing.T) {
	ray := must[Recipe](t)(Ray(repository, silent))
	releases := map[string]rootfs.Release{
		"frameworks": rootfs.Trixie, "frameworks-bookworm": rootfs.Bookworm, "frameworks-tensorflow": rootfs.Bookworm, "frameworks-spark": rootfs.Bookworm,
	}
	for name, release := range releases {
		image, err := Frameworks(repository, name, release, silent)
		if name == "frameworks-spark" {
			image, err = Spark(repository, name, silent)
		}
		if err != nil {
			t.Fatal(err)
		}
		if image.Ref != "localhost/heliostat/"+name+":dev" || image.Config.User != ray.Config.User || image.Release != release {
			t.Errorf("recipe of %s = %q %+v %+v", name, image.Ref, image.Config, image.Release)
		}
		version := must[string](t)(list.Pinned(image.Inputs["requirements.txt"], "ray"))
		if !strings.HasSuffix(ray.Ref, ":"+version) {
			t.Errorf("%s has Ray %s, and the other image is %s", name, version, ray.Ref)
		}
		if slices.Contains(list.Entries(image.Inputs["packages.txt"]), "openssh-server") {
			t.Errorf("%s has an sshd", name)
		}
	}
}

// Dockerfiles and recipes are two ways to one image: what is in both must agree.
func TestDockerfilesAgree(t *testing.T) {
	ray, redis := must[Recipe](t)(Ray(repository, silent)), must[Recipe](t)(Redis(repository, silent))
	for image, config := range map[string]v1.Config{"ray": ray.Config, "redis": redis.Config, "operator": operatorConfig} {
		text := string(must[[]byte](t)(os.ReadFile(filepath.Join(repository, "images", image, "Dockerfile"))))
		lines := strings.Split(text, "\n")
		if !slices.Contains(lines, "USER "+config.User) {
			t.Errorf("Dockerfile of %s does not run as %s", image, config.User)
		}
		if config.WorkingDir != "" && !slices.Contains(lines, "WORKDIR "+config.WorkingDir) {
			t.Errorf("Dockerfile of %s does not work in %s", image, config.WorkingDir)
		}
		if len(config.Entrypoint) > 0 && !slices.Contains(lines, `ENTRYPOINT ["`+strings.Join(config.Entrypoint, `", "`)+`"]`) {
			t.Errorf("Dockerfile of %s does not start %q", image, config.Entrypoint)
		}
	}
	for _, image := range []Recipe{ray, redis} {
		text := string(must[[]byte](t)(os.ReadFile(filepath.Join(repository, "images", image.Name, "Dockerfile"))))
		for list := range image.Inputs {
			if !strings.Contains(text, list) {
				t.Errorf("Dockerfile of %s does not read %s", image.Name, list)
			}
		}
	}
	text := string(must[[]byte](t)(os.ReadFile(filepath.Join(repository, "images", "operator", "Dockerfile"))))
	for file, source := range operatorPrograms {
		if !strings.Contains(text, "-o /out/"+file+" "+source) {
			t.Errorf("Dockerfile of operator does not build %s as %s", source, file)
		}
	}
}

func TestKeyFollowsEverything(t *testing.T) {
	base := Recipe{Name: "ray", Ref: "r", Config: v1.Config{User: "1"}, Inputs: map[string]string{"packages.txt": "a"}}
	changed := map[string]func(*Recipe){
		"name":      func(r *Recipe) { r.Ref = "s" },
		"user":      func(r *Recipe) { r.Config.User = "2" },
		"list":      func(r *Recipe) { r.Inputs["packages.txt"] = "b" },
		"more":      func(r *Recipe) { r.Inputs["setup.sh"] = "" },
		"release":   func(r *Recipe) { r.Release = rootfs.Trixie },
		"list name": func(r *Recipe) { r.Inputs = map[string]string{"other.txt": "a"} },
	}
	seen := map[string]string{must[store.Entry](t)(base.Entry()).Key: "nothing"}
	for what, change := range changed {
		other := base
		other.Inputs = maps.Clone(base.Inputs)
		change(&other)
		key := must[store.Entry](t)(other.Entry()).Key
		if same, found := seen[key]; found {
			t.Errorf("a change of %s gives the key of a change of %s", what, same)
		}
		seen[key] = what
	}
	if again := must[store.Entry](t)(base.Entry()).Key; seen[again] != "nothing" {
		t.Errorf("the same recipe has another key the second time")
	}
}

// module writes a repository with one program into a new directory.
func module(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range map[string]string{
		"go.mod":         "module example.com/dummy\n\ngo 1.26\n",
		"cmd/op/main.go": "package main\n\nfunc main() { " + body + " }\n",
	} {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOperatorIsOneStaticProgram(t *testing.T) {
	binaries := t.TempDir()
	built := must[Recipe](t)(operator(t.Context(), module(t, `println("a")`), binaries, Programs{"operator": "./cmd/op"}))
	entry := must[store.Entry](t)(built.Entry())
	path := must[string](t)((store.Store{Dir: t.TempDir()}).Ensure(t.Context(), entry, built.Build))

	tag := must[name.Tag](t)(name.NewTag("localhost/heliostat/operator:dev"))
	image := must[v1.Image](t)(tarball.ImageFromPath(path, &tag))
	config := must[*v1.ConfigFile](t)(image.ConfigFile()).Config
	if config.User != "65532:65532" || !slices.Equal(config.Entrypoint, []string{"/operator"}) {
		t.Errorf("configuration = %+v", config)
	}
	program := must[*elf.File](t)(elf.Open(filepath.Join(binaries, "operator")))
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the program needs a loader, which the image does not have")
		}
	}
}

func TestOperatorKeyFollowsTheProgram(t *testing.T) {
	key := func(repository string) string {
		built := must[Recipe](t)(operator(t.Context(), repository, t.TempDir(), Programs{"operator": "./cmd/op"}))
		return must[store.Entry](t)(built.Entry()).Key
	}
	one := key(module(t, `println("a")`))
	if same := key(module(t, `println("a")`)); same != one {
		t.Error("the same program in another directory has another key")
	}
	if other := key(module(t, `println("b")`)); other == one {
		t.Error("another program has the same key")
	}
}

func TestOperatorSaysWhatDoesNotCompile(t *testing.T) {
	_, err := operator(t.Context(), module(t, "undefined()"), t.TempDir(), Programs{"operator": "./cmd/op"})
	if err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Errorf("error = %v, want the compiler's", err)
	}
}
