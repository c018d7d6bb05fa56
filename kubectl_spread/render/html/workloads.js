/* The list of workloads: their constraints, drawn when a workload is unfolded. */

const FEW = 10;

const rankOf = ({ findings }) =>
  Math.min(SEVERITIES.length, ...findings.map(({ severity }) => SEVERITIES.indexOf(severity)));
const podsOf = ({ rows }) => Math.max(0, ...rows.map(({ pods }) => pods));
const excessOf = ({ rows }) => Math.max(...rows.map((row) => (row.maxSkew === null ? -Infinity : row.skew - row.maxSkew)));
const byName = (one, other) => compare(one.namespace, other.namespace) || compare(one.name, other.name);
const WORKLOADS_BY = {
  severity: (one, other) => rankOf(one) - rankOf(other) || byName(one, other),
  name: byName,
  skew: (one, other) => compare(excessOf(other), excessOf(one)) || byName(one, other),
  pods: (one, other) => podsOf(other) - podsOf(one) || byName(one, other),
};

function drawWorkload(workload) {
  const { root, slots } = copy("workload");
  root.id = workload.id;
  slots.name.textContent = workload.name;
  slots.namespace.textContent = workload.namespace;
  slots.marks.append(...marksOf(workload));
  slots.outline.append(...workload.rows.slice(0, NAMED).map(outlineOf));
  root.addEventListener("toggle", () => root.open && unfold(root, workload));
  if (workloads.length <= FEW) {
    root.open = true;
    unfold(root, workload);
  }
  return root;
}

/** The number of findings by severity. */
function marksOf({ findings }) {
  return SEVERITIES.flatMap((severity) => {
    const number = findings.filter((finding) => finding.severity === severity).length;
    return number ? [element("span", { class: `mark ${severity}` }, `${number} ${severity}`)] : [];
  });
}

function outlineOf(row) {
  const skew = row.skew === null ? "" : ` skew ${row.lowerBound ? "≥" : ""}${row.skew}/${row.maxSkew}`;
  const made = element("span", { class: isAbove(row) ? "brief above" : "brief", title: `${row.clause}: skew / maxSkew` });
  made.append(row.key.slice(row.key.lastIndexOf("/") + 1), skew);
  return made;
}

/** Draws what is in a workload, once. */
function unfold(root, workload) {
  const [links, constraints] = ["links", "constraints"].map((name) => root.querySelector(`[data-slot=${name}]`));
  if (constraints.children.length) return;
  for (const { cause, severity, rule } of workload.findings) {
    links.append(element("a", { href: `#cause-${cause}`, class: `mark ${severity}` }, `${severity} ${rule}`));
  }
  constraints.append(...workload.rows.map(drawConstraint));
}

function drawConstraint(row) {
  const { root, slots } = copy("constraint");
  slots.clause.textContent = row.clause;
  slots.path.textContent = row.path;
  define(slots.facts, factsOf(row));
  slots.verdicts.append(...row.verdicts.map((text) => element("span", { class: row.doubted ? "verdict doubted" : "verdict" }, text)));
  define(slots.selectors, selectorsOf(row));
  if (row.domains === null) root.querySelector(".counted").remove();
  else drawBars(row, slots);
  for (const line of row.diff ?? []) {
    slots.diff.append(element("span", { class: line.startsWith("-") ? "stored" : "merged" }, `${line}\n`));
  }
  if (!row.diff?.length) slots.diff.remove();
  return root;
}

function factsOf(row) {
  const apart = [
    row.pending ? `${row.pending} pending` : "",
    row.terminating ? `${row.terminating} terminating` : "",
  ].filter(Boolean);
  const skew = row.skew === null ? null : `${row.lowerBound ? "≥ " : ""}${row.skew}${isAbove(row) ? " ▲" : ""}`;
  return [
    ["Pods", row.pods.toLocaleString("en") + (apart.length ? ` (${apart.join(", ")})` : "")],
    ["Skew", skew],
    ["maxSkew", row.maxSkew],
    ["selfMatchNum", row.selfMatchNum],
    ["minDomains", row.minDomains],
    ["Node affinity", row.nodeAffinityPolicy],
    ["Node taints", row.nodeTaintsPolicy],
  ];
}

/** The selectors; those that are the same stand together. */
function selectorsOf(row) {
  const names = new Map();
  for (const name of ["authored", "stored", "merged", "effective"]) {
    if (row[name] !== null) names.set(row[name], [...(names.get(row[name]) ?? []), name]);
  }
  return [...names].map(([text, alike]) => [alike.join(", "), text]);
}

const workloadList = new Listing(partsOf("workloads", "workload-list"), drawWorkload);
const sortWorkloads = document.getElementById("sort-workloads");
const unfoldButton = document.getElementById("unfold");

function showWorkloads() {
  workloadList.show(workloads.filter((workload) => passes(workload)).sort(WORKLOADS_BY[sortWorkloads.value]));
  tellUnfold();
}

const drawnWorkloads = () => [...workloadList.list.children];

function tellUnfold() {
  unfoldButton.textContent = drawnWorkloads().some(({ open }) => !open) ? "Unfold all shown" : "Fold all shown";
  unfoldButton.hidden = !workloadList.items.length;
}

unfoldButton.addEventListener("click", () => {
  const open = drawnWorkloads().some((root) => !root.open);
  for (const root of drawnWorkloads()) root.open = open;
  tellUnfold();
});
workloadList.list.addEventListener("toggle", tellUnfold, true);
sortWorkloads.addEventListener("change", () => {
  showWorkloads();
  showHeatmap();
});
