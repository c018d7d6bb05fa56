/* Boxes of text to copy: to the clipboard where the browser allows it, else by a selection. */

const copied = document.getElementById("copied");
const TOLD_FOR = 2500;

/** Returns a box with a command or a patch, and a button that copies it. */
function copyBox(text, noun) {
  const code = element("code", {}, text);
  const word = element("span", {}, "Copy");
  const button = element("button", { type: "button", class: "copy" }, word, element("span", { class: "unseen" }, ` the ${noun}`));
  let waiting = 0;
  button.addEventListener("click", async () => {
    const done = await copyText(text, code);
    word.textContent = done ? "Copied" : "Selected";
    copied.textContent = done ? `Copied the ${noun}.` : `The ${noun} is selected: copy it with the keyboard.`;
    button.classList.toggle("done", done);
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      word.textContent = "Copy";
      copied.textContent = "";
      button.classList.remove("done");
    }, TOLD_FOR);
  });
  return element("div", { class: `box ${noun}` }, element("pre", {}, code), button);
}

async function copyText(text, code) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(code);
  }
}

/** Selects an element and copies it; where that fails, the selection stays for the user. */
function copySelected(code) {
  const selection = getSelection();
  selection.selectAllChildren(code);
  const done = document.execCommand("copy");
  if (done) selection.removeAllRanges();
  return done;
}
