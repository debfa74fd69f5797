// What a task's statement did or, in a dry run, would do: from Airflow's own REST API.

import { pageOfTask, resultOf, taskInstance } from "./tasks.js";
import { airflowLink, bytes, el, facts, grid, number, pageOf, query } from "./ui.js";

const counts = ["source_rows", "matched", "inserted", "updated", "deleted", "carried"];
const files = ["files_total", "files_scanned", "files_rewritten", "files_added", "files_removed"];
// What a statement was made of, in the order of reading.
const parts = ["sql", "target", "source", "sources", "on", "when", "where", "set", "assignments", "query", "mode", "partitions", "columns", "older_than", "retain_max", "retain_min", "statements"];

export async function previewPage() {
  const [dag_id, dag_run_id, task_id] = ["dag_id", "run_id", "task_id"].map((key) => query.get(key) ?? "");
  const task = { dag_id, dag_run_id, task_id, map_index: query.get("map_index") ?? "-1" };
  document.title = `${dag_id} / ${task_id}`;
  const [result, instance] = await Promise.all([resultOf(task), taskInstance(task)]);
  const back = el("nav", { "aria-label": "Breadcrumb" }, airflowLink(pageOfTask(task), `${dag_id} / ${task_id}`));
  // A list of statements has a result for each.
  const each = result.statements ? Object.entries(result.statements) : [["", result]];
  return [back, ...each.flatMap(([name, told]) => outcome(name, told, instance)), statement(instance.rendered_fields ?? {})];
}

function outcome(name, told, instance) {
  const isDry = told.status === "dry_run";
  return [
    el("div", { class: "title" },
      name ? el("p", { class: "muted long" }, `Statement ${name}`) : null,
      el("h1", { class: "long" }, `${isDry ? "What the statement would do to" : "What the statement did to"} ${told.target ?? ""}`)),
    el("p", { role: "status" }, el("span", { class: "badge" }, told.status ?? "–"),
      isDry ? " A dry run: nothing was changed." : null),
    target(told, instance),
    results(told),
  ].flat();
}

function target(told, instance) {
  const connection = instance.rendered_fields?.catalog_conn_id;
  const [database, table] = String(told.target ?? "").split(/\.(?=[^.]*$)/);
  const base = told.base_snapshot_id;
  if (!connection || !table) return null;
  return el("p", {}, el("a", { href: pageOf("table", { connection, database, table, snapshot: told.snapshot_id ?? base }) },
    base ? `The table at snapshot ${told.snapshot_id ?? base}` : "The table"));
}

function results(told) {
  const metrics = told.metrics ?? told;
  const known = (names) => names.filter((name) => metrics[name] !== undefined).map((name) => [text(name), number(metrics[name])]);
  const sizes = [["Bytes added", metrics.bytes_added], ["Bytes removed", metrics.bytes_removed]].filter(([, value]) => value !== undefined).map(([name, value]) => [name, bytes(value)]);
  const care = ["snapshots", "tags", "data_files", "index_files", "manifests", "leftovers", "files_before", "files_after", "partitions_compacted"];
  const partitions = (told.partitions ?? []).map((each) => (typeof each === "string" ? { name: each } : { name: Object.entries(each.values ?? {}).map(([key, value]) => `${key}=${value}`).join("/"), ...each }));
  const rows = known(counts);
  return [
    rows.length > 0 ? el("section", { class: "card" }, el("h2", {}, "Rows"), facts(rows)) : null,
    el("section", { class: "card" }, el("h2", {}, "Files"), facts([...known(told.metrics ? files : care), ...sizes])),
    partitions.length > 0
      ? el("section", { class: "card" }, el("h2", {}, `Partitions: ${number(metrics.partitions_changed ?? partitions.length)}`),
        grid("Partitions, the first 100", [{ title: "Partition", cell: (each) => el("span", { class: "long" }, each.name || "the whole table") }], partitions))
      : null,
    (told.schema_changes ?? []).length > 0
      ? el("section", { class: "card" }, el("h2", {}, "Schema"), el("ul", {}, told.schema_changes.map((each) => el("li", { class: "long" }, each))))
      : null,
    Array.isArray(told.files) && told.files.length > 0
      ? el("section", { class: "card" }, el("h2", {}, "Orphan files"), grid("Orphan files, the first 1,000", [{ title: "File", cell: (each) => el("span", { class: "long" }, each) }], told.files))
      : null,
  ];
}

function statement(fields) {
  const given = parts.filter((name) => fields[name] !== undefined && fields[name] !== null && fields[name] !== "");
  if (given.length === 0) return null;
  return el("section", { class: "card" }, el("h2", {}, "The statement as it was sent"),
    el("dl", { class: "statement" }, given.map((name) => el("div", {}, el("dt", {}, text(name)),
      el("dd", {}, el("pre", { tabindex: "0" }, typeof fields[name] === "string" ? fields[name] : JSON.stringify(fields[name], null, 2)))))));
}

function text(name) {
  const words = name.replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1);
}
