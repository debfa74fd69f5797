// Rows that a dry run would change, old beside new. They are data, so they are read only when asked for.

import { ask, el, fill, grid, number, Problem } from "./ui.js";

const kinds = { update: "Rows that would be updated", delete: "Rows that would be deleted", insert: "Rows that would be inserted" };

export function changedRows(table, operation_id) {
  const place = el("div", { "aria-live": "polite" });
  const show = () => fill(place, async () => parts(await asked({ ...table, operation_id })));
  return el("section", { class: "card", "aria-label": "Changed rows" },
    el("h2", {}, "Changed rows"),
    el("div", { class: "controls" },
      el("button", { type: "button", onclick: show }, "Show some of them"),
      el("span", { class: "muted" }, "Those that the dry run has kept, for who may see rows of the table.")),
    place);
}

async function asked(parameters) {
  try {
    return await ask("preview", parameters);
  } catch (problem) {
    if (problem.code !== "403") throw problem;
    throw new Problem({
      code: "403",
      message: "You may not see rows of this connection.",
      remedy: "Rows are shown of connections in [merge] ui_samples, to who may edit the connection.",
    });
  }
}

function parts(told) {
  if (told === null) return el("p", { class: "muted" }, "They are gone: what a dry run keeps is removed after 30 days.");
  const names = told.left_out.join(", ");
  const found = Object.entries(kinds).map(([operation, title]) => [title, told.rows.filter((each) => each.operation === operation)]);
  return [
    names ? el("p", { class: "muted long" }, `Not shown: ${names}`) : null,
    told.rows.length === 0 ? el("p", { class: "muted" }, "No row would change.") : null,
    ...found.filter(([, rows]) => rows.length > 0).map(([title, rows]) => el("div", {}, el("h3", {}, title), table(title, told.columns, rows))),
  ].filter(Boolean);
}

function table(title, names, rows) {
  const clause = { title: "Clause", num: true, cell: (each) => number(each.clause) };
  const columns = names.map((name, index) => ({ title: el("span", { class: "long" }, name), cell: (each) => cell(each, index) }));
  return grid(title, rows.some((each) => each.clause !== null) ? [clause, ...columns] : columns, rows);
}

/** One value, or the old beside the new one. */
function cell(row, index) {
  if (row.old === null || row.new === null) return value((row.old ?? row.new)[index]);
  if (!row.differs.includes(index)) return value(row.new[index]);
  const [before, after] = [row.old[index], row.new[index]];
  const note = before === after ? el("span", { class: "muted" }, " (differs behind what is shown)") : null;
  return el("span", {}, el("del", { class: "before" }, value(before)), " ", el("ins", { class: "after" }, value(after)), note);
}

function value(text) {
  return text === null ? el("span", { class: "muted" }, "NULL") : el("span", { class: "long" }, text);
}
