// What each place says to whom: signing in, rights that are missing, lists that are empty, objects that are gone.
import {test} from "node:test";
import assert from "node:assert/strict";
import {ask, bed, open, read, useBrowser} from "./browser.mjs";

useBrowser();

test("who is not signed in signs in, and comes to where the link led", async (t) => {
  const page = await open(t, `/ui/clusters/${bed.namespace}/demo`, {as: "", allowed: ["401"]});
  await page.waitForURL("**/ui/signin?to=*");
  await signInBy(page, "bad");
  await page.getByRole("alert").waitFor();
  await signInBy(page);
  await page.locator("h1", {hasText: "demo"}).waitFor();
  assert.doesNotMatch(
    page.url() + JSON.stringify(await page.evaluate(() => ({...localStorage, ...sessionStorage}))),
    new RegExp(bed.editor.slice(0, 20)),
  );
  await page.goto("/ui/me");
  await page.getByRole("button", {name: "Sign out"}).click();
  await page.waitForURL("**/ui/signin");
  await signInBy(page);
  await page.waitForURL("**/ui/");
  for (const [to, comes] of [
    [`/ui/clusters/${bed.namespace}/demo`, "demo"],
    ["https://elsewhere.example/", "Objects"],
  ]) {
    await page.context().clearCookies();
    await page.goto(`/ui/signin?${new URLSearchParams({to})}`);
    await signInBy(page);
    await page.locator("h1", {hasText: comes}).waitFor();
  }
});

/** signInBy signs in by the form. */
async function signInBy(page, token = bed.editor) {
  await page.getByLabel("Kubernetes token").fill(token);
  await page.getByRole("button", {name: "Sign in"}).click();
}

test("an action that the caller cannot perform names the permission", async (t) => {
  const page = await open(t, `/ui/clusters/${bed.namespace}/demo`, {as: "viewer"});
  for (const [name, need] of [
    ["Suspend", "patch computeclusters"],
    ["Delete", "delete computeclusters"],
    ["Ray dashboard", "get computeclusters/proxy"],
  ]) {
    // Until the page knows the caller's permissions, no action is disabled.
    const button = page.locator(".actions [aria-disabled=true]", {hasText: name});
    await button.waitFor();
    await button.focus();
    const said = page.locator(`#${await button.getAttribute("aria-describedby")}`);
    assert.equal(await said.textContent(), `You need the permission ${need} in ${bed.namespace}`);
    assert.ok(await said.isVisible());
  }
  await page.locator(".actions button", {hasText: "Suspend"}).click({force: true});
  assert.equal(await page.locator("dialog").count(), 0);
});

test("an empty list shows the command that fills it", async (t) => {
  const nobody = await open(t, "/ui/", {as: "nobody", allowed: ["403"]});
  await nobody.locator(".empty").waitFor();
  assert.match(
    await nobody.locator(".empty pre").textContent(),
    /^kubectl create rolebinding .*--user='system:serviceaccount:team-a:nina'$/,
  );
  const page = await open(t, `/ui/?namespace=${bed.empty}&kind=jobs`);
  await page.locator(".empty").waitFor();
  assert.match(
    await page.locator(".empty pre").textContent(),
    /^kubectl apply -n team-b -f - <<'EOF'\n[^]*kind: ClusterJob/,
  );
});

test("a remedy that is an action is a button", async (t) => {
  const page = await open(t, `/ui/clusters/${bed.namespace}/notebook`);
  const button = page.locator(".why button", {hasText: "Resume"});
  await button.click();
  await page.locator("dialog button[type=submit]").click();
  await page.locator("dialog").waitFor({state: "detached"});
  const answer = await read(page, "clusters", "notebook");
  assert.ok(answer.object.metadata.annotations["heliostat.dev/resume"]);
});

test("an output ends with its outcome and exit code, and a retry is another job", async (t) => {
  const page = await open(t, `/ui/jobs/${bed.namespace}/evaluate`);
  await page.locator(".lines").getByText("FileNotFoundError").waitFor();
  assert.match(await page.locator(".end").textContent(), /The job failed · exit code 1/);
  await page.locator(".connection.live").waitFor(); // the object is followed again
  await page.locator(".actions button", {hasText: "Retry"}).click();
  await page.locator("dialog button[type=submit]").click();
  await page.waitForURL(/evaluate-[a-z0-9]+$/);
});

test("what is deleted is named before, and gone after", async (t) => {
  await ask(
    "put",
    {},
    {
      apiVersion: "heliostat.dev/v1beta1",
      kind: "ComputeCluster",
      metadata: {name: "short-lived"},
      spec: {rayVersion: "2.60.0"},
      status: {phase: "Ready"},
    },
  );
  const other = await open(t, `/ui/clusters/${bed.namespace}/short-lived`, {allowed: ["404"]});
  await other.locator(".actions").waitFor();
  const page = await open(t, `/ui/clusters/${bed.namespace}/short-lived`, {allowed: ["404"]});
  await page.locator(".actions button", {hasText: "Delete"}).click();
  assert.match(await page.locator("dialog .removed").textContent(), /cluster short-lived/);
  await page.locator("dialog button[type=submit]").click();
  await page.waitForURL("**/ui/");
  await other.getByText("This object was deleted.").waitFor();
});

