/** A form from a preset. What it would create is checked and shown while it is filled in. */

import {useComputed, useSignal, useSignalEffect} from "@preact/signals";
import {useEffect, useMemo} from "preact/hooks";
import {ask, Refusal} from "../api/client.ts";
import type {Preset} from "../api/types.ts";
import {kindOfManifest, resources} from "../lib/kinds.ts";
import {whereCan} from "../lib/permissions.ts";
import {type Field, fieldsOf, initialValues, optionsOf} from "../lib/schema.ts";
import {documentOf} from "../lib/yaml.ts";
import {Refused} from "../parts/actions.tsx";
import {Input} from "../parts/input.tsx";
import {Heading} from "../parts/frame.tsx";
import {Command, Text} from "../parts/texts.tsx";
import {announce} from "../state/announcer.ts";
import {DryRun} from "../state/dryrun.ts";
import {go, query, setQuery} from "../state/location.ts";
import {meet, namespaces} from "../state/session.ts";
import * as strings from "../strings.ts";

export function NewPage() {
  const places = useComputed(() =>
    [
      ...new Set(
        Object.values(resources).flatMap((resource) => whereCan(namespaces.value, {verb: "create", resource})),
      ),
    ].sort(),
  );
  const given = useComputed(() => new URLSearchParams(query.value));
  const namespace = useComputed(() => given.value.get("namespace") || places.value[0] || "");
  const presets = useSignal<Preset[] | undefined>(undefined);
  const refusal = useSignal<Error | undefined>(undefined);
  useSignalEffect(() => {
    const asking = new AbortController();
    if (namespace.value) {
      ask("GET /v1/namespaces/{namespace}/presets", {path: {namespace: namespace.value}, signal: asking.signal}).then(
        (answer) => {
          presets.value = answer.presets ?? [];
          refusal.value = undefined;
        },
        (error: Error) => {
          if (asking.signal.aborted) return;
          if (error instanceof Refusal && error.code === 401) meet(error);
          refusal.value = error;
        },
      );
    }
    return () => asking.abort();
  });
  const chosen =
    presets.value?.find((one) => one.name === given.value.get("preset")) ?? presets.value?.find((one) => !one.error);
  const set = (change: Record<string, string>) =>
    setQuery(`?${new URLSearchParams({namespace: namespace.value, ...change})}`);
  return (
    <>
      <Heading title={strings.create.title} />
      {places.value.length === 0 && <p class="empty">{strings.create.noNamespace}</p>}
      {refusal.value && <Refused error={refusal.value} />}
      {places.value.length > 0 && (
        <div class="choose">
          <label>
            {strings.create.namespace}
            <select value={namespace.value} onChange={(event) => set({namespace: event.currentTarget.value})}>
              {places.value.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          {presets.value && presets.value.length > 0 && (
            <label>
              {strings.create.preset}
              <select value={chosen?.name ?? ""} onChange={(event) => set({preset: event.currentTarget.value})}>
                {!chosen && <option value="">{strings.create.choose}</option>}
                {presets.value.map((one) => (
                  <option key={one.name} value={one.name}>
                    {one.title || one.name}
                  </option>
                ))}
              </select>
            </label>
          )}
        </div>
      )}
      {presets.value?.length === 0 && (
        <div class="empty">
          <h2>{strings.create.none}</h2>
          <p>{strings.create.noneHelp}</p>
          <Command label={strings.create.command} text={strings.list.fill("", namespace.value)} />
        </div>
      )}
      {chosen?.error && (
        <p class="notice warning">
          {strings.create.unusable} <Text>{chosen.error}</Text>
        </p>
      )}
      {chosen && !chosen.error && (
        <Form key={`${namespace.value} ${chosen.name}`} preset={chosen} namespace={namespace.value} />
      )}
    </>
  );
}

function Form({preset, namespace}: {preset: Preset; namespace: string}) {
  const fields = useMemo(() => fieldsOf(preset.schema), [preset]);
  const values = useSignal(initialValues(fields));
  const run = useMemo(() => new DryRun(namespace, preset.name ?? ""), [namespace, preset]);
  const refusal = useSignal<Error | undefined>(undefined),
    isBusy = useSignal(false);
  useEffect(() => () => run.end(), [run]);
  const isWhole = useComputed(() => fields.every((field) => !field.isRequired || values.value[field.name]));
  useSignalEffect(() => (isWhole.value ? run.check(optionsOf(fields, values.value)) : run.wait()));

  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    isBusy.value = true;
    refusal.value = undefined;
    try {
      const {object} = await run.create(optionsOf(fields, values.value));
      const kind = kindOfManifest(object?.kind);
      announce(`${strings.create.done}: ${object?.metadata?.name}`);
      if (kind) go({page: "detail", kind, namespace, name: object?.metadata?.name});
    } catch (error) {
      run.meet(error);
      refusal.value = error as Error;
    } finally {
      isBusy.value = false;
    }
  };
  const errors = run.errors.value;
  const others = errors.filter((one) => !fields.some((field) => one.field === `options.${field.name}`));
  return (
    <div class="columns">
      <form class="options" onSubmit={submit} noValidate>
        {preset.description && (
          <p class="note">
            <Text>{preset.description}</Text>
          </p>
        )}
        {fields.map((field) => (
          <Input
            key={field.name}
            field={field}
            value={values.value[field.name] ?? ""}
            errors={isTouched(field, values.value) ? errors.filter((one) => one.field === `options.${field.name}`) : []}
            set={(value) => (values.value = {...values.value, [field.name]: value})}
          />
        ))}
        {refusal.value && errors.length === 0 && <Refused error={refusal.value} />}
        <div class="buttons">
          <button type="submit" class="main" disabled={isBusy.value}>
            {strings.create.submit}
          </button>
        </div>
      </form>
      <section class="preview" aria-labelledby="preview">
        <h2 id="preview">{strings.create.preview}</h2>
        <p class={`verdict ${run.state.value}`} role="status">
          {run.state.value === "waiting" && strings.create.before}
          {run.state.value === "checking" && strings.create.checking}
          {run.state.value === "good" && strings.create.good}
          {run.state.value === "bad" && strings.create.bad(errors.length || 1)}
        </p>
        {others.length > 0 && (
          <ul class="errors">
            {others.map((one, i) => (
              <li key={i}>
                <code>{one.field}</code> <Text>{one.message}</Text> {one.remedy && <Text>{one.remedy}</Text>}
              </li>
            ))}
          </ul>
        )}
        {run.failure.value && errors.length === 0 && <Refused error={run.failure.value} />}
        {run.warnings.value.length > 0 && (
          <ul class="errors">
            {run.warnings.value.map((text) => (
              <li key={text}>
                <Text>{text}</Text>
              </li>
            ))}
          </ul>
        )}
        <Preview object={run.object.value} namespace={namespace} />
      </section>
    </div>
  );
}

// What nobody has filled in yet is not called wrong beside it.
function isTouched(field: Field, values: Record<string, string>): boolean {
  return values[field.name] !== field.initial || field.initial !== "";
}

function Preview({object, namespace}: {object: Record<string, any> | undefined; namespace: string}) {
  if (!object) return null;
  const manifest = documentOf(object);
  return (
    <>
      <h3>{strings.create.manifest}</h3>
      <Command label={strings.create.manifest} text={manifest} />
      <h3>{strings.create.command}</h3>
      <Command label={strings.create.command} text={strings.create.commandText(namespace, manifest)} />
    </>
  );
}
