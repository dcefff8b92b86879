// Small pictures inside a round. What they show stands beside them as numbers.

// A table cell with a bar of `share`, 0..1.
function weightCell(share, kind) {
  return make(
    "td",
    { class: "weight" },
    make(
      "span",
      {},
      draw(
        "svg",
        { "aria-hidden": "true", viewBox: "0 0 100 10", preserveAspectRatio: "none" },
        draw("rect", { class: "rail", width: 100, height: 10 }),
        draw("rect", { class: kind, width: 100 * share, height: 10 }),
      ),
      make("span", { class: "number" }, probability(share)),
    ),
  );
}

const chip = (text, kind = "") => make("span", { class: `chip ${kind}` }, reveal(text));

// p against q at the position of a drafted token, which is among them in any case; the token drawn instead is marked too.
function candidatesTable({ id: draftedId, text: drafted, q: itsQ, examined }, drawnId) {
  const mark = ([id]) => (id === draftedId ? "drafted" : id === drawnId ? "drawn" : null);
  const missing = examined.top.every(([id]) => id !== draftedId);
  const rows = missing ? [...examined.top, [draftedId, drafted, examined.p, itsQ]] : examined.top;
  return makeTable(
    "p against q: the likeliest tokens of both",
    ["token", "target p", "draft q"],
    rows.map(([, text, p, q]) => [chip(text), weightCell(p, "ours"), weightCell(q, "theirs")]),
    (index) => mark(rows[index]),
  );
}

function lawTable(last, drawnId) {
  return makeTable(
    "Where it was drawn from",
    ["token", "probability"],
    last.law.map(([, text, chance]) => [chip(text), weightCell(chance, "ours")]),
    (index) => (last.law[index][0] === drawnId ? "drawn" : null),
  );
}

// The chance that a token is kept, and where the draw fell.
function gauge(chance, luck) {
  const words = `chance ${probability(chance)}, draw ${probability(luck)}`;
  return make(
    "div",
    {},
    draw(
      "svg",
      { class: "gauge", role: "img", "aria-label": words, viewBox: "0 0 100 16", preserveAspectRatio: "none" },
      draw("rect", { class: "rail", y: 3, width: 100, height: 10, "vector-effect": "non-scaling-stroke" }),
      draw("rect", { class: "chance", y: 3, width: 100 * chance, height: 10 }),
      draw("line", {
        class: "draw",
        x1: 100 * luck,
        x2: 100 * luck,
        y1: 0,
        y2: 16,
        "vector-effect": "non-scaling-stroke",
      }),
    ),
    make(
      "div",
      { class: "scale", "aria-hidden": "true" },
      make("span", {}, "0"),
      make("span", {}, "filled: kept if the draw falls here"),
      make("span", {}, "1"),
    ),
  );
}

// Draft, verify and sampling of the rounds around one, each in its lane.
const LANES = ["draft", "verify", "sample"];
const AROUND = 3;

function timeline(rounds, place) {
  const first = Math.max(0, place - AROUND);
  const shown = rounds.slice(first, place + AROUND + 1);
  const total = shown.reduce((sum, round) => sum + round.seconds.reduce((a, b) => a + b, 0), 0) || 1;
  const image = draw("svg", {
    class: "lanes",
    role: "img",
    viewBox: "0 0 1000 42",
    preserveAspectRatio: "none",
    "aria-label": `Rounds ${first} to ${first + shown.length - 1} took ${milliseconds(total)}`,
  });
  let at = 0;
  shown.forEach((round, offset) => {
    round.seconds.forEach((seconds, lane) => {
      const width = (1000 * seconds) / total;
      image.append(
        draw("rect", {
          class: `${LANES[lane]}${first + offset === place ? "" : " other"}`,
          x: at,
          y: 14 * lane + 2,
          width,
          height: 10,
        }),
      );
      at += width;
    });
  });
  return make(
    "div",
    {},
    make(
      "div",
      { class: "timeline" },
      make("div", { class: "lane-names" }, ...["draft", "verify", "sampling"].map((name) => make("span", {}, name))),
      image,
    ),
    make("p", { class: "note" }, `This round in full colour, its neighbours pale: ${milliseconds(total)} in all.`),
  );
}
