// The list of tables of one connection.

import { age, ask, bytes, el, fill, grid, labelled, moment, number, pageOf, pager, query, remember, writer } from "./ui.js";

const limit = 50;
const ages = [
  ["", "of any age"], ["3600", "older than an hour"], ["86400", "older than a day"],
  ["604800", "older than a week"], ["2592000", "older than 30 days"],
];

export async function tablesPage() {
  const { connections } = await ask("connections");
  document.title = "Tables";
  if (connections.length === 0 && !query.get("connection")) {
    return [el("h1", {}, "Tables"), el("p", {},
      "There is no catalog connection that you may read. You see those for which you have the right to read the connection, and "
      + "those that the option ui_connections names. One of a secrets backend is listed only if it is named there.")];
  }
  const known = new Map(connections.map((each) => [each.connection, each.type]));
  const chosen = query.get("connection") || connections[0].connection;
  if (!known.has(chosen)) known.set(chosen, "");
  const results = el("section", { "aria-label": "Tables of the connection" });
  const select = el("select", { id: "connection", onchange: () => show({ connection: select.value, offset: null }) },
    [...known].map(([each, type]) => el("option", { value: each, selected: each === chosen }, type ? `${each} (${type})` : each)));
  const older = el("select", { id: "older_than", onchange: () => show({ older_than: older.value, offset: null }) },
    ages.map(([seconds, text]) => el("option", { value: seconds, selected: seconds === (query.get("older_than") ?? "") }, text)));
  let waiting;
  const field = (key, placeholder) => {
    const made = el("input", {
      id: key, type: "search", value: query.get(key), placeholder,
      oninput: () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => show({ [key]: made.value, offset: null }), 250);
      },
    });
    return made;
  };
  const show = (changes) => {
    remember(changes);
    return fill(results, () => list(query.get("connection"), (offset) => show({ offset })));
  };
  show({ connection: chosen });
  return [
    el("h1", {}, "Tables"),
    el("div", { class: "controls" },
      labelled("Connection", select),
      labelled("Search", field("search", "Part of a name")),
      labelled("Last snapshot", older),
      labelled("Last written by", field("writer", "DAG, task, engine"))),
    results,
  ];
}

async function list(connection, turn) {
  const offset = Number(query.get("offset") ?? 0);
  const filters = { older_than: query.get("older_than"), writer: query.get("writer") };
  const found = await ask("tables", { connection, search: query.get("search"), ...filters, offset, limit });
  const isFiltered = Boolean(filters.older_than || filters.writer);
  const place = new Map();
  const cells = (row) => {
    const files = el("span", {}, number(row.files));
    place.set(row, { files, size: el("span", {}, bytes(row.size)) });
    return files;
  };
  const columns = [
    { title: "Table", cell: (row) => name(connection, row) },
    { title: "Snapshot", cell: (row) => row.problem ? broken(row.problem) : row.latest?.snapshot_id ?? "none" },
    { title: "Age", num: true, cell: (row) => row.latest ? el("span", { title: moment(row.latest.time) }, age(row.latest.time)) : "–" },
    { title: "Rows stored", num: true, cell: (row) => number(row.latest?.records) },
    { title: "Files", num: true, cell: cells },
    { title: "Size", num: true, cell: (row) => place.get(row).size },
    { title: "Last written by", cell: (row) => row.latest ? writer(row.latest) : "–" },
  ];
  const shown = [
    el("p", { class: "muted", role: "status" },
      `${number(found.total)} tables${found.complete ? "" : "; the catalog has more than can be listed: search by name"}`),
    found.tables.length > 0 ? grid("Tables by name", columns, found.tables) : el("p", {}, reasonForNone(connection, found)),
    isFiltered ? filterPager(offset, found, turn) : pager(offset, limit, found.total, turn),
  ];
  count(connection, found.tables, place);
  return shown;
}

/** Why a list is empty. */
function reasonForNone(connection, found) {
  const search = query.get("search");
  if (found.total === 0 && search) return `No table of ${connection} has "${search}" in its name.`;
  if (found.total === 0) return `The catalog of ${connection} answers, and has no tables. Look at the connection's warehouse if it should have some.`;
  return `None of the ${number(found.looked_at)} tables that were looked at passes the filters: last snapshot, and last written by.`;
}

/** With filters, a page is full when enough tables pass, however many have to be read. */
function filterPager(offset, found, turn) {
  return el("nav", { class: "pager", "aria-label": "Pages" },
    el("button", { type: "button", disabled: offset === 0, onclick: () => turn(null) }, "First"),
    el("span", {}, `${number(found.tables.length)} found in ${number(found.looked_at)} of ${number(found.total)} tables`),
    el("button", { type: "button", disabled: found.next === null, onclick: () => turn(found.next) }, "Go on"));
}

/** Fill in files and sizes, one table after the other: each may have to read manifests. */
async function count(connection, rows, place) {
  for (const row of rows) {
    if (row.size !== null || !row.latest) continue;
    const { files, size } = place.get(row);
    if (!files.isConnected) await new Promise((resolve) => setTimeout(resolve, 100));
    if (!files.isConnected) return;
    try {
      const found = await ask("size", { connection, database: row.database, table: row.table });
      files.textContent = number(found?.files);
      size.textContent = bytes(found?.size);
    } catch (error) {
      size.title = error.message;
    }
  }
}

function name(connection, { database, table }) {
  return el("a", { href: pageOf("table", { connection, database, table }), class: "long" }, `${database}.${table}`);
}

function broken(problem) {
  return el("span", { class: "bad", title: `${problem.message} ${problem.remedy}` }, problem.code);
}
