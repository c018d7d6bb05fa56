/* The list of findings: a block for each rule and severity, in it a paragraph for each cause. */

const CAUSES = 3;
const OBJECTS = 4;
const ADVISED = 3;
const STEP = 20;

/** The number of causes of findings: the page, the screen and the filter count these. */
const causesIn = (items) => new Set(items.map(({ block, cause }) => `${block} ${cause}`)).size;
const podsIn = (items) => items.reduce((sum, { podCount }) => sum + podCount, 0);
const BY = {
  severity: () => 0,
  rule: (one, other) => compare(one.code, other.code),
  pods: (one, other) => podsIn(other.findings) - podsIn(one.findings),
};

function compare(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Groups findings, which are in the order of their blocks and causes. */
function blocksOf(items) {
  const blocks = [];
  for (const finding of items) {
    let block = blocks.at(-1);
    if (block?.number !== finding.block) {
      block = { number: finding.block, code: finding.code, findings: [], causes: [] };
      blocks.push(block);
    }
    let cause = block.causes.at(-1);
    if (cause?.number !== finding.cause) {
      cause = { number: finding.cause, findings: [] };
      block.causes.push(cause);
    }
    block.findings.push(finding);
    cause.findings.push(finding);
  }
  return blocks;
}

function drawBlock(block) {
  const [first] = block.findings;
  const rules = [...grouped(block.findings, ({ code }) => code).values()].flatMap(([{ code, name }], index) => [
    index ? ", " : "",
    element("a", { class: "rule", href: `#${code}` }, element("span", { class: "code" }, code), ` ${name}`),
  ]);
  const severity = element("span", { class: "severity" }, first.severity);
  const title = element("h3", { tabindex: "-1" }, icon(first.severity), " ", severity, " ", ...rules);
  if (block.findings.length > 1) title.append(" ", element("span", { class: "subject" }, subjectOf(block.findings)));
  const list = element("div", {});
  const more = moreButton();
  block.listing = new Listing({ list, more }, drawCause, { step: STEP, first: CAUSES, noun: "causes" });
  block.listing.show(block.causes);
  return element("section", { class: `block ${first.severity}` }, title, list, more);
}

/** The number of the workloads of findings, and of their namespaces. */
function subjectOf(items) {
  const objects = new Set(items.map(({ namespace, object }) => `${namespace}/${object}`)).size;
  const spaces = new Set(items.map(({ namespace }) => namespace)).size;
  return plural(objects, "workload") + (spaces > 1 ? ` in ${plural(spaces, "namespace")}` : "");
}

function drawCause(cause) {
  const list = element("ul", { class: "objects" });
  const more = moreButton();
  const paths = new Set(cause.findings.map(({ path }) => path));
  const common = cause.findings.length > 1 && paths.size === 1;
  cause.listing = new Listing({ list, more }, (finding) => drawObject(finding, common), { step: STEP, first: OBJECTS, noun: "objects" });
  cause.listing.show(cause.findings);
  const [first] = cause.findings;
  const message = element("p", { class: "message" }, first.about ?? first.message);
  const where = common ? [element("p", { class: "path where" }, ...paths)] : [];
  return element("div", { class: "cause", tabindex: "-1" }, message, ...where, list, more, ...drawAllAdvice(cause.findings));
}

/** The fixes, and the way to open the closed domains for which pods wait: second if these are meant to stay closed. */
function drawAllAdvice(items) {
  const [{ opening, opened, lasting, condition }] = items;
  const own = drawAdvice(items);
  if (!opening) return own;
  const label = element("b", {}, lasting ? condition : "Fix");
  const drawn = [element("p", { class: "fix" }, label, " ", opening), ...opened.map((command) => copyBox(command, "command"))];
  return lasting ? [...own, ...drawn] : [...drawn, ...own];
}

/** An object of a cause; a path that all objects of the cause have in common is not repeated. */
function drawObject(finding, withoutPath) {
  const link = element("a", { class: "object" }, finding.object);
  if (finding.workload) link.href = addressOf(finding.workload);
  const item = element("li", { id: finding.id, tabindex: "-1" }, link);
  item.append(" ", element("span", { class: "namespace" }, finding.namespace));
  if (finding.written) item.append(" ", element("span", { class: "path" }, finding.written));
  if (!withoutPath) item.append(" ", element("span", { class: "path" }, finding.path));
  if (!finding.pods.length) item.append(" ", element("span", { class: "concerned" }, finding.concerned));
  else item.append(" ", drawPods(finding));
  return item;
}

function drawPods(finding) {
  const unnamed = finding.podCount - finding.pods.length;
  const names = finding.pods.join(" ") + (unnamed ? ` and ${unnamed.toLocaleString("en")} more` : "");
  return element("details", { class: "pods" }, element("summary", {}, finding.concerned), element("p", {}, names));
}

/** The different fixes of a cause, each with what to type; many fixes are drawn on demand. */
function drawAdvice(items) {
  const own = items.filter(({ fix }) => fix);
  const fixes = [...grouped(own, ({ fix, patch }) => `${fix}\n${patch}`).values()];
  const shown = fixes.length <= ADVISED ? fixes : fixes.slice(0, 1);
  const made = shown.flatMap((findings) => drawFix(findings, fixes.length > 1));
  const left = fixes.slice(shown.length);
  if (left.length) made.push(folded(`Fixes for ${left.flat().length.toLocaleString("en")} more`, left, (findings) => drawFix(findings, true), "fixes"));
  return made;
}

/** A fix, with the first of its objects if others are fixed in another way. */
function drawFix(items, isOneOfSeveral) {
  const [first] = items;
  const more = items.length > 1 ? ` and ${(items.length - 1).toLocaleString("en")} more` : "";
  const start = first.condition && !first.lasting ? first.condition : "Fix";
  const label = isOneOfSeveral ? `${start} for ${first.namespace}/${first.object}${more}` : start;
  const made = [element("p", { class: "fix" }, element("b", {}, label), " ", first.fix), ...drawCommands(items)];
  if (first.patch) made.push(drawPatch(first.patch, first));
  return made;
}

/** The commands of all objects if these are few, else of the first one and the others on demand. */
function drawCommands(items) {
  const typed = new Set();
  const each = items
    .map(({ commands }) => commands.filter((command) => !typed.has(command) && typed.add(command)))
    .filter(({ length }) => length);
  const shown = each.length <= ADVISED ? each : each.slice(0, 1);
  const draw = (commands) => commands.map((command) => copyBox(command, "command"));
  const left = each.slice(shown.length);
  const made = shown.flatMap(draw);
  if (left.length) made.push(folded(`Commands for ${left.length.toLocaleString("en")} more`, left, draw, "commands"));
  return made;
}

/** A folded list, which is drawn when it is unfolded. */
function folded(summary, items, draw, noun) {
  const list = element("div", {});
  const more = moreButton();
  const listing = new Listing({ list, more }, (item) => element("div", { class: "remedy", tabindex: "-1" }, ...draw(item)), { step: STEP, noun });
  const root = element("details", { class: "others" }, element("summary", {}, summary), list, more);
  more.hidden = true;
  root.addEventListener("toggle", () => root.open && !listing.items.length && listing.show(items));
  return root;
}

/** A patch; it is folded where a command applies it. */
function drawPatch(patch, { commands }) {
  const box = copyBox(patch, "patch");
  return commands.length ? element("details", { class: "patched" }, element("summary", {}, "The patch in lines"), box) : box;
}

const blockList = new Listing(partsOf("findings", "finding-list"), drawBlock, { step: 50, noun: "rules" });
const sortFindings = document.getElementById("sort-findings");
const notes = document.getElementById("notes");

function showFindings() {
  const shown = findings.filter((finding) => passes(finding));
  blockList.show(blocksOf(shown).sort(BY[sortFindings.value]));
  const hidden = filter.severities.has("info") ? 0 : causesIn(findings.filter((finding) => finding.severity === "info" && passes(finding, true)));
  notes.hidden = !hidden;
  blockList.empty.textContent = emptyText(hidden);
  notes.firstElementChild.textContent = `${plural(hidden, "note")} hidden.`;
  return shown;
}

/** The text of an empty list, which never claims more than the filter lets through. */
function emptyText(hiddenNotes) {
  if (!findings.length) return "No findings.";
  return hiddenNotes ? "No errors or warnings." : "No finding passes the filter.";
}

/** Draws the lists up to a finding. */
function revealFinding(finding) {
  const block = blockList.items.find(({ number }) => number === finding.block);
  const cause = block.causes.find(({ number }) => number === finding.cause);
  blockList.reveal(block);
  block.listing.reveal(cause);
  cause.listing.reveal(finding);
}

/** Draws at least some findings, with all that is folded. */
function drawForPrint(number) {
  for (const block of blockList.items) {
    for (const cause of block.causes) {
      if (number <= 0) return;
      block.listing.reveal(cause);
      cause.listing.reveal(cause.findings[Math.min(number, cause.findings.length) - 1]);
      number -= cause.findings.length;
    }
  }
}

sortFindings.addEventListener("change", showFindings);
sortFindings.parentElement.hidden = new Set(findings.map(({ block }) => block)).size < 2;
