// What table care would do now, and what keeps it from doing more.

import { ask, bytes, el, facts, grid, number, pageOf, problemNote } from "./ui.js";

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
      ["Snapshots that would expire", number(told.expiry.snapshots)],
      ["Would free", told.expiry.size_complete ? bytes(told.expiry.size) : `at least ${bytes(told.expiry.size)}`],
      ["First that stays", told.expiry.first_retained ? link(told.expiry.first_retained) : "none"],
      ...Object.entries(told.expiry.limits),
    ])),
    card("Compact", told.problems.compaction, told.compaction && facts([
      ["Small files", number(told.compaction.small_files)],
      ["In small files", bytes(told.compaction.small_size)],
      ["Files in all", number(told.compaction.files)],
      ["Partitions worth it", number(told.compaction.partitions)],
      ["Rows marked as deleted", number(told.compaction.marked_rows)],
    ])),
    card("Running operations and consumers", told.problems.holds, told.holds.length > 0
      ? grid("Running operations and consumers", columns, told.holds)
      : el("p", { class: "muted" }, "None keeps a snapshot.")),
    card("Tags and branches", told.problems.refs, told.refs.length > 0
      ? grid("Tags and branches", columns, told.refs)
      : el("p", { class: "muted" }, "There are none.")),
    el("p", { class: "muted" }, "Orphan files are found by a search of the table's folders: run RemoveOrphanFilesOperator with dry_run."),
  ];
}

function card(name, problem, content) {
  return el("section", { class: "card" }, el("h2", {}, name), problem ? problemNote(problem) : content);
}
