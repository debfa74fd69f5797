// Two snapshots of a table.

import { sampleOf } from "./sample.js";
import { tableOf, title } from "./table.js";
import { ask, el, facts, fill, grid, labelled, moment, number, pageOf, pager, query, writer } from "./ui.js";

const limit = 100;

export async function comparePage() {
  const table = tableOf();
  const [before, after] = [query.get("before") ?? "", query.get("after") ?? ""];
  document.title = `${table.database}.${table.table}: ${before} and ${after}`;
  const results = el("section", { "aria-label": "Differences" });
  const show = (offset) => fill(results, async () => differences(table, await ask("compare", { ...table, before, after, offset, limit }), offset, show));
  show(0);
  const field = (name, value, text) => labelled(text, el("input", { id: name, name, value, inputmode: "numeric", pattern: "[0-9]{1,19}", required: true }));
  const form = el("form", {
    class: "controls", onsubmit: (event) => {
      event.preventDefault();
      location.assign(pageOf("compare", { ...table, before: form.elements.before.value, after: form.elements.after.value }));
    },
  }, field("before", before, "Before"), field("after", after, "After"), el("button", { type: "submit" }, "Compare"));
  return [title(table, "two snapshots"), form, results];
}

function differences(table, told, offset, turn) {
  const side = (name, each) => el("section", { class: "card" },
    el("h2", {}, `${name}: snapshot `, el("a", { href: pageOf("table", { ...table, snapshot: each.snapshot_id }) }, each.snapshot_id)),
    facts([["Time", moment(each.time)], ["Operation", each.operation], ["Written by", writer(each)], ["Rows stored", number(each.records)]]));
  const change = (each) => (each.rows_before === null || each.rows_after === null ? "–" : signed(each.rows_after - each.rows_before));
  const columns = [
    { title: "Partition", cell: (each) => el("span", { class: "long" }, each.name || "the whole table") },
    { title: "Rows before", num: true, cell: (each) => number(each.rows_before) },
    { title: "Rows after", num: true, cell: (each) => number(each.rows_after) },
    { title: "Difference", num: true, cell: change },
    { title: "Files added", num: true, cell: (each) => number(each.files_added) },
    { title: "Files removed", num: true, cell: (each) => number(each.files_removed) },
  ];
  return [
    el("div", { class: "sides" }, side("Before", told.before), side("After", told.after)),
    facts([
      ["Partitions that differ", number(told.total)],
      ["Rows in them", `${number(told.rows_before)} → ${number(told.rows_after)}`],
      ["Files added", number(told.files_added)],
      ["Files removed", number(told.files_removed)],
    ]),
    grid("Partitions that differ", columns, told.partitions),
    pager(offset, limit, told.total, turn),
    told.sample ? sampleOf(table, told.before.snapshot_id, told.after.snapshot_id) : null,
  ];
}

function signed(value) {
  return value > 0 ? `+${number(value)}` : number(value);
}
