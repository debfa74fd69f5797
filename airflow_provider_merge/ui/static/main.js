// Shows the page that the address names.

import { comparePage } from "./compare.js";
import { previewPage } from "./preview.js";
import { tablePage } from "./table.js";
import { tablesPage } from "./tables.js";
import { followTheme } from "./theme.js";
import { el, fill, root } from "./ui.js";

const pages = { "": tablesPage, table: tablePage, compare: comparePage, preview: previewPage };
const place = document.getElementById("page");

followTheme();
if (window.parent === window) {
  document.body.prepend(el("header", { class: "top" },
    el("a", { href: root }, "Airflow"), el("a", { href: "./" }, "Tables")));
}
fill(place, pages[location.pathname.split("/").pop()]);
