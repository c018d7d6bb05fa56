/* The findings: the causes, and the objects of each, that pass the filter. */

const blocks = [...document.querySelectorAll("#finding-list > .block")].map((root) => ({
  root,
  severity: SEVERITIES.find((severity) => root.classList.contains(severity)),
  title: root.querySelector("h3").textContent,
  causes: [...root.querySelectorAll(".cause")].map((cause) => ({
    root: cause,
    sentence: cause.querySelector(".message").textContent,
    folded: cause.querySelector("details:has(> .objects)"),
    objects: [...cause.querySelectorAll(".objects > li")],
  })),
}));
const notes = document.getElementById("notes");
const noFindings = document.querySelector("#findings > .empty");

/** Tells whether an object of a cause passes the filter; names begin with the namespace where there are several. */
function passesObject({ textContent }, about) {
  return textContent.startsWith(filter.namespace && `${filter.namespace}/`) && passesWords(`${about} ${textContent}`);
}

/** Shows the findings that pass the filter, and returns their number and that of their causes. */
function showFindings() {
  const shown = { causes: 0, findings: 0 };
  let hiddenNotes = 0;
  for (const { root, severity, title, causes } of blocks) {
    const isWanted = filter.severities.has(severity);
    for (const cause of causes) {
      const passing = cause.objects.filter((item) => passesObject(item, `${title} ${cause.sentence}`));
      for (const item of cause.objects) item.hidden = true;
      for (const item of passing) item.hidden = false;
      cause.root.hidden = !passing.length;
      if (cause.folded && passing.length < cause.objects.length) cause.folded.open = true;
      if (isWanted) shown.findings += passing.length;
      if (isWanted && passing.length) shown.causes += 1;
      if (!isWanted && passing.length && severity === QUIET) hiddenNotes += 1;
    }
    root.hidden = !isWanted || causes.every((cause) => cause.root.hidden);
  }
  notes.hidden = !hiddenNotes;
  notes.firstElementChild.textContent = `${plural(hiddenNotes, "note")} hidden.`;
  noFindings.hidden = shown.causes > 0;
  noFindings.textContent = emptyText(hiddenNotes);
  return shown;
}

/** The text of an empty list, which never claims more than the filter lets through. */
function emptyText(hiddenNotes) {
  if (!blocks.length) return "No findings.";
  return hiddenNotes ? "No errors or warnings." : "No finding passes the filter.";
}
