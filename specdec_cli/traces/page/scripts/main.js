// What is shown, and what clicks and keys do about it.

const WIDE = matchMedia("(min-width: 68rem)");
const DARK = matchMedia("(prefers-color-scheme: dark)");

const view = { answer: null, tokens: [], firsts: [], token: -1, place: -1 };

const readData = (id) => JSON.parse(find(id).textContent);

function openAnswer(number) {
  view.answer = readData(`answer-${number}`);
  view.tokens = flatten(view.answer.rounds);
  view.firsts = new Map();
  view.tokens.forEach((token, index) => view.firsts.has(token.place) || view.firsts.set(token.place, index));
  view.token = view.place = -1;
  find("figures").replaceChildren(
    ...view.answer.figures.map(([name, value, note]) =>
      make(
        "li",
        {},
        make("span", { class: "name" }, name),
        make("b", {}, value),
        make("span", { class: "note" }, note),
      ),
    ),
  );
  find("facts").replaceChildren(
    ...view.answer.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, tame(value))]),
  );
  showAnswer(view.tokens, view.answer.rounds, find("rejected").checked);
  showOverview(view.answer, openRound);
  closeRound();
  if (WIDE.matches && view.answer.rounds.length) openRound(0);
}

// Open the round at `place` where `token` (an index, -1 for none) came from.
function open(place, token, part) {
  const focused = document.activeElement?.closest("#round") ? document.activeElement.id : null;
  Object.assign(view, { place, token });
  showRound(view.answer, place, part);
  markToken(token, place);
  const { rounds } = view.answer;
  markCharts(place, rounds.length);
  find("said").replaceChildren(`${nameOf(rounds[place])}. ${roundWords(rounds[place])}`);
  if (focused) (find(focused)?.disabled === false ? find(focused) : find("round-title")).focus();
}

const openToken = (index) => open(view.tokens[index].place, index, view.tokens[index].part);

function openRound(place) {
  const token = view.firsts.get(place) ?? -1;
  open(place, token, token < 0 ? "draft-0" : view.tokens[token].part);
}

function closeRound() {
  find("round").classList.remove("open");
  find("round").replaceChildren(
    make("p", { class: "note" }, "Choose a token of the answer to see the round that it came from."),
  );
}

function openNextCorrection() {
  const from = Math.max(view.token, view.firsts.get(view.place) ?? -1) + 1;
  const order = view.tokens.map((_, index) => (index + from) % view.tokens.length);
  const found = order.find((index) => view.tokens[index].kind === "correction");
  if (found !== undefined) openToken(found);
}

function moveToken(step) {
  const start = view.token < 0 ? (view.firsts.get(view.place) ?? (step > 0 ? -1 : 0)) : view.token;
  const index = Math.max(0, Math.min(view.tokens.length - 1, start + step));
  if (view.tokens.length) openToken(index);
}

function moveRound(step) {
  const place = Math.max(0, Math.min(view.answer.rounds.length - 1, view.place + step));
  if (view.answer.rounds.length) openRound(place);
}

function enterRound() {
  if (view.place < 0) moveToken(1);
  else if (!find("round").classList.contains("open")) open(view.place, view.token, view.tokens[view.token]?.part);
  find("round-title")?.focus();
}

const KEYS = {
  ArrowRight: () => moveToken(1),
  ArrowLeft: () => moveToken(-1),
  ArrowDown: () => moveRound(1),
  ArrowUp: () => moveRound(-1),
  Home: () => moveToken(-Infinity),
  End: () => moveToken(Infinity),
  Enter: enterRound,
  " ": enterRound,
};

find("answer").addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

find("answer").addEventListener("click", (event) => {
  const { round, part } = event.target.closest(".token")?.dataset ?? {};
  if (round === undefined || !getSelection().isCollapsed) return;
  const index = event.target.id ? Number(event.target.id.split("-")[1]) : -1;
  open(Number(round), index, part);
});

// Copied text is the answer's own, without the line ends between blocks and without rejected drafts.
find("answer").addEventListener("copy", (event) => {
  const copied = getSelection().getRangeAt(0).cloneContents();
  copied.querySelectorAll(".rejected").forEach((node) => node.remove());
  event.clipboardData.setData("text/plain", copied.textContent);
  event.preventDefault();
});

find("round").addEventListener("click", (event) => {
  const actions = {
    previous: () => moveRound(-1),
    next: () => moveRound(1),
    "next-correction": openNextCorrection,
    close: leaveRound,
  };
  actions[event.target.id]?.();
});

function leaveRound() {
  if (!WIDE.matches) closeRound();
  find("answer").focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && view.place >= 0) leaveRound();
});

find("rejected").addEventListener("change", () => {
  showAnswer(view.tokens, view.answer.rounds, find("rejected").checked);
  if (view.place >= 0) markToken(view.token, view.place);
});

find("theme").addEventListener("click", () => showTheme(find("theme").getAttribute("aria-pressed") !== "true"));

function showTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  find("theme").setAttribute("aria-pressed", String(dark));
}

function start() {
  const names = readData("names");
  find("choice").append(
    ...names.map((name, number) => make("option", { value: number }, reveal(name).replaceAll("␣", " "))),
  );
  find("choice").addEventListener("change", (event) => openAnswer(Number(event.target.value)));
  find("chooser").hidden = names.length < 2;
  find("theme").setAttribute("aria-pressed", String(DARK.matches));
  showLegend();
  openAnswer(0);
}

start();
