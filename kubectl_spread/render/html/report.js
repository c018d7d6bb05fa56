"use strict";

/* The report as the page holds it: columns by name; those that end with $ hold indices into `texts`. */

const data = JSON.parse(document.getElementById("data").textContent);
const SEVERITIES = ["error", "warning", "info"];

const textOf = (value) => (Array.isArray(value) ? value.map(textOf) : value === null ? null : data.texts[value]);

function records(columns) {
  const entries = Object.entries(columns).map(([name, column]) =>
    name.endsWith("$") ? [name.slice(0, -1), column.map(textOf)] : [name, column],
  );
  return Array.from({ length: entries.length ? entries[0][1].length : 0 }, (_, index) =>
    Object.fromEntries(entries.map(([name, column]) => [name, column[index]])),
  );
}

const domainSets = records(data.domains);
const findings = records(data.findings);
const workloads = records(data.workloads);
const rows = records(data.rows);
const byId = new Map();

for (const workload of workloads) {
  workload.id = `workload/${workload.namespace}/${workload.name}`;
  workload.rows = [];
  workload.findings = [];
  byId.set(workload.id, workload);
}
for (const row of rows) {
  row.workload = workloads[row.workload];
  row.workload.rows.push(row);
}
findings.forEach((finding, index) => {
  finding.id = `finding-${index + 1}`;
  finding.workload = byId.get(`workload/${finding.namespace}/${finding.object}`);
  finding.workload?.findings.push(finding);
});
for (const finding of findings) byId.set(finding.id, finding);

const isFinding = (item) => "severity" in item;
const isAbove = (row) => row.maxSkew !== null && row.skew !== null && row.skew > row.maxSkew;

/** The domains of a row: value, nodes, matching pods, and whether one more pod may go there (null: not told). */
function domainsOf(row) {
  if (row.domains === null) return [];
  const { values, nodes } = domainSets[row.domains];
  return values.map((value, index) => ({
    value,
    nodes: nodes[index],
    count: row.counts[index],
    allowed: row.allowed === null ? null : row.allowed[index] === "1",
  }));
}

/* The filter: every word must stand somewhere in what is shown of an item. */

const QUIET = "info";
const filter = { words: [], severities: new Set(), namespace: "" };

function textIn(item) {
  const own = isFinding(item)
    ? [item.code, item.name, item.namespace, item.object, item.path, item.written, item.message, ...item.pods]
    : [item.namespace, item.name, ...item.findings.map(({ code, name }) => `${code} ${name}`), ...item.rows.flatMap(textInRow)];
  return own.join(" ").toLowerCase();
}

const textInRow = (row) => [row.clause, row.path, row.effective, row.verdicts.join(" ")];

/** Tells whether an item passes the filter. Notes alone do not hide a workload, nor does their absence. */
function passes(item, anySeverity = false) {
  if (filter.namespace && item.namespace !== filter.namespace) return false;
  if (!anySeverity && !passesSeverity(item)) return false;
  if (!filter.words.length) return true;
  item.text ??= textIn(item);
  return filter.words.every((word) => item.text.includes(word));
}

function passesSeverity(item) {
  if (isFinding(item)) return filter.severities.has(item.severity);
  if (SEVERITIES.every((severity) => severity === QUIET || filter.severities.has(severity))) return true;
  return item.findings.some(({ severity }) => filter.severities.has(severity));
}
