// A sample of the rows in which two snapshots differ. It shows data, so it is read only when asked for.

import { ask, el, fill, grid, number } from "./ui.js";

export function sampleOf(table, before, after) {
  const place = el("div", { "aria-live": "polite" });
  const show = () => fill(place, async () => parts(await ask("sample", { ...table, before, after })));
  return el("section", { class: "card", "aria-label": "Rows that differ" },
    el("h2", {}, "Rows that differ"),
    el("div", { class: "controls" },
      el("button", { type: "button", onclick: show }, "Show a sample"),
      el("span", { class: "muted" }, "Reads a few data files, the small ones first.")),
    place);
}

function parts(told) {
  const names = told.left_out.join(", ");
  return [
    names ? el("p", { class: "muted long" }, `Neither compared nor shown: ${names}`) : null,
    ...told.partitions.map((each) => part(told.columns, each)),
    told.total > told.partitions.length
      ? el("p", { class: "muted" }, `${number(told.total - told.partitions.length)} more partitions differ.`) : null,
    told.total === 0 ? el("p", { class: "muted" }, "The snapshots have the same files.") : null,
  ].filter(Boolean);
}

function part(names, told) {
  const name = told.name || "the whole table";
  const rows = [...told.removed.map((row) => ["before", row]), ...told.added.map((row) => ["after", row])];
  const more = rows.length < told.removed_count + told.added_count ? " The first of them:" : "";
  const columns = [
    { title: "Only", cell: ([side]) => el("span", { class: `badge ${side}` }, side) },
    ...names.map((title, index) => ({ title: el("span", { class: "long" }, title), cell: ([, row]) => value(row[index]) })),
  ];
  return el("div", {},
    el("h3", { class: "long" }, name),
    el("p", { class: "muted" }, told.problem || `Rows only before: ${number(told.removed_count)}. Rows only after: ${number(told.added_count)}.${more}`),
    rows.length > 0 ? grid(`Rows of ${name} that differ`, columns, rows) : null);
}

function value(text) {
  return text === null ? el("span", { class: "muted" }, "NULL") : el("span", { class: "long" }, text);
}
