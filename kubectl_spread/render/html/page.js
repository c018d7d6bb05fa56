/* The page: filter, addresses of findings and workloads, theme, print. */

const PRINTED = { workloads: 100, lines: 300 };

const textInput = document.getElementById("text");
const namespaceSelect = document.getElementById("namespace");
const severityInputs = [...document.querySelectorAll("input[name=severity]")];

function show() {
  filter.words = textInput.value.toLowerCase().split(/\s+/).filter(Boolean);
  filter.namespace = namespaceSelect.value;
  filter.severities = new Set(severityInputs.filter(({ checked }) => checked).map(({ value }) => value));
  const { causes, findings } = showFindings();
  showWorkloads();
  showHeatmap();
  const shown = [plural(causes, "cause"), plural(findings, "finding"), `${plural(workloadList.items.length, "workload")} with constraints`];
  document.getElementById("found").textContent = shown.join(", ");
}

let waiting = 0;

function showSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(show, 120);
}

/** Empties the filter; notes stay hidden unless they are wanted. */
function forget({ notes = false } = {}) {
  textInput.value = namespaceSelect.value = "";
  for (const input of severityInputs) input.checked = notes || input.value !== QUIET;
  show();
}

/** Shows the cause or workload that the address names. */
function follow() {
  const id = named(location.hash);
  const workload = workloadsById.get(id);
  if (workload && !passes(workload)) forget();
  if (workload) workloadList.reveal(workload);
  const target = document.getElementById(id);
  if (!target?.matches(".cause, .workload")) return;
  if (target.closest("[hidden]")) forget({ notes: true });
  if (workload) {
    unfold(target, workload);
    target.open = true;
  }
  target.scrollIntoView();
  (target.querySelector(":scope > summary") ?? target).focus({ preventScroll: true });
}

function named(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return "";
  }
}

const darkened = matchMedia("(prefers-color-scheme: dark)");
const themeButton = document.getElementById("theme");

const isDark = () => (document.documentElement.dataset.theme ?? (darkened.matches ? "dark" : "light")) === "dark";

function tellTheme() {
  themeButton.textContent = isDark() ? "Light theme" : "Dark theme";
}

themeButton.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  tellTheme();
});
darkened.addEventListener("change", tellTheme);

function beforePrint() {
  for (const folded of document.querySelectorAll(".others")) folded.open = true;
  heatList.grow(PRINTED.lines);
  workloadList.grow(Math.max(0, PRINTED.workloads - workloadList.drawn));
  for (const root of drawnWorkloads().slice(0, PRINTED.workloads)) {
    unfold(root, workloadsById.get(root.id));
    root.open = true;
  }
}

addEventListener("beforeprint", beforePrint);
addEventListener("hashchange", follow);
textInput.addEventListener("input", showSoon);
textInput.addEventListener("keydown", ({ key }) => key === "Escape" && forget());
document.querySelector("#notes button").addEventListener("click", () => {
  document.querySelector("input[value=info]").checked = true;
  show();
});
const unfoldFilter = document.getElementById("unfold-filter");
unfoldFilter.addEventListener("click", () => {
  const unfolded = document.getElementById("filter").classList.toggle("unfolded");
  unfoldFilter.setAttribute("aria-expanded", String(unfolded));
  if (unfolded) textInput.focus();
});
for (const input of [namespaceSelect, ...severityInputs]) input.addEventListener("change", show);

for (const id of ["filter", "theme"]) document.getElementById(id).hidden = false;
document.getElementById("workloads").hidden = !workloads.length;
document.getElementById("heatmap").hidden = !columnsByKey.size;
for (const link of document.querySelectorAll("nav a")) link.hidden = document.querySelector(link.hash).hidden;
tellTheme();
show();
follow();
