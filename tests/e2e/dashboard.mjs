// Opens each page of Ray's dashboard through the proxy, in Debian's chromium, and tells what went wrong on it.
//
// In: HELIOSTAT_BED, in JSON: page and dashboard are where a browser opens them, token signs in, hosts is chromium's rule
// for host names, and pictures is a directory for screenshots, or empty. Out: a JSON object on standard output: the pages
// that were opened, and for each what was answered with an error, failed, or was written to the console as an error.
import {createRequire} from "node:module";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const {chromium} = require("playwright-core");
const bed = JSON.parse(process.env.HELIOSTAT_BED);
const settled = 4_000; // a page asks again each 4 s at most

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--host-resolver-rules=${bed.hosts}`],
});
try {
  console.log(JSON.stringify(await openAll(), null, 1));
} finally {
  await browser.close();
}

async function openAll() {
  const context = await browser.newContext({ignoreHTTPSErrors: true, viewport: {width: 1400, height: 1000}});
  const signedIn = await context.newPage();
  await signedIn.goto(`${bed.page}/ui/signin`);
  const code = await signedIn.evaluate(
    async (token) =>
      (await fetch("/session", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({token})})).status,
    bed.token,
  );
  if (code !== 204) throw new Error(`sign in: the page answered ${code}`);
  const page = await context.newPage();
  let wrong = [];
  page.on("console", (message) => message.type() === "error" && wrong.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("response", (answer) => answer.status() >= 400 && wrong.push(`${answer.status()} ${answer.url()}`));
  page.on(
    "requestfailed",
    (request) =>
      request.failure()?.errorText !== "net::ERR_ABORTED" && // the page itself went on
      wrong.push(`failed: ${request.url()} ${request.failure()?.errorText}`),
  );
  await page.goto(bed.dashboard);
  const all = {at: page.url().split("#")[0], pages: []};
  for (const [path, text] of await list(page)) {
    wrong = [];
    await page.goto(`${bed.dashboard}#/${path}`);
    await page.reload({waitUntil: "load"}); // as from a bookmark
    let isShown = true;
    await page
      .getByText(text, {exact: false})
      .first()
      .waitFor({timeout: 30_000})
      .catch(() => (isShown = false));
    await page.waitForTimeout(settled);
    if (bed.pictures) await page.screenshot({path: `${bed.pictures}/${path.replaceAll(/[^a-z0-9]+/gi, "-").slice(0, 40)}.png`});
    if (!isShown) wrong.push(`no ${text} on the page`);
    all.pages.push({path, wrong});
  }
  return all;
}

/** list returns the address of each page, and a text that stands on it. */
async function list(page) {
  const read = (path) => page.evaluate(async (path) => (await fetch(path)).json(), path);
  const jobs = await read("api/jobs/");
  const nodes = (await read("nodes?view=summary")).data.summary;
  const actors = Object.values((await read("logical/actors")).data.actors);
  const applications = Object.values((await read("api/serve/applications/")).applications ?? {});
  const tasks = (await read("api/v0/tasks?limit=10&detail=1")).data.result.result;
  const job = jobs.find((one) => one.submission_id && one.job_id);
  const pages = [
    ["overview", "Cluster status"],
    ["jobs", job.submission_id],
    [`jobs/${job.job_id}`, "Ray Core Overview"],
    [`jobs/${job.job_id}/info`, job.submission_id],
    [`jobs/${job.job_id}/actors`, "Actors"],
    ["serve", "Applications"],
    ["serve/system", "Controller"],
    ["serve/system/controller", "Controller"],
    ["cluster", nodes[0].hostname],
    ["cluster/info", "Cluster"],
    [`cluster/nodes/${nodes[0].raylet.nodeId}`, nodes[0].hostname],
    ["actors", "Actors"],
    ["metrics", "Grafana"],
    ["logs", "Logs"],
    [`logs?nodeId=${nodes[0].raylet.nodeId}`, "dashboard.log"],
    [`logs/viewer?nodeId=${nodes[0].raylet.nodeId}&fileName=dashboard.log`, "dashboard.log"],
    ["platform-events", "events"],
  ];
  const actor = actors.find((one) => one.state === "ALIVE");
  if (actor) pages.push([`actors/${actor.actorId}`, actor.actorId]);
  const task = tasks.find((one) => one.job_id === job.job_id);
  if (task) pages.push([`jobs/${job.job_id}/tasks/${task.task_id}`, task.task_id]);
  for (const application of applications) {
    pages.push([`serve/applications/${application.name}`, application.name]);
    for (const deployment of Object.values(application.deployments)) {
      pages.push([`serve/applications/${application.name}/${deployment.name}`, deployment.name]);
      const replica = deployment.replicas[0];
      pages.push([`serve/applications/${application.name}/${deployment.name}/${replica.replica_id}`, replica.replica_id]);
    }
  }
  return pages;
}
