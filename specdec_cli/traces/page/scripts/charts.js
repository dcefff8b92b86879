// Column charts: stacked parts of each column, and a dashed curve if there is one. Their words are HTML around the image.

const MOST_COLUMNS = 160;
const HEIGHT = 100;

// `chart` has: title, note, parts [{name, kind}], columns [[part, …]], curve [value or null] with curveName, tell(column),
// heads and rows(column) for the table, scale(highest) for the words at the top, ends [left, right], open(column) or null.
function showChart(chart) {
  const { columns, curve = [] } = chart;
  const highest =
    Math.max(...columns.map((parts) => parts.reduce((a, b) => a + b, 0)), ...curve.map((value) => value ?? 0)) || 1;
  const readout = make("p", { class: "readout" }, "");
  const image = chartImage(chart, chart.highest ?? highest);
  watchPointer(image, chart, readout);
  return make(
    "figure",
    { class: "card" },
    make("figcaption", {}, make("h3", {}, chart.title), make("p", { class: "note" }, chart.note)),
    chartKeys(chart),
    make(
      "div",
      { class: "plot" },
      make("span", { class: "high" }, chart.scale(chart.highest ?? highest)),
      make("span", { class: "low" }, "0"),
      image,
      make("div", { class: "ends" }, ...chart.ends.map((words) => make("span", {}, words))),
    ),
    readout,
    makeLazily("As a table", () =>
      make(
        "div",
        { class: "rows", tabindex: "0", role: "group", "aria-label": chart.title },
        makeTable(
          chart.title,
          chart.heads,
          columns.map((_, column) => chart.row(column)),
        ),
      ),
    ),
  );
}

function chartImage({ title, note, parts, columns, curve = [], open }, highest) {
  const width = 100 / columns.length;
  const gap = columns.length > 60 ? 0 : width * 0.15;
  const level = (value) => HEIGHT - (HEIGHT * value) / highest;
  const image = draw("svg", {
    role: "img",
    "aria-label": `${title}. ${note}`,
    class: open ? "opens" : null,
    viewBox: `0 0 100 ${HEIGHT}`,
    preserveAspectRatio: "none",
  });
  const paths = parts.map(() => "");
  columns.forEach((values, column) => {
    let base = 0;
    values.forEach((value, part) => {
      if (value <= 0) return;
      paths[part] +=
        `M${column * width + gap} ${level(base)}V${level(base + value)}h${width - 2 * gap}V${level(base)}z`;
      base += value;
    });
  });
  image.append(...paths.map((path, part) => draw("path", { class: parts[part].kind, d: path })));
  let pen = "M";
  const line = curve
    .map((value, column) => {
      if (value == null) return "";
      const point = `${pen}${(column + 0.5) * width} ${level(value)}`;
      pen = "L";
      return point;
    })
    .join("");
  image.append(
    draw("path", { class: "curve", d: line, "vector-effect": "non-scaling-stroke" }),
    draw("line", { class: "cursor", y1: 0, y2: HEIGHT, x1: -9, x2: -9, "vector-effect": "non-scaling-stroke" }),
  );
  return image;
}

function chartKeys({ parts, curveName }) {
  const sign = (...shapes) => draw("svg", { "aria-hidden": "true", viewBox: "0 0 18 10" }, ...shapes);
  return make(
    "p",
    { class: "keys" },
    ...parts.map(({ name, kind }) =>
      make("span", {}, sign(draw("rect", { class: kind, width: 18, height: 10 })), name),
    ),
    curveName ? make("span", {}, sign(draw("path", { class: "curve", d: "M0 5H18" })), curveName) : null,
  );
}

function watchPointer(image, { columns, tell, open }, readout) {
  const columnAt = (event) => {
    const box = image.getBoundingClientRect();
    return Math.max(
      0,
      Math.min(columns.length - 1, Math.floor((columns.length * (event.clientX - box.left)) / box.width)),
    );
  };
  image.addEventListener("pointermove", (event) => readout.replaceChildren(tell(columnAt(event))));
  image.addEventListener("pointerleave", () => readout.replaceChildren());
  if (open) image.addEventListener("click", (event) => open(columnAt(event)));
}

// Move the cursor of each chart over rounds to round `place` of `total`.
function markCharts(place, total) {
  for (const cursor of document.querySelectorAll("svg.opens .cursor")) {
    const at = (100 * (place + 0.5)) / total;
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
  }
}
