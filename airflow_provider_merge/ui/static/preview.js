// What a task's statement did or, in a dry run, would do: from Airflow's own REST API.

import { changedRows } from "./changed.js";
import { dryRunError, pageOfTask, resultOf, taskInstance, unquoted } from "./tasks.js";
import { airflowLink, bytes, el, facts, grid, number, pageOf, problemNote, query } from "./ui.js";

const counts = ["source_rows", "matched", "inserted", "updated", "deleted", "carried"];
const files = ["files_total", "files_scanned", "files_rewritten", "files_added", "files_removed"];
// What a statement was made of, in the order of reading.
const parts = ["sql", "target", "source", "sources", "on", "when", "where", "set", "assignments", "query", "mode", "partitions", "columns", "changes", "older_than", "retain_max", "retain_min", "statements", "tables", "exclude", "actions", "more_catalogs", "max_bytes", "max_seconds"];
const isMerge = (fields) => Boolean(fields.on) || /^\s*merge\b/i.test(fields.sql ?? "");
// What must hold, or the statement fails with the code and changes nothing.
const guards = [
  { name: "expected_partitions", code: "PARTITION_NOT_EXPECTED", text: "Only the partitions that are expected change", isSet: (fields) => filled(fields.expected_partitions) },
  { name: "partition", code: "ROW_OUTSIDE_PARTITION", text: "New rows belong to the partition that is named", isSet: (fields) => filled(fields.partition) },
  { name: "allow_empty", code: "SOURCE_EMPTY", text: "An empty source does not clear the table", isSet: (fields) => fields.mode === "table" && !isTrue(fields.allow_empty) },
  { name: "max_bad_rows", code: "TOO_MANY_BAD_ROWS", text: "Few enough records of a source cannot be read", isSet: (fields) => /max_bad_rows\\*": *[^n ]/.test(JSON.stringify([fields.source, fields.sources])) },
  { name: "max_new_partitions", code: "TOO_MANY_PARTITIONS", text: "Few enough partitions are new", isSet: (fields) => filled(fields.max_new_partitions) },
  { name: "cardinality", code: "MERGE_TARGET_ROW_MULTIPLE_MATCHES", text: "No target row is changed by two source rows", isSet: isMerge },
];

export async function previewPage() {
  const [dag_id, dag_run_id, task_id] = ["dag_id", "run_id", "task_id"].map((key) => query.get(key) ?? "");
  const task = { dag_id, dag_run_id, task_id, map_index: query.get("map_index") ?? "-1" };
  document.title = `${dag_id} / ${task_id}`;
  const [result, instance] = await Promise.all([outcomeOf(task), taskInstance(task)]);
  const back = el("nav", { "aria-label": "Breadcrumb" }, airflowLink(pageOfTask(task), `${dag_id} / ${task_id}`));
  if (Array.isArray(result.tables)) return [back, ...careOfTables(result), statement(instance)];
  // A list of statements has a result for each.
  const each = result.statements ? Object.entries(result.statements) : [["", result]];
  return [back, ...each.flatMap(([name, told]) => outcome(name, told, instance)), statement(instance)];
}

/** What the task returned or, if it was a dry run that failed, its error. */
async function outcomeOf(task) {
  try {
    return await resultOf(task);
  } catch (problem) {
    const error = await dryRunError(task);
    if (!error) throw problem;
    return { status: "failed", error };
  }
}

/** A plan of table care for many tables, or what became of it. */
function careOfTables(result) {
  const isDry = result.status === "dry_run";
  const size = (value) => (value ? bytes(value) : "");
  const table = (each) => {
    const [database, name] = String(each.table).split(/\.(?=[^.]*$)/).map(unquoted);
    return el("a", { class: "long", href: pageOf("table", { connection: each.catalog, database, table: name, tab: "care" }) }, each.table);
  };
  const columns = [
    { title: "Catalog", cell: (each) => el("span", { class: "long" }, each.catalog) },
    { title: "Table", cell: table },
    { title: "Action", cell: (each) => text(each.action || "–") },
    { title: "Status", cell: (each) => (each.status === "failed" ? el("strong", { class: "bad" }, each.status) : each.status) },
    { title: "Reads", num: true, cell: (each) => size(each.read) },
    { title: "Writes", num: true, cell: (each) => size(each.write) },
    { title: "Frees", num: true, cell: (each) => (each.free ? `${each.at_least ? "at least " : ""}${bytes(each.free)}` : "") },
    { title: "Fewer files", num: true, cell: (each) => (each.files ? number(each.files) : "") },
    { title: "Snapshots", num: true, cell: (each) => (each.snapshots ? number(each.snapshots) : "") },
    { title: "Why", cell: (each) => el("span", { class: "long" }, [each.code, each.reason, each.remedy].filter(Boolean).join(" ")) },
  ];
  return [
    el("h1", {}, isDry ? "What table care would do" : "What table care did"),
    el("p", { role: "status" }, el("span", { class: "badge" }, result.status), isDry ? " A plan from metadata: nothing was changed." : null),
    el("section", { class: "card" }, facts([
      ...Object.entries(result.counts ?? {}).map(([name, count]) => [text(name), number(count)]),
      ["Reads", bytes(result.read)], ["Writes", bytes(result.write)], ["Frees", bytes(result.free)],
    ])),
    el("section", { class: "card" }, el("h2", {}, "Tables"), grid("Tables", columns, result.tables)),
  ];
}

function outcome(name, told, instance) {
  if (told.error) return failure(told.error, instance.rendered_fields ?? {});
  const isDry = ["dry_run", "planned"].includes(told.status);
  return [
    el("div", { class: "title" },
      name ? el("p", { class: "muted long" }, `Statement ${name}`) : null,
      el("h1", { class: "long" }, `${isDry ? "What the statement would do to" : "What the statement did to"} ${told.target ?? ""}`)),
    el("p", { role: "status" }, el("span", { class: "badge" }, told.status ?? "–"),
      isDry ? " A dry run: nothing was changed." : null),
    target(told, instance),
    isDry ? guardList(null, instance.rendered_fields ?? {}) : null,
    checked(told.metrics?.guards ?? [], isDry),
    told.row_preview ? keptRows(told, instance) : null,
    told.plan ? planned(told) : results(told),
  ].flat();
}

function keptRows(told, instance) {
  const connection = instance.rendered_fields?.catalog_conn_id;
  const [database, table] = String(told.target ?? "").split(/\.(?=[^.]*$)/);
  return connection && table ? changedRows({ connection, database, table }, told.operation_id) : null;
}

function failure(error, fields) {
  return [
    el("h1", { class: "long" }, `What the statement would do to ${unquoted(fields.target)}`),
    el("p", { role: "status" }, el("span", { class: "badge" }, "failed"), " A dry run: nothing was changed. The statement would fail:"),
    problemNote(error),
    guardList(error, fields),
  ];
}

/** The guards of a statement: what must hold, or it changes nothing. A dry run that ends well has met them all. */
function guardList(error, fields) {
  const rows = guards.filter((each) => each.isSet(fields));
  if (rows.length === 0) return null;
  const state = (each) => (!error ? "holds" : each.code === error.code ? el("strong", { class: "bad" }, "would trip") : "not known");
  const columns = [
    { title: "Guard", cell: (each) => each.text },
    { title: "Set by", cell: (each) => el("code", {}, each.name) },
    { title: "State", cell: state },
  ];
  return el("section", { class: "card" }, el("h2", {}, "Guards"), grid("Guards of the statement", columns, rows));
}

/** What was checked before publication: limits, and checks of rows. */
function checked(told, isDry) {
  if (told.length === 0) return null;
  const state = (each) => (each.held ? "holds" : el("strong", { class: "bad" }, isDry ? "would trip" : "tripped"));
  const columns = [
    { title: "Check", cell: (each) => el("span", { class: "long" }, each.name) },
    { title: "Allowed", cell: (each) => el("span", { class: "long" }, each.limit) },
    { title: "Seen", cell: (each) => el("span", { class: "long" }, each.partition ? `${each.seen} in ${each.partition}` : each.seen) },
    { title: "State", cell: state },
  ];
  return el("section", { class: "card" }, el("h2", {}, "Checked before publication"), grid("Checked before publication", columns, told));
}

/** What a statement would do at most, by metadata and its source. */
function planned(told) {
  const plan = told.plan;
  const known = ["inserted", "updated", "deleted", "files_rewritten", "files_removed"].map((name) => [text(name), number(plan[name])]);
  return el("section", { class: "card" }, el("h2", {}, "At most"), facts([
    ["Source rows", number(told.metrics?.source_rows ?? 0)], ...known, ["Bytes rewritten", bytes(plan.bytes_rewritten)],
  ]));
}

function clauses(told) {
  const names = { matched: "WHEN MATCHED", not_matched: "WHEN NOT MATCHED", not_matched_by_source: "WHEN NOT MATCHED BY SOURCE" };
  const done = { insert: "inserted", update: "updated", delete: "deleted" };
  const columns = [
    { title: "Clause", num: true, cell: ([, index]) => number(index + 1) },
    { title: "Applies", cell: ([each]) => names[each.when] ?? each.when },
    { title: "Rows", num: true, cell: ([each]) => number(each.rows) },
    { title: "Are", cell: ([each]) => done[each.action] ?? each.action },
  ];
  return el("section", { class: "card" }, el("h2", {}, "Rows by clause"), grid("Rows by clause", columns, told.map((each, index) => [each, index])));
}

function byPartition(told) {
  const counted = (title, name) => ({ title, num: true, cell: (each) => number(each[name]) });
  const columns = [
    { title: "Partition", cell: (each) => el("span", { class: "long" }, each.name || "the whole table") },
    counted("Inserted", "inserted"), counted("Updated", "updated"), counted("Deleted", "deleted"),
    counted("Files added", "files_added"), counted("Files removed", "files_removed"),
  ];
  return grid("Partitions, the first 100", columns, told);
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
  const care = ["snapshots", "tags", "schemas", "partition_specs", "data_files", "index_files", "manifests", "leftovers", "files_before", "files_after", "partitions_compacted"];
  const partitions = (told.partitions ?? []).map((each) => (typeof each === "string" ? { name: each } : { name: Object.entries(each.values ?? {}).map(([key, value]) => `${key}=${value}`).join("/"), ...each }));
  const rows = known(counts);
  return [
    rows.length > 0 ? el("section", { class: "card" }, el("h2", {}, "Rows"), facts(rows)) : null,
    (metrics.clauses ?? []).length > 0 ? clauses(metrics.clauses) : null,
    Array.isArray(told.parts)
      ? altered(told.parts)
      : el("section", { class: "card" }, el("h2", {}, "Files"), facts([...known(told.metrics ? files : care), ...sizes])),
    partitions.length > 0
      ? el("section", { class: "card" }, el("h2", {}, `Partitions: ${number(metrics.partitions_changed ?? partitions.length)}`),
        (told.partition_metrics ?? []).length > 0 ? byPartition(told.partition_metrics) : grid("Partitions, the first 100", [{ title: "Partition", cell: (each) => el("span", { class: "long" }, each.name || "the whole table") }], partitions))
      : null,
    (told.schema_changes ?? []).length > 0
      ? el("section", { class: "card" }, el("h2", {}, "Schema"), el("ul", {}, told.schema_changes.map((each) => el("li", { class: "long" }, each))))
      : null,
    Array.isArray(told.files) && told.files.length > 0
      ? el("section", { class: "card" }, el("h2", {}, "Orphan files"), grid("Orphan files, the first 1,000", [{ title: "File", cell: (each) => el("span", { class: "long" }, each) }], told.files))
      : null,
  ];
}

/** What of a table's definition changed, or would change. */
function altered(parts) {
  const columns = [
    { title: "Part", cell: (each) => each.what },
    { title: "Before", cell: (each) => el("span", { class: "long" }, each.before || "–") },
    { title: "After", cell: (each) => el("span", { class: "long" }, each.after || "–") },
  ];
  return el("section", { class: "card" }, el("h2", {}, "Definition"),
    parts.length > 0 ? grid("What is another one", columns, parts) : el("p", { class: "muted" }, "It is as it shall be."));
}

function statement(instance) {
  const fields = instance.rendered_fields ?? {};
  const given = parts.filter((name) => fields[name] !== null && filled(fields[name]));
  if (given.length === 0) return null;
  return el("section", { class: "card" }, el("h2", {}, "The statement as it was sent"),
    facts([["Operator", instance.operator_name ?? instance.operator], ["Connection", fields.catalog_conn_id]]),
    el("dl", { class: "statement" }, given.map((name) => el("div", {}, el("dt", {}, text(name)),
      el("dd", {}, el("pre", { tabindex: "0" }, typeof fields[name] === "string" ? fields[name] : JSON.stringify(fields[name], null, 2)))))));
}

/** Whether a rendered field has a value; some are JSON as text. */
function filled(value) {
  const empty = ["", "[]", "{}", "null", "None"];
  return value !== undefined && !empty.includes(typeof value === "string" ? value : JSON.stringify(value));
}

function isTrue(value) {
  return String(value).toLowerCase() === "true";
}

function text(name) {
  const words = name.replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1);
}
