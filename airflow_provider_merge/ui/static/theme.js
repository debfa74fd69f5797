// Light or dark as Airflow is, with the colours of the page around this one.

const tokens = {
  "--bg": "--chakra-colors-bg",
  "--bg-subtle": "--chakra-colors-bg-subtle",
  "--bg-muted": "--chakra-colors-bg-muted",
  "--fg": "--chakra-colors-fg",
  "--fg-muted": "--chakra-colors-fg-muted",
  "--border": "--chakra-colors-border",
  "--font": "--chakra-fonts-body",
};
const wantsDark = matchMedia("(prefers-color-scheme: dark)");

/** Follow Airflow's setting from now on; `themechange` tells of each change. */
export function followTheme() {
  apply();
  const later = () => setTimeout(apply, 100);
  addEventListener("storage", (event) => event.key === "theme" && later());
  wantsDark.addEventListener("change", later);
}

/** A colour or font of the page as it is now. */
export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function apply() {
  const own = document.documentElement;
  const chosen = localStorage.getItem("theme");
  const isDark = chosen === "dark" || (chosen !== "light" && wantsDark.matches);
  own.dataset.theme = isDark ? "dark" : "light";
  for (const [name, theirs] of Object.entries(tokens)) {
    const value = around(theirs);
    if (value) own.style.setProperty(name, value);
    else own.style.removeProperty(name);
  }
  dispatchEvent(new Event("themechange"));
}

function around(name) {
  if (window.parent === window) return "";
  try {
    const outside = window.parent.document.documentElement;
    return window.parent.getComputedStyle(outside).getPropertyValue(name).trim();
  } catch {
    return "";
  }
}
