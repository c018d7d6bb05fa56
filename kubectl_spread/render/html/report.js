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
const workloads = records(data.workloads);
const rows = records(data.rows);
const workloadsById = new Map();

for (const workload of workloads) {
  workload.id = `workload/${workload.namespace}/${workload.name}`;
  workload.rows = [];
  workload.findings = [];
  workloadsById.set(workload.id, workload);
}
for (const row of rows) {
  row.workload = workloads[row.workload];
  row.workload.rows.push(row);
}
for (const finding of records(data.findings)) workloads[finding.workload].findings.push(finding);

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

/* The filter: every word has to be in the text of a finding or workload. */

const QUIET = "info";
const filter = { words: [], severities: new Set(), namespace: "" };

const passesWords = (text) => filter.words.every((word) => text.toLowerCase().includes(word));
const textInRow = (row) => [row.clause, row.path, row.effective, row.verdicts.join(" ")];

function textIn({ namespace, name, findings, rows }) {
  return [namespace, name, ...findings.map(({ rule }) => rule), ...rows.flatMap(textInRow)].join(" ");
}

/** Tells whether a workload passes the filter. Notes alone do not hide it, nor does their absence. */
function passes(workload) {
  if (filter.namespace && workload.namespace !== filter.namespace) return false;
  const isAny = SEVERITIES.every((severity) => severity === QUIET || filter.severities.has(severity));
  if (!isAny && !workload.findings.some(({ severity }) => filter.severities.has(severity))) return false;
  workload.text ??= textIn(workload);
  return passesWords(workload.text);
}
