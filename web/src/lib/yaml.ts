/** YAML of what JSON can hold, for manifests that people read and kubectl takes. */

const plain = /^[A-Za-z_/][A-Za-z0-9_./-]*$/;
const special = /^(?:true|false|null|yes|no|on|off|y|n|~)$/i;

/** toYaml returns a value as YAML. */
export function toYaml(value: unknown, indent = ""): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return " []\n";
    return `\n${value.map((one) => `${indent}-${entryOf(one, indent)}`).join("")}`;
  }
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value).filter((entry) => entry[1] !== undefined);
    if (entries.length === 0) return " {}\n";
    return `\n${entries.map(([key, one]) => `${indent}${scalarOf(key)}:${below(one, indent)}`).join("")}`;
  }
  if (typeof value === "string" && value.includes("\n") && isBlock(value)) {
    return ` |-\n${value
      .split("\n")
      .map((line) => (line ? `${indent}${line}` : ""))
      .join("\n")}\n`;
  }
  return ` ${scalarOf(value)}\n`;
}

// Lists stand at the column of their key.
function below(value: unknown, indent: string): string {
  return toYaml(value, Array.isArray(value) ? indent : `${indent}  `);
}

function entryOf(value: unknown, indent: string): string {
  return toYaml(value, `${indent}  `).replace(/^\n +/, " ");
}

// What a block would change is quoted: an indented first line, an end of line at its end, other control characters.
function isBlock(text: string): boolean {
  return !/^[\s]|\n$|[^\x20-\x7e\n\u00a0-\ud7ff\ue000-\ufffd]/.test(text);
}

function scalarOf(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return plain.test(value) && !special.test(value) ? value : JSON.stringify(value);
}

const noted = ["heliostat.dev/owner", "heliostat.dev/request"];

/** documentOf returns an object as a manifest, without what the API server fills in. */
export function documentOf(object: Record<string, any>): string {
  const {apiVersion, kind, metadata = {}, spec} = object;
  const {name, namespace, labels} = metadata;
  // What the server notes of a request is about that request.
  const given = Object.entries(metadata.annotations ?? {}).filter(([key]) => !noted.includes(key));
  const annotations = given.length > 0 ? Object.fromEntries(given) : undefined;
  return toYaml({apiVersion, kind, metadata: {name, namespace, labels, annotations}, spec}).slice(1);
}
