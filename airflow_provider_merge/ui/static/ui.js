// Elements, requests and texts that all pages share. Texts of tables only ever become text nodes.

// Airflow's own root: it may have a path before it.
export const root = location.pathname.replace(/lakehouse\/[^/]*$/, "");
export const query = new URLSearchParams(location.search);

/** An element: `el("a", {href, class}, "text", child)`; children that are null are left out. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return made;
}

/** What went wrong with a request, as the API tells it. */
export class Problem extends Error {
  constructor({ code, message, remedy }) {
    super(message);
    this.code = code;
    this.remedy = remedy;
  }
}

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const isRounded = (found) => /^-?\d{16,}$/.test(found) && !Number.isSafeInteger(Number(found));

/** The value of a JSON text. Whole numbers that a browser would round, such as ids of snapshots, are text. */
export function exactJson(text) {
  return JSON.parse(text.replace(tokens, (found) => (isRounded(found) ? `"${found}"` : found)));
}

/** The JSON of an answer; raises Problem. Parameters that are null are left out. */
export async function ask(path, parameters = {}, base = "v1/") {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== "");
  const search = new URLSearchParams(given).toString();
  const answer = await fetch(`${base}${path}${search ? `?${search}` : ""}`, {
    headers: { Accept: "application/json" },
  });
  const told = await answer.text().then(exactJson).catch(() => ({}));
  if (answer.ok) return told;
  const detail = typeof told.detail === "string" ? told.detail : answer.statusText;
  throw new Problem({ code: told.code ?? String(answer.status), message: told.message ?? detail, remedy: told.remedy });
}

/** A note about an error, announced to screen readers. */
export function problemNote(problem) {
  return el(
    "div",
    { class: "problem", role: "alert" },
    el("strong", {}, problem.code ?? "Error"),
    el("p", {}, problem.message),
    problem.remedy ? el("p", { class: "muted" }, problem.remedy) : null,
  );
}

/** Fill a place with what `make` returns, or with the error; nothing else on the page changes. */
export async function fill(place, make) {
  place.setAttribute("aria-busy", "true");
  try {
    place.replaceChildren(...[await make()].flat().filter(Boolean));
  } catch (error) {
    place.replaceChildren(problemNote(error));
  }
  place.removeAttribute("aria-busy");
}

/** The address of one of these pages. */
export function pageOf(name, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `${name || "./"}?${new URLSearchParams(given)}`;
}

/** Keep the address in step with what is shown, without a new page. */
export function remember(changes) {
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(key);
    else query.set(key, value);
  }
  history.replaceState(null, "", `${location.pathname}?${query}`);
}

/** A link to a page of Airflow's own, which opens in place of the frame around this page. */
export function airflowLink(page, ...children) {
  return el("a", { href: root + page, class: "long", onclick: leaveFrame }, ...children);
}

function leaveFrame(event) {
  if (window.parent === window) return;
  // The frame's sandbox lets no link out of it, but the page around it is Airflow's own.
  event.preventDefault();
  const outside = window.parent.document;
  const link = outside.createElement("a");
  link.href = event.currentTarget.href;
  if (event.ctrlKey || event.metaKey) link.target = "_blank";
  outside.body.append(link);
  link.click();
  link.remove();
}

const numbers = new Intl.NumberFormat("en-US");

/** A number with separators; a dash where it is not known. */
export function number(value) {
  return value === null || value === undefined ? "–" : numbers.format(value);
}

/** A number of bytes for people. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const [unit, factor] = byteUnit(value);
  const size = value / factor;
  return `${factor === 1 ? size : size.toFixed(size < 10 ? 1 : 0)} ${unit}`;
}

/** The unit in which people read a number of bytes, and how many bytes it has. */
export function byteUnit(value) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let power = 0;
  while (Math.abs(value) >= 1000 ** (power + 1) && power < units.length - 1) power += 1;
  return [units[power], 1000 ** power];
}

/** How long ago a time is, by this browser's clock; the writer's may be ahead of it. */
export function age(time) {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  if (Number.isNaN(seconds)) return "–";
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [size, unit] = units.find(([each]) => Math.abs(seconds) >= each) ?? [1, "second"];
  const count = Math.floor(Math.abs(seconds) / size);
  return `${number(count)} ${unit}${count === 1 ? "" : "s"}${seconds <= -1 ? " ahead" : ""}`;
}

/** A time in UTC, to the second. */
export function moment(time) {
  return time ? time.replace("T", " ").replace("+00:00", "") : "–";
}

/** A percentage of a share from 0 to 1. */
export function percent(share) {
  return share === null || share === undefined ? "–" : `${(share * 100).toFixed(1)} %`;
}

/** A table: columns are `{title, cell, num, sort}`; a row is what `cell` takes. */
export function grid(caption, columns, rows, { sorted = null, onsort = null, rowClass = () => null } = {}) {
  const head = columns.map((column) => {
    const direction = sorted && sorted.key === column.sort ? (sorted.descending ? "descending" : "ascending") : null;
    const title = column.sort && onsort
      ? el("button", { type: "button", class: "sort", onclick: () => onsort(column.sort) }, column.title,
        direction ? el("span", { "aria-hidden": "true" }, direction === "descending" ? " ↓" : " ↑") : null)
      : column.title;
    return el("th", { scope: "col", class: column.num ? "num" : null, "aria-sort": direction }, title);
  });
  const body = rows.map((row) =>
    el("tr", { class: rowClass(row) }, columns.map((column) => el("td", { class: column.num ? "num" : null }, column.cell(row)))));
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
    el("table", {}, el("caption", { class: "hidden" }, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

/** Facts as pairs of a name and a value. */
export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null).map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** A control behind its label, which stay together. */
export function labelled(text, control) {
  return el("span", { class: "labelled" }, el("label", { for: control.id }, text), control);
}

/** Buttons that turn pages. */
export function pager(offset, limit, total, turn) {
  const last = Math.min(offset + limit, total);
  return el("nav", { class: "pager", "aria-label": "Pages" },
    el("button", { type: "button", disabled: offset === 0, onclick: () => turn(Math.max(0, offset - limit)) }, "Previous"),
    el("span", {}, total === 0 ? "none" : `${number(offset + 1)}–${number(last)} of ${number(total)}`),
    el("button", { type: "button", disabled: last >= total, onclick: () => turn(offset + limit) }, "Next"));
}

/** Who wrote a snapshot: its task in Airflow, or another engine by its name. */
export function writer(snapshot) {
  if (snapshot.run) {
    const { dag_id, task_id, map_index, page } = snapshot.run;
    return airflowLink(page, `${dag_id} / ${task_id}${map_index >= 0 ? `[${map_index}]` : ""}`);
  }
  if (snapshot.run_hidden) return el("span", { class: "muted" }, "a DAG that you may not read");
  return el("span", { class: "long" }, snapshot.writer || "not told");
}
