// Runs the tests of what is pure: src/**/*.test.ts, bundled, in node.
import {mkdirSync, readdirSync} from "node:fs";
import {spawnSync} from "node:child_process";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "../.state/web");
const files = readdirSync(join(here, "src"), {recursive: true}).filter((name) => name.endsWith(".test.ts"));
mkdirSync(out, {recursive: true});
await esbuild.build({
  entryPoints: files.map((name) => join(here, "src", name)),
  outdir: out,
  bundle: true,
  platform: "node",
  format: "esm",
  outExtension: {".js": ".mjs"},
  sourcemap: "inline",
  logLevel: "warning",
});
const built = readdirSync(out, {recursive: true})
  .filter((name) => name.endsWith(".test.mjs"))
  .map((name) => join(out, name));
process.exitCode = spawnSync("node", ["--enable-source-maps", "--test", ...built], {stdio: "inherit"}).status ?? 1;
