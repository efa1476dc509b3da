// Which requests reach a cluster's head by the session of somebody who has opened it, on each of the three ways to
// separate origins. The table of docs/dashboards-setup.md says which must.
import {readFileSync} from "node:fs";
import {test} from "node:test";
import assert from "node:assert/strict";
import {bed, contextOf, useBrowser} from "./browser.mjs";

useBrowser("--host-resolver-rules=MAP *.test 127.0.0.1", "--ignore-certificate-errors");

const ways = ["port", "host", "wildcard"];

/** promised returns what the table says of each request: for each way, whether it passes. */
function promised() {
  const text = readFileSync(new URL("../../docs/dashboards-setup.md", import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| ([^|]+) \| (passes|refused) \| (passes|refused) \| (passes|refused) \|$/gm)];
  return new Map(rows.map(([, name, ...said]) => [name, said.map((one) => one === "passes")]));
}

/** requests are what a script can cause towards an address, by their names in the table. Each has a mark. */
const requests = {
  page: ([to, mark]) => void open(`${to}?${mark}`),
  fetch: ([to, mark]) => void fetch(`${to}api/version?${mark}`),
  POST: ([to, mark]) =>
    void fetch(`${to}api/jobs/?${mark}`, {method: "POST", mode: "no-cors", credentials: "include", body: "{}"}).catch(
      () => undefined,
    ),
  WebSocket: ([to, mark]) => void new WebSocket(`${to.replace("https", "wss")}api/jobs/x/logs/tail?${mark}`),
  image: ([to, mark]) => void (new Image().src = `${to}worker/traceback?${mark}`),
  frame: ([to, mark]) =>
    void (document.body.appendChild(document.createElement("iframe")).src = `${to}worker/traceback?${mark}`),
  "pop-up": ([to, mark]) => void open(`${to}worker/traceback?${mark}`),
  form: ([to, mark]) => {
    const form = document.createElement("form");
    Object.assign(form, {method: "post", action: `${to}api/jobs/?${mark}`, target: "_blank"});
    document.body.append(form);
    form.submit();
  },
};

let count = 0;

/** reaches has a page cause a request, and reports whether it came to the head of the victim. */
async function reaches(from, name, to) {
  const mark = `mark${++count}`,
    context = from.context();
  const ended = new Promise((done) => {
    const look = (request) => request.url().includes(`?${mark}`) && done();
    for (const event of ["requestfinished", "requestfailed"]) context.on(event, look);
    from.on("websocket", (socket) => {
      if (!socket.url().includes(`?${mark}`)) return;
      for (const event of ["close", "socketerror"]) socket.on(event, done);
    });
  });
  await from.evaluate(requests[name], [to, mark]);
  await ended;
  const seen = await (await fetch(bed.control)).text();
  return seen.split("\n").some((line) => line.startsWith("victim ") && line.endsWith(`?${mark}`));
}

/** arrive follows a link of the page to a cluster, over the sign-in of its origin. */
async function arrive(context, {page: at}, name) {
  const page = await context.newPage();
  await page.goto(`${at}/ui/`);
  await page.locator(`#${name}`).click();
  await page.locator("h1", {hasText: name}).waitFor();
  return page;
}

/** follow opens an address by a link of another site, as one of a mail, and returns the page and what it loaded on the way. */
async function follow(context, to) {
  const page = await context.newPage(),
    loaded = [];
  await page.goto(bed.mail);
  page.on("request", (request) => {
    if (request.isNavigationRequest()) loaded.push(new URL(request.url()).pathname);
  });
  await page.evaluate((to) => location.assign(to), to);
  await page.locator("h1", {hasText: "victim"}).waitFor();
  return {page, loaded};
}

for (const [i, name] of ways.entries()) {
  test(`origins by ${name}`, {timeout: 120_000}, async (t) => {
    const way = bed.ways[name],
      context = await contextOf(t),
      found = new Map();
    const page = await context.newPage();
    await page.goto(`${way.page}/ui/`);
    const code = await page.evaluate(
      async (token) => (await fetch("/session", {method: "POST", body: JSON.stringify({token})})).status,
      bed.token,
    );
    assert.equal(code, 204);
    const first = await follow(context, way.victim);
    assert.equal(first.page.url(), way.victim, "a link in a mail leads there, where only the page has a session");
    assert.ok(first.loaded.includes("/session/dashboards"), `a session is handed over: ${first.loaded}`);
    const own = await arrive(context, way, "victim"),
      other = await arrive(context, way, "evil"),
      stranger = await context.newPage();
    assert.equal(own.url(), way.victim, "the link leads there, and nowhere else");
    await stranger.goto(bed.stranger);
    const {pathname} = new URL(way.victim),
      second = await follow(context, way.victim);
    assert.deepEqual(second.loaded, [pathname, "/-/go", pathname], "a link in a mail bounces once");
    found.set("a link on the page to the start", await reaches(page, "page", way.victim));
    for (const one of ["page", "fetch", "POST", "WebSocket"])
      found.set(`its own ${one}`, await reaches(own, one, way.victim));
    for (const [who, from] of [
      ["another site", stranger],
      ["another cluster", other],
    ])
      for (const one of ["POST", "WebSocket", "image", "frame", "pop-up", "form"])
        found.set(`${one} of ${who}`, await reaches(from, one, way.victim));
    const want = new Map([...promised()].map(([what, said]) => [what, said[i]]));
    assert.deepEqual(Object.fromEntries(found), Object.fromEntries(want));
  });
}

test("sign-in at an issuer", {timeout: 60_000}, async (t) => {
  const {page: at, victim} = bed.ways.issuer,
    context = await contextOf(t),
    page = await context.newPage(),
    addresses = [];
  page.on("request", (request) => addresses.push(request.url()));

  await page.goto(`${at}/session/oidc?to=/ui/`);
  await page.locator("#refuse").click();
  await page.getByText("The issuer Sunrise did not sign you in.").waitFor();
  await page.goto(victim);
  await page.waitForURL(`${at}/ui/signin?*`); // for nobody is signed in

  await page.goto(`${at}/session/oidc?to=/ui/`);
  await page.locator("#approve").click();
  await page.waitForURL(`${at}/ui/`);
  const {signedIn, user} = await page.evaluate(async () => (await fetch("/session")).json());
  assert.deepEqual({signedIn, user}, {signedIn: true, user: "sso:ana"});
  await page.locator("#victim").click();
  await page.locator("h1", {hasText: "victim"}).waitFor();
  assert.equal(page.url(), victim, "the dashboards' origin has a session of its own by now");
  assert.equal(await page.evaluate(() => document.cookie), "", "no script reads a session");
  assert.ok(!addresses.some((one) => /eyJ|id_token|the-client-secret/.test(one)), "no address has a token");

  await follow(context, victim);
});
