// The history of a table: a picture, a list, and the snapshot that is chosen.

import { histogram } from "./plots.js";
import { ask, bytes, el, facts, fill, grid, moment, number, pageOf, query, remember, writer } from "./ui.js";

const limit = 100;

export async function timelinePart(table) {
  const until = query.get("until");
  const at = query.get("snapshot") ?? query.get("at");
  const place = el("div", {});
  const show = (from) => fill(place, () => page(table, from, show));
  await show(at ? { at } : until ? { until } : {});
  return place;
}

async function page(table, from, show) {
  const found = await ask("snapshots", { ...table, ...from, limit });
  const snapshots = found.snapshots;
  const detail = el("section", { class: "detail", "aria-label": "Chosen snapshot", "aria-live": "polite" });
  const rows = el("div", {});
  let chosen = null;
  const choose = (id) => {
    chosen = snapshots.find((each) => each.snapshot_id === id) ?? null;
    if (!chosen) return;
    remember({ snapshot: id, until: null, at: null });
    detail.replaceChildren(about(table, chosen, snapshots));
    draw();
  };
  const draw = () => rows.replaceChildren(list(snapshots, chosen, choose));
  draw();
  const picture = el("figure", { class: "picture" });
  histogram(picture, snapshots, choose, ask("sizes", { ...table, ...from, limit }));
  if (from.until && snapshots.length > 0) choose(snapshots[0].snapshot_id);
  else if (query.get("snapshot")) choose(query.get("snapshot"));
  return [
    from.until ? el("p", { role: "status" }, `The newest snapshot before ${moment(new Date(Number(from.until)).toISOString().slice(0, 19))} is on top.`) : null,
    el("p", { class: "muted" }, `${number(snapshots.length)} of ${number(found.total)} snapshots that are kept. Times are UTC.`),
    picture,
    detail,
    rows,
    el("nav", { class: "pager", "aria-label": "Pages" },
      el("button", { type: "button", disabled: !from.at && !from.until, onclick: () => turn({}) }, "Newest"),
      el("button", { type: "button", disabled: !found.next, onclick: () => turn({ at: found.next }) }, "Older")),
  ].filter(Boolean);

  function turn(next) {
    remember({ snapshot: null, until: null, at: next.at ?? null });
    show(next);
  }
}

function list(snapshots, chosen, choose) {
  const columns = [
    { title: "Snapshot", cell: (each) => el("button", { type: "button", class: "link", "aria-pressed": String(each === chosen), onclick: () => choose(each.snapshot_id) }, each.snapshot_id) },
    { title: "Time", cell: (each) => moment(each.time) },
    { title: "Operation", cell: (each) => el("span", { class: "long" }, each.operation) },
    { title: "Written by", cell: writer },
    { title: "Inserted", num: true, cell: (each) => number(each.change.inserted) },
    { title: "Updated", num: true, cell: (each) => number(each.change.updated) },
    { title: "Deleted", num: true, cell: (each) => number(each.change.deleted) },
    { title: "Rows stored", num: true, cell: (each) => number(each.records) },
    { title: "Tags, branches", cell: (each) => el("span", { class: "long" }, each.refs.join(", ")) },
  ];
  return grid("Snapshots, the newest first", columns, snapshots, { rowClass: (each) => (each === chosen ? "chosen" : null) });
}

function about(table, snapshot, snapshots) {
  const older = snapshots[snapshots.indexOf(snapshot) + 1];
  const base = snapshot.base_snapshot_id ?? older?.snapshot_id;
  const { change, run } = snapshot;
  return el("div", { class: "card" },
    el("h2", {}, `Snapshot ${snapshot.snapshot_id}`),
    facts([
      ["Time", moment(snapshot.time)],
      ["Operation", el("span", { class: "long" }, snapshot.operation)],
      ["Written by", writer(snapshot)],
      ["Run", run ? el("span", { class: "long" }, run.run_id) : null],
      ["Try", run?.try_number ? number(run.try_number) : null],
      ["Rows inserted", number(change.inserted)],
      ["Rows updated", number(change.updated)],
      ["Rows deleted", number(change.deleted)],
      ["Files added, removed", `${number(change.files_added)}, ${number(change.files_removed)}`],
      ["Bytes added, removed", `${bytes(change.bytes_added)}, ${bytes(change.bytes_removed)}`],
      ["Checked before publication", snapshot.checked.length > 0 ? el("span", { class: "long" }, snapshot.checked.join("; ")) : null],
      ["Tags, branches", snapshot.refs.join(", ") || null],
    ]),
    phases(snapshot.seconds),
    el("p", {},
      base ? el("a", { href: pageOf("compare", { ...table, before: base, after: snapshot.snapshot_id }) }, `Compare with snapshot ${base}, on which it builds`) : null,
      base ? " · " : null,
      el("a", { href: pageOf("table", { ...table, snapshot: snapshot.snapshot_id }) }, "Link to this snapshot")));
}

function phases(seconds) {
  const entries = Object.entries(seconds);
  if (entries.length === 0) return null;
  const whole = entries.reduce((sum, [, value]) => sum + value, 0) || 1;
  return el("div", {},
    el("h3", {}, `Duration by phase: ${whole.toFixed(1)} s`),
    el("ul", { class: "phases" }, entries.map(([name, value]) =>
      el("li", {}, el("span", { class: "long" }, name), el("meter", { min: 0, max: whole, value, "aria-label": name }), el("span", { class: "num" }, `${value.toFixed(1)} s`)))));
}
