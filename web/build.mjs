// Builds the page: bundles, names by content, and packs. usage: node build.mjs [--out DIRECTORY]
// Fails where the page is larger than its budget. Without --out it goes to where the server embeds it.
import {createHash} from "node:crypto";
import {mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {brotliCompressSync, constants, gzipSync} from "node:zlib";
import esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const at = process.argv.indexOf("--out");
const out = at > 0 ? process.argv[at + 1] : join(here, "../dashboard-proxy/web/dist");

// What a browser may have to load, gzipped.
const budget = {".js": 45_000, ".css": 8_000};

/** bundle returns the files of the page by the names that index.html has for them. */
async function bundle() {
  const built = await esbuild.build({
    entryPoints: [join(here, "src/main.tsx"), join(here, "src/page.css")],
    outdir: "/",
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: ["es2022", "chrome123", "firefox128", "safari17.5"],
    legalComments: "none",
    absWorkingDir: here,
  });
  const files = Object.fromEntries(built.outputFiles.map((one) => [one.path.slice(1), Buffer.from(one.contents)]));
  files["icon.svg"] = readFileSync(join(here, "icon.svg"));
  return files;
}

/** hashed returns a name that changes with the content. */
function hashed(name, content) {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 12);
  return name.replace(/\.(\w+)$/, `-${hash}.$1`);
}

/** pack writes a file, and what of it is sent to browsers that take it smaller. */
function pack(name, content) {
  const zipped = gzipSync(content, {level: 9});
  const brotli = brotliCompressSync(content, {params: {[constants.BROTLI_PARAM_QUALITY]: 11}});
  writeFileSync(join(out, name), content);
  writeFileSync(join(out, `${name}.gz`), zipped);
  writeFileSync(join(out, `${name}.br`), brotli);
  return zipped.length;
}

const files = await bundle();
let page = readFileSync(join(here, "index.html"), "utf8");
mkdirSync(out, {recursive: true});
for (const old of readdirSync(out)) {
  if (!old.startsWith(".")) rmSync(join(out, old));
}
const sizes = {};
for (const [name, content] of Object.entries(files)) {
  const unique = hashed(name, content),
    size = pack(unique, content);
  page = page.replaceAll(`/ui/${name}`, `/ui/${unique}`);
  const extension = name.slice(name.lastIndexOf("."));
  sizes[extension] = (sizes[extension] ?? 0) + size;
}
pack("index.html", page);
for (const [extension, most] of Object.entries(budget)) {
  console.log(`${extension}: ${sizes[extension]} of ${most} bytes, gzipped`);
  if (sizes[extension] > most) {
    console.error(`the page's ${extension} is larger than its budget: leave something out`);
    process.exitCode = 1;
  }
}
