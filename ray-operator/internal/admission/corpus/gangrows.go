package corpus

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

type (
	gangSpec = v1beta1.Gang
	role     = v1beta1.GangRole
)

// gangOf makes a job a gang of some roles.
func gangOf(framework v1beta1.GangFramework, roles ...role) jobEdit {
	return jobSpec(func(s *jobs) { s.Gang = &gangSpec{Framework: framework, Roles: roles} })
}

// roleOf returns a role with one replica that takes one CPU, with further edits.
func roleOf(name string, changes ...func(*role)) role {
	r := role{Name: name, Resources: quantities("CPU", "1")}
	for _, change := range changes {
		change(&r)
	}
	return r
}

// inGang edits a gang of PyTorch with one role, and inRole that role.
func inGang(change func(*gangSpec)) jobEdit {
	return both(gangOf(v1beta1.FrameworkPyTorch, roleOf("worker")), func(j *job) { change(j.Spec.Gang) })
}

func inRole(changes ...func(*role)) jobEdit {
	return gangOf(v1beta1.FrameworkPyTorch, roleOf("worker", changes...))
}

func times(n int32) func(*role)        { return func(r *role) { r.Replicas = n } }
func atLeast(n int32) func(*role)      { return func(r *role) { r.MinReplicas = n } }
func eachWith(n int32) func(*role)     { return func(r *role) { r.ProcessesPerReplica = n } }
func perReplica(r *role)               { r.Start = v1beta1.StartPerReplica }
func ignored(r *role)                  { r.SuccessPolicy = v1beta1.SuccessIgnore }
func runsLine(line string) func(*role) { return func(r *role) { r.Entrypoint = line } }

func runs(words ...string) func(*role) { return func(r *role) { r.Command = words } }

func reserves(pairs ...string) func(*role) {
	return func(r *role) { r.Resources = quantities(pairs...) }
}

func withEnv(variables ...corev1.EnvVar) func(*role) { return func(r *role) { r.Env = variables } }

