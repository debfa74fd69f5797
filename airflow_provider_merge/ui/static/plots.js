// Pictures, drawn by plotly, which has a package of its own; without it, the lists say the same.

import { token } from "./theme.js";
import { bytes, byteUnit, el, moment, number } from "./ui.js";

let loading = null;

const library = "static/plotly.min.js";

/** Let the browser fetch the library, and not run it yet: that takes longer than the numbers. */
export function fetchLibrary() {
  document.head.append(el("link", { rel: "preload", as: "script", href: library }));
}

function plotly() {
  loading ??= new Promise((resolve) => {
    document.head.append(el("script", {
      src: library,
      onload: () => resolve(window.Plotly ?? window.moduleName ?? null),
      onerror: () => resolve(null),
    }));
  });
  return loading;
}

// Plotly takes some tags in texts for its own.
const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Rows that snapshots changed as bars, and below them size and files as lines. */
export async function histogram(place, snapshots, choose, sizes) {
  if (snapshots.length === 0) return;
  const oldestFirst = [...snapshots].reverse();
  const positions = oldestFirst.map((_, index) => index);
  const bars = (key, sign, name, color) => ({
    type: "bar", name, x: positions, y: oldestFirst.map((each) => sign * (each.change[key] ?? 0)),
    marker: { color }, hovertext: oldestFirst.map(hover), hoverinfo: "text", textposition: "none",
  });
  let size = ["B", 1];
  let mostFiles = 0;
  const marked = positions.filter((index) => oldestFirst[index].refs.length > 0);
  const make = (counted) => {
    mostFiles = Math.max(0, ...[...counted.values()].map((each) => each.files ?? 0));
    size = byteUnit(Math.max(0, ...[...counted.values()].map((each) => each.size ?? 0)));
    const line = (key, name, axis, color, text, factor) => ({
      type: "scatter", mode: "lines", name, x: positions, yaxis: axis, xaxis: "x",
      y: oldestFirst.map((each) => inUnits(counted.get(each.snapshot_id)?.[key], factor)),
      line: { color, width: 2 }, hoverinfo: "text",
      hovertext: oldestFirst.map((each) => `snapshot ${each.snapshot_id}: ${text(counted.get(each.snapshot_id)?.[key])}`),
    });
    const traces = [
      bars("inserted", 1, "rows inserted", token("--inserted")),
      bars("updated", 1, "rows updated", token("--updated")),
      bars("deleted", -1, "rows deleted", token("--deleted")),
      {
        type: "scatter", mode: "markers", name: "tags, branches", x: marked, y: marked.map(() => 0),
        marker: { color: token("--fg"), symbol: "diamond", size: 9 }, hoverinfo: "text",
        hovertext: marked.map((index) => plain(oldestFirst[index].refs.join(", ").slice(0, 200))),
      },
    ];
    if (counted.size > 0) {
      traces.push(line("size", "size", "y2", token("--size"), (value) => bytes(value), size[1]));
      traces.push(line("files", "files", "y3", token("--files"), (value) => `${number(value)} files`, 1));
    }
    return traces;
  };
  const every = Math.max(1, Math.ceil(oldestFirst.length / 6));
  const ticks = positions.filter((index) => index % every === 0);
  const layout = () => ({
    barmode: "relative", height: 360, bargap: 0.15,
    xaxis: { tickvals: ticks, ticktext: ticks.map((index) => moment(oldestFirst[index].time).slice(0, 16)), showgrid: false, anchor: "y2" },
    yaxis: { domain: [0.42, 1], title: { text: "rows" }, zeroline: true },
    yaxis2: { domain: [0, 0.34], title: { text: size[0] }, rangemode: "tozero", nticks: 5 },
    yaxis3: { overlaying: "y2", side: "right", title: { text: "files" }, rangemode: "tozero", showgrid: false, tickformat: ",d", ...wholeTicks(mostFiles) },
  });
  const caption = `Rows that ${snapshots.length} snapshots changed, from ${moment(oldestFirst[0].time)} to ${moment(snapshots[0].time)}; the list has the same numbers.`;
  const plot = await picture(place, caption, () => make(new Map()), layout);
  if (!plot) return;
  const chosen = (event) => event.points[0] && choose(oldestFirst[event.points[0].x].snapshot_id);
  plot.on("plotly_click", chosen);
  const counted = await sizes.catch(() => null);
  if (counted) plot.redrawWith(() => make(new Map(counted.sizes.map((each) => [each.snapshot_id, each]))));
}

