/* The list of findings. */

const BY = {
  severity: () => 0,
  rule: (one, other) => compare(one.code, other.code),
  workload: (one, other) => compare(one.namespace, other.namespace) || compare(one.object, other.object),
  pods: (one, other) => other.podCount - one.podCount,
};

function compare(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}

function drawFinding(finding) {
  const { root, slots } = copy("finding");
  root.id = finding.id;
  root.classList.add(finding.severity);
  root.querySelector(".icon").replaceWith(icon(finding.severity));
  root.querySelector(".rule").href = `#${finding.code}`;
  for (const name of ["severity", "code", "name", "object", "namespace", "path", "concerned", "message", "fix"]) {
    slots[name].textContent = finding[name];
  }
  if (finding.workload) slots.object.href = addressOf(finding.workload);
  const unnamed = finding.podCount - finding.pods.length;
  slots.pods.textContent = finding.pods.join(" ") + (unnamed ? ` and ${unnamed.toLocaleString("en")} more` : "");
  root.querySelector(".pods").hidden = !finding.pods.length;
  return root;
}

const findingList = new Listing("findings", "finding-list", drawFinding, 50);
const sortFindings = document.getElementById("sort-findings");

function showFindings() {
  findingList.show(findings.filter(passes).sort(BY[sortFindings.value]));
}

sortFindings.addEventListener("change", showFindings);
sortFindings.parentElement.hidden = !findings.length;
