// The statements that work on a table now, asked for again while the page is seen.

import { airflowLink, ask, el, facts, moment, number, pageOf, percent, problemNote, query, writer } from "./ui.js";

// Milliseconds: a job tells how far it is at most so often; where none runs, another may begin.
const every = 10000;
const idle = 20000;
// For so many the page waits for the first answer, so that nothing on it moves afterwards.
const patience = 2000;

/** A place that shows what runs, empty as long as nothing does, once that is known. */
export async function runningPart(table) {
  const place = el("section", { "aria-label": "Statements at work", "aria-live": "polite" });
  // What was seen to run, and what the address asks about: its end is told, too.
  const followed = new Set(query.get("operation") ? [query.get("operation")] : []);
  const ended = new Map();
  const show = async () => {
    const { statements } = await ask("running", table);
    const now = new Set(statements.map((each) => each.operation_id));
    for (const id of followed) {
      if (now.has(id)) ended.delete(id);
      else if (!ended.has(id)) ended.set(id, await ask("operation", { ...table, operation_id: id }));
    }
    for (const id of now) followed.add(id);
    place.replaceChildren(...statements.map((each) => card(each)), ...[...ended.values()].map((each) => last(table, each)));
  };
  const again = async () => {
    if (!document.hidden) await show().catch((problem) => place.replaceChildren(problemNote(problem)));
    setTimeout(again, place.querySelector(".running") || document.hidden ? every : idle);
  };
  await Promise.race([again(), new Promise((done) => { setTimeout(done, patience); })]);
  return place;
}

function card(told) {
  const badge = el("span", { class: "badge" }, told.silent ? "not heard of" : "running");
  return el("div", { class: "card running" },
    el("h2", {}, `${told.operation}${told.statement ? ` ${told.statement}` : ""} `, badge),
    told.silent ? el("p", { role: "status" }, `Nothing came from its job for ${number(Math.floor(told.silent_seconds / 60))} minutes. Its driver was probably killed, or its store cannot be reached. What stands here is the last that it told; a retry of the task goes on from what was committed.`) : null,
    facts([
      ["By", told.run || told.run_hidden ? writer({ ...told, writer: "" }) : null],
      ["Run", told.run ? airflowLink(told.run.page, told.run.run_id) : null],
      ["Since", moment(told.since)],
      ["Told at", moment(told.told)],
      ["Phase", told.phase || "start"],
      ["Of its stages' tasks", told.share === null ? null : [progress(told.share), ` ${number(told.tasks_done)} of ${number(told.tasks)} (${percent(told.share)})`]],
      ["Rows so far", told.rows === null ? null : number(told.rows)],
      ["Operation", el("code", { class: "long" }, told.operation_id)],
    ]));
}

function progress(share) {
  return el("meter", { min: 0, max: 1, value: share, "aria-label": "Share of the tasks" });
}

/** What became of a statement that does not run. */
function last(table, told) {
  const id = el("code", { class: "long" }, told.operation_id);
  if (told.state === "unknown") {
    return el("div", { class: "card", role: "status" }, el("p", {}, "Operation ", id,
      " does not run. Nothing is known of it: it ended so long ago that its result is not kept any more, or it never changed this table."));
  }
  if (told.running) return card(told.running);
  return el("div", { class: "card", role: "status" },
    el("p", {}, "Operation ", id, ` has ended: ${told.status}`,
      told.snapshot_id ? [", ", el("a", { href: pageOf("table", { ...table, snapshot: told.snapshot_id }) }, `snapshot ${told.snapshot_id}`)] : null, "."),
    told.problem ? problemNote(told.problem) : null);
}
