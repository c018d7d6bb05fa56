/* The heat map: a line for each constraint by one topology key, a column for each domain. */

const MOST_COLUMNS = 60;
const ZONE = "topology.kubernetes.io/zone";

/** Maps a topology key to its domains, in order; keys with too many domains for a map are left out. */
const columnsByKey = new Map();
for (const row of rows) {
  if (row.domains === null) continue;
  const values = columnsByKey.get(row.key) ?? new Set();
  columnsByKey.set(row.key, values);
  if (values.size <= MOST_COLUMNS) for (const value of domainSets[row.domains].values) values.add(value);
}
for (const [key, values] of columnsByKey) {
  if (!values.size || values.size > MOST_COLUMNS) columnsByKey.delete(key);
  else columnsByKey.set(key, [...values].sort(compare));
}

const keySelect = document.getElementById("key");
keySelect.append(...[...columnsByKey.keys()].sort(compare).map((key) => element("option", { value: key }, key)));
if (columnsByKey.has(ZONE)) keySelect.value = ZONE;

function drawHeatLine(row) {
  const counts = new Map(domainsOf(row).map(({ value, count }) => [value, count]));
  const most = Math.max(1, ...counts.values());
  const link = element("a", { href: addressOf(row.workload) }, row.workload.name);
  const head = element("th", { scope: "row" }, link, " ", element("span", { class: "quiet" }, row.workload.namespace));
  const several = row.workload.rows.filter(({ key }) => key === row.key).length > 1;
  if (several) head.append(element("span", { class: "quiet" }, ` · ${plural(row.pods, "pod")} ${row.verdicts[0] ?? row.path}`));
  const columns = columnsByKey.get(row.key);
  return element("tr", {}, head, ...columns.map((value) => drawCell(row, counts.get(value), most)));
}

function drawCell(row, count, most) {
  if (count === undefined) return element("td", { class: "outside" }, "·");
  const above = row.maxSkew !== null && count - row.minMatchNum > row.maxSkew;
  const cell = element("td", above ? { class: "above" } : {}, count.toLocaleString("en"));
  if (above) cell.append(" ▲");
  cell.style.setProperty("--share", count / most);
  return cell;
}

const heatList = new Listing(partsOf("heatmap", "heat-list"), drawHeatLine);

function showHeatmap() {
  const key = keySelect.value;
  const heads = (columnsByKey.get(key) ?? []).map((value) => element("th", { scope: "col" }, value));
  document.getElementById("heat-head").replaceChildren(element("tr", {}, element("th", { scope: "col" }, "Workload"), ...heads));
  heatList.show(workloadList.items.flatMap((workload) => workload.rows.filter((row) => row.key === key && row.domains !== null)));
}

keySelect.addEventListener("change", showHeatmap);
