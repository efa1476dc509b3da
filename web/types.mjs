// Writes src/api/types.ts: the messages and routes of the API below /v1, from its OpenAPI document.
// usage: node types.mjs [--check]
import {readFileSync, writeFileSync} from "node:fs";

const document = JSON.parse(readFileSync(new URL("../apiserver/rest/openapi.json", import.meta.url), "utf8"));
const target = new URL("src/api/types.ts", import.meta.url);
const prefix = "heliostat.v1.";

const nameOf = (reference) => reference.split("/").pop().replace(prefix, "");

/** typeOf returns the TypeScript of a schema. Objects of Kubernetes stay open: the page reads few of their fields. */
function typeOf(schema, indent = "") {
  if (!schema) return "unknown";
  if (schema.$ref) {
    const name = nameOf(schema.$ref);
    return name.startsWith("dev.heliostat.") ? "KubernetesObject" : name;
  }
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  switch (schema.type) {
    case "array":
      return `${typeOf(schema.items, indent)}[]`;
    case "integer":
    case "number":
      return "number";
    case "object":
      if (schema.properties) return fieldsOf(schema, indent);
      return `Record<string, ${schema.additionalProperties?.type ? typeOf(schema.additionalProperties) : "unknown"}>`;
    case "string":
    case "boolean":
      return schema.type;
    default:
      return "unknown";
  }
}

function fieldsOf(schema, indent) {
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties).map(
    ([name, one]) => `${indent}  ${name}${required.has(name) ? "" : "?"}: ${typeOf(one, `${indent}  `)};\n`,
  );
  return `{\n${lines.join("")}${indent}}`;
}

function messages() {
  const found = [];
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    if (!name.startsWith(prefix) && name !== "Problem") continue;
    found.push(`export interface ${nameOf(name)} ${fieldsOf(schema, "")}\n`);
  }
  return found.join("\n");
}

function routes() {
  const answers = [],
    bodies = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const content = operation.responses["200"].content;
      const schema = content["application/json"]?.schema;
      const route = JSON.stringify(`${method.toUpperCase()} ${path}`);
      answers.push(`  ${route}: ${schema ? typeOf(schema, "  ") : "string"};\n`);
      const body = operation.requestBody?.content["application/json"].schema;
      if (body?.properties) bodies.push(`  ${route}: ${typeOf(body, "  ")};\n`);
    }
  }
  return (
    `/** Answers has what each route answers. */\nexport interface Answers {\n${answers.join("")}}\n\n` +
    `/** Bodies has what is sent to routes that take something. */\nexport interface Bodies {\n${bodies.join("")}}\n`
  );
}

const text =
  `// Generated from apiserver/rest/openapi.json by "npm run types"; do not edit.\n\n` +
  `export type KubernetesObject = Record<string, any>;\n\n${messages()}\n${routes()}`;
if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== text) {
    console.error("web/src/api/types.ts differs from what the OpenAPI document gives: run npm run types in web/");
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
