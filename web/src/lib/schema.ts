/** A form from the JSON Schema of a preset's options. The server judges what is filled in. */

export type Input = "text" | "number" | "choice" | "yesno" | "list";

export interface Field {
  name: string;
  title: string;
  description: string;
  input: Input;
  isInteger: boolean;
  isRequired: boolean;
  initial: string;
  /** choices are the values of a choice, as JSON. */
  choices: string[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
}

type Schema = Record<string, any>;

/** fieldsOf returns the fields of a form. Those that are required come first, as a schema has no order. */
export function fieldsOf(schema: Schema | undefined): Field[] {
  const required = new Set<string>(Array.isArray(schema?.required) ? schema.required : []);
  const fields = Object.entries((schema?.properties ?? {}) as Record<string, Schema>).map(([name, one]) =>
    fieldOf(name, one, required),
  );
  return fields.sort((a, b) => Number(b.isRequired) - Number(a.isRequired));
}

function fieldOf(name: string, schema: Schema, required: Set<string>): Field {
  const choices = choicesOf(schema);
  const input = inputOf(schema, choices);
  return {
    name,
    input,
    choices,
    title: typeof schema.title === "string" && schema.title ? schema.title : name,
    description: typeof schema.description === "string" ? schema.description : "",
    isInteger: schema.type === "integer",
    isRequired: required.has(name),
    initial: initialOf(schema.default, input),
    minimum: numberOf(schema.minimum),
    maximum: numberOf(schema.maximum),
    maxLength: numberOf(schema.maxLength),
  };
}

function choicesOf(schema: Schema): string[] {
  if (Array.isArray(schema.enum)) return schema.enum.map((one) => JSON.stringify(one));
  return "const" in schema ? [JSON.stringify(schema.const)] : [];
}

function inputOf(schema: Schema, choices: string[]): Input {
  if (choices.length > 0) return "choice";
  switch (schema.type) {
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "yesno";
    case "array":
      return "list";
    default:
      return "text";
  }
}

function initialOf(value: unknown, input: Input): string {
  if (value === undefined || value === null) return input === "yesno" ? "false" : "";
  if (input === "choice") return JSON.stringify(value);
  return Array.isArray(value) ? value.map(String).join("\n") : String(value);
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** initialValues returns what a form holds before somebody fills it in. */
export function initialValues(fields: Field[]): Record<string, string> {
  return Object.fromEntries(fields.map((field) => [field.name, field.initial]));
}

/** optionsOf returns the options that a form says. A field that is empty is left out, so that its default holds. */
export function optionsOf(fields: Field[], values: Record<string, string>): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const field of fields) {
    const value = values[field.name] ?? "";
    if (value !== "") options[field.name] = optionOf(field, value);
  }
  return options;
}

function optionOf(field: Field, value: string): unknown {
  switch (field.input) {
    case "number": {
      const number = Number(value);
      return Number.isFinite(number) ? number : value; // the server says what is wrong with it
    }
    case "choice":
      return JSON.parse(value);
    case "yesno":
      return value === "true";
    case "list":
      return value
        .split("\n")
        .map((line) => line.trim())
        .filter((line) => line !== "");
    default:
      return value;
  }
}
