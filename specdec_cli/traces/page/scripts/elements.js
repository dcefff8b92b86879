// Elements, made without any HTML in strings: children that are strings become text nodes.

const SVG = "http://www.w3.org/2000/svg";

const find = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// A table with a caption. A row is its cells, the first of which heads it; `mark` names the class of a row.
function makeTable(caption, heads, rows, mark = () => null) {
  return make(
    "table",
    {},
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make(
      "tbody",
      {},
      ...rows.map(([first, ...rest], index) =>
        make(
          "tr",
          { class: mark(index) },
          make("th", { scope: "row" }, first),
          ...rest.map((cell) => (cell instanceof Element ? cell : make("td", {}, cell))),
        ),
      ),
    ),
  );
}

// Details whose content is made when they are first opened.
function makeLazily(summary, content) {
  const details = make("details", {}, make("summary", {}, summary));
  details.addEventListener("toggle", () => details.append(content()), { once: true });
  return details;
}
