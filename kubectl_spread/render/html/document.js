/* The page of a document: each box of a command or of lines gets a button. */

for (const box of document.querySelectorAll(".box")) {
  const noun = box.classList.contains("command") ? "command" : "lines";
  box.replaceWith(copyBox(box.querySelector("code").textContent, noun));
}
