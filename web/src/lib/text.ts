/** Text from others, made harmless to read: it is never markup, and controls of terminals do not show. */

// Sequences of terminals: CSI, OSC and other strings up to their end, two characters. Then other control characters.
// eslint-disable-next-line no-control-regex
const sequences = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g;
const controls = /[\x00-\x08\x0b-\x1f\x7f]/g; // all but tab and end of line

/** stripAnsi returns a text without what only terminals understand. */
export function stripAnsi(text: string): string {
  if (!/[\x00-\x08\x0b-\x1f\x7f]/.test(text)) return text;
  return text.replace(sequences, "").replace(controls, "");
}

/** overwrite returns what a terminal shows of a line: what comes after the last carriage return. */
export function overwrite(line: string): string {
  if (!line.includes("\r")) return line;
  const parts = line.split("\r").filter((part) => part !== "");
  return parts[parts.length - 1] ?? "";
}

/** cut returns at most so many characters of a text, with a mark where some are missing. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}
