// What table care would do now, and what keeps it from doing more.

import { lastOrphanSearch, pageOfTask, runningTasks } from "./tasks.js";
import { age, airflowLink, ask, bytes, el, facts, fill, grid, moment, number, pageOf, problemNote } from "./ui.js";

export async function carePart(table) {
  const told = await ask("care", table);
  const link = (id) => el("a", { href: pageOf("table", { ...table, snapshot: id }) }, id);
  const columns = [
    { title: "Kind", cell: (each) => each.kind },
    { title: "Name", cell: (each) => el("span", { class: "long" }, each.name) },
    { title: "Snapshot", cell: (each) => link(each.snapshot_id) },
  ];
  return [
    card("Expire snapshots", told.problems.expiry, told.expiry && facts([
      ["Snapshots that would expire", atLeast(number(told.expiry.snapshots), told.expiry.snapshots_complete)],
      ["Would free", atLeast(bytes(told.expiry.size), told.expiry.size_complete)],
      ["First that stays", told.expiry.first_retained ? link(told.expiry.first_retained) : "none"],
      ...Object.entries(told.expiry.limits),
    ])),
    card("Compact", told.problems.compaction, told.compaction && facts([
      ["Small files", number(told.compaction.small_files)],
      ["In small files", bytes(told.compaction.small_size)],
      ["Files in all", number(told.compaction.files)],
      ["Partitions worth it", number(told.compaction.partitions)],
      ["Rows marked as deleted", number(told.compaction.marked_rows)],
      ["Files of deletes", told.compaction.delete_files ? number(told.compaction.delete_files) : null],
    ])),
    card("Running operations and consumers", told.problems.holds, told.holds.length > 0
      ? grid("Running operations and consumers", columns, told.holds)
      : el("p", { class: "muted" }, "None keeps a snapshot.")),
    later("Sources that are followed", async () => sources((await ask("lags", table)).sources)),
    later("Running tasks", async () => {
      const tasks = await runningTasks(table);
      return tasks.length > 0
        ? el("ul", {}, tasks.map((task) => el("li", {}, airflowLink(pageOfTask(task), `${task.dag_id} / ${task.task_id}`), ` since ${moment(task.start_date?.slice(0, 19))}`)))
        : el("p", { class: "muted" }, "No task runs that names this table as its target.");
    }),
    later("Orphan files", async () => {
      const found = await lastOrphanSearch(table);
      return found ? orphans(found) : el("p", { class: "muted" },
        "No task has searched for them. They are found in the table's folders: run RemoveOrphanFilesOperator with dry_run.");
    }),
    card("Tags and branches", told.problems.refs, told.refs.length > 0
      ? grid("Tags and branches", columns, told.refs)
      : el("p", { class: "muted" }, "There are none.")),
  ];
}

function sources(lags) {
  if (lags.length === 0) {
    return el("p", { class: "muted" }, "No snapshot tells of changes that a task has applied.");
  }
  const columns = [
    { title: "Source", cell: (each) => el("span", { class: "long" }, each.source) },
    { title: "Task", cell: (each) => each.task_id ? `${each.dag_id} / ${each.task_id}` : "hidden" },
    { title: "Applied up to", cell: (each) => each.applied_snapshot_id },
    { title: "Left", cell: (each) => each.problem ? problemNote(each.problem) : left(each) },
    { title: "Grown by", cell: (each) => each.records === null ? "" : `${number(each.records)} rows` },
  ];
  return grid("Sources that are followed", columns, lags);
}

function left({ snapshots, seconds }) {
  if (snapshots === null) return "its history does not tell";
  if (snapshots === 0) return "nothing";
  return `${number(snapshots)} ${snapshots === 1 ? "snapshot" : "snapshots"}, the oldest ${age(new Date(Date.now() - seconds * 1000).toISOString())} old`;
}

function orphans({ task, result }) {
  const { dag_id, dag_run_id: run_id, task_id, map_index } = task;
  const isDry = result.status === "dry_run";
  return [
    facts([
      ["Last search", moment(task.start_date?.slice(0, 19))],
      [isDry ? "Data files that it would remove" : "Data files that it removed", counted(result.data_files)],
      ["Leftovers of killed jobs", counted(result.leftovers)],
      [isDry ? "Would free" : "Freed", bytes(result.bytes_removed)],
    ]),
    el("p", {}, el("a", { href: pageOf("preview", { dag_id, run_id, task_id, map_index }) }, "All that it found")),
  ];
}

/** A number; null, which is not shown, if nobody counted. */
function counted(value) {
  return value === undefined ? null : number(value);
}

/** A card that asks Airflow, and is filled when it answers. */
function later(name, make) {
  const place = el("div", {}, el("p", { class: "muted" }, "Loading…"));
  fill(place, make);
  return card(name, null, place);
}

function card(name, problem, content) {
  return el("section", { class: "card" }, el("h2", {}, name), problem ? problemNote(problem) : content);
}

function atLeast(text, isComplete) {
  return isComplete ? text : `at least ${text}`;
}
