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

function one(schema, isNewest) {
  const columns = [
    { title: "Column", cell: (each) => el("span", { class: "long" }, each.name) },
    { title: "Type", cell: (each) => el("code", { class: "long" }, each.type) },
    { title: "Change", cell: (each) => (each.change === "same" ? "" : el("span", { class: "badge" }, each.change)) },
  ];
  const changed = schema.columns.filter((each) => each.change !== "same").length + schema.dropped.length;
  return el("details", { open: isNewest, class: "card" },
    el("summary", {}, `Schema ${schema.schema_id}: ${number(schema.columns.length)} columns, ${number(changed)} changed`),
    schema.dropped.length > 0 ? el("p", { class: "long" }, `Dropped: ${schema.dropped.join(", ")}`) : null,
    grid(`Columns of schema ${schema.schema_id}`, columns, schema.columns));
}
