/* The pods of each domain as bars, with the global minimum and minimum + maxSkew as lines through all of them. */

const SINGLE = 12;
const NAMED = 3;

/** One bar a domain; where there are many, one for all domains that hold as many pods. */
function barsOf(row) {
  const domains = domainsOf(row);
  const empty = row.emptyDomains ?? 0;
  if (domains.length + empty <= SINGLE) {
    return domains.map((domain) => ({
      label: domain.value,
      title: plural(domain.nodes, "node"),
      count: domain.count,
      open: domain.allowed ? "+1" : "",
    }));
  }
  const byCount = grouped(domains, ({ count }) => count);
  const bars = [...byCount].map(([count, alike]) => together(count, alike, 0));
  if (empty) {
    const zero = bars.findIndex(({ count }) => count === 0);
    const made = together(0, byCount.get(0) ?? [], empty);
    bars.splice(zero < 0 ? bars.length : zero, zero < 0 ? 0 : 1, made);
  }
  return bars.sort((one, other) => other.count - one.count);
}

function together(count, domains, unnamed) {
  const names = domains.slice(0, NAMED).map(({ value }) => value);
  const more = domains.length + unnamed - names.length;
  const open = domains.filter(({ allowed }) => allowed).length;
  return {
    label: plural(domains.length + unnamed, "domain"),
    title: names.join(", ") + (more && names.length ? ` and ${more} more` : ""),
    count,
    open: open ? `+1 in ${open}` : "",
  };
}

function drawBars(row, { bars, legend }) {
  const found = barsOf(row);
  const limit = row.maxSkew === null ? null : row.minMatchNum + row.maxSkew;
  const scale = Math.max(1, limit ?? 0, ...found.map(({ count }) => count));
  const table = bars.closest("table");
  table.style.setProperty("--minimum", row.minMatchNum / scale);
  table.style.setProperty("--limit", (limit ?? 0) / scale);
  table.hidden = !found.length;
  bars.append(...found.map((bar) => drawBar(bar, bar.count / scale, limit)));
  legend.append(...legendOf(row, limit, found));
}

function drawBar(bar, share, limit) {
  const above = limit !== null && bar.count > limit;
  const line = element("span", { class: above ? "line above" : "line" });
  line.style.setProperty("--share", share);
  const count = element("td", { class: "count" }, bar.count.toLocaleString("en"));
  if (above) count.append(element("span", { class: "unseen" }, " above the limit"));
  if (bar.open) count.append(" ", element("span", { class: "open", title: "one more pod may go here" }, bar.open));
  const label = element("th", { scope: "row", title: `${bar.label}: ${bar.title}` }, bar.label);
  return element("tr", {}, label, element("td", { class: "bar" }, line), count);
}

function legendOf(row, limit, found) {
  if (!found.length) return ["No domain is eligible."];
  const key = (name, text) => element("span", { class: `key ${name}` }, text);
  const keys = [key("minimum", `global minimum ${row.minMatchNum}`)];
  if (limit !== null) keys.push(key("limit", `minimum + maxSkew ${limit}`));
  if (found.some(({ open }) => open)) keys.push(key("may", "one more pod may go"));
  if (row.allowedNumber !== null) keys.push(key("may", `one more pod may go to ${plural(row.allowedNumber, "domain")}`));
  return keys;
}
