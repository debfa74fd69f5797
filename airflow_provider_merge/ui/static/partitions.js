// Partitions of the newest snapshot: a picture by day where they are dates, and a list.

import { calendar } from "./plots.js";
import { ask, bytes, el, facts, fill, grid, labelled, moment, number, pager, percent, query, remember } from "./ui.js";

const limit = 100;

export async function partitionsPart(table) {
  const picture = el("figure", { class: "picture" });
  const results = el("div", {});
  let sorted = { key: query.get("sort") ?? "name", descending: query.get("descending") === "true" };
  let waiting;
  const search = el("input", {
    id: "partition", type: "search", value: query.get("partition"), placeholder: "Part of a name",
    oninput: () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => show(0), 250);
    },
  });
  const show = (offset) => {
    remember({ partition: search.value, sort: sorted.key, descending: sorted.descending ? "true" : null });
    const parameters = { ...table, search: search.value, sort: sorted.key, descending: sorted.descending, offset, limit };
    return fill(results, async () => list(await ask("partitions", parameters), offset, sorted, sort, show));
  };
  const sort = (key) => {
    sorted = { key, descending: key === sorted.key ? !sorted.descending : key !== "name" };
    show(0);
  };
  await show(0);
  ask("days", table).then((found) => found.column && calendar(picture, found.column, found.days)).catch(() => {});
  return [picture, el("div", { class: "controls" }, labelled("Search", search)), results];
}

/** Why a list is empty. */
function reasonForNone() {
  const search = query.get("partition");
  return search ? `No partition has "${search}" in its name.` : "The newest snapshot has no rows, or there is none yet.";
}

function list(found, offset, sorted, onsort, turn) {
  const columns = [
    { title: "Partition", sort: "name", cell: (each) => el("span", { class: "long" }, each.name || "the whole table") },
    { title: "Rows", sort: "rows", num: true, cell: (each) => number(each.rows) },
    { title: "Files", sort: "files", num: true, cell: (each) => number(each.files) },
    { title: "Small files", sort: "small_files", num: true, cell: (each) => number(each.small_files) },
    ...(found.partitions.some((each) => each.delete_files)
      ? [{ title: "Files of deletes", num: true, cell: (each) => number(each.delete_files) }] : []),
    { title: "Marked as deleted", sort: "marked_share", num: true, cell: (each) => percent(each.marked_share) },
    { title: "Size", sort: "size", num: true, cell: (each) => bytes(each.size) },
    { title: "Last change", sort: "last_change", cell: (each) => moment(each.last_change) },
  ];
  return [
    facts([
      ["Partitions", number(found.total)], ["Rows", number(found.rows)], ["Files", number(found.files)],
      ["Small files", number(found.small_files)], ["Size", bytes(found.size)],
    ]),
    found.total > 0 ? grid("Partitions of the newest snapshot", columns, found.partitions, { sorted, onsort }) : el("p", {}, reasonForNone()),
    pager(offset, limit, found.total, turn),
  ];
}
