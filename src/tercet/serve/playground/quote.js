// Values as source code.

/** Characters that reorder a line on the screen are written as escapes, so that code reads as it runs. */
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]/g;
const escaped = (literal) =>
  literal.replace(REORDERING, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** JSON with one element of a list per line. */
export const json = (value) => escaped(JSON.stringify(value, null, 2));

/** A word of a POSIX shell: nothing in it is expanded. */
export const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A Python expression. JSON strings are Python strings too. */
export function python(value, indent = "") {
  if (value === true || value === false) return value ? "True" : "False";
  if (value === null) return "None";
  if (typeof value !== "object") return escaped(JSON.stringify(value));
  const inner = `${indent}    `;
  if (Array.isArray(value)) return lines("[", value.map((each) => python(each, inner)), "]", indent);
  const entries = Object.entries(value).map(([name, each]) => `"${name}": ${python(each, inner)}`);
  return lines("{", entries, "}", indent);
}

const lines = (open, entries, close, indent) =>
  [open, ...entries.map((entry) => `${indent}    ${entry},`), indent + close].join("\n");
