/* Parts of the page: copies of templates, and lists. */

/** Copies a template and returns its root and its slots by name. */
function copy(id) {
  const root = document.getElementById(id).content.firstElementChild.cloneNode(true);
  const slots = Object.fromEntries([...root.querySelectorAll("[data-slot]")].map((slot) => [slot.dataset.slot, slot]));
  return { root, slots };
}

const addressOf = (item) => `#${encodeURIComponent(item.id)}`;

/** Appends pairs to a definition list; what does not apply is left out. */
function define(list, pairs) {
  for (const [name, value] of pairs) {
    if (value !== null) list.append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  }
}

/** Groups items by a key, in order of appearance. */
function grouped(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** The parts of a list in a section of the page. */
function partsOf(section, list) {
  const root = document.getElementById(section);
  return { list: document.getElementById(list), more: root.querySelector(":scope > .more"), empty: root.querySelector(".empty") };
}

const STEP = 50;

/** A list of which a part is drawn, and more on demand. */
class Listing {
  constructor({ list, more, empty }, draw) {
    Object.assign(this, { list, more, empty, draw, items: [], drawn: 0 });
    this.more.addEventListener("click", () => this.growFromHere());
  }

  /** Draws the first of some items in place of what was there. */
  show(items) {
    this.items = items;
    this.drawn = 0;
    this.list.replaceChildren();
    this.grow(STEP);
  }

  grow(number) {
    const next = this.items.slice(this.drawn, this.drawn + number);
    this.list.append(...next.map((item) => this.draw(item)));
    this.drawn += next.length;
    const left = this.items.length - this.drawn;
    this.more.hidden = !left;
    this.more.textContent = `Show ${Math.min(left, STEP)} more of ${this.items.length.toLocaleString("en")}`;
    this.empty.hidden = this.items.length > 0;
  }

  /** Draws more, and continues with the keyboard at the first that is new. */
  growFromHere() {
    const before = this.list.children.length;
    this.grow(STEP);
    const first = this.list.children[before];
    const target = first?.matches("[tabindex]") ? first : first?.querySelector("a");
    target?.focus({ preventScroll: true });
  }

  /** Draws up to an item. */
  reveal(item) {
    const missing = this.items.indexOf(item) + 1 - this.drawn;
    if (missing > 0) this.grow(Math.ceil(missing / STEP) * STEP);
  }
}