test("a cluster is scaled", async (t) => {
  const page = await open(t, `/ui/clusters/${bed.namespace}/demo`);
  await page.locator(".actions button", {hasText: "Scale"}).click();
  await page.locator("dialog").getByLabel("Worker group").selectOption("cpu");
  await page.getByLabel("Replicas").fill("5");
  await page.locator("dialog button[type=submit]").click();
  await page.locator("dialog").waitFor({state: "detached"});
  const answer = await read(page, "clusters", "demo");
  assert.equal(answer.object.spec.workerGroups[0].replicas, 5);
});

test("what belongs to an object is shown, and links lead to more", async (t) => {
  const page = await open(t, `/ui/clusters/${bed.namespace}/demo`);
  const rows = async (id) => {
    await page.locator(`section[aria-labelledby=${id}] tbody tr`).first().waitFor();
    return page.locator(`section[aria-labelledby=${id}] tbody tr`).allTextContents();
  };
  assert.deepEqual(
    (await rows("groups")).map((text) => text.slice(0, 3)),
    ["cpu", "gpu"],
  );
  assert.equal((await rows("pods")).filter((text) => text.startsWith("demo-")).length, 4, "a head and three workers");
  assert.match((await rows("events")).join(), /Unhealthy.*the probe of demo failed/);
  assert.equal(
    await page.getByRole("link", {name: "Grafana"}).getAttribute("href"),
    "https://grafana.example.com/d/ray?var-name=demo",
  );
  await page.goto(`/ui/jobs/${bed.namespace}/evaluate`);
  assert.match((await rows("attempts")).join(), /^1.*DriverFailed.*exit code 1/);
  await page.goto(`/ui/services/${bed.namespace}/sort`);
  const [active, candidate] = await rows("versions");
  assert.match(active, /^3.*60 %/);
  assert.match(candidate, /^4.*40 %/);
});

test("a job is stopped", async (t) => {
  const page = await open(t, `/ui/jobs/${bed.namespace}/nightly`);
  await page.locator(".actions button", {hasText: "Stop"}).click();
  await page.locator("dialog button[type=submit]").click();
  await page.locator("dialog").waitFor({state: "detached"});
  const answer = await read(page, "jobs", "nightly");
  assert.equal(answer.object.metadata.annotations["heliostat.dev/stop"], "true");
});

test("a link in a mail opens what it leads to", async (t) => {
  const page = await open(t, "/ui/");
  await page.goto(`data:text/html,<a href="${bed.url}/ui/clusters/${bed.namespace}/demo">demo</a>`); // another site
  await page.locator("a").click();
  await page.locator("h1", {hasText: "demo"}).waitFor();
});

const placeOfReport = `/apis/heliostat.dev/v1beta1/namespaces/${bed.namespace}/clusterjobschedules/report`;

test("a schedule shows its times and jobs, and is suspended, resumed and deleted", async (t) => {
  const page = await open(t, "/ui/?kind=schedules", {allowed: [placeOfReport, "404"]});
  const row = page.locator(".objects tbody tr");
  await row.filter({hasText: "next on 13 Apr 2026, 00:30:00"}).waitFor();
  assert.equal(await row.count(), 1);
  await row.getByRole("link", {name: "report"}).click();
  await page.locator(".facts", {hasText: "30 2 * * * · Europe/Berlin"}).waitFor();
  assert.match(
    await page.locator(".facts").textContent(),
    /Last job for12 Apr 2026, 00:30:00Next job13 Apr 2026, 00:30:00While a job runsThe next one waits for its end/,
  );
  await page.getByRole("link", {name: "report-29600000"}).click();
  await page.locator("h1", {hasText: "report-29600000"}).waitFor();
  await page.locator(".facts").getByRole("link", {name: "report", exact: true}).click();
  for (const [verb, isSuspended] of [
    ["Suspend", true],
    ["Resume", false],
  ]) {
    await page.locator(".actions").getByRole("button", {name: verb}).click();
    await page.locator("dialog").getByRole("button", {name: verb}).click();
    await page.locator("dialog").waitFor({state: "detached"});
    const {object} = await read(page, "schedules", "report");
    assert.equal(object.spec.suspend ?? false, isSuspended, verb);
    await ask("status", {kind: "ClusterJobSchedule", name: "report"}, {conditions: [conditionOf(isSuspended)]});
    await page.locator("h1", {hasText: isSuspended ? "Suspended" : "Running"}).waitFor();
  }
  await page.locator(".actions").getByRole("button", {name: "Delete"}).click();
  assert.match(await page.locator("dialog .removed").textContent(), /schedule report1 job: report-29600000/);
  await page.locator("dialog").getByRole("button", {name: "Delete"}).click();
  await page.waitForURL("**/ui/");
  const after = await page.evaluate(async (path) => (await fetch(path)).status, placeOfReport);
  assert.equal(after, 404);
});

/** conditionOf is what the operator says of a schedule. */
function conditionOf(isSuspended) {
  return {
    type: isSuspended ? "Suspended" : "Ready",
    status: "True",
    reason: isSuspended ? "ScheduleSuspended" : "ScheduleActive",
    message: "said by the operator",
    lastTransitionTime: "2026-04-12T00:31:00Z",
  };
}
