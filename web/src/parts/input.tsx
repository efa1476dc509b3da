/** One option of a preset, with what is wrong with it. */

import type {Problem} from "../api/types.ts";
import type {Field} from "../lib/schema.ts";
import * as strings from "../strings.ts";
import {Text} from "./texts.tsx";

interface Props {
  field: Field;
  value: string;
  errors: NonNullable<Problem["errors"]>;
  set: (value: string) => void;
}

export function Input({field, value, errors, set}: Props) {
  const id = `option-${field.name}`,
    help = `${id}-help`,
    wrong = `${id}-wrong`;
  const described = [field.description || field.input === "list" ? help : "", errors.length > 0 ? wrong : ""]
    .filter(Boolean)
    .join(" ");
  const common = {
    id,
    name: field.name,
    required: field.isRequired,
    "aria-invalid": errors.length > 0,
    "aria-describedby": described || undefined,
  };
  return (
    <div class={`field ${field.input}`}>
      <label for={id}>
        <Text>{field.title}</Text> {field.isRequired && <span class="required">({strings.create.required})</span>}
      </label>
      {field.input === "choice" && (
        <select {...common} value={value} onChange={(event) => set(event.currentTarget.value)}>
          {(!field.isRequired || value === "") && <option value="">{strings.create.unset}</option>}
          {field.choices.map((one) => (
            <option key={one} value={one}>
              {String(JSON.parse(one))}
            </option>
          ))}
        </select>
      )}
      {field.input === "yesno" && (
        <input
          {...common}
          required={false}
          type="checkbox"
          checked={value === "true"}
          onChange={(event) => set(String(event.currentTarget.checked))}
        />
      )}
      {field.input === "list" && (
        <textarea {...common} rows={3} value={value} onInput={(event) => set(event.currentTarget.value)} />
      )}
      {field.input === "number" && (
        <input
          {...common}
          type="number"
          step={field.isInteger ? 1 : "any"}
          min={field.minimum}
          max={field.maximum}
          value={value}
          onInput={(event) => set(event.currentTarget.value)}
        />
      )}
      {field.input === "text" && (
        <input
          {...common}
          type="text"
          maxLength={field.maxLength}
          autocomplete="off"
          spellcheck={false}
          value={value}
          onInput={(event) => set(event.currentTarget.value)}
        />
      )}
      {(field.description || field.input === "list") && (
        <small id={help}>
          <Text>
            {[field.description, field.input === "list" && strings.create.perLine].filter(Boolean).join(". ")}
          </Text>
        </small>
      )}
      {errors.length > 0 && (
        <small id={wrong} class="wrong">
          {errors.map((one) => [one.message, one.remedy].filter(Boolean).join(". ")).join(" ")}
        </small>
      )}
    </div>
  );
}