func variable(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

func liesOn(key, value string) func(*role) {
	return func(r *role) { r.LabelSelector = map[string]string{key: value} }
}

// ofRoles makes a gang whose roles alone have programs.
func ofRoles(edits ...jobEdit) jobEdit {
	return both(both(edits...), jobSpec(func(s *jobs) { s.Entrypoint, s.Command = "", nil }))
}

// spark makes a job a gang of Spark, and submits one with a command.
func spark(roles ...role) jobEdit { return gangOf(v1beta1.FrameworkSpark, roles...) }

func submits(words ...string) jobEdit {
	return both(command(words...), spark(roleOf("driver"), roleOf("executor", times(2))))
}

// gangRows are about gangs: their form, and what frameworks make of it.
var gangRows = []jobRow{
	{Name: "a gang", Edit: inRole(times(4), atLeast(2), reserves("CPU", "4", "GPU", "1", "memory", "1Gi"), liesOn("ray.io/node-group", "gpu"))},
	{Name: "a gang of eight roles", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf("a"), roleOf("b"), roleOf("c"), roleOf("d"), roleOf("e"), roleOf("f"), roleOf("g"), roleOf("0-h"))},
	{Name: "a gang of nine roles", Rule: "long-list", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf("a"), roleOf("b"), roleOf("c"), roleOf("d"), roleOf("e"), roleOf("f"), roleOf("g"), roleOf("h"), roleOf("i"))},
	{Name: "a gang of no role", Rule: "required", Edit: gangOf(v1beta1.FrameworkGeneric)},
	{Name: "a gang of no framework", Rule: "required", Edit: gangOf("", roleOf("worker"))},
	{Name: "a gang of another framework", Rule: "unknown-word", Edit: gangOf("Horovod", roleOf("worker"))},
	{Name: "a role twice", Rule: "duplicate", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf("a"), roleOf("a"))},
	{Name: "a role without a name", Rule: "required", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf(""))},
	{Name: "a role in capitals", Rule: "role-name", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf("PS"))},
	{Name: "a role with a dot", Rule: "role-name", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf("a.b"))},
	{Name: "a role's name too long", Rule: "long-text", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf(long(64)))},
	{Name: "a gang that restarts too often", Rule: "out-of-bounds", Edit: inGang(func(g *gangSpec) { g.MaxRestarts = 1001 })},
	{Name: "a gang with no grace", Edit: inGang(func(g *gangSpec) { g.GracePeriodSeconds = ptr(int32(0)) })},
	{Name: "a gang with too much grace", Rule: "out-of-bounds", Edit: inGang(func(g *gangSpec) { g.GracePeriodSeconds = ptr(int32(3601)) })},
	{Name: "a gang placed somehow", Rule: "unknown-word", Edit: inGang(func(g *gangSpec) { g.Placement = "Anywhere" })},

	{Name: "PyTorch with a parameter server", Rule: "gang-role", Edit: gangOf(v1beta1.FrameworkPyTorch, roleOf("ps"))},
	{Name: "PyTorch with a chief", Rule: "gang-role", Edit: gangOf(v1beta1.FrameworkPyTorch, roleOf("chief"), roleOf("worker"))},
	{Name: "TensorFlow with all its roles", Edit: gangOf(v1beta1.FrameworkTensorFlow, roleOf("chief"), roleOf("worker", times(2)), roleOf("ps"), roleOf("evaluator"))},
	{Name: "TensorFlow with a launcher", Rule: "gang-role", Edit: gangOf(v1beta1.FrameworkTensorFlow, roleOf("launcher"))},
	{Name: "TensorFlow with two chiefs", Rule: "gang-first", Edit: gangOf(v1beta1.FrameworkTensorFlow, roleOf("chief"), roleOf("master"), roleOf("worker"))},
	{Name: "TensorFlow with a chief twice", Rule: "gang-first-one", Edit: gangOf(v1beta1.FrameworkTensorFlow, roleOf("chief", times(2)))},
	{Name: "TensorFlow with a chief of two processes", Rule: "gang-first-one", Edit: gangOf(v1beta1.FrameworkTensorFlow, roleOf("chief", eachWith(2)))},
	{Name: "PyTorch with a master of two processes", Edit: gangOf(v1beta1.FrameworkPyTorch, roleOf("master", eachWith(2)), roleOf("worker", eachWith(2)))},
	{Name: "PyTorch with two masters", Rule: "gang-first-one", Edit: gangOf(v1beta1.FrameworkPyTorch, roleOf("master", times(2)))},
	{Name: "JAX with workers", Edit: gangOf(v1beta1.FrameworkJAX, roleOf("worker", times(2)))},
	{Name: "JAX with a master", Rule: "gang-role", Edit: gangOf(v1beta1.FrameworkJAX, roleOf("master"), roleOf("worker"))},
	{Name: "XGBoost with a master", Edit: gangOf(v1beta1.FrameworkXGBoost, roleOf("worker", times(2)), roleOf("master"))},
	{Name: "XGBoost with an evaluator", Rule: "gang-role", Edit: gangOf(v1beta1.FrameworkXGBoost, roleOf("evaluator"))},
	{Name: "MPI without a launcher", Edit: gangOf(v1beta1.FrameworkMPI, roleOf("worker", times(2), eachWith(8)))},
	{Name: "MPI with a launcher's command", Edit: ofRoles(gangOf(v1beta1.FrameworkMPI, roleOf("launcher", runs("mpirun", "a")), roleOf("worker", times(2))))},
	{Name: "MPI with two launchers", Rule: "gang-first-one", Edit: gangOf(v1beta1.FrameworkMPI, roleOf("launcher", times(2)), roleOf("worker"))},
	{Name: "MPI without workers", Rule: "gang-mpi-worker", Edit: gangOf(v1beta1.FrameworkMPI, roleOf("launcher"))},
	{Name: "MPI with a worker's command", Rule: "gang-mpi-command", Edit: gangOf(v1beta1.FrameworkMPI, roleOf("launcher"), roleOf("worker", runs("a")))},
	{Name: "MPI with a success policy", Rule: "gang-mpi-success", Edit: gangOf(v1beta1.FrameworkMPI, roleOf("worker", ignored))},
	{Name: "Spark", Edit: spark(roleOf("driver"), roleOf("executor", times(3), atLeast(1)))},
	{Name: "Spark with a driver's command", Edit: ofRoles(spark(roleOf("driver", runs("spark-submit", "a.py")), roleOf("executor", withEnv(variable("A", "1")))))},
	{Name: "Spark with a worker", Rule: "gang-role", Edit: spark(roleOf("driver"), roleOf("executor"), roleOf("worker"))},
	{Name: "Spark without a driver", Rule: "gang-spark-roles", Edit: spark(roleOf("executor"))},
	{Name: "Spark without executors", Rule: "gang-spark-roles", Edit: spark(roleOf("driver"))},
	{Name: "Spark with two drivers", Rule: "gang-first-one", Edit: spark(roleOf("driver", times(2)), roleOf("executor"))},
	{Name: "Spark with an executor's command", Rule: "gang-spark-executor", Edit: spark(roleOf("driver"), roleOf("executor", runs("a")))},
	{Name: "Spark with an executor's line", Rule: "gang-spark-executor", Edit: spark(roleOf("driver"), roleOf("executor", runsLine("a")))},
	{Name: "Spark with two processes an executor", Rule: "gang-spark-executor", Edit: spark(roleOf("driver"), roleOf("executor", eachWith(2)))},
	{Name: "Spark with a success policy", Rule: "gang-spark-success", Edit: spark(roleOf("driver"), roleOf("executor", ignored))},
	{Name: "Spark by its own programs", Edit: submits("spark-submit", "--conf", "spark.sql.shuffle.partitions=8", "--executor-memory", "2g", "a.py", "--master", "x")},
	{Name: "Spark without dynamic allocation", Edit: submits("spark-submit", "--conf", "spark.dynamicAllocation.enabled=false", "a.py")},
	{Name: "Spark with a master", Rule: "gang-spark-setting", Edit: submits("/opt/spark/bin/spark-submit", "--verbose", "--master", "local[2]", "a.py")},
	{Name: "an application of Spark with a master of its own", Edit: submits("spark-submit", "--verbose", "--executor-memory=2g", "a.py", "--master", "x")},
	{Name: "Spark with a master after options of Java", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--driver-java-options", "-XX:+UseG1GC", "--master", "x", "a.py")},
	{Name: "Spark with a driver elsewhere as a setting", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--conf", "spark.submit.deployMode=cluster", "a.py")},
	{Name: "Spark with a page that ends jobs", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--conf", "spark.ui.killEnabled=true", "a.py")},
	{Name: "Spark with a master after another option", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--class", "org.example.Main", "--master=yarn", "a.jar")},
	{Name: "Spark with a master as a setting", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--conf", "spark.master=local", "a.py")},
	{Name: "Spark with a driver elsewhere", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--deploy-mode", "cluster", "a.py")},
	{Name: "Spark on Kubernetes", Rule: "gang-spark-setting", Edit: submits("spark-submit", "-c", "spark.kubernetes.namespace=a", "a.py")},
	{Name: "Spark with executors that scale", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--conf=spark.dynamicAllocation.enabled=true", "a.py")},
	{Name: "Spark with cores of its own", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--executor-cores", "4", "a.py")},
	{Name: "Spark with settings of its own", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--properties-file", "a.conf", "a.py")},
	{Name: "Spark without a secret", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--conf", "spark.authenticate=false", "a.py")},
	{Name: "a line of Spark with a master", Rule: "gang-spark-setting", Edit: both(line("cd /a && exec spark-submit --conf 'spark.master=local' a.py"), spark(roleOf("driver"), roleOf("executor")))},
	{Name: "lines of Spark with a master", Rule: "gang-spark-setting", Edit: both(line("spark-submit \\\n\t--name 'a b' \\\n\t--master local[*] \\\n\ta.py"), spark(roleOf("driver"), roleOf("executor")))},
	{Name: "Spark with a master after a name of two words", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--name", "a b", "--master", "x", "a.py")},
	{Name: "a shell that runs Spark with a master", Rule: "gang-spark-setting", Edit: submits("sh", "-c", "spark-submit --master x a.py")},
	{Name: "an application of Spark that names one of Spark's programs", Edit: submits("spark-submit", "a.py", "--engine", "my-pyspark", "--master", "x")},
	{Name: "a driver of Spark with a master", Rule: "gang-spark-setting", Edit: ofRoles(spark(roleOf("driver", runs("spark-submit", "--master", "x", "a.py")), roleOf("executor")))},
	{Name: "pyspark with a master", Rule: "gang-spark-setting", Edit: both(env(variable("PYSPARK_SUBMIT_ARGS", "--master local[2] pyspark-shell")), submits("python", "a.py"))},
	{Name: "pyspark with a master in a runtime environment", Rule: "gang-spark-setting", Edit: both(runtimeEnv(`{"env_vars":{"PYSPARK_SUBMIT_ARGS":"--master local[2] pyspark-shell"}}`), submits("python", "a.py"))},
	{Name: "pyspark with a size in a runtime environment", Edit: both(runtimeEnv(`{"env_vars":{"PYSPARK_SUBMIT_ARGS":"--executor-memory 2g pyspark-shell"}}`), submits("python", "a.py"))},
	{Name: "Spark with a port for blocks", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--conf", "spark.blockManager.port=7000", "a.py")},
	{Name: "Spark with an address to bind", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--conf", "spark.driver.bindAddress=0.0.0.0", "a.py")},
	{Name: "Spark that looks for ports", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--conf", "spark.port.maxRetries=16", "a.py")},
	{Name: "Spark with a port for blocks of the driver", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--conf", "spark.driver.blockManager.port=7000", "a.py")},
	{Name: "Spark that takes applications by REST", Rule: "gang-spark-setting", Edit: submits("spark-submit", "--conf", "spark.master.rest.enabled=true", "a.py")},
	{Name: "Spark with a setting that begins as one of the gang", Edit: submits("spark-submit", "--conf", "spark.driver.portal=a", "--conf", "spark.ui.porter=b", "a.py")},
	{Name: "settings of Spark with another framework", Edit: both(command("spark-submit", "--master", "x", "a.py"), inRole())},
	{Name: "a gang whose success depends on nothing", Rule: "gang-success", Edit: inRole(ignored)},
	{Name: "a gang of parameter servers", Rule: "gang-success", Edit: gangOf(v1beta1.FrameworkTensorFlow, roleOf("ps"))},
	{Name: "a gang whose chief does not count", Rule: "gang-success", Edit: gangOf(v1beta1.FrameworkTensorFlow, roleOf("chief", ignored), roleOf("worker"))},
	{Name: "a gang whose workers count instead of the chief", Edit: gangOf(v1beta1.FrameworkTensorFlow, roleOf("chief", ignored), roleOf("worker", func(r *role) { r.SuccessPolicy = v1beta1.SuccessAll }))},

	{Name: "a program that starts the processes of a replica", Edit: both(command("/opt/bin/torchrun", "train.py"), inRole(eachWith(2), perReplica))},
	{Name: "torchrun for one process", Edit: both(command("torchrun", "train.py"), inRole())},
	{Name: "torchrun in each process", Rule: "gang-torchrun", Edit: both(command("/opt/bin/torchrun", "train.py"), inRole(eachWith(2)))},
	{Name: "torchrun in each process of a role", Rule: "gang-torchrun", Edit: inRole(eachWith(2), runs("torchrun"))},
	{Name: "a line with torchrun in each process", Rule: "gang-torchrun", Edit: both(line("  torchrun train.py"), inRole(eachWith(2)))},
	{Name: "a line that has torchrun in it", Edit: both(line("echo torchrun train.py"), inRole(eachWith(2)))},
	{Name: "one start a replica for JAX", Rule: "gang-start", Edit: gangOf(v1beta1.FrameworkJAX, roleOf("worker", perReplica))},
	{Name: "fewer replicas of two roles", Rule: "gang-min-one", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf("a", times(2), atLeast(1)), roleOf("b", times(2), atLeast(1)))},
	{Name: "fewer replicas than more", Rule: "role-min", Edit: inRole(times(2), atLeast(3))},
	{Name: "fewer replicas on one node", Rule: "gang-min-strict", Edit: both(inRole(times(2), atLeast(1)), func(j *job) { j.Spec.Gang.Placement = v1beta1.PlacementStrictPack })},
	{Name: "all replicas on one node", Edit: both(inRole(times(2)), func(j *job) { j.Spec.Gang.Placement = v1beta1.PlacementStrictPack })},
	{Name: "1024 replicas", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf("a", times(1000)), roleOf("b", times(24)))},
	{Name: "1025 replicas", Rule: "gang-replicas", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf("a", times(1000)), roleOf("b", times(25)))},
	{Name: "4096 processes", Edit: inRole(times(512), eachWith(8))},
	{Name: "4097 processes", Rule: "gang-processes", Edit: gangOf(v1beta1.FrameworkGeneric, roleOf("a", times(512), eachWith(8)), roleOf("b"))},

	{Name: "roles with programs of their own", Edit: ofRoles(gangOf(v1beta1.FrameworkGeneric, roleOf("a", runs("b")), roleOf("b", runsLine("c"))))},
	{Name: "a role without a program", Rule: "gang-what", Edit: ofRoles(gangOf(v1beta1.FrameworkGeneric, roleOf("a", runs("b")), roleOf("b")))},
	{Name: "a gang with two programs", Rule: "gang-what", Edit: both(inRole(), jobSpec(func(s *jobs) { s.Entrypoint, s.Command = "a", []string{"b"} }))},
	{Name: "a role with two programs", Rule: "role-what", Edit: inRole(runs("a"), runsLine("b"))},
	{Name: "a role's line of blanks", Rule: "entrypoint-blank", Edit: inRole(runsLine(" "))},
	{Name: "a role's command without a program", Rule: "command-program", Edit: inRole(runs("", "a"))},
	{Name: "a role's command too long", Rule: "run-size", Edit: inRole(runs(long(10000), long(22763)))},
	{Name: "a role's command with a NUL", Rule: "run-nul", Edit: inRole(runs("a\x00"))},
	{Name: "roles with 256 KiB", Edit: gangOf(v1beta1.FrameworkGeneric, large(8, 32765)...)},
	{Name: "roles with more than 256 KiB", Rule: "gang-size", Edit: gangOf(v1beta1.FrameworkGeneric, append(large(7, 32765), roleOf("last", runs(long(32765)), withEnv(variable("A", ""))))...)},
}

// large are roles with a command of some bytes.
func large(n, bytes int) []role {
	var all []role
	for i := range n {
		all = append(all, roleOf(strings.Repeat("a", i+1), runs(long(bytes))))
	}
	return all
}

// referring are roles with as much text and as many references as there may be, each to the last role.
func referring(n int) []role {
	all := large(n, 32765)
	for i := range all {
		text := strings.Repeat("$("+all[n-1].Name+".0.host)", mostReferences/n)
		all[i].Command = []string{text + long(32765-len(text))}
	}
	return all
}

// mostReferences is how many references a gang may have.
const mostReferences = 1000

// gangPlaceRows are about what places of a gang take, where they lie, and what processes find.
var gangPlaceRows = []jobRow{
	{Name: "fractions for a role", Edit: inRole(reserves("CPU", "500m", "GPU", "250m", "memory", "1536Mi", "licence", "1500m", "reader", "0"))},
	{Name: "no resources for a role", Rule: "required", Edit: inRole(reserves())},
	{Name: "nothing for a role", Rule: "role-resource-none", Edit: inRole(reserves("CPU", "0", "GPU", "0"))},
	{Name: "one and a half GPUs", Rule: "role-resource-device", Edit: inRole(reserves("GPU", "1500m"))},
	{Name: "half a byte for a role", Rule: "role-resource-step", Edit: inRole(reserves("memory", "500m"))},
	{Name: "a step too fine for a role", Rule: "role-resource-step", Edit: inRole(reserves("CPU", "50u"))},
	{Name: "less than no CPU for a role", Rule: "role-resource-negative", Edit: inRole(reserves("CPU", "-1"))},
	{Name: "the object store for a role", Rule: "role-resource-own", Edit: inRole(reserves("object_store_memory", "1"))},
	{Name: "a node for a role", Rule: "role-resource-own", Edit: inRole(reserves("node:10.0.0.1", "1m"))},
	{Name: "a role's GPU by the name of Kubernetes", Rule: "role-resource-kubernetes", Edit: inRole(reserves("nvidia.com/gpu", "1"))},
	{Name: "a role's selector", Edit: inRole(liesOn("zone", "!in(a, b)"))},
	{Name: "a role's selector with a blank", Rule: "selector-grammar", Edit: inRole(liesOn("zone", "a b"))},

	{Name: "variables of a gang", Edit: both(env(variable("A", "$(worker.count)"), variable("OMP_NUM_THREADS", "2")), inRole(withEnv(variable("NCCL_DEBUG", "INFO"), variable("B", ""))))},
	{Name: "a role's variable twice", Rule: "duplicate", Edit: inRole(withEnv(variable("A", "1"), variable("A", "2")))},
	{Name: "a role's variable's name", Rule: "variable-name", Edit: inRole(withEnv(variable("A=B", "")))},
	{Name: "a role's variable of ours", Rule: "variable-own", Edit: inRole(withEnv(variable("HELIOSTAT_ROUND", "1")))},
	{Name: "a role's variable with a NUL", Rule: "run-nul", Edit: inRole(withEnv(variable("A", "\x00")))},
	{Name: "a role's variable from a Secret", Rule: "role-variable-source", Edit: both(ownCluster, inRole(withEnv(fromSecret("A"))))},
	{Name: "a gang's variable from a Secret", Edit: both(ownCluster, env(fromSecret("TOKEN")), inRole())},
	{Name: "a rank of one's own", Rule: "gang-variable", Edit: both(env(variable("A", ""), variable("RANK", "0"), variable("ROLE", "")), inRole())},
	{Name: "a role's rank of its own", Rule: "gang-variable", Edit: inRole(withEnv(variable("PET_NNODES", "1")))},
	{Name: "a rank in a runtime environment", Rule: "gang-variable", Edit: both(runtimeEnv(`{"env_vars":{"MASTER_ADDR":"a","MASTER_PORT":"1"}}`), inRole())},
	{Name: "a variable of another framework", Edit: both(env(variable("TF_CONFIG", "")), inRole())},
	{Name: "devices with MPI", Rule: "gang-variable", Edit: gangOf(v1beta1.FrameworkMPI, roleOf("worker", withEnv(variable("CUDA_VISIBLE_DEVICES", "0"))))},
	{Name: "a local rank with MPI", Edit: gangOf(v1beta1.FrameworkMPI, roleOf("worker", withEnv(variable("LOCAL_RANK", "0"))))},
	{Name: "Spark's settings in another place", Rule: "gang-variable", Edit: spark(roleOf("driver"), roleOf("executor", withEnv(variable("SPARK_CONF_DIR", "/a"))))},
	{Name: "a world of Spark's", Edit: spark(roleOf("driver", withEnv(variable("WORLD_SIZE", "1"))), roleOf("executor"))},
	{Name: "a world of MPI's", Rule: "gang-variable", Edit: gangOf(v1beta1.FrameworkMPI, roleOf("worker", withEnv(variable("WORLD_SIZE", "1"))))},
	{Name: "a rank without a gang", Edit: env(variable("RANK", "0"))},

	{Name: "all references", Edit: both(command("a", "$(ps.0.host):$(ps.7.port)", "$(ps.addresses)$(x.count)$(role)$(index)"), gangOf(v1beta1.FrameworkGeneric, roleOf("ps", times(4), eachWith(2)), roleOf("x", withEnv(variable("A", "$(x.0.host)")))))},
	{Name: "what only looks like a reference", Edit: both(command("sh", "-c", "$(date +%H.%M) $$(worker.hosts) $$$(a.b) $(nproc) $((1.5)) ${a.b}"), inRole())},
	{Name: "a reference to no role", Rule: "gang-reference", Edit: both(command("a", "$(wroker.addresses)"), inRole())},
	{Name: "a reference to no field", Rule: "gang-reference", Edit: both(command("a"), env(variable("A", "$(worker.hosts) $(worker.0.name)")), inRole())},
	{Name: "a reference to a process too many", Rule: "gang-reference", Edit: inRole(times(4), eachWith(2), runs("a", "$(worker.8.host)"))},
	{Name: "a reference to a process that may not be there", Rule: "gang-reference", Edit: inRole(times(4), atLeast(2), withEnv(variable("A", "$(worker.2.host)")))},
	{Name: "a reference to a start too many", Rule: "gang-reference", Edit: inRole(times(2), eachWith(4), perReplica, runs("a", "$(worker.2.port)"))},
	{Name: "a reference to Spark's driver", Edit: submits("spark-submit", "a.py", "$(driver.0.host)")},
	{Name: "a reference to an executor of Spark", Rule: "gang-reference", Edit: submits("spark-submit", "a.py", "$(executor.count)")},
	{Name: "1000 references", Edit: inRole(runs("a", strings.Repeat("$(worker.0.host)", 999)), withEnv(variable("A", "$$(")))},
	{Name: "1001 references", Rule: "gang-references", Edit: inRole(runs("a", strings.Repeat("$(worker.0.host)", 1000)), withEnv(variable("A", "$$(")))},
	{Name: "as many references as there may be, in much text", Edit: gangOf(v1beta1.FrameworkGeneric, referring(8)...)},
	{Name: "a line is the shell's", Edit: both(line("echo $(no.such)"), inRole())},
	// The last good one, so that inputs with odd values have all fields of a gang.
	{Name: "a full gang", Edit: both(command("train", "$(worker.addresses)"), inGang(func(g *gangSpec) {
		g.MaxRestarts, g.GracePeriodSeconds, g.GatherTimeoutSeconds, g.MinReplicasAfterSeconds = 1000, ptr(int32(3600)), 1, ptr(int32(0))
		g.Placement, g.Output = v1beta1.PlacementSpread, v1beta1.OutputAll
		g.Roles = []role{
			roleOf("master", runsLine("python train.py"), withEnv(variable("A", "1"))),
			roleOf("worker", times(8), eachWith(4), perReplica, runs("torchrun", "train.py"), func(r *role) { r.SuccessPolicy = v1beta1.SuccessFirst }),
		}
	}))},
}
