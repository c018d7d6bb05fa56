/* The page: filter, addresses of findings and workloads, theme, print. */

const PRINTED = { findings: 500, workloads: 100, lines: 300 };

const textInput = document.getElementById("text");
const namespaceSelect = document.getElementById("namespace");
const severityInputs = [...document.querySelectorAll("input[name=severity]")];

function show() {
  filter.words = textInput.value.toLowerCase().split(/\s+/).filter(Boolean);
  filter.namespace = namespaceSelect.value;
  filter.severities = new Set(severityInputs.filter(({ checked }) => checked).map(({ value }) => value));
  showFindings();
  showWorkloads();
  showHeatmap();
  const shown = [plural(findingList.items.length, "finding"), plural(workloadList.items.length, "workload")];
  document.getElementById("found").textContent = shown.join(", ");
}

let waiting = 0;

function showSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(show, 120);
}

function forget() {
  textInput.value = namespaceSelect.value = "";
  for (const input of severityInputs) input.checked = true;
  show();
}

/** Shows the finding or workload that the address names. */
function follow() {
  const item = byId.get(named(location.hash));
  if (!item) return;
  const listing = isFinding(item) ? findingList : workloadList;
  if (!passes(item)) forget();
  listing.reveal(item);
  const target = document.getElementById(item.id);
  if (target.matches("details")) {
    unfold(target, item);
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
  findingList.grow(PRINTED.findings);
  for (const pods of document.querySelectorAll(".pods")) pods.open = true;
  heatList.grow(PRINTED.lines);
  workloadList.grow(Math.max(0, PRINTED.workloads - workloadList.drawn));
  for (const root of drawnWorkloads().slice(0, PRINTED.workloads)) {
    unfold(root, byId.get(root.id));
    root.open = true;
  }
}

addEventListener("beforeprint", beforePrint);
addEventListener("hashchange", follow);
textInput.addEventListener("input", showSoon);
textInput.addEventListener("keydown", ({ key }) => key === "Escape" && forget());
for (const input of [namespaceSelect, ...severityInputs]) input.addEventListener("change", show);

const namespaces = [...new Set([...findings, ...workloads].map(({ namespace }) => namespace))].sort(compare);
namespaceSelect.append(...namespaces.map((name) => element("option", { value: name }, name)));
namespaceSelect.parentElement.hidden = namespaces.length < 2;
for (const id of ["filter", "theme"]) document.getElementById(id).hidden = false;
document.getElementById("workloads").hidden = !workloads.length;
document.getElementById("heatmap").hidden = !columnsByKey.size;
for (const link of document.querySelectorAll("nav a")) link.hidden = document.querySelector(link.hash).hidden;
tellTheme();
show();
follow();
