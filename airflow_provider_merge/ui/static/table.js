// One table: what it is now, and tabs with its history, partitions, schemas and care.

import { carePart } from "./care.js";
import { partitionsPart } from "./partitions.js";
import { fetchLibrary } from "./plots.js";
import { runningPart } from "./running.js";
import { schemaPart } from "./schema.js";
import { timelinePart } from "./timeline.js";
import { age, airflowLink, ask, el, facts, fill, moment, number, pageOf, query, remember, writer } from "./ui.js";

const parts = {
  timeline: ["Timeline", timelinePart],
  partitions: ["Partitions", partitionsPart],
  schema: ["Schema", schemaPart],
  care: ["Table care", carePart],
};

/** The table that the address names. */
export function tableOf() {
  return Object.fromEntries(["connection", "database", "table"].map((key) => [key, query.get(key) ?? ""]));
}

export async function tablePage() {
  fetchLibrary();
  const table = tableOf();
  document.title = `${table.database}.${table.table}`;
  const head = el("section", { "aria-label": "The table now" });
  const body = el("section", { id: "part" });
  const tabs = el("nav", { class: "tabs", "aria-label": "Parts" });
  const show = (part) => {
    remember({ tab: part === "timeline" ? null : part });
    tabs.replaceChildren(...Object.entries(parts).map(([key, [title]]) =>
      el("button", { type: "button", "aria-current": key === part ? "page" : null, onclick: () => show(key) }, title)));
    body.setAttribute("aria-label", parts[part][0]);
    body.replaceChildren(el("p", { class: "muted" }, "Loading…"));
    return fill(body, () => parts[part][1](table));
  };
  const headed = fill(head, () => now(table));
  const running = runningPart(table);
  show(query.get("tab") in parts ? query.get("tab") : "timeline");
  // What is shown stays where it is: no link moves away from under the mouse.
  await headed;
  return [title(table), head, await running, tabs, body];
}

/** The heading of a page about a table, with the way back to the list. */
export function title({ connection, database, table }, more = "") {
  return el("div", { class: "title" },
    el("nav", { "aria-label": "Breadcrumb" }, el("a", { href: pageOf("", { connection }) }, `Tables of ${connection}`)),
    el("h1", { class: "long" }, `${database}.${table}`, more ? el("span", { class: "muted" }, ` ${more}`) : null));
}

async function now(table) {
  const told = await ask("table", table);
  const latest = told.latest;
  return [
    facts([
      ["Snapshot", latest ? latest.snapshot_id : "none"],
      ["Age", latest ? el("span", { title: moment(latest.time) }, age(latest.time)) : null],
      ["Rows stored", latest ? number(latest.records) : null],
      ["Snapshots kept", number(told.snapshots)],
      ["Last written by", latest ? writer(latest) : null],
      ["Partitioned by", told.partition_keys.join(", ") || "nothing"],
      ["Primary key", told.primary_keys.join(", ") || null],
      ["Asset", airflowLink(`assets?name_pattern=${encodeURIComponent(table.table)}`, "in Airflow")],
      ["Location", el("code", { class: "long" }, told.location)],
    ]),
  ];
}
