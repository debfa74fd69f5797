// The list of tables of one connection.

import { age, ask, bytes, el, fill, grid, moment, number, pageOf, pager, query, remember, writer } from "./ui.js";

const limit = 50;

export async function tablesPage() {
  const { connections } = await ask("connections");
  document.title = "Tables";
  if (connections.length === 0 && !query.get("connection")) {
    return [el("h1", {}, "Tables"), el("p", {}, "There is no catalog connection that you may read.")];
  }
  const known = connections.map((each) => each.connection);
  const chosen = query.get("connection") || known[0];
  if (!known.includes(chosen)) known.unshift(chosen);
  const results = el("section", { "aria-label": "Tables of the connection" });
  const select = el("select", { id: "connection", onchange: () => show({ connection: select.value, offset: null }) },
    known.map((each) => el("option", { value: each, selected: each === chosen }, each)));
  let waiting;
  const search = el("input", {
    id: "search", type: "search", value: query.get("search"), placeholder: "Part of a name",
    oninput: () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => show({ search: search.value, offset: null }), 250);
    },
  });
  const show = (changes) => {
    remember(changes);
    return fill(results, () => list(query.get("connection"), (offset) => show({ offset })));
  };
  show({ connection: chosen });
  return [
    el("h1", {}, "Tables"),
    el("div", { class: "controls" },
      el("label", { for: "connection" }, "Connection"), select,
      el("label", { for: "search" }, "Search"), search),
    results,
  ];
}

async function list(connection, turn) {
  const offset = Number(query.get("offset") ?? 0);
  const found = await ask("tables", { connection, search: query.get("search"), offset, limit });
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
    grid("Tables by name", columns, found.tables),
    pager(offset, limit, found.total, turn),
  ];
  count(connection, found.tables, place);
  return shown;
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