/** An axis of few things has a tick for each: an axis above another one has that one's ticks by default. */
function wholeTicks(most) {
  return most < 5 ? { tickmode: "linear", tick0: 0, dtick: 1 } : { tickmode: "auto", nticks: 4 };
}

function inUnits(value, factor) {
  return value === null || value === undefined ? null : value / factor;
}

function hover(each) {
  const { inserted, updated, deleted } = each.change;
  return plain(`snapshot ${each.snapshot_id}, ${moment(each.time)}: ${each.operation.slice(0, 60)}, `
    + `${number(inserted)} inserted, ${number(updated)} updated, ${number(deleted)} deleted`);
}

/** Rows by day: a column for each week. */
export async function calendar(place, column, days) {
  const first = Date.parse(days[0].day);
  const monday = first - ((new Date(first).getUTCDay() + 6) % 7) * 86400000;
  const known = new Map(days.map((each) => [each.day, each]));
  const weeks = Math.floor((Date.parse(days.at(-1).day) - monday) / (7 * 86400000)) + 1;
  const at = (weekday, week) => new Date(monday + (week * 7 + weekday) * 86400000).toISOString().slice(0, 10);
  const rows = [0, 1, 2, 3, 4, 5, 6].map((weekday) => Array.from({ length: weeks }, (_, week) => at(weekday, week)));
  const make = () => [{
    type: "heatmap", xgap: 2, ygap: 2, hoverinfo: "text", showscale: true,
    x: rows[0], y: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    z: rows.map((line) => line.map((day) => known.get(day)?.rows ?? known.get(day)?.files ?? null)),
    text: rows.map((line) => line.map((day) => {
      const found = known.get(day);
      return `${day}: ${found ? `${number(found.rows)} rows, ${number(found.files)} files, ${bytes(found.size)}` : "nothing"}`;
    })),
    colorbar: { title: { text: days.some((each) => each.rows !== null) ? "rows" : "files" } },
    colorscale: [[0, token("--heat-low")], [1, token("--heat-high")]],
  }];
  const layout = () => ({
    height: 230,
    xaxis: { type: "category", nticks: 10, showgrid: false },
    yaxis: { autorange: "reversed", showgrid: false, fixedrange: true },
  });
  await picture(place, `Rows by ${column}, a column for each week; the list has the same numbers.`, make, layout);
}

async function picture(place, caption, make, layout) {
  const drawn = el("div", { class: "plot", role: "img", "aria-label": caption });
  // What stands below does not move when the picture comes.
  drawn.style.height = `${layout().height}px`;
  place.replaceChildren(drawn, el("figcaption", { class: "hidden" }, caption));
  // The numbers are there first: to run the library takes the browser longer than everything else.
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  while (!drawn.isConnected) await frame();
  await frame();
  await new Promise((resolve) => setTimeout(resolve));
  const drawing = await plotly();
  if (!drawing) {
    place.replaceChildren(el("p", { class: "muted" },
      "There is no picture: plotly is not installed beside Airflow's API server (pip install \"airflow-provider-merge[ui]\")."));
    return null;
  }
  const style = () => {
    const axis = { gridcolor: token("--border"), zerolinecolor: token("--border"), linecolor: token("--border"), automargin: true };
    const own = layout();
    for (const key of Object.keys(own).filter((each) => /^[xy]axis/.test(each))) own[key] = { ...axis, ...own[key] };
    return {
      ...own, margin: { l: 60, r: 60, t: 10, b: 40 }, hovermode: "closest", showlegend: own.barmode !== undefined,
      legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: token("--fg-muted"), family: token("--font"), size: 12 },
    };
  };
  let traces = make;
  const draw = () => drawn.isConnected && drawing.react(drawn, traces(), style(), { displayModeBar: false, responsive: true });
  drawn.redrawWith = (next) => {
    traces = next;
    return draw();
  };
  addEventListener("themechange", draw);
  await draw();
  return drawn;
}
