// The schemas that a table has had.

import { ask, el, fill, grid, number, pager } from "./ui.js";

const limit = 20;

export async function schemaPart(table) {
  const place = el("div", {});
  const show = (offset) => fill(place, async () => {
    const found = await ask("schemas", { ...table, offset, limit });
    return [...found.schemas.map((each, index) => one(each, offset + index === 0)), pager(offset, limit, found.total, show)];
  });
  await show(0);
  return place;
}

const short = 50;

/** A nested type with a line for each field; what fits into one line stays there. */
export function layered(type, indent = "") {
  const open = type.search(/[<(]/);
  if (type.length <= short || type[open] !== "<") return type;
  const end = closing(type, open);
  const deeper = `${indent}  `;
  const parts = split(type.slice(open + 1, end)).map((each) => deeper + fieldOf(each, deeper));
  return `${type.slice(0, open + 1)}\n${parts.join(",\n")}\n${indent}>${type.slice(end + 1)}`;
}

/** A field is a name and a type; the name stays as it is, whatever is quoted in it. */
function fieldOf(text, indent) {
  const name = /^(`(?:[^`]|``)*`|[^<(`:]*:)\s*/.exec(text)?.[0] ?? "";
  return name + layered(text.slice(name.length), indent);
}

/** Where the bracket at `open` closes; names in backticks are passed over. */
function closing(text, open) {
  let depth = 0;
  for (const [at, sign] of signs(text, open)) {
    depth += sign === "<" ? 1 : sign === ">" ? -1 : 0;
    if (depth === 0) return at;
  }
  return text.length;
}

/** The parts between commas that are in no bracket. */
function split(text) {
  const parts = [];
  let depth = 0;
  let from = 0;
  for (const [at, sign] of signs(text, 0)) {
    if (sign === "<" || sign === "(") depth += 1;
    else if (sign === ">" || sign === ")") depth -= 1;
    else if (sign === "," && depth === 0) {
      parts.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return [...parts, text.slice(from).trim()];
}

function* signs(text, from) {
  let quoted = false;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "`") quoted = !quoted;
    else if (!quoted) yield [at, text[at]];
  }
}

function one(schema, isNewest) {
  const columns = [
    { title: "Column", cell: (each) => el("span", { class: "long" }, each.name) },
    { title: "Type", cell: (each) => el("code", { class: "long type" }, layered(each.type)) },
    { title: "Change", cell: (each) => (each.change === "same" ? "" : el("span", { class: "badge" }, each.change)) },
  ];
  const changed = schema.columns.filter((each) => each.change !== "same").length + schema.dropped.length;
  return el("details", { open: isNewest, class: "card" },
    el("summary", {}, `Schema ${schema.schema_id}: ${number(schema.columns.length)} columns, ${number(changed)} changed`),
    schema.dropped.length > 0 ? el("p", { class: "long" }, `Dropped: ${schema.dropped.join(", ")}`) : null,
    grid(`Columns of schema ${schema.schema_id}`, columns, schema.columns));
}
